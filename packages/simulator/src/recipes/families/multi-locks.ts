/**
 * Several locks at once, named in any order: each process wants some of them, and there must be no
 * deadlock.
 */
import type { Client } from '@tskeeper/client';
import { Lock, MultiLock, SharedLock } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { Holds, type LineRules } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait, workTogether } from './holding.ts';
import { deleteByHand, linePath, storePath } from './line-of-story.ts';

export const multiLocks: Family = {
  what: 'processes want several locks at once, and name them in any order',
  marks: ['several locks were had at once', 'several locks were not had at the first try', 'a part was broken by hand', 'a hold was lost'],
  draw: (random) => new MultiLockStory(random),
};

const paths = ['a', 'b', 'c'].map((name) => `${linePath}/${name}`);
const shared = `${linePath}/shared`;

class MultiLockStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  /** By the path of the part. */
  readonly #holds = new Map([...paths, shared].map((path) => [path, new Holds()]));

  constructor(random: SeededRandom) {
    this.processes = 3 + random.below(3);
    this.restMsMax = 1 + random.below(300);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const reads = process.below(2) === 0;
    const all = [...paths.map((path) => new Lock(zk, path)), new SharedLock(zk, shared)[reads ? 'reading' : 'writing']];
    const some = all.filter(() => process.below(2) === 0);
    const parts = some.length === 0 ? all : some;
    const multi = new MultiLock(process.below(2) === 0 ? parts : parts.toReversed());
    const held = process.below(6) === 0 ? await multi.tryAcquire() : await multi.acquire(drawWait(process));
    if (held === undefined) {
      process.note('several locks were not had at the first try');
      return false;
    }
    if (held.holds.length > 1) process.note('several locks were had at once');
    const kindOf = (path: string) => (path !== shared ? 'lock-' : reads ? 'read-' : 'write-');
    const holds = held.holds.map((each, at) => {
      const { path } = multi.parts[at]!;
      return this.#holds.get(path)!.enter(process, zk, each, kindOf(path));
    });
    try {
      await workTogether(process, holds, storePath);
    } finally {
      for (const hold of holds) hold.over();
      await held.release();
    }
    return true;
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const path = paths[operator.below(paths.length)]!;
    const [victim] = await new Lock(zk, path).contenders();
    if (victim === undefined) return;
    operator.note('a part was broken by hand');
    await deleteByHand(zk, victim.path);
  }

  async left(zk: Client): Promise<readonly string[]> {
    const lines = await Promise.all(
      [...paths.map((path) => new Lock(zk, path)), new SharedLock(zk, shared)].map((each) => each.contenders()),
    );
    return lines.flat().map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return [...this.#holds].flatMap(([path, holds]) => {
      const rules: LineRules =
        path === shared
          ? { path, kinds: ['read-', 'write-'], goesFirst: (ahead, kind) => ahead === 'write-' || kind === 'write-' }
          : { path, kinds: ['lock-'], store: storePath, goesFirst: () => true };
      return holds.judge(rules, history, recording);
    });
  }
}
