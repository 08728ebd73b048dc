/**
 * One semaphore: leases acquired singly or several at once, with a size that the program sets, or
 * that is stored and changes.
 */
import type { Client } from '@tskeeper/client';
import { type Hold, Semaphore } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { MutualExclusionChecker } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWaitOptions, workUnderSharedHolds } from './work-under-hold.ts';
import { deleteAsOperator, waitQueuePath, storePath } from './family-helpers.ts';

const leasesPath = `${waitQueuePath}/leases`;
const locksPath = `${waitQueuePath}/locks`;

export const semaphores: Family = {
  description: 'processes share a few leases',
  marks: [
    'several leases were acquired together',
    'a lease was acquired at the first try',
    'an operator deleted a lease',
    'a semaphore was resized',
    'a hold was lost',
  ],
  drawRun: (random) => new SemaphoreRun(random),
};

class SemaphoreRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #holds = new MutualExclusionChecker();
  readonly #size: number;
  /** The size is stored, and an operator changes it. */
  readonly #isResized: boolean;

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(4);
    this.pauseMsMax = 1 + random.below(300);
    this.#size = 1 + random.below(3);
    this.#isResized = random.below(3) === 0;
  }

  async prepare(zk: Client): Promise<void> {
    await zk.ensurePath(storePath);
    if (this.#isResized) await new Semaphore(zk, waitQueuePath).resize(this.#size);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const semaphore = new Semaphore(zk, waitQueuePath, this.#isResized ? {} : { size: this.#size });
    const had = await this.#acquire(process, semaphore);
    if (had.length === 0) return false;
    const holds = had.map((held) => this.#holds.acquired(process, zk, held, 'lease-'));
    try {
      await workUnderSharedHolds(process, holds, storePath);
    } finally {
      for (const hold of holds) hold.end();
      await Promise.all(had.map((held) => held.release()));
    }
    return true;
  }

  async #acquire(process: RecipeProcess, semaphore: Semaphore): Promise<readonly Hold[]> {
    switch (process.below(8)) {
      case 0: {
        const held = await semaphore.tryAcquire();
        if (held === undefined) return [];
        process.hitMark('a lease was acquired at the first try');
        return [held];
      }
      case 1: {
        const { holds } = await semaphore.acquireMany(this.#isResized ? 1 : this.#size, drawWaitOptions(process));
        if (holds.length > 1) process.hitMark('several leases were acquired together');
        return holds;
      }
      default:
        return [await semaphore.acquire(drawWaitOptions(process))];
    }
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const semaphore = new Semaphore(zk, waitQueuePath);
    if (this.#isResized && operator.below(2) === 0) {
      operator.hitMark('a semaphore was resized');
      await semaphore.resize(1 + operator.below(4), { timeoutMs: 2000 });
      return;
    }
    const line = await (operator.below(2) === 0 ? semaphore.leases() : semaphore.contenders());
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    operator.hitMark('an operator deleted a lease');
    await deleteAsOperator(zk, victim.path);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const semaphore = new Semaphore(zk, waitQueuePath);
    return [...(await semaphore.leases()), ...(await semaphore.contenders())].map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    const sizes = history.writes.filter(({ path, data }) => path === waitQueuePath && data !== '').map(({ data }) => Number(data));
    const leases = {
      path: leasesPath,
      kinds: ['lease-'],
      storePath: storePath,
      goesFirst: () => true,
      holdersMax: Math.max(this.#size, ...sizes),
    };
    const waiting = { path: locksPath, kinds: ['lock-'], goesFirst: () => true };
    return [...this.#holds.check(leases, history, recording), ...new MutualExclusionChecker().check(waiting, history, recording)];
  }
}
