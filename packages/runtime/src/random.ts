/** Randomness, as the runtime and the core see it. The simulator brings a seeded one. */
export interface Random {
  /** Uniform over 0 .. 2^32 - 1. */
  uint32(): number;
}
