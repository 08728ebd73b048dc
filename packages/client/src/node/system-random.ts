/** The machine's randomness: for spreading clients over servers and over time, where nothing has to be kept secret. */
import type { Random } from '../clock.ts';

export const systemRandom: Random = {
  uint32: () => Math.floor(Math.random() * 4294967296),
};
