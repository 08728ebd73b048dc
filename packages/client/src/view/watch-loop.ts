/**
 * Loops over the events of a watch: `for await (const event of zk.watch('/services', { recursive:
 * true }))`.
 *
 * It uses a persistent watch. A server sends each change once, on the connection on which the watch
 * was set, and does not report changes made while there was no connection. So whenever changes may
 * be missing the loop delivers a `Reread` in their place. The first one, delivered when the watch
 * is set, makes the start the same case as all others. It follows the setting of the watch on the
 * same connection, so a read after it sees every change that the loop will not deliver; if that
 * read fails with ConnectionLoss, another `Reread` follows with the next connection.
 *
 *     new ──next()──> setting ──answered──> delivering ──> over
 *                        └──connection lost──┘ (again)     left, aborted, removed, or the session has ended
 */
import { ErrorCode } from '@tskeeper/protocol';
import type { Chroot } from '../chroot.ts';
import { KeeperError, RequestFailure } from '../keeper-error.ts';
import { checkPath } from '../operations/create.ts';
import { Fifo } from '../fifo.ts';
import type { Session } from '../session/session.ts';
import { onAbort } from '../signals.ts';
import type { SessionEvent, WatchedEvent } from '../watched-event.ts';
import { ChangeQueue, type Reread, type ZnodeChange } from '../watches/change-queue.ts';
import { addWatchOperation, removeWatchesOperation } from '../operations/watches.ts';
import { type WatchKind, type Watcher, watchKinds } from '../watches/watch-table.ts';

/** The events of a recursive loop. */
export type RecursiveWatchLoopEvent = ZnodeChange<'NodeCreated'> | ZnodeChange<'NodeDeleted'> | ZnodeChange<'NodeDataChanged'> | Reread;

/** The events of a loop over one znode. */
export type WatchLoopEvent = RecursiveWatchLoopEvent | ZnodeChange<'NodeChildrenChanged'>;

/** The options of `watch`. */
export interface WatchLoopOptions {
  /**
   * Whether to deliver the events of everything below the znode too. A recursive loop delivers
   * creates and deletes of children themselves, and never NodeChildrenChanged. Default: false,
   * events of the znode, and creates and deletes of its children.
   */
  readonly recursive?: boolean | undefined;
  /** Ends the loop at once, which then throws the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum number of queued events for a loop that is slower than the changes. If it is exceeded,
   * all are dropped and a single `Reread` is delivered. Default: 10 000, about two megabytes.
   */
  readonly maxQueuedEvents?: number | undefined;
}

const maxQueuedEventsDefault = 10_000;

