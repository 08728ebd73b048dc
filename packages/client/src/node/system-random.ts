/**
 * The machine's randomness. Most uses spread clients over servers and time, but the nonces of SASL
 * must be unpredictable.
 */
import { getRandomValues } from 'node:crypto';
import type { Random } from '../clock.ts';

export const systemRandom: Random = {
  uint32: () => getRandomValues(new Uint32Array(1))[0]!,
};
