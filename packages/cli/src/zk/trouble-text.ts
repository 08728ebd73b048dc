/** Why a server could not be reached, in words: the client hands on what the system calls it. */

const words: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'no route to the network',
  EADDRNOTAVAIL: 'no such address on this machine',
  ETIMEDOUT: 'no answer in time',
  ENOTFOUND: 'there is no host of this name',
  ENODATA: 'the name has no such record',
  EAI_AGAIN: 'the name server does not answer',
};

/** The reason in one clause, without the server at its beginning, which the caller names. */
export function troubleText(reason: string, server?: string): string {
  const ownPart = server !== undefined && reason.startsWith(server) ? reason.slice(server.length).replace(/^: /, '') : reason;
  return ownPart
    .trim()
    .replace('connection failed: ', '')
    .replaceAll(/\bE[A-Z]+(?:_[A-Z]+)?\b/g, (code) => words[code] ?? code);
}
