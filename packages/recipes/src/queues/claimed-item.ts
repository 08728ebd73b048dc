/**
 * An item that somebody works on: it stays in the queue until it is done, so that another has it if this one dies.
 *
 *     held ──done──> the item and the claim are deleted, in one txn
 *     held ──release, the end of the session, the claim deleted by hand──> the item may be had by others
 *
 * Who has lost the claim cannot acknowledge the item any more: the txn would have to delete the claim.
 */
import { type CallOptions, formatSessionId, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { type Inspect, inspected } from '../inspection.ts';
import { checkArray, checkCount, checkMulti, surplusOf } from '../given.ts';
import { Held, type HoldState } from '../line/held.ts';
import { Line, Place } from '../line/line.ts';
import { RecipeError } from '../recipe-error.ts';
import { itemOf, type QueueItem, type RankKind } from './queue-item.ts';
import type { MadeClaim, QueueZnode } from './queue-znode.ts';

/** A claim as the place of a hold. */
class ClaimPlace extends Place {
  readonly #znode: Pick<QueueZnode<never>, 'list' | 'marks'>;
  readonly #item: MadeClaim['item'];
  #isEnding = false;
  #isDone = false;
  #hasLeft = false;
  #hasGone = false;
  #onGone: ((reason: unknown) => void) | undefined;
  #goneBecause: unknown;

  constructor({ zk, list, marks }: Pick<QueueZnode<never>, 'zk' | 'list' | 'marks'>, { item, path, czxid }: MadeClaim) {
    super(zk, new Line(path, [], {}), path, czxid, undefined);
    this.#znode = { list, marks };
    this.#item = item;
  }

  override whenGone(callback: (reason: unknown) => void): () => void {
    this.#onGone = callback;
    super.whenGone((reason) => {
      this.#goneBecause = reason;
      this.#hasGone = true;
      // By an acknowledgement that is under way, perhaps.
      if (!this.#isEnding) this.#wasTaken();
    });
    return () => (this.#onGone = undefined);
  }

  /** The item may be had by others, and by this queue as well. */
  #wasTaken(): void {
    this.#onGone?.(this.#goneBecause);
    this.#znode.list.drop();
  }

  /** Deletes the item and the claim, and does whatever else is to be done, or nothing at all. */
  async finish(ops: readonly WriteOp[]): Promise<void> {
    if (this.#isDone) throw new RecipeError('Closed', `${this.#item.path} has been acknowledged already`);
    if (this.#isEnding) throw new RecipeError('Closed', `${this.#item.path} is being acknowledged already`);
    this.assertNotLeft();
    this.#isEnding = true;
    try {
      await this.#znode.marks.write([...ops, op.delete(this.path), op.delete(this.#item.path, { version: this.#item.version })]);
      this.#isDone = true;
    } catch (error) {
      this.#isEnding = false;
      if (this.#hasGone) this.#wasTaken();
      throw error;
    }
  }

  /** What has the name of a claim that was given back may be that of another, and then the server would let us through. */
  assertNotLeft(): void {
    if (this.#hasLeft) throw new RecipeError('Lost', `the claim on ${this.#item.path} was given back`);
  }

  override async leave(): Promise<void> {
    this.#hasLeft = true;
    // What has the name by now may be the claim of another.
    if (this.#isDone || this.#hasGone) return;
    await super.leave();
    this.#znode.list.drop();
  }
}

/** Made by `claim`: an item of a queue, held until it is `done` or given back. */
export class ClaimedItem implements QueueItem, AsyncDisposable {
  /** As `QueueItem.path`. */
  readonly path: string;
  /** As `QueueItem.name`. */
  readonly name: string;
  /** As `QueueItem.data`: as they were put. */
  readonly data: Uint8Array | null;
  /** As `QueueItem.sequence`. */
  readonly sequence: number;
  /** As `QueueItem.priority`. */
  readonly priority: number | undefined;
  /** As `QueueItem.dueMs`, in ms since 1970. */
  readonly dueMs: number | undefined;
  /** As `QueueItem.id`. */
  readonly id: string | undefined;
  /** How often the item has been claimed, this time included: more than 1 means that somebody may have worked on it before. */
  readonly attempt: number;
  readonly #place: ClaimPlace;
  readonly #held: Held;

  /** Made by the queue. */
  constructor(znode: QueueZnode<never>, claim: MadeClaim, kind: RankKind) {
    const { path, name, data, sequence, priority, dueMs, id } = itemOf(claim.item, kind);
    this.path = path;
    this.name = name;
    this.data = data;
    this.sequence = sequence;
    this.priority = priority;
    this.dueMs = dueMs;
    this.id = id;
    this.attempt = claim.item.version;
    this.#place = new ClaimPlace(znode, claim);
    this.#held = new Held(this.#place);
  }

  /** The znode of the claim. Whoever deletes it gives the item to others. */
  get claimPath(): string {
    return this.#held.path;
  }

  /** As `Held.fencingToken`: grows from claim to claim. */
  get fencingToken(): bigint {
    return this.#held.fencingToken;
  }

  /** As `Held.state`. While it is `suspended` nobody else has the item yet, but somebody may at any moment. */
  get state(): HoldState {
    return this.#held.state;
  }

  /** Aborted when the claim is lost, so that others may have the item; not by `done` and `release`. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** As `Held.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#held.onStateChange(listener);
  }

  /** As `Held.multi`: writes only as long as the claim lasts, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkCount(arguments.length, 2, 'multi(ops, options)');
    checkMulti(ops, options);
    this.signal.throwIfAborted();
    this.#place.assertNotLeft();
    return await this.#held.multi(ops, options);
  }

  /**
   * Acknowledges the item, which is then gone for good. `ops` are carried out in the same txn: what the work has brought about is written together with the
   * acknowledgement or not at all, and so exactly once, however often the item was claimed. Goes on until it is known what has become of it.
   *
   * Rejects with a RecipeError, Lost, when the claim or the item is gone, or the claim was given back, so that nothing was written; as `Client.multi` does when one of `ops` is refused, and then the
   * claim stands as before; with a RecipeError, Closed, the second time; and with the end of the session, the outcome being `unknown` when no answer had come by then.
   */
  async done(ops: readonly WriteOp[] = []): Promise<void> {
    checkCount(arguments.length, 1, 'done(ops)');
    checkArray(ops, 'the operations of done are');
    this.signal.throwIfAborted();
    try {
      await this.#place.finish(ops);
    } catch (error) {
      if (!KeeperError.is(error) || !isLoss(error, ops.length)) throw error;
      throw new RecipeError('Lost', `the claim on ${this.path} is gone, so the item was not acknowledged`, { cause: error });
    }
    await this.#held.release();
  }

  /** Gives the item back, to be had by others at once, in its old place in the queue. Nothing happens behind `done`. Rejects as `Held.release` does. */
  release(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    return this.#held.release();
  }

  /** What `console.log` shows: not the data. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: Inspect): string {
    const { state, path, claimPath, fencingToken } = this;
    const { sessionId } = this.#held.zk;
    return inspected(this, { state, path, claimPath, fencingToken, sessionId: formatSessionId(sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

function isLoss({ code, outcome, failedIndex }: KeeperError, ops: number): boolean {
  if (code === 'SessionExpired') return outcome !== 'unknown';
  return (code === 'NoNode' || code === 'BadVersion') && failedIndex !== undefined && failedIndex >= ops;
}
