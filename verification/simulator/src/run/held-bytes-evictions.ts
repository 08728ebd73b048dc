/**
 * Checks that servers which hold too much for clients close the connections that hold most
 * (packages/runtime/src/ports/client/load-shedder.ts).
 */

const evictionLine =
  /was closed: it held (\d+) of the (\d+) bytes that are held for (\S+), and of (\d+) that are held for clients; the limit is (\d+)/;

/** Matches the log lines of servers that closed such a connection. */
export const evictionPattern = /was closed: it held \d+ of the \d+ bytes/;

/**
 * The violations, given the number of connections that each address ever had. An address that pays
 * holds more than an equal share of the limit among all possible ones, and the closed connection
 * more than an equal share among those of its address.
 */
export function wrongEvictions(lines: readonly string[], cnxnsOf: ReadonlyMap<string, number>): string[] {
  return lines.flatMap((text) => {
    const found = evictionLine.exec(text);
    if (found === null) return [];
    const [cnxn, address, all, limit] = [1, 2, 4, 5].map((at) => Number(found[at])) as [number, number, number, number];
    const isHeavy = address * cnxnsOf.size >= limit && cnxn * (cnxnsOf.get(found[3]!) ?? 0) >= address;
    const isWrong = !isHeavy || cnxn > address || address > all;
    return isWrong ? [`a connection was closed for others that held more: ${text}`] : [];
  });
}
