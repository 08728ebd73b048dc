/** Waits for time to pass. */
import type { Clock } from '@tskeeper/client';
import { onAbort } from '@tskeeper/client/internal';

/** Resolves after this many milliseconds. Rejects with the signal's reason. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = clock.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
      clock.cancel(timer);
      reject(signal.reason);
    });
  });
}
