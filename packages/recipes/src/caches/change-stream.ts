/**
 * The changes of a cache for one loop. It hears from the moment it is made, so that what the cache shows then and what is told from then on fit
 * together. Bounded: one change too many, and a single `overflowed` takes the place of everything in it, and of what comes until it is taken.
 */
import { onAbort } from '@tskeeper/client/internal';
import { callOptions, checkCallOptions } from '../given.ts';
import type { CacheChange } from './cached-znode.ts';

/** Of one loop. */
export interface ChangesOptions {
  /** Ends the loop at once, which then throws the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /** How many changes to keep for a loop that is slower than they are. Default: 10 000. */
  readonly maxQueuedChanges?: number | undefined;
}

const maxQueuedChangesDefault = 10_000;
const done: IteratorReturnResult<undefined> = { done: true, value: undefined };

type Asker<Data> = (result: Promise<IteratorResult<CacheChange<Data>, undefined>>) => void;

/** The changes of a cache for one loop, `for await (const change of cache.changes())`: see `Cache.changes`. */
export interface CacheChanges<Data> extends AsyncIterator<CacheChange<Data>, undefined>, AsyncIterable<CacheChange<Data>>, AsyncDisposable {
  /**
   * The next change, when there is one. Done when the cache is closed, or its client by the program. Rejects, once, with the error that has ended the
   * cache, as SessionExpired, behind all changes that came before; and with the signal's reason.
   */
  next(): Promise<IteratorResult<CacheChange<Data>, undefined>>;
  /** Leaves the loop, as `break` does; the cache goes on. Never rejects. */
  return(): Promise<IteratorResult<CacheChange<Data>, undefined>>;
  /** As `return`; never rejects. */
  [Symbol.asyncDispose](): Promise<void>;

  [Symbol.asyncIterator](): this;
}

export class ChangeStream<Data> implements CacheChanges<Data> {
  readonly #max: number;
  readonly #forget: (stream: ChangeStream<Data>) => void;
  #queue: CacheChange<Data>[] = [];
  /** Stands alone in the queue. */
  #overflow: { readonly kind: 'overflowed'; dropped: number } | undefined;
  readonly #askers: Asker<Data>[] = [];
  #isOver = false;
  /** To be thrown once, behind what is in the queue. */
  #failure: { readonly reason: unknown } | undefined;
  #unheed: (() => void) | undefined;

  constructor(options: ChangesOptions, forget: (stream: ChangeStream<Data>) => void) {
    checkCallOptions(options, callOptions.changes, 'changes');
    const { signal, maxQueuedChanges = maxQueuedChangesDefault } = options;
    if (!Number.isInteger(maxQueuedChanges) || maxQueuedChanges < 1)
      throw new RangeError(`maxQueuedChanges is a whole number from 1, not ${maxQueuedChanges}`);
    this.#max = maxQueuedChanges;
    this.#forget = forget;
    if (signal?.aborted === true) this.#finish({ reason: signal.reason });
    else if (signal !== undefined) this.#unheed = onAbort(signal, () => this.#leave({ reason: signal.reason }));
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
    if (!this.#isOver) {
      return new Promise((resolve) => {
        this.#askers.push(resolve);
      });
    }
    const failure = this.#failure;
    this.#failure = undefined;
    return failure === undefined ? Promise.resolve(done) : Promise.reject(failure.reason);
  }

  return(): Promise<IteratorResult<CacheChange<Data>, undefined>> {
    this.#leave(undefined);
    return Promise.resolve(done);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#leave(undefined);
    return Promise.resolve();
  }

  // --- For the cache

  /** Whether nothing is to be told any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  push(change: CacheChange<Data>): void {
    if (this.#isOver) return;
    if (this.#overflow !== undefined) {
      this.#overflow.dropped++;
      return;
    }
    if (this.#queue.length === this.#max) {
      this.#overflow = { kind: 'overflowed', dropped: this.#queue.length + 1 };
      this.#queue = [this.#overflow];
    } else {
      this.#queue.push(change);
    }
    this.#serve();
  }

  /** Nothing more comes. What is in the queue is still told ahead of a failure; whoever closes the cache wants an end. */
  end(failure: { readonly reason: unknown } | undefined): void {
    if (failure === undefined) this.#clear();
    this.#finish(failure);
  }

  #leave(failure: { readonly reason: unknown } | undefined): void {
    this.#forget(this);
    this.#clear();
    this.#finish(failure);
  }

  #clear(): void {
    this.#queue = [];
    this.#overflow = undefined;
  }

  #finish(failure: { readonly reason: unknown } | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = failure;
    this.#unheed?.();
    this.#serve();
  }

  #serve(): void {
    while (this.#askers.length > 0 && (this.#queue.length > 0 || this.#isOver)) this.#askers.shift()!(this.next());
  }
}