/** Created by `Client.watch`, for one loop: it cannot be used again after its end. */
export class WatchLoop<Event extends WatchLoopEvent = WatchLoopEvent>
  implements AsyncIterator<Event, undefined>, AsyncIterable<Event>, AsyncDisposable
{
  readonly #session: Session;
  readonly #path: string;
  readonly #serverPath: string;
  readonly #mode: 'persistent' | 'persistentRecursive';
  readonly #signal: AbortSignal | undefined;
  readonly #watcher: Watcher;
  readonly #queue: ChangeQueue;
  /** Calls of `next` that wait for an event. */
  readonly #waiters = new Fifo<(result: Promise<IteratorResult<Event, undefined>>) => void>();
  #hasStarted = false;
  #wasClosedAtStart = false;
  #hasEnded = false;
  /** Thrown once, after the queued events. */
  #failure: { readonly reason: unknown } | undefined;
  /** All changes up to this zxid had been delivered when the connection was lost. */
  #deliveredUpTo: bigint | undefined;
  #removeAbortListener: (() => void) | undefined;

  constructor(session: Session, chroot: Chroot, path: string, options: WatchLoopOptions) {
    const { recursive = false, signal, maxQueuedEvents = maxQueuedEventsDefault } = options;
    try {
      checkPath(path);
    } catch (error) {
      throw error instanceof RequestFailure ? new KeeperError('watch', path, error) : error;
    }
    this.#session = session;
    this.#path = path;
    this.#serverPath = chroot.prepend(path);
    this.#mode = recursive ? 'persistentRecursive' : 'persistent';
    this.#signal = signal;
    this.#watcher = { listener: (event) => this.#onEvent(event), chroot };
    this.#queue = new ChangeQueue(maxQueuedEvents);
  }

  // --- The iterator

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Resolves with the next event; the first call sets the watch. Done when the program has closed
   * the client, or `removeWatches` has removed the watch. Rejects once: with SessionExpired,
   * AuthFailed or SessionMoved if the session has ended in another way, with Unimplemented on
   * servers before ZooKeeper 3.6, and with the signal's reason.
   */
  async next(): Promise<IteratorResult<Event, undefined>> {
    if (!this.#hasStarted) this.#start();
    try {
      return await this.#nextResult();
    } catch (error) {
      throw error instanceof RequestFailure ? new KeeperError('watch', this.#path, error) : error;
    }
  }

  /**
   * Leaves the loop, as `break` does: the client removes the watch at once, and the server removes
   * it before any later request. Never rejects.
   */
  return(): Promise<IteratorResult<Event, undefined>> {
    this.#stop(undefined);
    return Promise.resolve(done);
  }

  /** Same as `return`, for `await using`. Never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#stop(undefined);
    return Promise.resolve();
  }

  #nextResult(): Promise<IteratorResult<Event, undefined>> {
    const value = this.#queue.shift();
    if (value !== undefined) {
      if (value.type === 'Reread' && this.#session.trace.isEnabled) this.#traceReread(value);
      // A server sends a watch only events of its kind.
      return Promise.resolve({ done: false, value: value as Event });
    }
    if (!this.#hasEnded) {
      return new Promise((resolve) => {
        this.#waiters.push(resolve);
      });
    }
    this.#removeAbortListener?.();
    const failure = this.#failure;
    this.#failure = undefined;
    return failure === undefined ? Promise.resolve(done) : Promise.reject(failure.reason);
  }

  #traceReread({ cause, since, dropped }: Reread): void {
    this.#session.trace.record({ kind: 'reread', path: this.#serverPath, cause, since, dropped });
  }

  /** Answers waiting calls of `next` while there are events. */
  #answerWaiters(): void {
    while (this.#waiters.length > 0 && (this.#queue.length > 0 || this.#hasEnded)) {
      const answer = this.#waiters.shift()!;
      answer(this.#nextResult());
    }
  }

  // --- The watch

  #start(): void {
    this.#hasStarted = true;
    this.#wasClosedAtStart = this.#session.endReason === 'closed';
    const signal = this.#signal;
    if (signal?.aborted === true) this.#stop({ reason: signal.reason });
    else if (signal !== undefined) this.#removeAbortListener = onAbort(signal, () => this.#stop({ reason: signal.reason }));
    void this.#setWatch();
  }

  /**
   * Repeats the request until the watch is set: setting it twice has no further effect, so it may
   * be sent again on another connection.
   */
  async #setWatch(): Promise<void> {
    const added = () => {
      if (this.#hasEnded) return;
      this.#session.watches.add(this.#mode, this.#serverPath, this.#watcher);
      this.#queue.reread('started', undefined);
      this.#answerWaiters();
    };
    for (let isSet = false; !isSet && !this.#hasEnded;) {
      try {
        // No time-out of its own: then it would be unknown whether the server has the watch. The
        // client's (`requestTimeoutMs`) also ends the connection.
        await this.#session.calls.perform(addWatchOperation(this.#mode, this.#serverPath, added), {});
        isSet = true;
      } catch (error) {
        this.#onSetFailed(error);
      }
      // The loop was left while the request was pending.
      if (isSet && this.#hasEnded) this.#removeOnServer();
    }
  }

  #onSetFailed(error: unknown): void {
    if (this.#hasEnded) return;
    const errno = error instanceof RequestFailure ? error.errno : undefined;
    if (errno === ErrorCode.ConnectionLoss || errno === ErrorCode.RequestTimeout) return;
    // The client was closed while the loop waited to start. Starting a loop on a closed client is
    // an error instead.
    if (this.#session.endReason === 'closed' && !this.#wasClosedAtStart) this.#end(undefined);
    else if (errno !== ErrorCode.Unimplemented) this.#end({ reason: error });
    else this.#end({ reason: new RequestFailure(errno, 'refused', 'servers before ZooKeeper 3.6 do not support persistent watches') });
  }

  /**
   * Removes the watch unless others need it. The answer is ignored: later requests of the program
   * are answered after it.
   */
  #removeOnServer(): void {
    const { watches, isConnected } = this.#session;
    const isNeeded = (kind: WatchKind) => watches.isNeeded(kind, this.#serverPath, this.#watcher);
    // Without a connection no server has the watch, and it is not set again.
    if (!isConnected || isNeeded(this.#mode)) return;
    // Servers before 3.9 know no narrower type than `any`. If there are other watches on the path,
    // such a server keeps ours, without a listener, for as long as the connection lasts.
    const type = watchKinds.some(isNeeded) ? this.#mode : 'any';
    this.#session.calls.perform(removeWatchesOperation(type, this.#serverPath, noop), {}).catch(noop);
  }

  #onEvent(event: WatchedEvent): void {
    if (this.#hasEnded) return;
    switch (event.type) {
      case 'None':
        this.#onState(event);
        break;
      case 'NodeCreated':
      case 'NodeDeleted':
      case 'NodeDataChanged':
      case 'NodeChildrenChanged':
        this.#queue.push({ type: event.type, path: event.path, zxid: event.zxid });
        break;
      default:
        // `removeWatches` has removed it, on the server too.
        this.#end(undefined);
    }
    this.#answerWaiters();
  }

  #onState({ state, reason }: SessionEvent): void {
    switch (state) {
      case 'Disconnected':
        this.#deliveredUpTo = BigInt(this.#session.lastZxid);
        break;
      case 'SyncConnected':
      case 'ConnectedReadOnly':
        this.#queue.reread('reconnected', this.#deliveredUpTo);
        break;
      case 'Closed':
        if (this.#session.endReason !== 'moved') {
          // The program has closed the client; anything it did about further events would fail.
          this.#queue.clear();
          this.#end(undefined);
          break;
        }
        this.#end({ reason: new RequestFailure(ErrorCode.SessionMoved, 'refused', reason) });
        break;
      case 'Expired':
        this.#end({ reason: new RequestFailure(ErrorCode.SessionExpired, 'refused', reason) });
        break;
      case 'AuthFailed':
        this.#end({ reason: new RequestFailure(ErrorCode.AuthFailed, 'refused', reason) });
        break;
      default:
        state satisfies never;
    }
  }

  // --- The end

  /** Leaves the loop and discards queued events. */
  #stop(failure: { readonly reason: unknown } | undefined): void {
    this.#queue.clear();
    this.#end(failure);
    if (this.#session.watches.remove(this.#mode, this.#serverPath, this.#watcher).length > 0) this.#removeOnServer();
  }

  /** Ends the loop. Queued events are still delivered. */
  #end(failure: { readonly reason: unknown } | undefined): void {
    this.#hasEnded = true;
    this.#failure = failure;
    if (this.#queue.length === 0) this.#removeAbortListener?.();
    this.#answerWaiters();
  }
}

function noop(): void {}

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
