/** The machine's randomness. Mostly it spreads clients over servers and over time; the nonces of SASL must not be guessed besides. */
import { getRandomValues } from 'node:crypto';
import type { Random } from '../clock.ts';

export const systemRandom: Random = {
  uint32: () => getRandomValues(new Uint32Array(1))[0]!,
};
