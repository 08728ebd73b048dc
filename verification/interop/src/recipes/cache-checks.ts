/** Caches of ours and of Curator on the same znodes, while these change. */
import assert from 'node:assert/strict';

import { type Client, KeeperError } from '@tskeeper/client';

import { Random } from '../random.ts';
import { type Check, childrenOf, until } from './check-context.ts';
import { textOf } from './verbs.ts';

const names = ['a', 'b', 'c'];

/** A random change of a znode below `path`, up to two levels deep; an impossible one is skipped. */
async function change(zk: Client, path: string, random: Random, value: string): Promise<void> {
  const top = `${path}/${random.pick(names)}`;
  const each = random.chance(0.5) ? top : `${top}/${random.pick(names)}`;
  try {
    if (random.chance(0.3)) await zk.delete(each);
    else if (random.chance(0.5)) await zk.create(each, value);
    else await zk.setData(each, value);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode', 'NodeExists', 'NotEmpty')) throw error;
  }
}

/** The state on the server: paths with data and versions, ordered by path. */
async function contentsOf(zk: Client, path: string, deep: boolean): Promise<string[]> {
  const all: string[] = [];
  for (const name of (await childrenOf(zk, path)).toSorted()) {
    const each = `${path}/${name}`;
    const { data, stat } = await zk.getData(each);
    all.push(`${each}=${textOf(data)}@${stat.version}`);
    if (deep) all.push(...(await contentsOf(zk, each, true)));
  }
  return all;
}

const caches = [
  { kind: 'children-cache', theirs: 'PathChildrenCache', deep: false },
  { kind: 'tree-cache', theirs: 'TreeCache', deep: true },
] as const;

export const cacheChecks: readonly Check[] = caches.map(({ kind, theirs, deep }) => ({
  name: `a ${kind} of ours and Curator's ${theirs} both show the znodes of the server, after each of many changes`,
  hasRoot: true,
  async run({ clients, root, zk }) {
    await zk.setData(root, 'root');
    const all = await Promise.all([clients.ours.open(kind, root), clients.Curator.open(kind, root)]);
    const random = new Random(7);
    let most = 0;
    for (let round = 0; round < 12; round++) {
      // Some states are seen one by one, and many are skipped.
      for (let at = 0; at <= round * 3; at++) await change(zk, root, random, `${round}.${at}`);
      const below = await contentsOf(zk, root, deep);
      most = Math.max(most, below.length);
      const expected = [...(deep ? [`${root}=root@1`] : []), ...below].join(' ');
      await until(`both show ${expected}`, async () =>
        (await Promise.all(all.map((each) => each.call('shown')))).every((text) => text === expected),
      );
    }
    assert(most > 2, 'nothing ever existed');
  },
}));
