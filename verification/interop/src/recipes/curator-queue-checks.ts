/**
 * Curator's queues whose items have their own encoding: its DistributedQueue, and the related ones.
 */
import assert from 'node:assert/strict';

import { type Check, childrenOf, type RecipeCheckContext, until } from './check-context.ts';
import type { Handle } from './recipe-client.ts';

const orders = ['plain', 'id', 'priority', 'delay'] as const;
type Order = (typeof orders)[number];

const classOf: Readonly<Record<Order, string>> = {
  plain: 'DistributedQueue',
  id: 'DistributedIdQueue',
  priority: 'DistributedPriorityQueue',
  delay: 'DistributedDelayQueue',
};

/**
 * The labels of the items: they are taken in this order, whichever client puts them, and in any
 * order.
 */
const labels: Readonly<Record<Order, () => string[]>> = {
  plain: () => ['', '', '', ''],
  id: () => ['one', 'two', 'three', 'four'],
  priority: () => ['-7', '0', '8', '2000000000'],
  delay: () => [500, 1000, 1500, 2000].map((ms) => String(Date.now() + ms)),
};

function open({ clients, root }: RecipeCheckContext, kind: 'ours' | 'Curator', order: Order, consumes: string): Promise<Handle> {
  return clients[kind].open('item-queue', root, order, consumes);
}

function orderCheck(order: Order): Check {
  return {
    name: `Curator's ${classOf[order]}: items put by either are taken by the other, in order`,
    async run(context) {
      const { root, zk } = context;
      const [ours, theirs] = [await open(context, 'ours', order, 'no'), await open(context, 'Curator', order, 'no')];
      const count = async (size: number) => await until(`${size} exist`, async () => (await childrenOf(zk, root)).length === size);
      for (const takes of ['ours', 'Curator'] as const) {
        const all = labels[order]();
        // By priority, or time, the last one put is the first one taken.
        const puts = all.map((label, index) => ({ label, item: `item-${index}` }));
        if (order === 'priority' || order === 'delay') puts.reverse();
        for (const [index, { label, item }] of puts.entries()) {
          await (index % 2 === 0 ? ours : theirs).call('put', item, label);
          await count(index + 1);
        }
        const consumer = await open(context, takes, order, 'yes');
        const taken: string[] = [];
        while (taken.length < all.length) taken.push(await consumer.call('take'));
        assert.deepEqual(taken, ['item-0', 'item-1', 'item-2', 'item-3']);
        await count(0);
        await consumer.call('close');
      }
    },
  };
}

const several: Check = {
  name: "Curator's DistributedQueue: several items of one znode arrive together, whichever client put them",
  async run(context) {
    const { root, zk } = context;
    const [ours, theirs] = [await open(context, 'ours', 'plain', 'no'), await open(context, 'Curator', 'plain', 'no')];
    await theirs.call('put_all', 'one', 'two', 'three');
    await until('they exist', async () => (await childrenOf(zk, root)).length === 1);
    assert.equal(await ours.call('take'), 'one+two+three');
    await ours.call('put_all', 'four', 'five');
    const consumer = await open(context, 'Curator', 'plain', 'yes');
    assert.deepEqual([await consumer.call('take'), await consumer.call('take')], ['four', 'five']);
    await consumer.call('close');
  },
};

const removal: Check = {
  name: "Curator's DistributedIdQueue: either removes an item of the other by its id",
  async run(context) {
    const { root, zk } = context;
    const [ours, theirs] = [await open(context, 'ours', 'id', 'no'), await open(context, 'Curator', 'id', 'no')];
    await ours.call('put', 'an item', 'mine');
    await theirs.call('put', 'an item', 'yours');
    await until('both exist', async () => (await childrenOf(zk, root)).length === 2);
    assert.equal(await ours.call('remove', 'yours'), '1');
    assert.equal(await theirs.call('remove', 'mine'), '1');
    assert.deepEqual(await childrenOf(zk, root), []);
  },
};

function shareCheck(name: string, locksOf: (root: string) => string): Check {
  return {
    name: `Curator's DistributedQueue ${name}: of many items each is taken once, while both take what both put`,
    async run(context) {
      const consumers = [
        await open(context, 'ours', 'plain', locksOf(context.root)),
        await open(context, 'Curator', 'plain', locksOf(context.root)),
      ];
      const producers = [await open(context, 'ours', 'plain', 'no'), await open(context, 'Curator', 'plain', 'no')];
      const items = Array.from({ length: 60 }, (_, index) => `item-${String(index).padStart(2, '0')}`);
      const putting = Promise.all(items.map((item, index) => producers[index % 2]!.call('put', item)));
      const taken: string[] = [];
      const takes = async (handle: Handle): Promise<void> => {
        while (taken.length < items.length) {
          const item = await handle.call('poll');
          if (item !== 'nothing') taken.push(item);
        }
      };
      await Promise.all([putting, ...consumers.map(takes)]);
      assert.deepEqual(taken.toSorted(), items);
      await consumers[1]!.call('close');
    },
  };
}

const killed: Check = {
  name: "Curator's DistributedQueue with locks: the other client gets an item in process when its process is killed",
  async run(context) {
    const { root, zk } = context;
    const locks = `${root}-locks`;
    const producer = await open(context, 'ours', 'plain', 'no');
    const ours = await open(context, 'ours', 'plain', locks);

    const curatorDies = await context.startClient('Curator');
    const dies = await curatorDies.open('item-queue', root, 'plain', locks);
    await producer.call('put', 'held by Curator');
    assert.equal(await dies.call('take'), 'held by Curator');
    assert.equal(await ours.call('poll'), 'nothing');
    const next = ours.call('take');
    await context.killClient(curatorDies);
    assert.equal(await next, 'held by Curator');

    const oursDies = await context.startClient('ours');
    await producer.call('put', 'claimed');
    assert.equal(await (await oursDies.open('item-queue', root, 'plain', locks)).call('claim'), 'claimed');
    const theirs = await open(context, 'Curator', 'plain', locks);
    await producer.call('put', 'next');
    assert.equal(await theirs.call('take'), 'next');
    await context.killClient(oursDies);
    await until('the claim is deleted', async () => (await childrenOf(zk, locks)).length === 0);
    // Curator does not watch the locks: it looks again when an item is added or removed.
    await producer.call('put', 'last');
    assert.deepEqual([await theirs.call('take'), await theirs.call('take')].toSorted(), ['claimed', 'last']);
    await theirs.call('close');
  },
};

export const curatorQueueChecks: readonly Check[] = [
  ...orders.map(orderCheck),
  several,
  removal,
  shareCheck('without locks', () => 'yes'),
  shareCheck('with locks', (root) => `${root}-locks`),
  killed,
];
