/** How txns of a small world are named: a name tells one from every other, and says what it does. */

/** A write of the client that stays, and the data that it leaves at the root. */
export function putName(number: number): string {
  return `put ${number}`;
}

export function isPut(name: string): boolean {
  return name.startsWith('put ');
}

/** A session, and with it the txn that opened it. */
export function sessionName(high: number, low: number): string {
  return `${high}:${low}`;
}

/** A request that has failed; it changes nothing. */
export function errorName(session: string, cxid: number): string {
  return `error of ${session} ${cxid}`;
}

export function isError(name: string): boolean {
  return name.startsWith('error of ');
}
