/** One lock, contended for in every way: waited for, tried, aborted, revoked, broken by hand. */
import type { Client } from '@tskeeper/client';
import { type Held, Lock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { type Hold, Holds, type LineRules } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawConsent, drawWait, workWith } from './holding.ts';
import { deleteByHand, drawBeginning, linePath, storePath } from './line-of-story.ts';

export const locks: Family = {
  what: 'processes contend for a lock, and write by it',
  marks: [
    'a hold was lost',
    'a hold was suspended',
    'a hold that was suspended went on',
    'a holder wrote although it was lost',
    'a late write was refused by its token',
    'a lock was had at the first try',
    'a lock was not had at the first try',
    'a lock was broken by hand',
    'a lock was broken under its holder',
    'a hold was asked back',
    'a hold was given back as asked',
    'a number ran over',
    'gave up: TimedOut',
    'gave up: Revoked',
    'gave up: Lost',
    'gave up: SessionExpired',
    'a recipe went on in the next session',
  ],
  draw: (random) => new LockStory(random),
};

class LockStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly beginning: RecipeStory['beginning'];
  readonly #holds = new Holds();

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(3);
    this.restMsMax = 1 + random.below(400);
    this.beginning = drawBeginning(random);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const lock = new Lock(await process.source(zk), linePath);
    const held = await this.#had(process, lock);
    if (held === undefined) return false;
    process.wentOn(zk, held.zk);
    const own = held.zk as Client;
    const hold = this.#holds.enter(process, own, held, 'lock-');
    try {
      if (process.below(3) === 0) await breakOwn(process, own, hold);
      await workWith(process, this.#holds, hold, storePath);
    } finally {
      hold.over();
      await held.release();
    }
    return true;
  }

  async #had(process: RecipeProcess, lock: Lock): Promise<Held | undefined> {
    if (process.below(6) === 0) {
      const held = await lock.tryAcquire();
      process.note(held === undefined ? 'a lock was not had at the first try' : 'a lock was had at the first try');
      return held;
    }
    return await lock.acquire({ ...drawWait(process), onRevocation: drawConsent(process) });
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const lock = new Lock(zk, linePath);
    const line = await lock.contenders();
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    if (operator.below(2) === 0) {
      operator.note('a lock was broken by hand');
      await deleteByHand(zk, victim.path);
    } else {
      operator.note('a hold was asked back');
      await lock.revoke(victim, operator.below(2) === 0 ? { timeoutMs: 2000 } : { deleteAfterMs: operator.below(1000) });
    }
  }

  async left(zk: Client): Promise<readonly string[]> {
    return (await new Lock(zk, linePath).contenders()).map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return this.#holds.judge(lockRules, history, recording);
  }
}

/**
 * Deleting the znode of a hold breaks it, and its holder must notice; if both use one connection,
 * before the reply.
 */
async function breakOwn(process: RecipeProcess, zk: Client, hold: Hold): Promise<void> {
  const { isHealed } = process;
  await deleteByHand(zk, hold.path);
  process.note('a lock was broken under its holder');
  for (let tries = 0; !hold.isLost && tries < 20; tries++) await process.pause(100);
  if (isHealed && !hold.isLost && zk.state === 'connected') process.complain(`${hold.path} was deleted, but its holder does not notice`);
}

const lockRules: LineRules = { path: linePath, kinds: ['lock-'], store: storePath, goesFirst: () => true };
