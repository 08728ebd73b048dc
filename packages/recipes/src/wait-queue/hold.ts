/**
 * The hold of a contender at the head of a queue, until it is released or lost.
 *
 *     held ──connection lost──> suspended ──the session's time has run out──> lost
 *       ^────reconnected in time────┘
 *     held, suspended ──the session has ended, or another client has deleted the znode──> lost
 *     held, suspended ──release──> released
 *
 * A hold that is based on a session is not mutual exclusion by itself. The ensemble may expire the
 * session and admit the next holder before this process notices, because it was paused or its clock
 * is slow. So a write after the loss has to be rejected where it is applied: by `multi`, whose
 * check on the znode fails as soon as it is gone, or in another system by `fencingToken`, which
 * grows from holder to holder.
 */
import {
  type CallOptions,
  type ClientView,
  formatSessionId,
  type SessionEvent,
  type TimerHandle,
  type WriteOp,
  type WriteResults,
} from '@tskeeper/client';
import { checkArgumentCount, argumentCountError } from '../validation.ts';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import { Listeners } from '../listeners.ts';
import { RecipeError } from '../recipe-error.ts';
import { multiWhileHeld } from './fenced-multi.ts';
import type { QueueNode } from './wait-queue.ts';

/** See `Hold.state`. */
export type HoldState = 'held' | 'suspended' | 'lost' | 'released';

/** A hold, from its turn until `release` or the loss; see the states. */
export class Hold implements AsyncDisposable {
  /** The znode of the hold. Deleting it breaks the hold. */
  readonly path: string;
  /**
   * Grows from holder to holder. A system that stores the greatest token it has seen with each
   * write, and rejects lower ones, is safe from former holders.
   */
  readonly fencingToken: bigint;
  readonly #node: QueueNode;
  readonly #endController = new AbortController();
  readonly #listeners = new Listeners<HoldState>();
  #state: HoldState = 'held';
  readonly #removeStateListener: () => void;
  #removeGoneListener: (() => void) | undefined;
  #timer: TimerHandle | undefined;
  #released: Promise<void> | undefined;

  /** Made by the recipe, at its turn. */
  constructor(node: QueueNode) {
    this.#node = node;
    this.path = node.path;
    this.fencingToken = node.czxid;
    node.addHold();
    this.#removeStateListener = node.zk.on('state', (event) => this.#onState(event));
    this.#removeGoneListener = node.onGone((reason) => this.#lose(toLostError(reason, node.path)));
    // The connection may have been lost since the reply that gave the turn.
    if (node.zk.endReason !== undefined) this.#lose(new RecipeError('Lost', 'the session is over'));
    else if (node.zk.state !== 'connected') this.#suspend();
  }

  /**
   * - `held`: as far as this client knows. There is a connection.
   * - `suspended`: there is no connection. There is no other holder as long as the session lives,
   *   but how long that is, only the ensemble knows: begin nothing new that is not fenced. It
   *   becomes `held` or `lost`.
   * - `lost`, `released`: over.
   */
  get state(): HoldState {
    return this.#state;
  }

  /** Aborted when the hold is lost, with a RecipeError, Lost, as its reason; not by `release`. */
  get signal(): AbortSignal {
    return this.#endController.signal;
  }

  /** The client whose session owns the hold; of `Sessions`, the one that acquired it. */
  get client(): ClientView {
    return this.#node.zk;
  }

  /** Listens to changes of `state` from now on; returns a function that removes the listener. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Writes only while the hold lasts: all operations or none. Rejects as `Client.multi` does, and
   * with a RecipeError, Lost, when the hold is over or its znode is gone, which happens before
   * another client can hold it.
   */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkArgumentCount(arguments.length, 2, 'multi(ops, options)');
    return await multiWhileHeld(this.#node.zk, ops, [this], options);
  }

  /**
   * A second handle of the same hold, for a part of the program that releases it on its own: the
   * znode is deleted when all handles have been released. Sends no request. Throws a RecipeError,
   * Lost, when this one is over. It makes locks re-entrant: code that may already hold the lock
   * receives the hold. (Curator's InterProcessMutex recognises the holder by its thread; a
   * JavaScript program has one thread.)
   */
  share(): Hold {
    checkArgumentCount(arguments.length, 0, 'share()');
    if (this.#hasEnded) throw new RecipeError('Lost', `${this.path} is ${this.#state}, so it cannot be held again`);
    return new Hold(this.#node);
  }

  /**
   * Releases the hold. Resolves when the next contender may have it, or, if no server can be
   * reached, when the deletion continues in the background; at once while another handle from
   * `share` is held. A second call waits for the first. Rejects only with NoAuth, when the client
   * may not delete the znode: it stays until the session ends or a later call may delete it.
   */
  release(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#released ??= this.#release().catch((refusal: unknown) => {
      this.#released = undefined;
      throw refusal;
    });
    return this.#released;
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, path, fencingToken } = this;
    return inspectObject(this, { state, path, fencingToken, sessionId: formatSessionId(this.client.sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #release(): Promise<void> {
    const isLost = this.#hasEnded;
    this.#finish('released');
    if (isLost) await this.#node.leave();
    else await this.#node.releaseHold();
  }

  #onState({ state, reason }: SessionEvent): void {
    switch (state) {
      case 'Disconnected':
        this.#suspend();
        break;
      case 'SyncConnected':
        this.#stopTimer();
        this.#setState('held');
        break;
      case 'ConnectedReadOnly':
        // A read-only server does not know what the ensemble decides.
        break;
      case 'Expired':
      case 'AuthFailed':
      case 'Closed':
        this.#lose(new RecipeError('Lost', `the session is over${reason === undefined ? '' : `: ${reason}`}`));
        break;
      default:
        state satisfies never;
    }
  }

  #suspend(): void {
    const { zk } = this.#node;
    this.#timer ??= zk.clock.after(zk.sessionRemainingMs, () => this.#onSessionTimeout());
    this.#setState('suspended');
  }

  /**
   * The session may have ended. If it lives after all, the place is given up, since this program no
   * longer counts on it.
   */
  #onSessionTimeout(): void {
    this.#timer = undefined;
    this.#lose(new RecipeError('Lost', 'there was no connection for the length of the session timeout'));
    void this.#node.leave().catch(() => undefined);
  }

  #lose(reason: RecipeError): void {
    if (this.#hasEnded) return;
    this.#finish('lost', reason);
  }

  get #hasEnded(): boolean {
    return this.#state === 'lost' || this.#state === 'released';
  }

  #finish(state: 'lost' | 'released', reason?: RecipeError): void {
    if (this.#hasEnded) return;
    this.#removeStateListener();
    this.#removeGoneListener?.();
    this.#stopTimer();
    this.#setState(state, reason);
  }

  #setState(state: HoldState, reason?: RecipeError): void {
    if (this.#state === state) return;
    this.#state = state;
    // Before the listeners, which may read the reason.
    if (reason !== undefined) this.#endController.abort(reason);
    this.#listeners.notify(state);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#node.zk.clock.cancel(this.#timer);
    this.#timer = undefined;
  }
}

function toLostError(reason: unknown, path: string): RecipeError {
  return reason instanceof RecipeError ? reason : new RecipeError('Lost', `this client can no longer watch ${path}`, { cause: reason });
}
