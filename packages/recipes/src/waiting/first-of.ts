/** Waits for the first of several events. */
import { onAbort } from '@tskeeper/client/internal';

/**
 * Resolves or rejects with the first of the waits, and aborts the signal that the others received.
 * Rejects with the reason of `signal`.
 */
export async function firstOf<Result>(signal: AbortSignal, waits: readonly ((signal: AbortSignal) => Promise<Result>)[]): Promise<Result> {
  signal.throwIfAborted();
  const othersController = new AbortController();
  const removeAbortListener = onAbort(signal, () => othersController.abort(signal.reason));
  try {
    return await Promise.race(waits.map((wait) => wait(othersController.signal)));
  } finally {
    removeAbortListener();
    othersController.abort();
  }
}
