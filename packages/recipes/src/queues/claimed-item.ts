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
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import { checkArray, checkArgumentCount, checkMulti, argumentCountError } from '../validation.ts';
import { Hold, type HoldState } from '../wait-queue/hold.ts';
import { WaitQueue, QueueNode } from '../wait-queue/wait-queue.ts';
import { RecipeError } from '../recipe-error.ts';
import { toQueueItem, type QueueItem, type RankKind } from './queue-item.ts';
import type { ItemClaim, QueueShard } from './queue-shard.ts';

/** A claim, as the place of a hold. */
class ClaimNode extends QueueNode {
  readonly #shard: Pick<QueueShard<never>, 'list' | 'markers'>;
  readonly #item: ItemClaim['item'];
  #isAcknowledging = false;
  #isAcknowledged = false;
  #isReleased = false;
  #isGone = false;
  #onGone: ((reason: unknown) => void) | undefined;
  #claimGoneReason: unknown;

  constructor({ zk, list, markers }: Pick<QueueShard<never>, 'zk' | 'list' | 'markers'>, { item, path, czxid }: ItemClaim) {
    super(zk, new WaitQueue(path, [], {}), path, czxid, undefined);
    this.#shard = { list, markers };
    this.#item = item;
  }

  override onGone(callback: (reason: unknown) => void): () => void {
    this.#onGone = callback;
    super.onGone((reason) => {
      this.#claimGoneReason = reason;
      this.#isGone = true;
      // Perhaps by an acknowledgement in progress.
      if (!this.#isAcknowledging) this.#onClaimLost();
    });
    return () => (this.#onGone = undefined);
  }

  /** Other consumers may get the item, and so may this queue. */
  #onClaimLost(): void {
    this.#onGone?.(this.#claimGoneReason);
    this.#shard.list.invalidate();
  }

  /** Deletes the item and the claim, and applies `ops`: all or nothing. */
  async acknowledge(ops: readonly WriteOp[]): Promise<void> {
    if (this.#isAcknowledged) throw new RecipeError('Closed', `${this.#item.path} has been acknowledged already`);
    if (this.#isAcknowledging) throw new RecipeError('Closed', `${this.#item.path} is being acknowledged already`);
    this.assertNotReleased();
    this.#isAcknowledging = true;
    try {
      await this.#shard.markers.write([...ops, op.delete(this.path), op.delete(this.#item.path, { version: this.#item.version })]);
      this.#isAcknowledged = true;
    } catch (error) {
      this.#isAcknowledging = false;
      if (this.#isGone) this.#onClaimLost();
      throw error;
    }
  }

  /**
   * After a release another consumer's claim may have the same name, and the server would accept
   * the write.
   */
  assertNotReleased(): void {
    if (this.#isReleased) throw new RecipeError('Lost', `the claim on ${this.#item.path} was released`);
  }

  override async leave(): Promise<void> {
    this.#isReleased = true;
    // The name may belong to another consumer's claim by now.
    if (this.#isAcknowledged || this.#isGone) return;
    await super.leave();
    this.#shard.list.invalidate();
  }
}

/** Made by `claim`: an item of a queue, held until it is acknowledged or released. */
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
  /** As `QueueItem.dueAtMs`, in ms since 1970. */
  readonly dueAtMs: number | undefined;
  /** As `QueueItem.id`. */
  readonly id: string | undefined;
  /**
   * How often the item has been claimed, including this time: more than 1 means that another
   * consumer may have worked on it before.
   */
  readonly attempt: number;
  readonly #node: ClaimNode;
  readonly #hold: Hold;

  /** Made by the queue. */
  constructor(shard: QueueShard<never>, claim: ItemClaim, kind: RankKind) {
    const { path, name, data, sequence, priority, dueAtMs, id } = toQueueItem(claim.item, kind);
    this.path = path;
    this.name = name;
    this.data = data;
    this.sequence = sequence;
    this.priority = priority;
    this.dueAtMs = dueAtMs;
    this.id = id;
    this.attempt = claim.item.version;
    this.#node = new ClaimNode(shard, claim);
    this.#hold = new Hold(this.#node);
  }

  /** The znode of the claim. Deleting it gives the item to other consumers. */
  get claimPath(): string {
    return this.#hold.path;
  }

  /** As `Hold.fencingToken`: grows from claim to claim. */
  get fencingToken(): bigint {
    return this.#hold.fencingToken;
  }

  /**
   * As `Hold.state`. While it is `suspended` no other consumer has the item yet, but one may at any
   * moment.
   */
  get state(): HoldState {
    return this.#hold.state;
  }

  /**
   * Aborted when the claim is lost, so that other consumers may get the item; not by `acknowledge`
   * and `release`.
   */
  get signal(): AbortSignal {
    return this.#hold.signal;
  }

  /** As `Hold.onStateChange`. */
  onStateChange(listener: (state: HoldState) => void): () => void {
    checkArgumentCount(arguments.length, 1, 'onStateChange(listener)');
    return this.#hold.onStateChange(listener);
  }

  /** As `Hold.multi`: writes only while the claim lasts, and rejects as that does. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkArgumentCount(arguments.length, 2, 'multi(ops, options)');
    checkMulti(ops, options);
    this.signal.throwIfAborted();
    this.#node.assertNotReleased();
    return await this.#hold.multi(ops, options);
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
  async acknowledge(ops: readonly WriteOp[] = []): Promise<void> {
    checkArgumentCount(arguments.length, 1, 'acknowledge(ops)');
    checkArray(ops, 'the operations of acknowledge');
    this.signal.throwIfAborted();
    try {
      await this.#node.acknowledge(ops);
    } catch (error) {
      if (!KeeperError.is(error) || !isClaimLoss(error, ops.length)) throw error;
      throw new RecipeError('Lost', `the claim on ${this.path} is gone, so the item was not acknowledged`, { cause: error });
    }
    await this.#hold.release();
  }

  /**
   * Returns the item to its old place in the queue, for other consumers. Has no effect after
   * `acknowledge`. Rejects as `Hold.release` does.
   */
  release(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    return this.#hold.release();
  }

  /** What `console.log` shows: not the data. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, path, claimPath, fencingToken } = this;
    const { sessionId } = this.#hold.client;
    return inspectObject(this, { state, path, claimPath, fencingToken, sessionId: formatSessionId(sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

function isClaimLoss({ code, outcome, failedIndex }: KeeperError, ops: number): boolean {
  if (code === 'SessionExpired') return outcome !== 'unknown';
  return (code === 'NoNode' || code === 'BadVersion') && failedIndex !== undefined && failedIndex >= ops;
}
