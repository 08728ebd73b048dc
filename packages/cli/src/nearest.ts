/** For a word that was probably meant otherwise: the nearest of those that there are. */
import { editDistance } from '@tskeeper/protocol/internal';

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
