/**
 * Counts which znodes and bytes belong to which quota.
 *
 * Usage is the number of znodes and the bytes of data of a subtree, and belongs to the nearest
 * quota upwards. Every change of the tree updates it; the subtree is counted when a usage znode is
 * created (`recountStep`), and a loaded tree is counted as a whole (`finishLoading`). Each server
 * writes the result into its own usage znode, outside of any txn, so it changes no zxid or digest.
 */
import type { NodeId } from './node-store.ts';
import { QuotaRebuild, type WalkedTree } from './quota-rebuild.ts';
import { type Quota, QuotaTable, type QuotaTotals, type QuotaViolation, textOf } from './quota-table.ts';

/** The part of `DataTree` that it needs. */
interface CountedTree extends WalkedTree {
  writeUsage(statsNode: NodeId, text: string): void;
}

export class QuotaUsage {
  readonly #tree: CountedTree;
  readonly #table = new QuotaTable();
  /** The quota whose usage is being counted. */
  #recount: Recount | undefined;
  #rebuild: QuotaRebuild | undefined;

  constructor(tree: CountedTree) {
    this.#tree = tree;
  }

  /** True if any path has limits. While it is false, no quota check is needed. */
  get hasQuotas(): boolean {
    return this.#table.hasQuotas;
  }

  /**
   * Whether a change of this many bytes and znodes at this path would exceed the nearest quota
   * upwards; undefined if not. Usage is that of the present tree, without changes not yet applied,
   * as in ZooKeeper.
   */
  check(path: string, bytesDelta: number, countDelta: number): QuotaViolation | undefined {
    return this.#table.hasQuotas ? this.#table.check(path, bytesDelta, countDelta) : undefined;
  }

  /** The sums of all quotas of each namespace. The tree must not change meanwhile. */
  totals(): Iterable<QuotaTotals> {
    return this.#table.totals();
  }

  onCreated(path: string, node: NodeId, data: Uint8Array | null): void {
    const limits = this.#table.ofLimitsPath(path);
    if (limits !== undefined) this.#table.setLimits(limits, textOf(data));
    const stats = this.#table.ofStatsPath(path);
    if (stats === undefined) {
      this.#addUsage(path, data === null ? 0 : data.length, 1);
      return;
    }
    this.#table.setStatsNode(stats, node);
    this.#recount = new Recount(stats, this.#tree.find(stats.path), path, data === null ? 0 : data.length);
  }

  onRemoved(path: string, dataLength: number): void {
    const limits = this.#table.ofLimitsPath(path);
    if (limits !== undefined) this.#table.clearLimits(limits);
    const stats = this.#table.ofStatsPath(path);
    if (stats !== undefined) this.#table.setStatsNode(stats, 0);
    this.#addUsage(path, -dataLength, -1);
  }

  onDataSet(path: string, data: Uint8Array | null, lengthBefore: number): void {
    const limits = this.#table.ofLimitsPath(path);
    if (limits !== undefined) this.#table.setLimits(limits, textOf(data));
    const stats = this.#table.ofStatsPath(path);
    if (stats !== undefined) this.#table.setUsageText(stats, textOf(data));
    this.#addUsage(path, (data === null ? 0 : data.length) - lengthBefore, 0);
  }

  /** Updates the usage of the nearest quota. */
  #addUsage(path: string, bytes: number, count: number): void {
    const quota = this.#table.nearest(path);
    if (quota === undefined || quota.statsNode === 0) return;
    this.#table.addUsage(quota, count, bytes);
    this.#writeUsage(quota);
  }

  /**
   * The usage znode of a quota was created, and the count of its subtree is not complete: call
   * `recountStep`.
   */
  get isRecounting(): boolean {
    return this.#recount !== undefined;
  }

  /**
   * Continues to count the subtree of a quota, including its top, by at most `max` znodes of about
   * 30 ns each. Returns true at the end. Until then the tree must not change.
   */
  recountStep(max: number): boolean {
    const recount = this.#recount;
    if (recount === undefined) return true;
    const { quota, top } = recount;
    let { next } = recount;
    for (let left = max; next !== 0 && left > 0; left--) {
      recount.count++;
      recount.bytes += Math.max(0, this.#tree.dataLengthOf(next));
      next = this.#tree.nextBelow(next, top);
    }
    recount.next = next;
    if (next !== 0) return false;
    this.#recount = undefined;
    this.#table.setUsage(quota, recount.count, recount.bytes);
    this.#writeUsage(quota);
    // The usage znode may itself be below a path with a quota.
    this.#addUsage(recount.statsPath, recount.statsBytes, 1);
    return true;
  }

  /**
   * All znodes have been loaded: counts the quotas, by at most `max` znodes of about 100 ns each.
   * Returns true at the end. Until then the tree must not change.
   */
  finishLoading(max: number): boolean {
    this.#rebuild ??= new QuotaRebuild(this.#tree, this.#table, (quota) => this.#writeUsage(quota));
    if (!this.#rebuild.step(max)) return false;
    this.#rebuild = undefined;
    return true;
  }

  #writeUsage(quota: Quota): void {
    this.#tree.writeUsage(quota.statsNode, this.#table.usageText(quota));
  }
}

/** The progress of counting a quota's usage. */
class Recount {
  readonly quota: Quota;
  readonly top: NodeId;
  /** The usage znode that caused it. */
  readonly statsPath: string;
  readonly statsBytes: number;
  next: NodeId;
  count = 0;
  bytes = 0;

  constructor(quota: Quota, top: NodeId, statsPath: string, statsBytes: number) {
    this.quota = quota;
    this.top = this.next = top;
    this.statsPath = statsPath;
    this.statsBytes = statsBytes;
  }
}
