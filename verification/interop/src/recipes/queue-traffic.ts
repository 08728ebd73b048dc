/** Queues in which each item is for one of the waiters. */
import type { Client } from '@tskeeper/client';
import { DelayQueue, IdQueue, PriorityQueue, Queue, ShardedQueue } from '@tskeeper/recipes';

import type { SetUpCrowd, TrafficCase, Traffic } from './traffic.ts';
import { feedCrowd } from './waiters.ts';

/** A queue as each client opens it, and how an item is put into it. */
interface OpenQueue {
  readonly queue: Pick<Queue, 'take' | 'claim'>;
  readonly put: () => Promise<void>;
}

type Open = (zk: Client, path: string) => OpenQueue;

const plain: Open = (zk, path) => {
  const queue = new Queue(zk, path);
  return { queue, put: () => queue.put('item') };
};
const withPriorities: Open = (zk, path) => {
  const queue = new PriorityQueue(zk, path);
  return { queue, put: () => queue.put('item', { priority: 50 }) };
};
const timed: Open = (zk, path) => {
  const queue = new DelayQueue(zk, path);
  return { queue, put: () => queue.put('item', { dueAtMs: 0 }) };
};
const withIds: Open = (zk, path) => {
  const queue = new IdQueue(zk, path);
  return { queue, put: () => queue.put('item', { id: 'one' }) };
};
const shards = 3;
const spread: Open = (zk, path) => {
  const queue = new ShardedQueue(zk, path, { shards });
  return { queue, put: () => queue.put('item') };
};

/**
 * An item is put into an empty queue, and all but its producer wait for one. `begins`: the number
 * of znodes over which items are spread.
 */
function taken(open: Open, begins = 1): SetUpCrowd {
  return async ([producer, ...others], path) => {
    const { queue, put } = open(producer!, path);
    // Created with the first item of all.
    for (let item = 0; item < begins; item++) {
      await put();
      await queue.take();
    }
    // Each watches its own znode, and the one before it; the first one the queue.
    return feedCrowd(
      others.map((zk) => () => open(zk, path).queue.take()),
      2 * others.length,
      put,
    );
  };
}

/**
 * Like `taken`, but items stay while they are worked on. The producer works on one from the
 * beginning.
 */
const claimed: SetUpCrowd = async ([producer, ...others], path) => {
  const { queue, put } = plain(producer!, path);
  await put();
  await queue.claim();
  // And the first also the claims, and the working client its claim.
  return feedCrowd(
    others.map((zk) => () => new Queue(zk, path).claim()),
    2 * others.length + 2,
    put,
  );
};

/** All but two work on an item: one puts another, and one takes it, and waits for the next. */
const consumerBesideWorkers: SetUpCrowd = async ([producer, consumer, ...workers], path) => {
  const { put } = plain(producer!, path);
  for (const zk of workers) {
    await put();
    await new Queue(zk, path).claim();
  }
  await put();
  const queue = new Queue(consumer!, path);
  // Has everything that it needs by then.
  await (await queue.claim()).acknowledge();
  let next = queue.claim();
  next.catch(() => undefined);
  return {
    // Each worker watches its claim; the consumer its znode, the items and the claims.
    watches: workers.length + 3,
    async step() {
      await put();
      await next;
      next = queue.claim();
      next.catch(() => undefined);
    },
  };
};

/** An item is taken out of a full queue, and all others wait for space. */
const roomInFullQueue: SetUpCrowd = async ([consumer, ...producers], path) => {
  const open = (zk: Client) => new Queue(zk, path, { maxItems: 1 });
  const queue = open(consumer!);
  await queue.put('item');
  return feedCrowd(
    producers.map((zk) => () => open(zk).put('item')),
    2 * producers.length,
    () => queue.take(),
  );
};

/**
 * The put; the waiter lists, reads the item, creates a mark, deletes the item with it, and leaves
 * the queue; the next one lists the queue of waiters, and the items. An event for each of the two,
 * and for its own znode.
 */
const itemTaken: Traffic = { received: 8, sent: 11 };

export const queueTraffic: Readonly<Record<string, TrafficCase>> = {
  'an item is put into a queue, and taken': { setUp: taken(plain), expected: () => itemTaken },
  'an item is put into a priority queue': { setUp: taken(withPriorities), expected: () => itemTaken },
  'an item with an id is put into a queue': { setUp: taken(withIds), expected: () => itemTaken },
  'an item that is due is put into a delay queue': {
    setUp: taken(timed),
    // It has created its mark when it joined, to learn the time.
    expected: () => ({ received: 7, sent: 10 }),
  },
  'an item is put into a queue of three shards': {
    setUp: taken(spread, shards),
    // A client that lists with a watch lists all of them, and the client that gets an item removes
    // the watches of the others; its session's number decides which one it lists first.
    isUpperBound: true,
    expected: () => ({ received: itemTaken.received + 3 * (shards - 1), sent: itemTaken.sent + 3 * (shards - 1) }),
  },
  'an item is put into a queue, and claimed': {
    setUp: claimed,
    // Both read the marker of the claimed item, and list the claims; and the client with one more
    // watches its own.
    expected: () => ({ received: 15, sent: 19 }),
  },
  'an item is put into a queue, and many work on others': {
    setUp: consumerBesideWorkers,
    // Its holder starts again: it lists, joins the queue, and lists with a watch.
    expected: () => ({ received: 20, sent: 23 }),
  },
  'space becomes free in a full queue': {
    setUp: roomInFullQueue,
    // The producer also creates a mark, and receives the event of its own item.
    expected: () => ({ received: 9, sent: 13 }),
  },
};
