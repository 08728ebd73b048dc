/**
 * One semaphore: leases acquired singly or several at once, with a size that the program sets, or
 * that is stored and changes.
 */
import type { Client } from '@tskeeper/client';
import { type Held, Semaphore } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { Holds } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait, workTogether } from './holding.ts';
import { deleteByHand, linePath, storePath } from './line-of-story.ts';

const leasesPath = `${linePath}/leases`;
const locksPath = `${linePath}/locks`;

export const semaphores: Family = {
  what: 'processes share a few leases',
  marks: [
    'several leases were had at once',
    'a lease was had at the first try',
    'a lease was taken away by hand',
    'a semaphore was resized',
    'a hold was lost',
  ],
  draw: (random) => new SemaphoreStory(random),
};

class SemaphoreStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #holds = new Holds();
  readonly #size: number;
  /** The size is stored, and an operator changes it. */
  readonly #isResized: boolean;

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(4);
    this.restMsMax = 1 + random.below(300);
    this.#size = 1 + random.below(3);
    this.#isResized = random.below(3) === 0;
  }

  async prepare(zk: Client): Promise<void> {
    await zk.ensurePath(storePath);
    if (this.#isResized) await new Semaphore(zk, linePath).resize(this.#size);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const semaphore = new Semaphore(zk, linePath, this.#isResized ? {} : { size: this.#size });
    const had = await this.#had(process, semaphore);
    if (had.length === 0) return false;
    const holds = had.map((held) => this.#holds.enter(process, zk, held, 'lease-'));
    try {
      await workTogether(process, holds, storePath);
    } finally {
      for (const hold of holds) hold.over();
      await Promise.all(had.map((held) => held.release()));
    }
    return true;
  }

  async #had(process: RecipeProcess, semaphore: Semaphore): Promise<readonly Held[]> {
    switch (process.below(8)) {
      case 0: {
        const held = await semaphore.tryAcquire();
        if (held === undefined) return [];
        process.note('a lease was had at the first try');
        return [held];
      }
      case 1: {
        const { holds } = await semaphore.acquireMany(this.#isResized ? 1 : this.#size, drawWait(process));
        if (holds.length > 1) process.note('several leases were had at once');
        return holds;
      }
      default:
        return [await semaphore.acquire(drawWait(process))];
    }
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const semaphore = new Semaphore(zk, linePath);
    if (this.#isResized && operator.below(2) === 0) {
      operator.note('a semaphore was resized');
      await semaphore.resize(1 + operator.below(4), { timeoutMs: 2000 });
      return;
    }
    const line = await (operator.below(2) === 0 ? semaphore.leases() : semaphore.contenders());
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    operator.note('a lease was taken away by hand');
    await deleteByHand(zk, victim.path);
  }

  async left(zk: Client): Promise<readonly string[]> {
    const semaphore = new Semaphore(zk, linePath);
    return [...(await semaphore.leases()), ...(await semaphore.contenders())].map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    const sizes = history.writes.filter(({ path, data }) => path === linePath && data !== '').map(({ data }) => Number(data));
    const leases = { path: leasesPath, kinds: ['lease-'], store: storePath, goesFirst: () => true, places: Math.max(this.#size, ...sizes) };
    const waiting = { path: locksPath, kinds: ['lock-'], goesFirst: () => true };
    return [...this.#holds.judge(leases, history, recording), ...new Holds().judge(waiting, history, recording)];
  }
}
