/** Finds the word that a mistyped word probably means. */
import { editDistance } from '@tskeeper/protocol/internal';

/**
 * The candidate with the smallest edit distance (insert, delete, replace, swap); undefined if none
 * is close.
 */
export function closestWord(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  // At least one letter may be wrong, and up to a third of them.
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    // Ignore case: `getacl` is `getAcl`.
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
