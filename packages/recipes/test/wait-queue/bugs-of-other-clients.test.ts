/**
 * Bugs in the locks and elections of Curator, kazoo and others that no other test covers;
 * docs/internals/known-bugs.md lists them.
 */
import type { Client, ClientView } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LeaderLatch, Election, Lease, Lock, MultiLock, PriorityLock, Semaphore, ReadWriteLock } from '../../src/index.ts';
import { shapeOf } from '../support/each-loss.ts';
import { fated } from '../support/fates.ts';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/locks/report';

const waits: Record<string, (zk: ClientView) => Promise<unknown>> = {
  Lock: (zk) => new Lock(zk, path).acquire(),
  'revocable Lock': (zk) => new Lock(zk, path).acquire({ onRevocation: () => undefined }),
  ReadWriteLock: (zk) => new ReadWriteLock(zk, path).writeLock.acquire(),
  PriorityLock: (zk) => new PriorityLock(zk, path).writeLock(1, { preempt: true }).acquire(),
  Semaphore: (zk) => new Semaphore(zk, path, { size: 1 }).acquire(),
  MultiLock: (zk) => new MultiLock([new Lock(zk, `${path}/a`), new Lock(zk, `${path}/b`)]).acquire(),
  Election: (zk) => new Election(zk, path).lead(),
  Lease: (zk) => new Lease(zk, path, { holder: String(zk.sessionId), durationMs: 600_000 }).acquire(),
};

it('a lock and a candidate create their queue again when it was deleted together with its parents', async () => {
  const lock = new Lock(t.zk, path);
  await t.until((await t.until(lock.acquire())).release());
  await t.until(t.zk.deleteRecursive('/locks'));
  await t.until((await t.until(lock.acquire())).release());
  const candidates = [new LeaderLatch(await t.client(), path), new LeaderLatch(await t.client(), path)];
  const first = await t.until(candidates[0]!.waitForLeadership());
  await t.settle();
  await t.until(t.zk.deleteRecursive('/locks'));
  await t.pass(1000);
  expect(first.state).toBe('lost');
  expect(candidates.filter(({ leadership }) => leadership !== undefined)).toHaveLength(1);
  expect(await t.childrenOf(path)).toHaveLength(2);
  await t.until(Promise.all(candidates.map((each) => each.close())));
});

interface Had {
  release?(): Promise<void>;
  resign?(): Promise<void>;
}

it.each(Object.keys(waits))(
  'below a chroot each waiter gets its turn, and one without a reply that gives up leaves nothing behind: %s',
  async (name) => {
    const come = (zk: Client) => waits[name]!(zk.chroot('/tenants/42')) as Promise<Had>;
    const giveBack = (had: Had) => t.until(had.release?.() ?? had.resign!());
    const { zk, lose } = await forgetful(t);
    const first = await t.until(come(t.zk));
    const waiting = come(zk);
    await t.pass(200);
    await giveBack(first);
    await giveBack(await t.until(waiting));
    lose('create2');
    const abort = new AbortController();
    const abandoned = failureOf(new Lock(zk.chroot('/tenants/42'), path).acquire({ signal: abort.signal }));
    await t.settle();
    abort.abort('given up');
    expect(await t.until(abandoned)).toBe('given up');
    await t.pass(1000);
    expect((await t.until(shapeOf(t, '/tenants/42'))).filter((each) => /lock-|read-|write-|lease-|waiting-|n_|__$/.test(each))).toEqual([]);
  },
);

it.each(Object.keys(waits))('a closed client ends the wait, and later waits fail: %s', async (name) => {
  const wait = waits[name]!;
  await t.until(wait(t.zk));
  const zk = await t.client();
  const waiting = failureOf(wait(zk));
  await t.pass(200);
  await t.until(zk.close());
  // In either order: the znode is deleted with the session.
  expect(await t.until(waiting, 0)).toMatchObject({ code: expect.stringMatching(/^(Lost|SessionExpired)$/) });
  expect(await t.until(failureOf(wait(zk)), 0)).toMatchObject({ code: 'SessionExpired' });
});

it.each(Object.keys(waits))(
  'a waiter whose connection is lost gets its turn, also when its turn begins without a connection: %s',
  async (name) => {
    const wait = waits[name]! as (zk: ClientView) => Promise<Had>;
    const first = await t.until(wait(t.zk));
    const zk = await t.client();
    const waiting = wait(zk);
    await t.pass(200);
    const { address } = t.world;
    t.world.wire.name('server', []);
    t.world.break();
    await t.world.untilSo(() => zk.state === 'suspended');
    await t.until(first.release?.() ?? first.resign!());
    t.world.wire.name('server', [address]);
    const had = await t.until(waiting);
    expect(had).toMatchObject({ state: 'held' });
    await t.until(had.release?.() ?? had.resign!());
  },
);

it('the leader is reported though it changes between two reads, and though it has no data', async () => {
  const first = await t.until(new Election(t.zk, path).lead());
  const second = new Election(await t.client(), path, { data: 'second' }).lead();
  await t.settle();
  expect(await t.until(new Election(t.zk, path).leader())).toEqual({ path: first.path, data: null, acknowledged: false });
  let isOver = false;
  const zk = await fated(t, ({ opCode }) => {
    if (isOver || opCode !== OpCode.getData) return undefined;
    isOver = true;
    return { ahead: () => first.resign() };
  });
  const leader = await t.until(new Election(zk, path).leader());
  expect(new TextDecoder().decode(leader!.data ?? undefined)).toBe('second');
  expect(leader!.path).toBe((await t.until(second)).path);
});

it('a state listener may release its hold, and acquire it again', async () => {
  const lock = new Lock(t.zk, path);
  const held = await t.until(lock.acquire());
  const again: Promise<unknown>[] = [];
  held.onStateChange((state) => {
    if (state === 'held') again.push(held.release().then(() => lock.acquire()));
  });
  t.world.break();
  await t.world.untilSo(() => again.length === 1);
  expect(await t.until(again[0]!)).toMatchObject({ state: 'held' });
  expect(await t.childrenOf(path)).toHaveLength(1);
});
