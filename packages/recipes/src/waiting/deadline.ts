/**
 * The deadline of a wait with several steps: one signal for the program's signal, the timeout, and
 * any other reason to stop.
 */
import type { ClientView, TimerHandle } from '@tskeeper/client';
import { onAbort, type OptionTypes } from '@tskeeper/client/internal';
import { callOptionTypes, checkCallOptions } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import type { WaitOptions } from '../wait-options.ts';

export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #clock: ClientView['clock'];
  readonly #timer: TimerHandle | undefined;
  readonly #removeAbortListener: (() => void) | undefined;

  /**
   * `what` completes "timed out waiting for": `lock /a`. `types` are the options of the call, if it
   * takes more than those of a wait.
   */
  constructor(zk: Pick<ClientView, 'clock'>, options: WaitOptions, what: string, types: OptionTypes = callOptionTypes.wait) {
    checkCallOptions(options, types, what);
    const { signal, timeoutMs } = options;
    signal?.throwIfAborted();
    this.#clock = zk.clock;
    if (timeoutMs !== undefined && timeoutMs !== Infinity) {
      this.#timer = zk.clock.after(timeoutMs, () =>
        this.abort(new RecipeError('TimedOut', `timed out after ${timeoutMs} ms waiting for ${what}`)),
      );
    }
    this.#removeAbortListener = signal && onAbort(signal, () => this.abort(signal.reason));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the wait with this reason. */
  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  [Symbol.dispose](): void {
    if (this.#timer !== undefined) this.#clock.cancel(this.#timer);
    this.#removeAbortListener?.();
  }
}

/** The result of the promise, unless the signal is aborted first. */
export async function unlessAborted<Result>(promise: Promise<Result>, signal: AbortSignal): Promise<Result> {
  if (signal.aborted) {
    // The caller does not see a later failure.
    promise.catch(() => undefined);
    throw signal.reason;
  }
  let removeAbortListener: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    removeAbortListener = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    removeAbortListener?.();
  }
}
