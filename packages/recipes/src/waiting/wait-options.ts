/** How long to wait. */
export interface WaitOptions {
  /** Ends the waiting, which then rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** Ends the waiting after so many milliseconds; it then rejects with a RecipeError, TimedOut. `Infinity` is none. Default: none. */
  readonly timeoutMs?: number | undefined;
}
