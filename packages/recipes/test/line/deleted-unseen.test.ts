/** The answer to the create of one's znode is lost, and somebody deletes the znode before the client that looks for its guid has read it. */
import type { Client } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AtomicNumber, DoubleBarrier, Lease, Lock, PersistentNode, Semaphore } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
  await t.until(t.zk.ensurePath('/a'));
});

afterEach(async () => {
  await t.close();
});

/** A client whose next create is not answered, and is undone by another between the list of children and the look at the znode. */
async function unlucky(): Promise<Client> {
  const { zk, lose } = await forgetful(t);
  const getChildren = zk.getChildren.bind(zk);
  zk.getChildren = async (path, options) => {
    const found = await getChildren(path, options);
    const own = found.children.find((name) => name.startsWith('_c_'));
    if (own === undefined) return found;
    zk.getChildren = getChildren;
    await t.zk.delete(`${path}/${own}`);
    return found;
  };
  lose('create2');
  return zk;
}

const lost: Record<string, (zk: Client) => Promise<unknown>> = {
  Lock: (zk) => new Lock(zk, '/a').acquire(),
  Semaphore: (zk) => new Semaphore(zk, '/a', { size: 2 }).acquire(),
  DoubleBarrier: (zk) => new DoubleBarrier(zk, '/a', 2).enter(),
  Lease: (zk) => new Lease(zk, '/a', { holder: 'one', durationMs: 1000 }).tryAcquire(),
};

it.each(Object.keys(lost))('%s: it is lost, as if it had been deleted later', async (name) => {
  const zk = await unlucky();
  expect(await t.until(failureOf(lost[name]!(zk)))).toMatchObject({ name: 'RecipeError', code: 'Lost' });
});

it('AtomicNumber: its mark is made again', async () => {
  const zk = await unlucky();
  await t.until(t.zk.create('/a/n', Buffer.alloc(8)));
  expect(await t.until(new AtomicNumber(zk, '/a/n').increment())).toEqual({ before: 0n, after: 1n });
});

it('PersistentNode: it is made again', async () => {
  const node = new PersistentNode(await unlucky(), '/a/n', null, { mode: 'ephemeralSequential' });
  await t.until(node.ready());
  expect(await t.childrenOf('/a')).toHaveLength(1);
});
