/**
 * One request, or its reply, is lost at each step of each recipe that queues, and the connection
 * breaks. After a create whose reply was lost the client lists the children and looks for the guid.
 * In each case the recipe continues, with the same znodes as without a loss, and leaves none
 * behind.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  LeaderLatch,
  Election,
  EventHandle,
  Lease,
  Lock,
  MultiLease,
  MultiLock,
  PriorityLock,
  Semaphore,
  ReadWriteLock,
} from '../../src/index.ts';
import { shapeOf, withEachLoss } from '../support/each-loss.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  // Containers stay, however long a story takes.
  t = await RecipeWorld.start({ containerCheckIntervalMs: 0 });
});

afterEach(async () => {
  await t.close();
});

/** Acquires, and returns how to release. */
type Recipe = (zk: Client, path: string) => Promise<() => Promise<unknown>>;

const recipes: Record<string, Recipe> = {
  Lock: async (zk, path) => {
    const held = await new Lock(zk, path).acquire();
    return () => held.release();
  },
  'ReadWriteLock, reading, revocable': async (zk, path) => {
    const held = await new ReadWriteLock(zk, path).readLock.acquire({ onRevocation: () => undefined });
    return () => held.release();
  },
  'Lock.tryAcquire': async (zk, path) => {
    const held = await new Lock(zk, path).tryAcquire();
    return () => held!.release();
  },
  Semaphore: async (zk, path) => {
    const held = await new Semaphore(zk, path, { size: 3 }).acquireMany(2);
    return () => held.release();
  },
  'Semaphore.tryAcquire': async (zk, path) => {
    const held = await new Semaphore(zk, path, { size: 3 }).tryAcquire();
    return () => held!.release();
  },
  MultiLock: async (zk, path) => {
    const held = await new MultiLock([new Lock(zk, `${path}/b`), new ReadWriteLock(zk, `${path}/a`).writeLock]).acquire();
    return () => held.release();
  },
  PriorityLock: async (zk, path) => {
    const held = await new PriorityLock(zk, path).writeLock(7).acquire();
    return () => held.release();
  },
  Election: async (zk, path) => {
    const leadership = await new Election(zk, path).lead();
    return () => leadership.resign();
  },
  Candidate: async (zk, path) => {
    const candidate = new LeaderLatch(zk, path);
    await candidate.waitForLeadership();
    return () => candidate.close();
  },
  Lease: async (zk, path) => {
    const held = await new Lease(zk, path, { holder: 'one', durationMs: 60_000 }).acquire();
    return () => held.release();
  },
  'Lease, renewed': async (zk, path) => {
    const held = (await new Lease(zk, path, { holder: 'one', durationMs: 60_000 }).tryAcquire())!;
    // The outcome of a renewal may be unknown, and the lease can still be released.
    await held.renew().catch((error: unknown) => expect(KeeperError.is(error, 'ConnectionLoss', 'RequestTimeout')).toBe(true));
    return () => held.release();
  },
  MultiLease: async (zk, path) => {
    const held = (await new MultiLease(zk, path, { holder: 'one', durationMs: 60_000, count: 2 }).tryAcquire())!;
    return () => held.release();
  },
  'EventHandle with autoReset': async (zk, path) => {
    const event = new EventHandle(zk, path, { autoReset: true });
    await event.set();
    await event.wait();
    return () => event.reset();
  },
};

it.each(Object.keys(recipes))(
  'C1-23, C1-3: the loss of any one request or reply leaves the same znodes as without it: %s',
  async (name) => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const giveBack = await recipes[name]!(zk, path);
      await new Promise<void>((resolve) => t.world.clock.after(900, resolve));
      const held = await shapeOf(t, path);
      expect(held.length).toBeGreaterThan(0);
      await giveBack();
      return held;
    });
    expect(runs).toBeGreaterThan(2 * 4);
  },
);
