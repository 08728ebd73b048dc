/**
 * One priority lock: readers and writers with different priorities, some of which preempt those
 * with a lower one.
 */
import type { Client } from '@tskeeper/client';
import { PriorityLock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { Holds, type LineRules } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawConsent, drawWait, workWith } from './holding.ts';
import { deleteByHand, linePath, storePath } from './line-of-story.ts';

export const priorityLocks: Family = {
  what: 'processes read and write, the more urgent first',
  marks: [
    'a priority lock was preempted',
    'a priority lock was broken by hand',
    'somebody was taken out of the gate by hand',
    'a hold was given back as asked',
  ],
  draw: (random) => new PriorityLockStory(random),
};

const priorities = [1, 5, 20];
const kinds = priorities.flatMap((priority) => ['read', 'write'].map((how) => kindOf(how, priority)));

class PriorityLockStory implements RecipeStory {
  readonly processes: number;
  /** Long enough that low priorities have their turn. */
  readonly restMsMax: number;
  readonly #holds = new Holds();

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(3);
    this.restMsMax = 600 + random.below(600);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const lock = new PriorityLock(zk, linePath);
    const reads = process.below(2) === 0;
    const priority = priorities[process.below(priorities.length)]!;
    const preempts = process.below(4) === 0;
    if (preempts) process.note('a priority lock was preempted');
    const preempt = preempts && (process.below(2) === 0 || { deleteAfterMs: process.below(800) });
    const side = reads ? lock.reading(priority, { preempt }) : lock.writing(priority, { preempt });
    const held =
      process.below(8) === 0 ? await side.tryAcquire() : await side.acquire({ ...drawWait(process), onRevocation: drawConsent(process) });
    if (held === undefined) return false;
    const hold = this.#holds.enter(process, zk, held, kindOf(reads ? 'read' : 'write', priority));
    try {
      if (reads) await process.pause(process.below(300));
      else await workWith(process, this.#holds, hold, storePath);
    } finally {
      hold.over();
      await held.release();
    }
    return true;
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const lock = new PriorityLock(zk, linePath);
    const atGate = operator.below(2) === 0;
    const line = await (atGate ? lock.contenders() : lock.holders());
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    operator.note(atGate ? 'somebody was taken out of the gate by hand' : 'a priority lock was broken by hand');
    await deleteByHand(zk, victim.path);
  }

  async left(zk: Client): Promise<readonly string[]> {
    const lock = new PriorityLock(zk, linePath);
    return [...(await lock.holders()), ...(await lock.contenders())].map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return this.#holds.judge(rules, history, recording);
  }
}

/** The znodes below `holding` alone decide who holds, as in a shared lock. */
const rules: LineRules = {
  path: `${linePath}/holding`,
  kinds,
  store: storePath,
  goesFirst: (ahead, kind) => ahead.startsWith('write-') || kind.startsWith('write-'),
};

function kindOf(how: string, priority: number): string {
  return `${how}-${String(priority).padStart(2, '0')}-`;
}
