/**
 * A watch as something to loop over: `for await (const event of zk.watch('/services', { recursive: true }))`.
 *
 * It rests on a persistent watch. A server tells each change of such a watch once, over the connection on which it was set, and says nothing
 * of what happened while there was none. So whenever changes can be missing a loop tells a `Reread` in their place, and the first of them, told
 * when the watch is set, makes the beginning the same case as all others. It comes behind the setting of the watch on the same
 * connection: a read that follows sees everything that will not be told, and if that read fails with ConnectionLoss, another `Reread` is on its
 * way, as another connection is.
 *
 *     new ──next()──> setting ──answered──> telling ──> over
 *                        └──connection lost──┘ (again)     left, aborted, removed, or the session has ended
 */
import { ErrorCode } from '@tskeeper/protocol';
import type { Chroot } from '../chroot.ts';
import { KeeperError, Refusal } from '../keeper-error.ts';
import { checkPath } from '../operations/create.ts';
import { Fifo } from '../session/fifo.ts';
import type { Session } from '../session/session.ts';
import { onAbort } from '../signals.ts';
import type { SessionEvent, WatchedEvent } from '../watched-event.ts';
import { ChangeQueue, type Reread, type ZnodeChange } from './change-queue.ts';
import { addWatchOperation, removeWatchesOperation } from './watch-operations.ts';
import { type WatchKind, type Watcher, watchKinds } from './watch-table.ts';

/** What a recursive loop tells. */
export type RecursiveWatchLoopEvent = ZnodeChange<'NodeCreated'> | ZnodeChange<'NodeDeleted'> | ZnodeChange<'NodeDataChanged'> | Reread;

/** What a loop over one znode tells. */
export type WatchLoopEvent = RecursiveWatchLoopEvent | ZnodeChange<'NodeChildrenChanged'>;

/** How to loop. */
export interface WatchLoopOptions {
  /**
   * Whether to hear of everything below the znode as well. A recursive loop hears of children themselves, and never of NodeChildrenChanged. Default:
   * false, the znode and its children coming and going.
   */
  readonly recursive?: boolean | undefined;
  /** Ends the loop at once, which then throws the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How many events to keep for a loop that is slower than the changes. One more, and all of them are dropped and a single `Reread` is
   * told. Default: 10 000, some two megabytes.
   */
  readonly maxQueuedEvents?: number | undefined;
}

const maxQueuedEventsDefault = 10_000;

