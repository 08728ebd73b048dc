/**
 * One shared lock: readers together, writers alone, some of them impatient, revoked or broken by
 * hand.
 */
import type { Client } from '@tskeeper/client';
import { SharedLock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { Holds, type LineRules } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawConsent, drawWait, workWith } from './holding.ts';
import { deleteByHand, drawBeginning, linePath, storePath } from './line-of-story.ts';

export const sharedLocks: Family = {
  what: 'processes read and write under a shared lock',
  marks: [
    'two read at once',
    'a shared lock was broken by hand',
    'a reader was asked to make room',
    'a hold was lost',
    'gave up: TimedOut',
  ],
  draw: (random) => new SharedLockStory(random),
};

class SharedLockStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly beginning: RecipeStory['beginning'];
  readonly #holds = new Holds();
  readonly #readers: number;
  #reading = 0;

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(4);
    this.restMsMax = 1 + random.below(400);
    this.beginning = drawBeginning(random);
    /** In percent. */
    this.#readers = 20 + random.below(60);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const lock = new SharedLock(zk, linePath);
    const reads = process.below(100) < this.#readers;
    const side = reads ? lock.reading : lock.writing;
    const onRevocation = drawConsent(process);
    const held = process.below(8) === 0 ? await side.tryAcquire() : await side.acquire({ ...drawWait(process), onRevocation });
    if (held === undefined) return false;
    const hold = this.#holds.enter(process, zk, held, reads ? 'read-' : 'write-');
    try {
      if (reads) await this.#read(process);
      else await workWith(process, this.#holds, hold, storePath);
    } finally {
      hold.over();
      await held.release();
    }
    return true;
  }

  async #read(process: RecipeProcess): Promise<void> {
    if (this.#reading > 0) process.note('two read at once');
    this.#reading++;
    await process.pause(process.below(300));
    this.#reading--;
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const lock = new SharedLock(zk, linePath);
    const line = await lock.contenders();
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    if (operator.below(2) === 0) {
      operator.note('a shared lock was broken by hand');
      await deleteByHand(zk, victim.path);
    } else {
      if (victim.kind === 'read-') operator.note('a reader was asked to make room');
      await lock.revoke(victim, operator.below(2) === 0 ? { timeoutMs: 2000 } : { deleteAfterMs: operator.below(1000) });
    }
  }

  async left(zk: Client): Promise<readonly string[]> {
    return (await new SharedLock(zk, linePath).contenders()).map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return this.#holds.judge(sharedLockRules, history, recording);
  }
}

const sharedLockRules: LineRules = {
  path: linePath,
  kinds: ['read-', 'write-'],
  store: storePath,
  goesFirst: (ahead, kind) => ahead === 'write-' || kind === 'write-',
};
