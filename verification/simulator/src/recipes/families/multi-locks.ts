/**
 * Several locks at once, named in any order: each process wants some of them, and there must be no
 * deadlock.
 */
import type { Client } from '@tskeeper/client';
import { Lock, MultiLock, ReadWriteLock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { MutualExclusionChecker, type WaitQueueRules } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWaitOptions, workUnderSharedHolds } from './work-under-hold.ts';
import { deleteAsOperator, waitQueuePath, storePath } from './family-helpers.ts';

export const multiLocks: Family = {
  description: 'processes want several locks at once, and name them in any order',
  marks: [
    'several locks were acquired together',
    'several locks were not available at the first try',
    'an operator broke one of several locks',
    'a hold was lost',
  ],
  drawRun: (random) => new MultiLockRun(random),
};

const paths = ['a', 'b', 'c'].map((name) => `${waitQueuePath}/${name}`);
const shared = `${waitQueuePath}/shared`;

class MultiLockRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  /** By the path of the part. */
  readonly #holds = new Map([...paths, shared].map((path) => [path, new MutualExclusionChecker()]));

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(3);
    this.pauseMsMax = 1 + random.below(300);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const reads = process.below(2) === 0;
    const all = [...paths.map((path) => new Lock(zk, path)), new ReadWriteLock(zk, shared)[reads ? 'readLock' : 'writeLock']];
    const some = all.filter(() => process.below(2) === 0);
    const parts = some.length === 0 ? all : some;
    const multi = new MultiLock(process.below(2) === 0 ? parts : parts.toReversed());
    const held = process.below(6) === 0 ? await multi.tryAcquire() : await multi.acquire(drawWaitOptions(process));
    if (held === undefined) {
      process.hitMark('several locks were not available at the first try');
      return false;
    }
    if (held.holds.length > 1) process.hitMark('several locks were acquired together');
    const kindOf = (path: string) => (path !== shared ? 'lock-' : reads ? 'read-' : 'write-');
    const holds = held.holds.map((each, at) => {
      const { path } = multi.locks[at]!;
      return this.#holds.get(path)!.acquired(process, zk, each, kindOf(path));
    });
    try {
      await workUnderSharedHolds(process, holds, storePath);
    } finally {
      for (const hold of holds) hold.end();
      await held.release();
    }
    return true;
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const path = paths[operator.below(paths.length)]!;
    const [victim] = await new Lock(zk, path).contenders();
    if (victim === undefined) return;
    operator.hitMark('an operator broke one of several locks');
    await deleteAsOperator(zk, victim.path);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const lines = await Promise.all(
      [...paths.map((path) => new Lock(zk, path)), new ReadWriteLock(zk, shared)].map((each) => each.contenders()),
    );
    return lines.flat().map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    return [...this.#holds].flatMap(([path, holds]) => {
      const rules: WaitQueueRules =
        path === shared
          ? { path, kinds: ['read-', 'write-'], goesFirst: (ahead, kind) => ahead === 'write-' || kind === 'write-' }
          : { path, kinds: ['lock-'], storePath: storePath, goesFirst: () => true };
      return holds.check(rules, history, recording);
    });
  }
}
