/** Queues that ours share with kazoo and Curator. */
import assert from 'node:assert/strict';

import { type Check, childrenOf, until } from './ground.ts';
import type { Handle, Peer } from './peer.ts';

interface Agreement {
  readonly name: string;
  readonly theirs: 'kazoo' | 'Curator';
  /** The arguments that open ours. */
  readonly own: readonly [recipe: string, ...names: string[]];
}

const queues: readonly Agreement[] = [
  { name: "kazoo's Queue", theirs: 'kazoo', own: ['priority-queue'] },
  { name: "Curator's SimpleDistributedQueue", theirs: 'Curator', own: ['queue', 'qn-'] },
];

function both(
  peers: Readonly<Record<string, Peer>>,
  root: string,
  { theirs, own: [recipe, ...names] }: Agreement,
): Promise<[Handle, Handle]> {
  return Promise.all([peers['ours']!.open(recipe, root, ...names), peers[theirs]!.open('queue', root)]);
}

function orderCheck(agreement: Agreement): Check {
  return {
    name: `${agreement.name}: items put by either are taken by either, in order`,
    hasRoot: agreement.theirs === 'kazoo',
    async run({ peers, root }) {
      const [ours, theirs] = await both(peers, root, agreement);
      for (const [index, handle] of [ours, theirs, theirs, ours, ours, theirs].entries()) await handle.tell('put', `item-${index}`);
      const taken: string[] = [];
      for (const handle of [theirs, theirs, ours, ours, theirs, ours]) taken.push(await handle.tell('poll'));
      assert.deepEqual(taken, ['item-0', 'item-1', 'item-2', 'item-3', 'item-4', 'item-5']);
      assert.deepEqual([await ours.tell('poll'), await theirs.tell('poll')], ['nothing', 'nothing']);
    },
  };
}

function shareCheck(agreement: Agreement): Check {
  return {
    name: `${agreement.name}: of many items each is taken once, while both take what both put`,
    hasRoot: agreement.theirs === 'kazoo',
    async run({ peers, root }) {
      const [ours, theirs] = await both(peers, root, agreement);
      const items = Array.from({ length: 60 }, (_, index) => `item-${String(index).padStart(2, '0')}`);
      const [puts, more] = await both(peers, root, agreement);
      const putting = Promise.all(items.map((item, index) => (index % 2 === 0 ? puts : more).tell('put', item)));
      const taken: string[] = [];
      const takes = async (handle: Handle): Promise<void> => {
        while (taken.length < items.length) {
          const item = await handle.tell('poll');
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
  async run({ peers, root, zk }) {
    const [ours, theirs] = await both(peers, root, queues[1]!);
    await zk.ensurePath(root);
    for (const [takes, puts] of [
      [ours, theirs],
      [theirs, ours],
    ] as const) {
      const item = takes.tell('take');
      await puts.tell('put', 'late');
      assert.equal(await item, 'late');
    }
  },
};

const priorities: Check = {
  name: "kazoo's Queue: an item with a lower priority number is taken first, whichever client put it",
  hasRoot: true,
  async run({ peers, root }) {
    const [ours, theirs] = await both(peers, root, queues[0]!);
    await ours.tell('put', 'third', '500');
    await theirs.tell('put', 'second', '20');
    await ours.tell('put', 'first', '3');
    await theirs.tell('put', 'fourth', '999');
    // kazoo uses its list until it is empty, so ours takes what was added since.
    const taken: string[] = [];
    for (const handle of [ours, theirs, ours, theirs]) taken.push(await handle.tell('poll'));
    assert.deepEqual(taken, ['first', 'second', 'third', 'fourth']);
  },
};

const locking: Check = {
  name: "kazoo's LockingQueue: no other client gets an item in process, until its process is killed",
  async run(ground) {
    const { root, peers, zk } = ground;
    for (const [first, second] of [
      ['ours', 'kazoo'],
      ['kazoo', 'ours'],
    ] as const) {
      const path = `${root}-${first}`;
      for (const part of ['entries', 'taken']) await zk.ensurePath(`${path}/${part}`);
      const mortal = await ground.another(first);
      const [dies, lives] = [await mortal.open('locking-queue', path), await peers[second].open('locking-queue', path)];
      await dies.tell('put', 'one');
      await lives.tell('put', 'two');
      assert.equal(await dies.tell('take'), 'one');
      assert.equal(await lives.tell('take'), 'two');
      assert.equal(await lives.tell('consume'), 'yes');
      const next = lives.tell('take');
      await ground.kill(mortal);
      assert.equal(await next, 'one');
      assert.equal(await lives.tell('consume'), 'yes');
      await until('nothing remains', async () => {
        const [entries, taken] = await Promise.all([childrenOf(zk, `${path}/entries`), childrenOf(zk, `${path}/taken`)]);
        return entries.length + taken.length === 0;
      });
    }
  },
};

export const queueChecks: readonly Check[] = [...queues.map(orderCheck), ...queues.map(shareCheck), waits, priorities, locking];
