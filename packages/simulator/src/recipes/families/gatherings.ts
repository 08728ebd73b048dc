/**
 * The barrier of "ZooKeeper Example", one for each round: processes gather, work, and leave when
 * all have finished.
 */
import type { Client } from '@tskeeper/client';
import { SimpleBarrier, type WaitOptions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { type Gathered, judgeGatherings } from './barrier-rules.ts';
import { drawWait } from './holding.ts';
import { deleteByHand, namesBelow, pathsBelow } from './line-of-story.ts';

export const gatherings: Family = {
  what: 'processes begin the halves of their work together, each time at another simple barrier',
  marks: [
    'a gathering was full',
    'somebody came to a gathering for the second time',
    'somebody was taken out of a gathering by hand',
    'somebody has left a gathering without the others',
  ],
  draw: (random) => new GatheringStory(random),
};

const rootOf = (round: number) => `/gatherings/round-${round}`;

class GatheringStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #size: number;
  readonly #gathered: Gathered[] = [];
  /** By process number: the last round it took part in. */
  readonly #lastOf = new Map<number, number>();
  /** The round of the next process: the barrier of the one before has been full. */
  #round = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.#size = random.below(2) === 0 ? this.processes : 1 + random.below(this.processes);
    this.restMsMax = 1 + random.below(200);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const round = this.#round;
    if (this.#lastOf.get(process.number) === round) process.note('somebody came to a gathering for the second time');
    this.#lastOf.set(process.number, round);
    const barrier = await SimpleBarrier.at(zk, rootOf(round), this.#size, { data: process.name, ...waitOf(process) });
    const inside = await barrier.enter(waitOf(process));
    if (this.#round === round) {
      process.note('a gathering was full');
      this.#round++;
    }
    const gathered: Gathered = {
      process: process.name,
      root: barrier.path,
      enteredZxid: zk.lastZxid,
      leavingZxid: undefined,
      leftZxid: undefined,
    };
    this.#gathered.push(gathered);
    const isSlow = !process.isHealed && process.below(6) === 0;
    await process.pause(process.below(isSlow ? 3000 : 150));
    gathered.leavingZxid = zk.lastZxid;
    try {
      await inside.leave(waitOf(process));
    } catch (error) {
      process.note('somebody has left a gathering without the others');
      throw error;
    }
    gathered.leftZxid = zk.lastZxid;
    return true;
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const root = rootOf(Math.max(0, this.#round - operator.below(2)));
    const name = (await namesBelow(zk, root))[operator.below(4)];
    if (name === undefined) return;
    operator.note('somebody was taken out of a gathering by hand');
    await deleteByHand(zk, `${root}/${name}`);
  }

  async left(zk: Client): Promise<readonly string[]> {
    const roots = await pathsBelow(zk, '/gatherings');
    return (await Promise.all(roots.map((root) => pathsBelow(zk, root)))).flat();
  }

  judge({ history }: Evidence): readonly string[] {
    return judgeGatherings(this.#gathered, this.#size, history);
  }
}

/** A gathering may be waited for in vain, when the others have ended. */
function waitOf(process: RecipeProcess): WaitOptions {
  return { signal: process.stopping, ...drawWait(process) };
}
