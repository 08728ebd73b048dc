/**
 * Finds containers and TTL znodes that are due for deletion. A container is due when its last child
 * is deleted; a TTL znode when it has no children and has not been changed for its TTL. Only the
 * server that orders writes sweeps.
 *
 * A pass visits all candidates in slices; the znodes found are deleted one by one, at most at the
 * configured rate.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import type { CoreOptions } from '../options.ts';
import type { DataTree } from '../tree/data-tree.ts';
import { StepBudget } from '../step-budget.ts';
import type { PendingZnode } from './outstanding-changes.ts';
import { isContainerOwner, ttlOfOwner } from './ephemeral-type.ts';

const minuteMs = 60_000;

export class ContainerManager {
  readonly #tree: DataTree;
  readonly #options: CoreOptions;
  readonly #budget: StepBudget;
  /** Where the current pass continues; 0 between passes. */
  #cursor = 0;
  #nextPassMs: Millis;
  /** Found by the pass and not deleted yet. */
  #due: string[] = [];
  #nextDeleteMs: Millis = 0;

  constructor(tree: DataTree, options: CoreOptions, now: Now) {
    this.#tree = tree;
    this.#options = options;
    this.#budget = new StepBudget(options.stepUnits);
    this.#nextPassMs = now.elapsedMs + options.containerCheckIntervalMs;
  }

  deadline(): Millis | undefined {
    if (this.#options.containerCheckIntervalMs <= 0) return undefined;
    if (this.#cursor !== 0) return 0;
    return this.#due.length > 0 ? this.#nextDeleteMs : this.#nextPassMs;
  }

  /** Continues the pass, and passes on at most the znodes that may be deleted by now. */
  wake(now: Now, remove: (path: string, isDue: (znode: PendingZnode) => boolean) => void): void {
    if (this.#options.containerCheckIntervalMs <= 0) return;
    if (this.#cursor !== 0 || (this.#due.length === 0 && now.elapsedMs >= this.#nextPassMs)) this.#scan(now);
    const isDue = (znode: PendingZnode): boolean => this.#isDue(znode, now.wallMs);
    const intervalMs = minuteMs / this.#options.containerMaxPerMinute;
    let allowed = this.#budget.sweeps;
    while (this.#due.length > 0 && now.elapsedMs >= this.#nextDeleteMs && allowed-- > 0) {
      // A late step may catch up, but by no more than a step's worth.
      this.#nextDeleteMs = Math.max(this.#nextDeleteMs, now.elapsedMs - this.#budget.sweeps * intervalMs) + intervalMs;
      remove(this.#due.pop()!, isDue);
    }
  }

  #scan(now: Now): void {
    this.#cursor = this.#tree.sweepCandidates(this.#cursor, this.#budget.paths, (node) => {
      const tree = this.#tree;
      const znode = {
        childCount: tree.childCountOf(node),
        cversion: tree.cversionOf(node),
        mtime: tree.mtimeOf(node),
        ownerHigh: tree.ownerHighOf(node),
        ownerLow: tree.ownerLowOf(node),
      };
      if (this.#isDue(znode, now.wallMs)) this.#due.push(tree.pathOf(node));
    });
    if (this.#cursor === 0) {
      this.#nextPassMs = now.elapsedMs + this.#options.containerCheckIntervalMs;
      this.#nextDeleteMs = now.elapsedMs;
    }
  }

  #isDue(znode: Pick<PendingZnode, 'childCount' | 'cversion' | 'mtime' | 'ownerHigh' | 'ownerLow'>, wallMs: Millis): boolean {
    if (znode.childCount > 0) return false;
    const ageMs = wallMs - znode.mtime;
    if (isContainerOwner(znode.ownerHigh, znode.ownerLow)) {
      // A container that never had a child may be about to get its first.
      const neverUsedMs = this.#options.containerMaxNeverUsedIntervalMs;
      return znode.cversion !== 0 || (neverUsedMs > 0 && ageMs > neverUsedMs);
    }
    const ttlMs = ttlOfOwner(znode.ownerHigh, znode.ownerLow, this.#options);
    return ttlMs !== undefined && ageMs > ttlMs;
  }
}
