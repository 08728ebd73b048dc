/**
 * Znodes that their own clients may not read: servers send no events about them to these clients.
 */
import type { Acl, Client } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LeaderLatch, DoubleBarrier, Election, Lock, PriorityLock, Semaphore, ReadWriteLock, SimpleBarrier } from '../../src/index.ts';
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
  'Lock.tryAcquire': (zk) => new Lock(zk, path, { acl }).tryAcquire(),
  'revocable Lock': (zk) => new Lock(zk, path, { acl }).acquire({ onRevocation: () => undefined }),
  ReadWriteLock: (zk) => new ReadWriteLock(zk, path, { acl }).readLock.acquire(),
  PriorityLock: (zk) => new PriorityLock(zk, path, { acl }).writeLock(1).acquire(),
  Semaphore: (zk) => new Semaphore(zk, path, { acl }).acquire(),
  Election: (zk) => new Election(zk, path, { acl }).lead(),
  Candidate: (zk) => new LeaderLatch(zk, path, { acl }).waitForLeadership(),
  DoubleBarrier: (zk) => new DoubleBarrier(zk, path, 1, { acl }).enter(),
  SimpleBarrier: async (zk) => (await SimpleBarrier.create(zk, path, 1, { acl })).enter(),
};

it.each(Object.keys(ways))('a client that may not read its own znode is rejected, as it would miss its deletion: %s', async (name) => {
  for (const below of ['', '/waiting', '/holding', '/leases', '/locks'])
    await t.until(t.zk.create(`${path}${below}`, below === '' ? '1' : ''));
  const zk = await t.client();
  expect(await t.until(failureOf(ways[name]!(zk)))).toMatchObject({ name: 'KeeperError', code: 'NoAuth' });
  await t.pass(200);
  for (const below of ['/waiting', '/holding', '/leases', '/locks']) expect(await t.childrenOf(`${path}${below}`)).toEqual([]);
  expect(await t.childrenOf(path)).toHaveLength(4);
});

it('a hold is lost when its holder finds that it may no longer read its znode, as it would miss its deletion', async () => {
  const held = await t.until(new Lock(await t.client(), path).acquire());
  await t.until(Promise.all([t.zk.setData(held.path, 'changed'), t.zk.setACL(held.path, acl)]));
  await t.settle();
  expect(held.state).toBe('lost');
  expect(held.signal.reason).toMatchObject({
    name: 'RecipeError',
    code: 'Lost',
    message: `this client can no longer watch ${held.path}`,
    cause: { code: 'NoAuth' },
  });
  await t.until(held.release());
  expect(await t.childrenOf(path)).toEqual([]);
});
