/**
 * What a place in a line gives whoever is at its head: something that is held until it is given back or lost.
 *
 *     held ──connection lost──> suspended ──the session's time has run out──> lost
 *       ^────reconnected in time────┘
 *     held, suspended ──the session has ended, or somebody has deleted the znode──> lost
 *     held, suspended ──release──> released
 *
 * A hold by a session is not mutual exclusion by itself. The ensemble may end the session, and let the next one in, before this process hears of it: it
 * may stand still, or its clock may be slow. What is written by the time a hold is lost has to be refused where it is written: by `multi`, whose
 * check on the znode fails as soon as it is gone, or elsewhere by `fencingToken`, which grows from holder to holder.
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
import { checkCount, surplusOf } from '../given.ts';
import { type Inspect, inspected } from '../inspection.ts';
import { Listeners } from '../listeners.ts';
import { RecipeError } from '../recipe-error.ts';
import { fencedBy } from './fenced.ts';
import type { Place } from './line.ts';

/** See `Held.state`. */
export type HoldState = 'held' | 'suspended' | 'lost' | 'released';

/** What is held, from the turn until `release` or the loss; see the states. */
export class Held implements AsyncDisposable {
  /** The znode that stands for the hold. Whoever deletes it breaks the hold. */
  readonly path: string;
  /** Grows from holder to holder. What takes it along with each write, and refuses a lower one than it has seen, is safe from holders of the past. */
  readonly fencingToken: bigint;
  readonly #place: Place;
  readonly #end = new AbortController();
  readonly #listeners = new Listeners<HoldState>();
  #state: HoldState = 'held';
  readonly #unobserve: () => void;
  #unlisten: (() => void) | undefined;
  #timer: TimerHandle | undefined;
  #released: Promise<void> | undefined;

  /** Made by the recipe, when its turn has come. */
  constructor(place: Place) {
    this.#place = place;
    this.path = place.path;
    this.fencingToken = place.czxid;
    place.share();
    this.#unobserve = place.zk.on('state', (event) => this.#onState(event));
    this.#unlisten = place.whenGone((reason) => this.#lose(asLoss(reason, place.path)));
    // Since the answer by which our turn came the connection may have been lost.
    if (place.zk.closedBecause !== undefined) this.#lose(new RecipeError('Lost', 'the session is over'));
    else if (place.zk.state !== 'connected') this.#suspend();
  }

  /**
   * - `held`: as far as is known. There is a connection.
   * - `suspended`: there is no connection. Nobody else has it as long as the session lives, and for how long it certainly does not end is a guess:
   *   begin nothing new that is not fenced. It becomes `held` or `lost`.
   * - `lost`, `released`: over.
   */
  get state(): HoldState {
    return this.#state;
  }

  /** Aborted when the hold is lost, with a RecipeError, Lost, as its reason; not by `release`. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** The client whose session the hold belongs to: of `Sessions` the one that had it. */
  get zk(): ClientView {
    return this.#place.zk;
  }

  /** Listens to changes of `state` from now on; returns a function that ends it. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#listeners.add(listener);
  }

  /**
   * Writes only if the hold is not over: all of it, or nothing. Rejects as `Client.multi` does, and with a RecipeError, Lost, when the hold is over, or its znode is gone,
   * which is the case before anybody else can hold it.
   */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkCount(arguments.length, 2, 'multi(ops, options)');
    return await fencedBy(this.#place.zk, ops, [this], options);
  }

  /**
   * The same hold once more, for a part of the program that is to give it back on its own: the znode goes when each of them has been released. No request is
   * made. Throws a RecipeError, Lost, when this one is over. It makes locks re-entrant: who may already have one is handed the hold (Curator's
   * InterProcessMutex knows it by its thread, which a JavaScript program has only one of).
   */
  again(): Held {
    checkCount(arguments.length, 0, 'again()');
    if (this.#isOver) throw new RecipeError('Lost', `${this.path} is ${this.#state}, so it cannot be had once more`);
    return new Held(this.#place);
  }

  /**
   * Gives it back: resolves when the next one may have it, or when the znode is on its way out, in the background, as no server can be reached just
   * now; at once while it is held `again` elsewhere. A second call waits for the first. Rejects with NoAuth only, when the znode may not be deleted: it stays as long as the
   * session, unless a later call is allowed to delete it.
   */
  release(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#released ??= this.#giveBack().catch((refusal: unknown) => {
      this.#released = undefined;
      throw refusal;
    });
    return this.#released;
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: Inspect): string {
    const { state, path, fencingToken } = this;
    return inspected(this, { state, path, fencingToken, sessionId: formatSessionId(this.zk.sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #giveBack(): Promise<void> {
    const isLost = this.#isOver;
    this.#over('released');
    if (isLost) await this.#place.leave();
    else await this.#place.giveBack();
  }

  #onState({ state, reason }: SessionEvent): void {
    switch (state) {
      case 'Disconnected':
        this.#suspend();
        break;
      case 'SyncConnected':
        this.#stopTimer();
        this.#become('held');
        break;
      case 'ConnectedReadOnly':
        // That server knows nothing of what the ensemble does.
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
    const { zk } = this.#place;
    this.#timer ??= zk.clock.after(zk.sessionLeftMs, () => this.#onSilence());
    this.#become('suspended');
  }

  /** The session may have ended. Should it live after all, the place is given up, as nobody here counts on it any more. */
  #onSilence(): void {
    this.#timer = undefined;
    this.#lose(new RecipeError('Lost', 'there was no connection for as long as the session lasts'));
    void this.#place.leave().catch(() => undefined);
  }

  #lose(reason: RecipeError): void {
    if (this.#isOver) return;
    this.#over('lost', reason);
  }

  get #isOver(): boolean {
    return this.#state === 'lost' || this.#state === 'released';
  }

  #over(state: 'lost' | 'released', reason?: RecipeError): void {
    if (this.#isOver) return;
    this.#unobserve();
    this.#unlisten?.();
    this.#stopTimer();
    this.#become(state, reason);
  }

  #become(state: HoldState, reason?: RecipeError): void {
    if (this.#state === state) return;
    this.#state = state;
    // Ahead of the listeners, who may ask why.
    if (reason !== undefined) this.#end.abort(reason);
    this.#listeners.tell(state);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#place.zk.clock.cancel(this.#timer);
    this.#timer = undefined;
  }
}

function asLoss(reason: unknown, path: string): RecipeError {
  return reason instanceof RecipeError ? reason : new RecipeError('Lost', `${path} cannot be watched any more`, { cause: reason });
}
