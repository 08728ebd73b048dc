import { type CrashChoice, keepAll, loseAll, type SeededRandom } from '@tskeeper/runtime';

/**
 * What a power loss leaves of unsynced data: nothing, everything, whole pieces, or parts of pieces.
 */
export function drawCrashChoice(random: SeededRandom): CrashChoice {
  // Torn pieces in most cases.
  switch (random.below(6)) {
    case 0:
      return loseAll;
    case 1:
      return keepAll;
    case 2: {
      const share = random.below(100);
      return (item) => (random.below(100) < share ? keepAll(item, 0) : 0);
    }
    default:
      return (item) => (item.kind === 'bytes' ? random.below(item.length + 1) : random.below(2));
  }
}
