/**
 * One priority lock: readers and writers with different priorities, some of which preempt those
 * with a lower one.
 */
import type { Client } from '@tskeeper/client';
import { PriorityLock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { MutualExclusionChecker, type WaitQueueRules } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawRevocationHandler, drawWaitOptions, workUnderHold } from './work-under-hold.ts';
import { deleteAsOperator, waitQueuePath, storePath } from './family-helpers.ts';

export const priorityLocks: Family = {
  description: 'processes read and write, the more urgent first',
  marks: [
    'a priority lock was preempted',
    'a priority lock was broken by hand',
    'a contender was deleted at the gate by hand',
    'a hold was released on revocation',
  ],
  drawRun: (random) => new PriorityLockRun(random),
};

const priorities = [1, 5, 20];
const kinds = priorities.flatMap((priority) => ['read', 'write'].map((how) => kindOf(how, priority)));

class PriorityLockRun implements FamilyRun {
  readonly processes: number;
  /** Long enough that low priorities have their turn. */
  readonly pauseMsMax: number;
  readonly #holds = new MutualExclusionChecker();

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(3);
    this.pauseMsMax = 600 + random.below(600);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const lock = new PriorityLock(zk, waitQueuePath);
    const reads = process.below(2) === 0;
    const priority = priorities[process.below(priorities.length)]!;
    const preempts = process.below(4) === 0;
    if (preempts) process.hitMark('a priority lock was preempted');
    const preempt = preempts && (process.below(2) === 0 || { deleteAfterMs: process.below(800) });
    const side = reads ? lock.readLock(priority, { preempt }) : lock.writeLock(priority, { preempt });
    const held =
      process.below(8) === 0
        ? await side.tryAcquire()
        : await side.acquire({ ...drawWaitOptions(process), onRevocation: drawRevocationHandler(process) });
    if (held === undefined) return false;
    const hold = this.#holds.acquired(process, zk, held, kindOf(reads ? 'read' : 'write', priority));
    try {
      if (reads) await process.sleep(process.below(300));
      else await workUnderHold(process, this.#holds, hold, storePath);
    } finally {
      hold.end();
      await held.release();
    }
    return true;
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const lock = new PriorityLock(zk, waitQueuePath);
    const atGate = operator.below(2) === 0;
    const line = await (atGate ? lock.contenders() : lock.holders());
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    operator.hitMark(atGate ? 'a contender was deleted at the gate by hand' : 'a priority lock was broken by hand');
    await deleteAsOperator(zk, victim.path);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const lock = new PriorityLock(zk, waitQueuePath);
    return [...(await lock.holders()), ...(await lock.contenders())].map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    return this.#holds.check(rules, history, recording);
  }
}

/** The znodes below `holding` alone decide who holds, as in a shared lock. */
const rules: WaitQueueRules = {
  path: `${waitQueuePath}/holding`,
  kinds,
  storePath: storePath,
  goesFirst: (ahead, kind) => ahead.startsWith('write-') || kind.startsWith('write-'),
};

function kindOf(how: string, priority: number): string {
  return `${how}-${String(priority).padStart(2, '0')}-`;
}
