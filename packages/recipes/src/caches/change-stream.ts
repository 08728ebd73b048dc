/**
 * The changes of a cache for one loop. It receives changes from its creation on, so that they
 * continue what the cache shows at that moment. It is bounded: after one change too many, a single
 * `overflowed` replaces everything in the queue, and everything that follows until the loop takes
 * it.
 */
import { onAbort } from '@tskeeper/client/internal';
import { callOptionTypes, checkCallOptions } from '../validation.ts';
import type { CacheChange } from './cached-znode.ts';

/** The options of one loop. */
export interface ChangesOptions {
  /** Ends the loop at once; it then throws the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** How many changes to keep for a slow loop. Default: 10 000. */
  readonly maxQueuedChanges?: number | undefined;
}

const maxQueuedChangesDefault = 10_000;
const done: IteratorReturnResult<undefined> = { done: true, value: undefined };

type ChangeWaiter<Data> = (result: Promise<IteratorResult<CacheChange<Data>, undefined>>) => void;

/**
 * The changes of a cache for one loop, `for await (const change of cache.changes())`: see
 * `Cache.changes`.
 */
export interface CacheChanges<Data> extends AsyncIterator<CacheChange<Data>, undefined>, AsyncIterable<CacheChange<Data>>, AsyncDisposable {
  /**
   * The next change, when there is one. Done when the program closes the cache or its client.
   * Rejects, once, with the error that has ended the cache, such as SessionExpired, after all
   * earlier changes; and with the signal's reason.
   */
  next(): Promise<IteratorResult<CacheChange<Data>, undefined>>;
  /** Leaves the loop, as `break` does; the cache continues. Never rejects. */
  return(): Promise<IteratorResult<CacheChange<Data>, undefined>>;
  /** As `return`; never rejects. */
  [Symbol.asyncDispose](): Promise<void>;

  [Symbol.asyncIterator](): this;
}

export class ChangeStream<Data> implements CacheChanges<Data> {
  readonly #maxChanges: number;
  readonly #onEnd: (stream: ChangeStream<Data>) => void;
  #queue: CacheChange<Data>[] = [];
  /** When set, it is the only entry of the queue. */
  #overflow: { readonly kind: 'overflowed'; dropped: number } | undefined;
  readonly #waiters: ChangeWaiter<Data>[] = [];
  #hasEnded = false;
  /** To be thrown once, after the queue is empty. */
  #failure: { readonly reason: unknown } | undefined;
  #removeAbortListener: (() => void) | undefined;

  constructor(options: ChangesOptions, onEnd: (stream: ChangeStream<Data>) => void) {
    checkCallOptions(options, callOptionTypes.changes, 'changes');
    const { signal, maxQueuedChanges = maxQueuedChangesDefault } = options;
    if (!Number.isInteger(maxQueuedChanges) || maxQueuedChanges < 1)
      throw new RangeError(`maxQueuedChanges must be a whole number from 1, not ${maxQueuedChanges}`);
    this.#maxChanges = maxQueuedChanges;
    this.#onEnd = onEnd;
    if (signal?.aborted === true) this.#finish({ reason: signal.reason });
    else if (signal !== undefined) this.#removeAbortListener = onAbort(signal, () => this.#stop({ reason: signal.reason }));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<CacheChange<Data>, undefined>> {
    const value = this.#queue.shift();
    if (value !== undefined) {
      if (value === this.#overflow) this.#overflow = undefined;
      return Promise.resolve({ done: false, value });
    }
    if (!this.#hasEnded) {
      return new Promise((resolve) => {
        this.#waiters.push(resolve);
      });
    }
    const failure = this.#failure;
    this.#failure = undefined;
    return failure === undefined ? Promise.resolve(done) : Promise.reject(failure.reason);
  }

  return(): Promise<IteratorResult<CacheChange<Data>, undefined>> {
    this.#stop(undefined);
    return Promise.resolve(done);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#stop(undefined);
    return Promise.resolve();
  }

  // --- For the cache

  /** Whether the stream accepts no more changes. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  push(change: CacheChange<Data>): void {
    if (this.#hasEnded) return;
    if (this.#overflow !== undefined) {
      this.#overflow.dropped++;
      return;
    }
    if (this.#queue.length === this.#maxChanges) {
      this.#overflow = { kind: 'overflowed', dropped: this.#queue.length + 1 };
      this.#queue = [this.#overflow];
    } else {
      this.#queue.push(change);
    }
    this.#answerWaiters();
  }

  /**
   * No more changes follow. Those in the queue are delivered before a failure; a program that
   * closes the cache receives the end at once.
   */
  end(failure: { readonly reason: unknown } | undefined): void {
    if (failure === undefined) this.#clear();
    this.#finish(failure);
  }

  #stop(failure: { readonly reason: unknown } | undefined): void {
    this.#onEnd(this);
    this.#clear();
    this.#finish(failure);
  }

  #clear(): void {
    this.#queue = [];
    this.#overflow = undefined;
  }

  #finish(failure: { readonly reason: unknown } | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#failure = failure;
    this.#removeAbortListener?.();
    this.#answerWaiters();
  }

  #answerWaiters(): void {
    while (this.#waiters.length > 0 && (this.#queue.length > 0 || this.#hasEnded)) this.#waiters.shift()!(this.next());
  }
}
