/** How long to wait. */
export interface WaitOptions {
  /** Ends the wait, which then rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Ends the wait after this many milliseconds; it then rejects with a RecipeError, TimedOut.
   * `Infinity` means no limit. Default: none.
   */
  readonly timeoutMs?: number | undefined;
}
