/**
 * Rebuilds the quotas of a tree that was loaded from a snapshot. A snapshot contains their limits
 * and usages as ordinary znodes in any order; the usage of each quota is counted again, as
 * ZooKeeper does. Each znode is visited once, however quotas are nested, and the work can be
 * interrupted after every znode.
 */
import type { NodeId } from './node-store.ts';
import { type Quota, quotaRoot, type QuotaTable, textOf } from './quota-table.ts';

/** A quota whose subtree is being walked. */
class OpenQuota {
  readonly quota: Quota;
  /** The znode after the subtree in the walk; 0 at the end of the walk. */
  readonly end: NodeId;
  count = 0;
  bytes = 0;

  constructor(quota: Quota, end: NodeId) {
    this.quota = quota;
    this.end = end;
  }
}

/** The part of `DataTree` that it needs. */
export interface WalkedTree {
  find(path: string): NodeId;
  pathOf(node: NodeId): string;
  dataOf(node: NodeId): Buffer | null;
  dataLengthOf(node: NodeId): number;
  parentOf(node: NodeId): NodeId;
  nextBelow(node: NodeId, top: NodeId): NodeId;
  nextAfterSubtree(node: NodeId, top: NodeId): NodeId;
}

export class QuotaRebuild {
  readonly #tree: WalkedTree;
  readonly #quotas: QuotaTable;
  readonly #writeUsage: (quota: Quota) => void;
  readonly #quotasWithLimits: Quota[] = [];
  /** By the znode at the quota's path. */
  readonly #quotaByTop = new Map<NodeId, Quota>();
  readonly #visits = this.#run();

  constructor(tree: WalkedTree, quotas: QuotaTable, writeUsage: (quota: Quota) => void) {
    this.#tree = tree;
    this.#quotas = quotas;
    this.#writeUsage = writeUsage;
  }

  /**
   * Visits at most `max` znodes, for about 100 ns each. Returns true at the end. Until then the
   * tree must not change.
   */
  step(max: number): boolean {
    for (let left = max; left > 0; left--) if (this.#visits.next().done === true) return true;
    return false;
  }

  /** Yields after every znode. */
  *#run(): Generator<void, void, void> {
    yield* this.#readQuotas();
    for (const quota of this.#quotasWithLimits) {
      if (quota.statsNode === 0) continue;
      const top = this.#tree.find(quota.path);
      if (top === 0) this.#set(quota, 0, 0);
      else this.#quotaByTop.set(top, quota);
      yield;
    }
    for (const [top, quota] of this.#quotaByTop) {
      const isOutermost = yield* this.#isOutermost(top);
      if (isOutermost) yield* this.#count(top, quota);
    }
  }

  *#readQuotas(): Generator<void, void, void> {
    const tree = this.#tree;
    const root = tree.find(quotaRoot);
    for (let node = root === 0 ? 0 : tree.nextBelow(root, root); node !== 0; node = tree.nextBelow(node, root)) {
      const path = tree.pathOf(node);
      const limits = this.#quotas.ofLimitsPath(path);
      if (limits !== undefined) {
        this.#quotas.setLimits(limits, textOf(tree.dataOf(node)));
        this.#quotasWithLimits.push(limits);
      }
      const stats = this.#quotas.ofStatsPath(path);
      if (stats !== undefined) {
        this.#quotas.setStatsNode(stats, node);
        this.#quotas.setUsageText(stats, textOf(tree.dataOf(node)));
      }
      yield;
    }
  }

  *#isOutermost(top: NodeId): Generator<void, boolean, void> {
    for (let node = this.#tree.parentOf(top); node !== 0; node = this.#tree.parentOf(node)) {
      if (this.#quotaByTop.has(node)) return false;
      yield;
    }
    return true;
  }

  /** Counts an outermost quota and all quotas below it in one walk. */
  *#count(top: NodeId, outermost: Quota): Generator<void, void, void> {
    const tree = this.#tree;
    const open = [new OpenQuota(outermost, 0)];
    let innermost = open[0]!;
    const close = (): void => {
      const { quota, count, bytes } = open.pop()!;
      this.#set(quota, count, bytes);
      const outer = open.at(-1);
      if (outer === undefined) return;
      outer.count += count;
      outer.bytes += bytes;
      innermost = outer;
    };
    for (let node = top; node !== 0; node = tree.nextBelow(node, top)) {
      while (innermost.end === node) close();
      const quota = this.#quotaByTop.get(node);
      if (quota !== undefined && node !== top) {
        innermost = new OpenQuota(quota, tree.nextAfterSubtree(node, top));
        open.push(innermost);
      }
      innermost.count++;
      innermost.bytes += Math.max(0, tree.dataLengthOf(node));
      yield;
    }
    while (open.length > 0) {
      close();
      yield;
    }
  }

  #set(quota: Quota, count: number, bytes: number): void {
    this.#quotas.setUsage(quota, count, bytes);
    this.#writeUsage(quota);
  }
}
