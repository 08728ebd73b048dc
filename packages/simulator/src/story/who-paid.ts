/** Whether those were closed who held most, when more was held for clients than may be (packages/runtime/src/ports/held-shares.ts). */

const line =
  /was closed: it held (\d+) of the (\d+) bytes that are held for (\S+), and of (\d+) that are held for clients; the limit is (\d+)/;

/** Lines of a server that closed somebody for it, as a part of what they say. */
export const paid = /was closed: it held \d+ of the \d+ bytes/;

/**
 * What is wrong with whom a server closed, given how many connections there ever were from each address. An address that pays has more than
 * an equal share of the limit among all that there can be, and so has a connection among those of its address.
 */
export function whoPaidWrongly(lines: readonly string[], cnxnsOf: ReadonlyMap<string, number>): string[] {
  return lines.flatMap((text) => {
    const found = line.exec(text);
    if (found === null) return [];
    const [cnxn, address, all, limit] = [1, 2, 4, 5].map((at) => Number(found[at])) as [number, number, number, number];
    const isHeavy = address * cnxnsOf.size >= limit && cnxn * (cnxnsOf.get(found[3]!) ?? 0) >= address;
    const isWrong = !isHeavy || cnxn > address || address > all;
    return isWrong ? [`somebody paid for others who held more: ${text}`] : [];
  });
}
