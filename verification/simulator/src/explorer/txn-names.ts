/** Names of the txns of a small world: a name is unique and says what the txn does. */

/** A write of the persistent client, and the data that it leaves at the root. */
export function putName(number: number): string {
  return `put ${number}`;
}

export function isPut(name: string): boolean {
  return name.startsWith('put ');
}

/** A session, and the txn that created it. */
export function sessionName(high: number, low: number): string {
  return `${high}:${low}`;
}

/** A request that failed; it changes nothing. */
export function errorName(session: string, cxid: number): string {
  return `error of ${session} ${cxid}`;
}

export function isError(name: string): boolean {
  return name.startsWith('error of ');
}
