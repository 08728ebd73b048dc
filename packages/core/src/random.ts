/**
 * The core's only source of randomness: seeds of hash tables, throttles. Injected, so that a run
 * can be repeated.
 */
export interface Random {
  /** Uniform over 0 .. 2^32 - 1. */
  uint32(): number;
}
