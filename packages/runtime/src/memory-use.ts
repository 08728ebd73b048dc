/**
 * What a world reports about the memory of a server. Optional, like all facts about the host:
 * without it only the limits in bytes apply.
 */

/** One kind of memory that can run out. */
export interface MemoryUse {
  /** Its name for an operator, used after "of": `the JavaScript heap`. */
  readonly what: string;
  readonly usedBytes: number;
  /** The size that can be used safely. Reaching it is an error; the server reacts well before. */
  readonly limitBytes: number;
  /** A sentence: how to get more memory. */
  readonly remedy: string;
  /** Whether it contains the znodes' pages; then free space in those counts as unused. */
  readonly holdsTree: boolean;
  /**
   * Upper limit of what the allocator holds without using it. Its origin is unknown; memory that
   * the tree has released is probably part of it, and the tree can use it again.
   */
  readonly slackBytes: number;
  /**
   * The part of the limit that requests and garbage may take for a moment: stages are shares of the
   * rest.
   */
  readonly reserveBytes: number;
}

/**
 * Measures all kinds of memory. Called several times a second, so it should take microseconds.
 * `returnedBytes` is what the tree has released since it was largest: growth of it means garbage,
 * which is worth a collection when memory is short.
 */
export type MemoryProbe = (returnedBytes: number) => readonly MemoryUse[];
