import { op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Election, Lock, ReadWriteLock } from '../../src/index.ts';
import { HoldSet } from '../../src/wait-queue/hold-set.ts';
import { WaitQueue, QueueNode } from '../../src/wait-queue/wait-queue.ts';
import { leftOf } from '../support/garbage.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await t.close();
});

const path = '/locks/report';

describe('a hold that is over', () => {
  it('writes nothing, though its session lives on and its znode still exists', async () => {
    const zk = await t.client();
    await t.until(t.zk.ensurePath('/store'));
    const held = await t.until(new Lock(zk, path).acquire());
    // No server expires sessions meanwhile.
    t.world.kill();
    await t.pass(12_000, 500);
    expect(held.state).toBe('lost');
    const failures: Promise<unknown>[] = [];
    zk.on('state', ({ state }) => {
      if (state === 'SyncConnected') failures.push(failureOf(held.multi([op.setData('/store', 'late')])));
    });
    await t.world.boot();
    await t.world.untilSo(() => failures.length > 0);
    expect(await t.until(failures[0]!)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    expect((await t.until(t.zk.getData('/store'))).data?.length ?? 0).toBe(0);
  });
});

describe('a hold that is acquired again', () => {
  it('B9, B10: sends no request, and the lock is free when all handles have been released, in any order', async () => {
    const { zk, lines } = await t.recorded();
    const lock = new Lock(zk, path);
    const outer = await t.until(lock.acquire());
    const asked = lines.length;
    const inner = outer.share();
    const innermost = inner.share();
    expect([inner.path, inner.fencingToken]).toEqual([outer.path, outer.fencingToken]);
    await t.until(outer.release());
    await t.until(outer.release());
    await t.until(innermost.release());
    expect(lines.length).toBe(asked);
    expect([outer.state, inner.state]).toEqual(['released', 'held']);
    expect(await t.until(new Lock(t.zk, path).tryAcquire())).toBe(undefined);
    expect(() => outer.share()).toThrow(`${outer.path} is released, so it cannot be held again`);
    await t.until(inner.release());
    expect(await t.until(new Lock(t.zk, path).tryAcquire())).toBeDefined();
  });

  it('B9, B10: is lost together with its other handles, and cannot be acquired again after that', async () => {
    const outer = await t.until(new ReadWriteLock(t.zk, path).writeLock.acquire());
    const inner = outer.share();
    await t.until(t.zk.delete(outer.path));
    await t.settle();
    expect([outer.state, inner.state, inner.signal.aborted]).toEqual(['lost', 'lost', true]);
    expect(() => inner.share()).toThrow(expect.objectContaining({ code: 'Lost' }));
    await t.until(Promise.all([outer.release(), inner.release()]));
  });

  it('B9, B10: leaves nothing in memory when it is released, however often, while the lock is held', async () => {
    const held = await t.until(new Lock(t.zk, path).acquire());
    const left = await leftOf(100, async () => {
      const again = held.share();
      await again.release();
      return again;
    });
    expect(left).toBeLessThan(3);
    expect(held.state).toBe('held');
  });

  it('B9, B10: needs its option: without it a second acquire waits for the first', async () => {
    const lock = new Lock(t.zk, path);
    await t.until(lock.acquire());
    expect(await t.until(failureOf(lock.acquire({ timeoutMs: 5000 })))).toMatchObject({ code: 'TimedOut' });
  });
});

describe('a hold that is over', () => {
  it('C1-3: has its reason when it reports that it is lost', async () => {
    const held = await t.until(new Lock(t.zk, path).acquire());
    const together = new HoldSet([held]);
    const reasons: unknown[] = [];
    held.onStateChange(() => reasons.push(held.signal.reason));
    together.onStateChange(() => reasons.push(together.signal.reason));
    await t.until(t.zk.delete(held.path));
    await t.settle();
    expect(reasons).toEqual([held.signal.reason, held.signal.reason]);
    expect(held.signal.reason).toMatchObject({ code: 'Lost' });
  });

  it('stays over, though the event of a lost connection is still to be delivered', async () => {
    const { zk } = t;
    const states: string[] = [];
    zk.on('state', () => void held.release());
    const held = await t.until(new Lock(zk, path).acquire());
    held.onStateChange((state) => states.push(state));
    t.world.break();
    await t.world.untilSo(() => zk.state !== 'connected');
    await t.world.untilSo(() => zk.state === 'connected');
    await t.pass(60_000);
    expect([held.state, held.signal.aborted, states]).toEqual(['released', false, ['released']]);
  });
});

describe('a znode of another session', () => {
  /** What a first reply says was created, and for which recipe. */
  const ways: Record<string, () => Promise<unknown>> = {
    lock: () => new Lock(t.zk, path).acquire(),
    'tryAcquire of a lock': () => new Lock(t.zk, path).tryAcquire(),
    'revocable lock': () => new Lock(t.zk, path).acquire({ onRevocation: () => undefined }),
    election: () => new Election(t.zk, path, { prefix: 'lock-' }).lead(),
  };

  it.each(Object.keys(ways))('E29: is not a hold, even if it is the first in the queue: %s', async (name) => {
    const ofOther = await t.until(new Lock(await t.client(), path).acquire());
    vi.spyOn(WaitQueue.prototype, 'join').mockImplementation(function (this: WaitQueue, zk, _kind, _data, _signal, onData) {
      return Promise.resolve(new QueueNode(zk, this, ofOther.path, ofOther.fencingToken, onData));
    });
    // The znode belongs to its owner, and is not deleted.
    vi.spyOn(QueueNode.prototype, 'leave').mockResolvedValue();
    expect(await t.until(failureOf(ways[name]!()))).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    expect(ofOther.state).toBe('held');
  });
});
