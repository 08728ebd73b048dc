/**
 * An item that a consumer works on: it stays in the queue until it is done, so that another
 * consumer gets it if this one dies.
 *
 *     held ──done──> the item and the claim are deleted, in one txn
 *     held ──release, end of the session, claim deleted by hand──> other consumers may get the item
 *
 * A consumer that has lost the claim can no longer acknowledge the item: the txn would have to
 * delete the claim.
 */
import { type CallOptions, formatSessionId, KeeperError, op, type WriteOp, type WriteResults } from '@tskeeper/client';
import { type Inspect, inspected } from '../inspection.ts';
import { checkArray, checkCount, checkMulti, surplusOf } from '../given.ts';
import { Held, type HoldState } from '../line/held.ts';
import { Line, Place } from '../line/line.ts';
import { RecipeError } from '../recipe-error.ts';
import { itemOf, type QueueItem, type RankKind } from './queue-item.ts';
import type { MadeClaim, QueueZnode } from './queue-znode.ts';

/** A claim, as the place of a hold. */
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
      // Perhaps by an acknowledgement in progress.
      if (!this.#isEnding) this.#wasTaken();
    });
    return () => (this.#onGone = undefined);
  }

  /** Other consumers may get the item, and so may this queue. */
  #wasTaken(): void {
    this.#onGone?.(this.#goneBecause);
    this.#znode.list.drop();
  }

  /** Deletes the item and the claim, and applies `ops`: all or nothing. */
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

  /**
   * After a release another consumer's claim may have the same name, and the server would accept
   * the write.
   */
  assertNotLeft(): void {
    if (this.#hasLeft) throw new RecipeError('Lost', `the claim on ${this.#item.path} was released`);
  }

  override async leave(): Promise<void> {
    this.#hasLeft = true;
    // The name may belong to another consumer's claim by now.
    if (this.#isDone || this.#hasGone) return;
    await super.leave();
    this.#znode.list.drop();
  }
}

/** Made by `claim`: an item of a queue, held until it is `done` or released. */
export class ClaimedItem implements QueueItem, AsyncDisposable {
  /** As `QueueItem.path`. */
  readonly path: string;
  /** As `QueueItem.name`. */
  readonly name: string;
  /** As `QueueItem.data`: as put. */
  readonly data: Uint8Array | null;
  /** As `QueueItem.sequence`. */
  readonly sequence: number;
  /** As `QueueItem.priority`. */
  readonly priority: number | undefined;
  /** As `QueueItem.dueMs`, in ms since 1970. */
  readonly dueMs: number | undefined;
  /** As `QueueItem.id`. */
  readonly id: string | undefined;
  /**
   * How often the item has been claimed, including this time: more than 1 means that another
   * consumer may have worked on it before.
   */
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

  /** The znode of the claim. Deleting it gives the item to other consumers. */
  get claimPath(): string {
    return this.#held.path;
  }

  /** As `Held.fencingToken`: grows from claim to claim. */
  get fencingToken(): bigint {
    return this.#held.fencingToken;
  }

  /**
   * As `Held.state`. While it is `suspended` no other consumer has the item yet, but one may at any
   * moment.
   */
  get state(): HoldState {
    return this.#held.state;
  }

  /**
   * Aborted when the claim is lost, so that other consumers may get the item; not by `done` and
   * `release`.
   */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** As `Held.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#held.onStateChange(listener);
  }

  /** As `Held.multi`: writes only while the claim lasts, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkCount(arguments.length, 2, 'multi(ops, options)');
    checkMulti(ops, options);
    this.signal.throwIfAborted();
    this.#place.assertNotLeft();
    return await this.#held.multi(ops, options);
  }

  /**
   * Acknowledges the item, which is then deleted. `ops` are applied in the same txn: the results of
   * the work are written together with the acknowledgement or not at all, and so exactly once,
   * however often the item was claimed. Retries until the outcome is known.
   *
   * Rejects with a RecipeError, Lost, when the claim or the item is gone, or the claim was
   * released, so that nothing was written; as `Client.multi` does when one of `ops` is rejected,
   * and then the claim lasts as before; with a RecipeError, Closed, the second time; and with the
   * end of the session, with the outcome `unknown` if there was no reply by then.
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

  /**
   * Returns the item to its old place in the queue, for other consumers. Has no effect after
   * `done`. Rejects as `Held.release` does.
   */
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
