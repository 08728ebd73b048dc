/** For a word that was probably meant otherwise: the nearest of those that there are. */

/** The candidate with the fewest letters to insert, delete, replace or swap; undefined when none is near. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  // A third of the letters may be wrong, and one in any case.
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    // The case costs nothing: `getacl` is `getAcl`.
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(Math.min(replaced, last[j]! + 1, row[j - 1]! + 1, isSwap ? beforeLast[j - 2]! + 1 : Infinity));
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length]!;
}
