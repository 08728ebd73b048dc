/** One event, that lets through everybody until it is reset, or one for each time it is set. */
import type { Client } from '@tskeeper/client';
import { EventHandle } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import { parentOf } from '../../replay/replay.ts';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import type { History } from '../history.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait } from './holding.ts';
import { deleteByHand } from './line-of-story.ts';

export const events: Family = {
  what: 'processes set an event, and wait for it',
  marks: [
    'an event let somebody through',
    'an event was waited for in vain',
    'an event was reset',
    'a place in the line of an event was taken away by hand',
  ],
  draw: (random) => new EventStory(random),
};

const eventPath = '/events/loaded';
const setPath = `${eventPath}/set`;

/** One wait, and what the client had seen before and behind it. */
interface Passage {
  readonly process: string;
  readonly session: bigint;
  readonly fromZxid: bigint;
  /** undefined: it was given up, or nobody can say. */
  toZxid: bigint | undefined;
}

class EventStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #autoReset: boolean;
  readonly #passages: Passage[] = [];

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.restMsMax = 1 + random.below(100);
    this.#autoReset = random.below(4) > 0;
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const event = this.#eventOf(zk);
    if (process.isHealed || process.below(2) === 0) await event.set(waitOf(process));
    if (process.isHealed || process.below(3) > 0) await this.#wait(process, zk, event);
    return true;
  }

  #eventOf(zk: Client): EventHandle {
    return new EventHandle(zk, eventPath, { autoReset: this.#autoReset });
  }

  async #wait(process: RecipeProcess, zk: Client, event: EventHandle): Promise<void> {
    const passage: Passage = { process: process.name, session: zk.sessionId, fromZxid: zk.lastZxid, toZxid: undefined };
    this.#passages.push(passage);
    try {
      await event.wait(waitOf(process));
    } catch (error) {
      process.note('an event was waited for in vain');
      throw error;
    }
    passage.toZxid = zk.lastZxid;
    process.note('an event let somebody through');
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    if (operator.below(2) === 0) {
      await this.#eventOf(zk).reset();
      operator.note('an event was reset');
      return;
    }
    const victim = (await waiting(zk))[operator.below(2)];
    if (victim === undefined) return;
    operator.note('a place in the line of an event was taken away by hand');
    await deleteByHand(zk, victim);
  }

  left(zk: Client): Promise<readonly string[]> {
    return waiting(zk);
  }

  judge({ history }: Evidence): readonly string[] {
    return this.#autoReset ? this.#judgeOneEach(history) : this.#judgeOpen(history);
  }

  /** Each time that it was set has let one through at most, who took it away knows, and nobody takes it twice for one wait. */
  #judgeOneEach(history: History): string[] {
    const sessions = new Set(this.#passages.map(({ session }) => session));
    const takers = history.writes.filter(({ path, data }) => parentOf(path) === eventPath && data === 'through').map(({ path }) => path);
    const twice = takers.filter((path, at) => takers.indexOf(path) !== at).map((path) => `through: ${path} has taken the event twice`);
    const unlike = [...sessions].flatMap((session) => {
      const own = this.#passages.filter((passage) => passage.session === session);
      const through = own.filter(({ toZxid }) => toZxid !== undefined).length;
      const taken = history.below(eventPath).filter(({ path, goneBy }) => path === setPath && goneBy === session).length;
      if (taken >= through && taken <= own.length) return [];
      return [`through: ${own[0]!.process} went through ${through} times of ${own.length}, and has taken the event ${taken} times`];
    });
    return [...twice, ...unlike];
  }

  /** Who was let through has seen it set, or that it had been. */
  #judgeOpen(history: History): string[] {
    const times = history.below(eventPath).filter(({ path }) => path === setPath);
    return this.#passages.flatMap(({ process, fromZxid, toZxid }) => {
      if (toZxid === undefined || times.some(({ czxid, goneZxid }) => czxid <= toZxid && goneZxid > fromZxid)) return [];
      return [`through: ${process} was let through between ${fromZxid} and ${toZxid}, when the event was not set`];
    });
  }
}

function waitOf(process: RecipeProcess): { timeoutMs?: number; signal?: AbortSignal } {
  // Those who all wait, and have not set it, would wait for ever.
  return process.isHealed ? { signal: process.stopping } : { timeoutMs: 4000, ...drawWait(process) };
}

/** The znodes of those who wait. */
async function waiting(zk: Client): Promise<string[]> {
  if ((await zk.exists(eventPath)) === null) return [];
  const { children } = await zk.getChildren(eventPath);
  return children
    .filter((name) => name !== 'set')
    .toSorted()
    .map((name) => `${eventPath}/${name}`);
}
