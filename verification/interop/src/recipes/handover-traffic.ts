/**
 * Recipes in which each step concerns one of the waiters, or as many as may continue: the others
 * are neither woken nor notified.
 */
import type { Client } from '@tskeeper/client';
import {
  DoubleBarrier,
  Election,
  EventHandle,
  type Hold,
  type HeldLease,
  Lease,
  Lock,
  MultiLock,
  type Participation,
  PriorityLock,
  Semaphore,
  ReadWriteLock,
} from '@tskeeper/recipes';

import type { TrafficCase, Traffic } from './traffic.ts';
import { feedCrowd, handOverCrowd } from './waiters.ts';

/**
 * Its delete, and the list of the one that wakes up; two replies, the event that wakes it, and that
 * of its own znode.
 */
const handoverCost: Traffic = { received: 2, sent: 4 };

/** Longer than all steps: the next waiter would get an expired lease. */
const leaseMs = 600_000;

export const handoverTraffic: Readonly<Record<string, TrafficCase>> = {
  'a lock is released': {
    setUp: (clients, path) =>
      handOverCrowd(
        clients.map((zk) => () => new Lock(zk, path).acquire()),
        (held) => held.release(),
      ),
    expected: () => handoverCost,
  },
  'a leader resigns': {
    setUp: (clients, path) =>
      handOverCrowd(
        clients.map((zk) => () => new Election(zk, path).lead()),
        (leadership) => leadership.resign(),
      ),
    expected: () => handoverCost,
  },
  'a writer releases its lock to the next of many': {
    setUp: (clients, path) =>
      handOverCrowd(
        clients.map((zk) => () => new ReadWriteLock(zk, path).writeLock.acquire()),
        (held) => held.release(),
      ),
    expected: () => handoverCost,
  },
  'a reader leaves many others, and a writer waits for the last of them': {
    async setUp(clients, path) {
      const [writer, ...readers] = clients;
      const held: Hold[] = [];
      for (const zk of readers) held.push(await new ReadWriteLock(zk, path).readLock.acquire());
      void new ReadWriteLock(writer!, path).writeLock.acquire().catch(() => undefined);
      return { watches: clients.length + 1, step: () => held.shift()!.release() };
    },
    expected: () => ({ received: 1, sent: 2 }),
  },
  'a lease of a semaphore is released': {
    async setUp(clients, path) {
      const crowd = await handOverCrowd(
        clients.map((zk) => () => new Semaphore(zk, path, { size: 1 }).acquire()),
        (held) => held.release(),
      );
      // Those of the queue, and of the two existing leases, and of their list.
      return { ...crowd, watches: 2 * clients.length };
    },
    // The delete of the lease; the first in the queue lists the leases and leaves the queue; the
    // next one lists the queue, creates its lease, watches it, and lists the leases twice, the
    // second time with a watch.
    expected: () => ({ received: 8, sent: 12 }),
  },
  'a lock with priorities is released': {
    setUp: (clients, path) =>
      handOverCrowd(
        clients.map((zk) => () => new PriorityLock(zk, path).writeLock(50).acquire()),
        (held) => held.release(),
      ),
    // It also leaves the gate, and gets a place among the holders, which it watches; the next at
    // the gate lists both queues, and watches the holder.
    expected: () => ({ received: 10, sent: 14 }),
  },
  'two locks held together are released': {
    async setUp(clients, path) {
      const both = (zk: Client) => new MultiLock(['one', 'other'].map((name) => new Lock(zk, `${path}/${name}`)));
      const crowd = await handOverCrowd(
        clients.map((zk) => () => both(zk).acquire()),
        (held) => held.release(),
      );
      // And the holder of both has its znode in the other queue.
      return { ...crowd, watches: crowd.watches + 1 };
    },
    // Two deletes; the next one lists the first queue, creates its znode in the other, watches it,
    // and lists that.
    expected: () => ({ received: 6, sent: 9 }),
  },
  'a lease is released': {
    async setUp(clients, path) {
      const over = new AbortController();
      const { signal } = over;
      let last!: HeldLease;
      const take = (zk: Client, at: number) => async () => {
        last = await new Lease(zk, path, { durationMs: leaseMs, holder: `holder-${at}` }).acquire({ signal });
        return last;
      };
      const crowd = await handOverCrowd(clients.map(take), (held) => held.release());
      return {
        ...crowd,
        // Each waiter watches its own znode, and the one before it, which for the first is the
        // lease.
        watches: 2 * (clients.length - 1),
        async end() {
          over.abort();
          await last.release();
        },
      };
    },
    expected: () => ({ received: 19, sent: 24 }),
  },
  'an event is set that releases one waiter': {
    setUp([setter, ...others], path) {
      const open = (zk: Client) => new EventHandle(zk, path, { autoReset: true });
      return feedCrowd(
        others.map((zk) => () => open(zk).wait()),
        2 * others.length,
        () => open(setter!).set(),
      );
    },
    expected: () => ({ received: 11, sent: 15 }),
    // The released client writes to its own znode, which it watches: that may be deleted before it
    // reads it again.
    isUpperBound: true,
  },
  'one leaves a double barrier, and the others keep working': {
    async setUp(clients, path) {
      const inside = await Promise.all(clients.map((zk) => new DoubleBarrier(zk, path, clients.length).enter()));
      const [lowest, ...others] = inside.sort(byPath);
      void lowest!.leave().catch(() => undefined);
      return {
        // Each watches its own znode, and the lowest the highest.
        watches: clients.length + 1,
        async step() {
          void others
            .pop()!
            .leave()
            .catch(() => undefined);
        },
      };
    },
    // It lists, leaves, and watches the lowest; the lowest lists, and watches the highest remaining
    // one.
    expected: () => ({ received: 5, sent: 7 }),
  },
};

function byPath(one: Participation, other: Participation): number {
  return one.path < other.path ? -1 : 1;
}
