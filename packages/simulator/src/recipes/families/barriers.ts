/**
 * One double barrier, used for many rounds: by as many processes as it needs, or by more, which
 * join late and leave early.
 */
import type { Client } from '@tskeeper/client';
import { DoubleBarrier, type Participation } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait } from './holding.ts';
import { deleteByHand, namesBelow } from './line-of-story.ts';
import { barrierPath, judgeRounds, type Passage } from './rounds.ts';

export const barriers: Family = {
  what: 'processes begin together and end together, again and again',
  marks: [
    'a process came when a round was on',
    'a process was at work when its znode was gone',
    'a process left without the others',
    'a participant was removed by hand',
    'gave up: TimedOut',
    'gave up: Lost',
    'gave up: SessionExpired',
  ],
  draw: (random) => new BarrierStory(random),
};

class BarrierStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #size: number;
  readonly #passages: Passage[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.#size = random.below(2) === 0 ? this.processes : 1 + random.below(this.processes);
    this.restMsMax = 1 + random.below(300);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const inside = await new DoubleBarrier(zk, barrierPath, this.#size, { data: process.name }).enter(wait(process));
    const passage: Passage = {
      who: process.name,
      path: inside.path,
      enteredZxid: zk.lastZxid,
      leavingZxid: undefined,
      leftZxid: undefined,
    };
    this.#passages.push(passage);
    await work(process, zk, inside);
    if (inside.signal.aborted) process.note('a process was at work when its znode was gone');
    passage.leavingZxid = zk.lastZxid;
    try {
      await inside.leave(wait(process));
    } catch (error) {
      if (inside.state === 'released') process.note('a process left without the others');
      throw error;
    }
    passage.leftZxid = zk.lastZxid;
    return true;
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const names = await participants(zk);
    const name = names[operator.below(4)];
    if (name === undefined || operator.below(2) === 0) return;
    operator.note('a participant was removed by hand');
    await deleteByHand(zk, `${barrierPath}/${name}`);
  }

  left(zk: Client): Promise<readonly string[]> {
    return participants(zk);
  }

  judge({ history }: Evidence): readonly string[] {
    return judgeRounds(this.#passages, this.#size, history);
  }
}

/** A barrier may be waited for in vain, when the others have ended. */
function wait(process: RecipeProcess): { timeoutMs?: number; signal: AbortSignal } {
  return { signal: process.stopping, ...drawWait(process) };
}

async function work(process: RecipeProcess, zk: Client, inside: Participation): Promise<void> {
  if (process.below(4) === 0) {
    // An error here is for `leave` to find, which must be called in any case.
    const stat = await zk.exists(inside.path).catch(() => null);
    if (stat !== null && stat.version > 0) process.note('a process came when a round was on');
  }
  const isSlow = !process.isHealed && process.below(6) === 0;
  await process.pause(process.below(isSlow ? 3000 : 150));
}

async function participants(zk: Client): Promise<string[]> {
  return (await namesBelow(zk, barrierPath)).filter((name) => name !== 'ready');
}
