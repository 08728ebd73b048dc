/** Turns the system's error codes, which the client passes on, into words. */

const errnoTexts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  EADDRNOTAVAIL: 'the address does not exist on this machine',
  ETIMEDOUT: 'timed out',
  ENOTFOUND: 'the host name does not exist',
  ENODATA: 'the name has no such record',
  EAI_AGAIN: 'the name server does not answer',
};

/** The reason in one clause, without the server's name at its start, which the caller prints. */
export function connectErrorText(reason: string, server?: string): string {
  const ownPart = server !== undefined && reason.startsWith(server) ? reason.slice(server.length).replace(/^: /, '') : reason;
  return ownPart
    .trim()
    .replace('connection failed: ', '')
    .replaceAll(/\bE[A-Z]+(?:_[A-Z]+)?\b/g, (code) => errnoTexts[code] ?? code);
}