/** Made by `Client.watch`, for one loop: once it is over it stays so. */
export class WatchLoop<Event extends WatchLoopEvent = WatchLoopEvent>
  implements AsyncIterator<Event, undefined>, AsyncIterable<Event>, AsyncDisposable
{
  readonly #session: Session;
  readonly #path: string;
  readonly #outer: string;
  readonly #mode: 'persistent' | 'persistentRecursive';
  readonly #signal: AbortSignal | undefined;
  readonly #watcher: Watcher;
  readonly #queue: ChangeQueue;
  /** Those who asked while there was nothing to tell. */
  readonly #askers = new Fifo<(result: Promise<IteratorResult<Event, undefined>>) => void>();
  #begun = false;
  #wasClosed = false;
  #over = false;
  /** To be thrown once, behind what is in the queue. */
  #failure: { readonly reason: unknown } | undefined;
  /** Up to where everything was told when the connection was lost. */
  #since: bigint | undefined;
  #unheed: (() => void) | undefined;

  constructor(session: Session, chroot: Chroot, path: string, options: WatchLoopOptions) {
    const { recursive = false, signal, maxQueuedEvents = maxQueuedEventsDefault } = options;
    try {
      checkPath(path);
    } catch (error) {
      throw error instanceof Refusal ? new KeeperError('watch', path, error) : error;
    }
    this.#session = session;
    this.#path = path;
    this.#outer = chroot.outer(path);
    this.#mode = recursive ? 'persistentRecursive' : 'persistent';
    this.#signal = signal;
    this.#watcher = { listener: (event) => this.#hear(event), chroot };
    this.#queue = new ChangeQueue(maxQueuedEvents);
  }

  // --- What a loop asks

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * The next event, when there is one; the first call sets the watch. Done when the client is closed by its program, or when `removeWatches` has
   * taken the watch away. Rejects, once, with SessionExpired, AuthFailed or SessionMoved when the session has ended in another way, with
   * Unimplemented on servers before ZooKeeper 3.6, and with the signal's reason.
   */
  async next(): Promise<IteratorResult<Event, undefined>> {
    if (!this.#begun) this.#begin();
    try {
      return await this.#take();
    } catch (error) {
      throw error instanceof Refusal ? new KeeperError('watch', this.#path, error) : error;
    }
  }

  /** Leaves the loop, as `break` does: the watch is gone here at once, and at the server before anything that is asked afterwards. Never rejects. */
  return(): Promise<IteratorResult<Event, undefined>> {
    this.#leave(undefined);
    return Promise.resolve(done);
  }

  /** As `return`, for `await using`. Never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#leave(undefined);
    return Promise.resolve();
  }

  #take(): Promise<IteratorResult<Event, undefined>> {
    const value = this.#queue.shift();
    if (value !== undefined) {
      if (value.type === 'Reread' && this.#session.tracer.hearsSession) this.#traceReread(value);
      // A server sends a watch only what it was set for.
      return Promise.resolve({ done: false, value: value as Event });
    }
    if (!this.#over) {
      return new Promise((resolve) => {
        this.#askers.push(resolve);
      });
    }
    this.#unheed?.();
    const failure = this.#failure;
    this.#failure = undefined;
    return failure === undefined ? Promise.resolve(done) : Promise.reject(failure.reason);
  }

  #traceReread({ because, since, dropped }: Reread): void {
    this.#session.trace({ kind: 'reread', path: this.#outer, because, since, dropped });
  }

  /** Answers those who wait, as far as that goes. */
  #serve(): void {
    while (this.#askers.length > 0 && (this.#queue.length > 0 || this.#over)) {
      const answer = this.#askers.shift()!;
      answer(this.#take());
    }
  }

  // --- The watch

  #begin(): void {
    this.#begun = true;
    this.#wasClosed = this.#session.endReason === 'closed';
    const signal = this.#signal;
    if (signal?.aborted === true) this.#leave({ reason: signal.reason });
    else if (signal !== undefined) this.#unheed = onAbort(signal, () => this.#leave({ reason: signal.reason }));
    void this.#set();
  }

  /** Goes on until the watch is set: to set it twice is to set it once, so nothing speaks against asking again on another connection. */
  async #set(): Promise<void> {
    const added = () => {
      if (this.#over) return;
      this.#session.watches.add(this.#mode, this.#outer, this.#watcher);
      this.#queue.reread('started', undefined);
      this.#serve();
    };
    for (let isSet = false; !isSet && !this.#over;) {
      try {
        // Without a time-out of its own: nobody could say then whether the server has the watch. That of the client (`requestTimeoutMs`) ends the connection as well.
        await this.#session.perform(addWatchOperation(this.#mode, this.#outer, added), {});
        isSet = true;
      } catch (error) {
        this.#notSet(error);
      }
      // Left while the request was under way.
      if (isSet && this.#over) this.#removeOnServer();
    }
  }

  #notSet(error: unknown): void {
    if (this.#over) return;
    const errno = error instanceof Refusal ? error.errno : undefined;
    if (errno === ErrorCode.ConnectionLoss || errno === ErrorCode.RequestTimeout) return;
    // Closed while the loop was waiting for its beginning. To begin one on a client that was closed is another matter.
    if (this.#session.endReason === 'closed' && !this.#wasClosed) this.#end(undefined);
    else if (errno !== ErrorCode.Unimplemented) this.#end({ reason: error });
    else this.#end({ reason: new Refusal(errno, 'refused', 'servers before ZooKeeper 3.6 have no watches that stay') });
  }

  /** Unless others need the watch. Nobody waits for the answer: what the program asks next is answered behind it. */
  #removeOnServer(): void {
    const { watches, isConnected } = this.#session;
    const isNeeded = (kind: WatchKind) => watches.isNeeded(kind, this.#outer, this.#watcher);
    // Without a connection no server has it, and it is not set anew.
    if (!isConnected || isNeeded(this.#mode)) return;
    // Servers before 3.9 know no narrower type than `any`. Where there are other watches on the path, such a server keeps ours, unheard, as long
    // as the connection lasts.
    const type = watchKinds.some(isNeeded) ? this.#mode : 'any';
    this.#session.perform(removeWatchesOperation(type, this.#outer, ignore), {}).catch(ignore);
  }

  #hear(event: WatchedEvent): void {
    if (this.#over) return;
    switch (event.type) {
      case 'None':
        this.#hearState(event);
        break;
      case 'NodeCreated':
      case 'NodeDeleted':
      case 'NodeDataChanged':
      case 'NodeChildrenChanged':
        this.#queue.push({ type: event.type, path: event.path, zxid: event.zxid });
        break;
      default:
        // `removeWatches` has taken it away, at the server too.
        this.#end(undefined);
    }
    this.#serve();
  }

  #hearState({ state, reason }: SessionEvent): void {
    switch (state) {
      case 'Disconnected':
        this.#since = BigInt(this.#session.lastZxid);
        break;
      case 'SyncConnected':
      case 'ConnectedReadOnly':
        this.#queue.reread('reconnected', this.#since);
        break;
      case 'Closed':
        if (this.#session.endReason !== 'moved') {
          // The program wants an end; whatever it would do about further events would fail.
          this.#queue.clear();
          this.#end(undefined);
          break;
        }
        this.#end({ reason: new Refusal(ErrorCode.SessionMoved, 'refused', reason) });
        break;
      case 'Expired':
        this.#end({ reason: new Refusal(ErrorCode.SessionExpired, 'refused', reason) });
        break;
      case 'AuthFailed':
        this.#end({ reason: new Refusal(ErrorCode.AuthFailed, 'refused', reason) });
        break;
      default:
        state satisfies never;
    }
  }

  // --- The end

  /** Nobody wants to hear more. */
  #leave(failure: { readonly reason: unknown } | undefined): void {
    this.#queue.clear();
    this.#end(failure);
    if (this.#session.watches.remove(this.#mode, this.#outer, this.#watcher).length > 0) this.#removeOnServer();
  }

  /** Nothing more is heard. What is in the queue is still told. */
  #end(failure: { readonly reason: unknown } | undefined): void {
    this.#over = true;
    this.#failure = failure;
    if (this.#queue.length === 0) this.#unheed?.();
    this.#serve();
  }
}

function ignore(): void {}

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
