/**
 * The barrier of "ZooKeeper Example", one for each round: processes gather, work, and leave when
 * all have finished.
 */
import type { Client } from '@tskeeper/client';
import { SimpleBarrier, type WaitOptions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { type SimpleBarrierPassage, checkSimpleBarriers } from './barrier-rules.ts';
import { drawWaitOptions } from './work-under-hold.ts';
import { deleteAsOperator, childNames, childPaths } from './family-helpers.ts';

export const simpleBarriers: Family = {
  description: 'processes begin the halves of their work together, each time at another simple barrier',
  marks: [
    'a simple barrier was full',
    'a participant entered a simple barrier again',
    'an operator removed a participant of a simple barrier',
    'a participant left a simple barrier alone',
  ],
  drawRun: (random) => new SimpleBarrierRun(random),
};

const rootOf = (round: number) => `/gatherings/round-${round}`;

class SimpleBarrierRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #size: number;
  readonly #passages: SimpleBarrierPassage[] = [];
  /** By process number: the last round it took part in. */
  readonly #lastRoundOf = new Map<number, number>();
  /** The round of the next process: the barrier of the one before has been full. */
  #round = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.#size = random.below(2) === 0 ? this.processes : 1 + random.below(this.processes);
    this.pauseMsMax = 1 + random.below(200);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const round = this.#round;
    if (this.#lastRoundOf.get(process.number) === round) process.hitMark('a participant entered a simple barrier again');
    this.#lastRoundOf.set(process.number, round);
    const barrier = await SimpleBarrier.create(zk, rootOf(round), this.#size, { data: process.name, ...waitOf(process) });
    const inside = await barrier.enter(waitOf(process));
    if (this.#round === round) {
      process.hitMark('a simple barrier was full');
      this.#round++;
    }
    const gathered: SimpleBarrierPassage = {
      process: process.name,
      root: barrier.path,
      enteredZxid: zk.lastZxid,
      leavingZxid: undefined,
      leftZxid: undefined,
    };
    this.#passages.push(gathered);
    const isSlow = !process.isHealed && process.below(6) === 0;
    await process.sleep(process.below(isSlow ? 3000 : 150));
    gathered.leavingZxid = zk.lastZxid;
    try {
      await inside.leave(waitOf(process));
    } catch (error) {
      process.hitMark('a participant left a simple barrier alone');
      throw error;
    }
    gathered.leftZxid = zk.lastZxid;
    return true;
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const root = rootOf(Math.max(0, this.#round - operator.below(2)));
    const name = (await childNames(zk, root))[operator.below(4)];
    if (name === undefined) return;
    operator.hitMark('an operator removed a participant of a simple barrier');
    await deleteAsOperator(zk, `${root}/${name}`);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const roots = await childPaths(zk, '/gatherings');
    return (await Promise.all(roots.map((root) => childPaths(zk, root)))).flat();
  }

  check({ history }: Evidence): readonly string[] {
    return checkSimpleBarriers(this.#passages, this.#size, history);
  }
}

/** A wait for a gathering may never succeed, if the others have ended. */
function waitOf(process: RecipeProcess): WaitOptions {
  return { signal: process.stopping, ...drawWaitOptions(process) };
}
