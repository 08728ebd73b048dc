/** Queues that ours share with kazoo and Curator. */
import assert from 'node:assert/strict';

import { type Check, childrenOf, until } from './check-context.ts';
import type { Handle, RecipeClient } from './recipe-client.ts';

interface QueuePair {
  readonly name: string;
  readonly theirs: 'kazoo' | 'Curator';
  /** The arguments that open ours. */
  readonly own: readonly [recipe: string, ...names: string[]];
}

const queues: readonly QueuePair[] = [
  { name: "kazoo's Queue", theirs: 'kazoo', own: ['priority-queue'] },
  { name: "Curator's SimpleDistributedQueue", theirs: 'Curator', own: ['queue', 'qn-'] },
];

function both(
  peers: Readonly<Record<string, RecipeClient>>,
  root: string,
  { theirs, own: [recipe, ...names] }: QueuePair,
): Promise<[Handle, Handle]> {
  return Promise.all([peers['ours']!.open(recipe, root, ...names), peers[theirs]!.open('queue', root)]);
}

function orderCheck(agreement: QueuePair): Check {
  return {
    name: `${agreement.name}: items put by either are taken by either, in order`,
    hasRoot: agreement.theirs === 'kazoo',
    async run({ clients, root }) {
      const [ours, theirs] = await both(clients, root, agreement);
      for (const [index, handle] of [ours, theirs, theirs, ours, ours, theirs].entries()) await handle.call('put', `item-${index}`);
      const taken: string[] = [];
      for (const handle of [theirs, theirs, ours, ours, theirs, ours]) taken.push(await handle.call('poll'));
      assert.deepEqual(taken, ['item-0', 'item-1', 'item-2', 'item-3', 'item-4', 'item-5']);
      assert.deepEqual([await ours.call('poll'), await theirs.call('poll')], ['nothing', 'nothing']);
    },
  };
}

function shareCheck(agreement: QueuePair): Check {
  return {
    name: `${agreement.name}: of many items each is taken once, while both take what both put`,
    hasRoot: agreement.theirs === 'kazoo',
    async run({ clients, root }) {
      const [ours, theirs] = await both(clients, root, agreement);
      const items = Array.from({ length: 60 }, (_, index) => `item-${String(index).padStart(2, '0')}`);
      const [puts, more] = await both(clients, root, agreement);
      const putting = Promise.all(items.map((item, index) => (index % 2 === 0 ? puts : more).call('put', item)));
      const taken: string[] = [];
      const takes = async (handle: Handle): Promise<void> => {
        while (taken.length < items.length) {
          const item = await handle.call('poll');
          if (item !== 'nothing') taken.push(item);
        }
      };
      await Promise.all([putting, takes(ours), takes(theirs)]);
      assert.deepEqual(taken.toSorted(), items);
    },
  };
}

const waits: Check = {
  name: "Curator's SimpleDistributedQueue: a waiter gets what the other puts",
  async run({ clients, root, zk }) {
    const [ours, theirs] = await both(clients, root, queues[1]!);
    await zk.ensurePath(root);
    for (const [takes, puts] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      const item = takes.call('take');
      await puts.call('put', 'late');
      assert.equal(await item, 'late');
    }
  },
};

const priorities: Check = {
  name: "kazoo's Queue: an item with a lower priority number is taken first, whichever client put it",
  hasRoot: true,
  async run({ clients, root }) {
    const [ours, theirs] = await both(clients, root, queues[0]!);
    await ours.call('put', 'third', '500');
    await theirs.call('put', 'second', '20');
    await ours.call('put', 'first', '3');
    await theirs.call('put', 'fourth', '999');
    // kazoo uses its list until it is empty, so ours takes what was added since.
    const taken: string[] = [];
    for (const handle of [ours, theirs, ours, theirs]) taken.push(await handle.call('poll'));
    assert.deepEqual(taken, ['first', 'second', 'third', 'fourth']);
  },
};

const locking: Check = {
  name: "kazoo's LockingQueue: no other client gets an item in process, until its process is killed",
  async run(context) {
    const { root, clients, zk } = context;
    for (const [first, second] of [
      ['ours', 'kazoo'],
      ['kazoo', 'ours'],
    ] as const) {
      const path = `${root}-${first}`;
      for (const part of ['entries', 'taken']) await zk.ensurePath(`${path}/${part}`);
      const mortal = await context.startClient(first);
      const [dies, lives] = [await mortal.open('locking-queue', path), await clients[second].open('locking-queue', path)];
      await dies.call('put', 'one');
      await lives.call('put', 'two');
      assert.equal(await dies.call('take'), 'one');
      assert.equal(await lives.call('take'), 'two');
      assert.equal(await lives.call('consume'), 'yes');
      const next = lives.call('take');
      await context.killClient(mortal);
      assert.equal(await next, 'one');
      assert.equal(await lives.call('consume'), 'yes');
      await until('nothing remains', async () => {
        const [entries, taken] = await Promise.all([childrenOf(zk, `${path}/entries`), childrenOf(zk, `${path}/taken`)]);
        return entries.length + taken.length === 0;
      });
    }
  },
};

export const queueChecks: readonly Check[] = [...queues.map(orderCheck), ...queues.map(shareCheck), waits, priorities, locking];
