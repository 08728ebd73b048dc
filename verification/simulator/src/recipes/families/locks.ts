/** One lock, contended for in every way: waited for, tried, aborted, revoked, broken by hand. */
import type { Client } from '@tskeeper/client';
import { type Hold, Lock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { type ObservedHold, MutualExclusionChecker, type WaitQueueRules } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawRevocationHandler, drawWaitOptions, workUnderHold } from './work-under-hold.ts';
import { deleteAsOperator, drawSeedZnodes, waitQueuePath, storePath } from './family-helpers.ts';

export const locks: Family = {
  description: 'processes contend for a lock, and write by it',
  marks: [
    'a hold was lost',
    'a hold was suspended',
    'a suspended hold was resumed',
    'a write was attempted with a lost hold',
    'a stale write was fenced off',
    'a lock was had at the first try',
    'a lock was not had at the first try',
    'an operator broke a lock',
    'an operator broke a held lock',
    'a hold was revoked',
    'a hold was released on revocation',
    'a sequence number overflowed',
    'gave up: TimedOut',
    'gave up: Revoked',
    'gave up: Lost',
    'gave up: SessionExpired',
    'a recipe continued in the next session',
  ],
  drawRun: (random) => new LockRun(random),
};

class LockRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly seedZnodes: FamilyRun['seedZnodes'];
  readonly #holds = new MutualExclusionChecker();

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(3);
    this.pauseMsMax = 1 + random.below(400);
    this.seedZnodes = drawSeedZnodes(random);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const lock = new Lock(await process.source(zk), waitQueuePath);
    const held = await this.#acquire(process, lock);
    if (held === undefined) return false;
    process.noteNextSession(zk, held.client);
    const own = held.client as Client;
    const hold = this.#holds.acquired(process, own, held, 'lock-');
    try {
      if (process.below(3) === 0) await breakOwn(process, own, hold);
      await workUnderHold(process, this.#holds, hold, storePath);
    } finally {
      hold.end();
      await held.release();
    }
    return true;
  }

  async #acquire(process: RecipeProcess, lock: Lock): Promise<Hold | undefined> {
    if (process.below(6) === 0) {
      const held = await lock.tryAcquire();
      process.hitMark(held === undefined ? 'a lock was not had at the first try' : 'a lock was had at the first try');
      return held;
    }
    return await lock.acquire({ ...drawWaitOptions(process), onRevocation: drawRevocationHandler(process) });
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const lock = new Lock(zk, waitQueuePath);
    const line = await lock.contenders();
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    if (operator.below(2) === 0) {
      operator.hitMark('an operator broke a lock');
      await deleteAsOperator(zk, victim.path);
    } else {
      operator.hitMark('a hold was revoked');
      await lock.revoke(victim, operator.below(2) === 0 ? { timeoutMs: 2000 } : { deleteAfterMs: operator.below(1000) });
    }
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    return (await new Lock(zk, waitQueuePath).contenders()).map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    return this.#holds.check(lockRules, history, recording);
  }
}

/**
 * Deleting the znode of a hold breaks it, and its holder must notice; if both use one connection,
 * before the reply.
 */
async function breakOwn(process: RecipeProcess, zk: Client, hold: ObservedHold): Promise<void> {
  const { isHealed } = process;
  await deleteAsOperator(zk, hold.path);
  process.hitMark('an operator broke a held lock');
  for (let tries = 0; !hold.isLost && tries < 20; tries++) await process.sleep(100);
  if (isHealed && !hold.isLost && zk.state === 'connected')
    process.reportViolation(`${hold.path} was deleted, but its holder does not notice`);
}

const lockRules: WaitQueueRules = { path: waitQueuePath, kinds: ['lock-'], storePath: storePath, goesFirst: () => true };
