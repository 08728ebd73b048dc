/**
 * One shared lock: readers together, writers alone, some of them impatient, revoked or broken by
 * hand.
 */
import type { Client } from '@tskeeper/client';
import { ReadWriteLock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { MutualExclusionChecker, type WaitQueueRules } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawRevocationHandler, drawWaitOptions, workUnderHold } from './work-under-hold.ts';
import { deleteAsOperator, drawSeedZnodes, waitQueuePath, storePath } from './family-helpers.ts';

export const sharedLocks: Family = {
  description: 'processes read and write under a shared lock',
  marks: ['two readers held at once', 'an operator broke a shared lock', 'a reader was revoked', 'a hold was lost', 'gave up: TimedOut'],
  drawRun: (random) => new SharedLockRun(random),
};

class SharedLockRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly seedZnodes: FamilyRun['seedZnodes'];
  readonly #holds = new MutualExclusionChecker();
  readonly #readerPercent: number;
  #reading = 0;

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(4);
    this.pauseMsMax = 1 + random.below(400);
    this.seedZnodes = drawSeedZnodes(random);
    /** In percent. */
    this.#readerPercent = 20 + random.below(60);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const lock = new ReadWriteLock(zk, waitQueuePath);
    const reads = process.below(100) < this.#readerPercent;
    const side = reads ? lock.readLock : lock.writeLock;
    const onRevocation = drawRevocationHandler(process);
    const held = process.below(8) === 0 ? await side.tryAcquire() : await side.acquire({ ...drawWaitOptions(process), onRevocation });
    if (held === undefined) return false;
    const hold = this.#holds.acquired(process, zk, held, reads ? 'read-' : 'write-');
    try {
      if (reads) await this.#read(process);
      else await workUnderHold(process, this.#holds, hold, storePath);
    } finally {
      hold.end();
      await held.release();
    }
    return true;
  }

  async #read(process: RecipeProcess): Promise<void> {
    if (this.#reading > 0) process.hitMark('two readers held at once');
    this.#reading++;
    await process.sleep(process.below(300));
    this.#reading--;
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const lock = new ReadWriteLock(zk, waitQueuePath);
    const line = await lock.contenders();
    const victim = line[operator.below(3)];
    if (victim === undefined) return;
    if (operator.below(2) === 0) {
      operator.hitMark('an operator broke a shared lock');
      await deleteAsOperator(zk, victim.path);
    } else {
      if (victim.prefix === 'read-') operator.hitMark('a reader was revoked');
      await lock.revoke(victim, operator.below(2) === 0 ? { timeoutMs: 2000 } : { deleteAfterMs: operator.below(1000) });
    }
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    return (await new ReadWriteLock(zk, waitQueuePath).contenders()).map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    return this.#holds.check(sharedLockRules, history, recording);
  }
}

const sharedLockRules: WaitQueueRules = {
  path: waitQueuePath,
  kinds: ['read-', 'write-'],
  storePath: storePath,
  goesFirst: (ahead, kind) => ahead === 'write-' || kind === 'write-',
};
