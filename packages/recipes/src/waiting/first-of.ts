/** Waits for the first of several events. */
import { onAbort } from '@tskeeper/client/internal';

/**
 * Resolves or rejects with the first of the waits, and aborts the signal that the others received.
 * Rejects with the reason of `signal`.
 */
export async function firstOf<Result>(signal: AbortSignal, waits: readonly ((signal: AbortSignal) => Promise<Result>)[]): Promise<Result> {
  signal.throwIfAborted();
  const over = new AbortController();
  const forget = onAbort(signal, () => over.abort(signal.reason));
  try {
    return await Promise.race(waits.map((wait) => wait(over.signal)));
  } finally {
    forget();
    over.abort();
  }
}
