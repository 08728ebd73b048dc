/** Randomness for the runtime and the core. The simulator has a seeded one. */
export interface Random {
  /** Uniform over 0 .. 2^32 - 1. */
  uint32(): number;
}
