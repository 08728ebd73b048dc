/** What a world can say of the memory a server lives in. Optional, like all facts about the host: without it only byte budgets hold. */

/** One kind of memory that can run out. */
export interface MemoryUse {
  /** As an operator would call it, behind "of": `the JavaScript heap`. */
  readonly what: string;
  readonly usedBytes: number;
  /** What may be used without harm. Reaching it is an error; something is done about it well before. */
  readonly limitBytes: number;
  /** A sentence: how to get more. */
  readonly remedy: string;
  /** The znodes' pages are among it, so that what is free in those is as good as not used. */
  readonly holdsTree: boolean;
  /**
   * What of it may be held by the allocator without being in use, at most. Where it has come from is not known; what the tree has given back is
   * likely to be among it, and is there for the tree to take again.
   */
  readonly slackBytes: number;
  /** Of the limit, what requests and garbage take for a moment: stages are shares of what is left without it. */
  readonly reserveBytes: number;
}

/**
 * Looks at all kinds of memory there are. Called several times a second, so it takes some microseconds. `returnedBytes` is what the tree has given
 * back since it was at its largest: where that has grown there is garbage, worth a collection if memory is short.
 */
export type MemoryProbe = (returnedBytes: number) => readonly MemoryUse[];
