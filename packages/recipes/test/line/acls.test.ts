/** Znodes that those who have made them may not read: servers tell them nothing of these. */
import type { Acl, Client } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Candidate, DoubleBarrier, Election, Lock, PriorityLock, Semaphore, SharedLock, SimpleBarrier } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/unreadable';
const acl: readonly Acl[] = [{ perms: 0b11110, id: { scheme: 'world', id: 'anyone' } }];

const ways: Record<string, (zk: Client) => Promise<unknown>> = {
  Lock: (zk) => new Lock(zk, path, { acl }).acquire(),
  'Lock, tried': (zk) => new Lock(zk, path, { acl }).tryAcquire(),
  'Lock that can be revoked': (zk) => new Lock(zk, path, { acl }).acquire({ onRevocation: () => undefined }),
  SharedLock: (zk) => new SharedLock(zk, path, { acl }).reading.acquire(),
  PriorityLock: (zk) => new PriorityLock(zk, path, { acl }).writing(1).acquire(),
  Semaphore: (zk) => new Semaphore(zk, path, { acl }).acquire(),
  Election: (zk) => new Election(zk, path, { acl }).lead(),
  Candidate: (zk) => new Candidate(zk, path, { acl }).leading(),
  DoubleBarrier: (zk) => new DoubleBarrier(zk, path, 1, { acl }).enter(),
  SimpleBarrier: async (zk) => (await SimpleBarrier.at(zk, path, 1, { acl })).enter(),
};

it.each(Object.keys(ways))('whoever may not read its own znode is refused, as it would never hear that it is gone: %s', async (name) => {
  for (const below of ['', '/waiting', '/holding', '/leases', '/locks'])
    await t.until(t.zk.create(`${path}${below}`, below === '' ? '1' : ''));
  const zk = await t.client();
  expect(await t.until(failureOf(ways[name]!(zk)))).toMatchObject({ name: 'KeeperError', code: 'NoAuth' });
  await t.pass(200);
  for (const below of ['/waiting', '/holding', '/leases', '/locks']) expect(await t.childrenOf(`${path}${below}`)).toEqual([]);
  expect(await t.childrenOf(path)).toHaveLength(4);
});

it('a hold is lost when its holder finds that it may not read its znode any more, as it would not hear that it is gone', async () => {
  const held = await t.until(new Lock(await t.client(), path).acquire());
  await t.until(Promise.all([t.zk.setData(held.path, 'changed'), t.zk.setACL(held.path, acl)]));
  await t.settle();
  expect(held.state).toBe('lost');
  expect(held.signal.reason).toMatchObject({
    name: 'RecipeError',
    code: 'Lost',
    message: `${held.path} cannot be watched any more`,
    cause: { code: 'NoAuth' },
  });
  await t.until(held.release());
  expect(await t.childrenOf(path)).toEqual([]);
});
