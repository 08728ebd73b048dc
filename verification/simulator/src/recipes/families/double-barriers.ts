/**
 * One double barrier, used for many rounds: by as many processes as it needs, or by more, which
 * join late and leave early.
 */
import type { Client } from '@tskeeper/client';
import { DoubleBarrier, type Participation } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWaitOptions } from './work-under-hold.ts';
import { deleteAsOperator, childNames } from './family-helpers.ts';
import { barrierPath, checkRounds, type DoubleBarrierPassage } from './double-barrier-rules.ts';

export const doubleBarriers: Family = {
  description: 'processes begin together and end together, again and again',
  marks: [
    'a participant came during a round',
    'a participant was inside without its znode',
    'a process left without the others',
    'an operator removed a participant',
    'gave up: TimedOut',
    'gave up: Lost',
    'gave up: SessionExpired',
  ],
  drawRun: (random) => new DoubleBarrierRun(random),
};

class DoubleBarrierRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #size: number;
  readonly #passages: DoubleBarrierPassage[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.#size = random.below(2) === 0 ? this.processes : 1 + random.below(this.processes);
    this.pauseMsMax = 1 + random.below(300);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const inside = await new DoubleBarrier(zk, barrierPath, this.#size, { data: process.name }).enter(wait(process));
    const passage: DoubleBarrierPassage = {
      process: process.name,
      path: inside.path,
      enteredZxid: zk.lastZxid,
      leavingZxid: undefined,
      leftZxid: undefined,
    };
    this.#passages.push(passage);
    await work(process, zk, inside);
    if (inside.signal.aborted) process.hitMark('a participant was inside without its znode');
    passage.leavingZxid = zk.lastZxid;
    try {
      await inside.leave(wait(process));
    } catch (error) {
      if (inside.state === 'released') process.hitMark('a process left without the others');
      throw error;
    }
    passage.leftZxid = zk.lastZxid;
    return true;
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const names = await participants(zk);
    const name = names[operator.below(4)];
    if (name === undefined || operator.below(2) === 0) return;
    operator.hitMark('an operator removed a participant');
    await deleteAsOperator(zk, `${barrierPath}/${name}`);
  }

  leftovers(zk: Client): Promise<readonly string[]> {
    return participants(zk);
  }

  check({ history }: Evidence): readonly string[] {
    return checkRounds(this.#passages, this.#size, history);
  }
}

/** A wait for a barrier may never succeed, if the others have ended. */
function wait(process: RecipeProcess): { timeoutMs?: number; signal: AbortSignal } {
  return { signal: process.stopping, ...drawWaitOptions(process) };
}

async function work(process: RecipeProcess, zk: Client, inside: Participation): Promise<void> {
  if (process.below(4) === 0) {
    // An error here is for `leave` to find, which must be called in any case.
    const stat = await zk.exists(inside.path).catch(() => null);
    if (stat !== null && stat.version > 0) process.hitMark('a participant came during a round');
  }
  const isSlow = !process.isHealed && process.below(6) === 0;
  await process.sleep(process.below(isSlow ? 3000 : 150));
}

async function participants(zk: Client): Promise<string[]> {
  return (await childNames(zk, barrierPath)).filter((name) => name !== 'ready');
}
