/** Barriers, double barriers and semaphores of several kinds of clients. */
import assert from 'node:assert/strict';

import { type Check, childrenOf, type RecipeCheckContext, Journal, until, watchersByPath } from './check-context.ts';
import type { RecipeClientKind } from './recipe-client.ts';
import { textOf } from './verbs.ts';

const kinds: readonly RecipeClientKind[] = ['ours', 'kazoo', 'Curator'];

function barrierCheck(sets: RecipeClientKind): Check {
  return {
    name: `a barrier that ${sets} sets and removes releases clients of all kinds, and not before`,
    async run({ clients, root, server }) {
      const setter = await clients[sets].open('barrier', root);
      const waiters = await Promise.all(kinds.map(async (kind) => ({ kind, handle: await clients[kind].open('barrier', root) })));
      await setter.call('raise_');
      const journal = new Journal();
      const waits = waiters.map(({ handle }) => journal.recordAnswer('on', handle.call('wait')));
      await until('all wait', async () => (await watchersByPath(server)).get(root)?.size === kinds.length);
      journal.lines.push('removed');
      await setter.call('remove');
      await Promise.all(waits);
      assert.deepEqual(journal.lines, ['removed', 'on', 'on', 'on']);
    },
  };
}

async function childCount({ zk, root }: RecipeCheckContext): Promise<number> {
  return (await childrenOf(zk, root)).filter((name) => name !== 'ready').length;
}

/**
 * In the given order: each enters after the one before it has entered, and leaves after the one
 * before it has begun to leave.
 */
function doubleBarrierCheck(order: readonly RecipeClientKind[]): Check {
  return {
    name: `a double barrier that ${order.join(', ')} enter and leave one after the other: none is in before all have entered`,
    hasRoot: order.includes('kazoo'),
    async run(context) {
      const { clients, root } = context;
      const size = String(order.length);
      const all = await Promise.all(order.map((kind, index) => clients[kind].open('double-barrier', root, size, `p${index}`)));
      const journal = new Journal();
      const entered: Promise<void>[] = [];
      for (const [index, handle] of all.entries()) {
        if (index === all.length - 1) journal.lines.push('the last one enters');
        entered.push(journal.recordAnswer('in', handle.call('enter')));
        await until(`${index + 1} have entered`, async () => (await childCount(context)) === index + 1);
      }
      await Promise.all(entered);
      const inside = order.map(() => 'in');
      assert.deepEqual(journal.lines, ['the last one enters', ...inside]);
      const left: Promise<void>[] = [];
      for (const [index, handle] of all.entries()) {
        if (index === all.length - 1) journal.lines.push('the last one leaves');
        left.push(journal.recordAnswer('out', handle.call('leave')));
      }
      await Promise.all(left);
      assert.deepEqual(journal.lines.slice(1 + order.length), ['the last one leaves', ...order.map(() => 'out')]);
      assert.equal(await childCount(context), 0);
    },
  };
}

const semaphore: Check = {
  name: "a semaphore of two that Curator's InterProcessSemaphoreV2 shares with ours: the third client gets a lease when one of either kind is released",
  async run(context) {
    const { clients, root, zk } = context;
    const open = (kind: 'ours' | 'Curator') => clients[kind].open('semaphore', root, '2');
    for (const [first, second, third] of [
      ['ours', 'Curator', 'ours'],
      ['Curator', 'ours', 'Curator'],
    ] as const) {
      const handles = [await open(first), await open(second), await open(third)] as const;
      const journal = new Journal();
      await handles[0].call('acquire');
      await handles[1].call('acquire');
      const waits = journal.recordAnswer('the third has one', handles[2].call('acquire'));
      await until('three leases', async () => (await childrenOf(zk, `${root}/leases`)).length === 3);
      journal.lines.push('one is released');
      await handles[1].call('release');
      await waits;
      assert.deepEqual(journal.lines, ['one is released', 'the third has one']);
      await handles[0].call('release');
      await handles[2].call('release');
    }
  },
};

const killedHolder: Check = {
  name: "a semaphore of two that Curator's InterProcessSemaphoreV2 shares with ours: the waiter gets the lease of a killed client",
  async run(context) {
    const { clients, root, zk } = context;
    for (const [first, second] of [
      ['ours', 'Curator'],
      ['Curator', 'ours'],
    ] as const) {
      const mortal = await context.startClient(first);
      const [dies, stays, waits] = [
        await mortal.open('semaphore', root, '2'),
        await clients[first].open('semaphore', root, '2'),
        await clients[second].open('semaphore', root, '2'),
      ];
      await dies.call('acquire');
      await stays.call('acquire');
      const journal = new Journal();
      const third = journal.recordAnswer('the third has one', waits.call('acquire'));
      await until('three leases', async () => (await childrenOf(zk, `${root}/leases`)).length === 3);
      journal.lines.push('one is killed');
      await context.killClient(mortal);
      await third;
      assert.deepEqual(journal.lines, ['one is killed', 'the third has one']);
      await stays.call('release');
      await waits.call('release');
    }
  },
};

const mutex: Check = {
  name: "a semaphore of one and Curator's InterProcessSemaphoreMutex: only one is inside at a time, and no increment is lost",
  async run({ clients, root, zk }) {
    const counter = `${root}-counter`;
    const rounds = 10;
    await zk.create(counter, '0');
    const handles = [await clients.ours.open('semaphore', root, '1'), await clients.Curator.open('semaphore-mutex', root)];
    await Promise.all(handles.map((each) => each.call('count_up', counter, String(rounds))));
    assert.equal(textOf((await zk.getData(counter)).data), String(rounds * handles.length));
  },
};

const separateSemaphores: Check = {
  name: "kazoo's Semaphore does not see leases of ours, nor ours those of kazoo, so together they exceed the size that both read",
  async run({ clients, root }) {
    const open = (kind: 'ours' | 'kazoo', size = '2') => clients[kind].open('semaphore', root, size);
    const theirs = await open('kazoo');
    for (const each of [theirs, await open('ours'), await open('ours')]) assert.equal(await each.call('try_acquire'), 'yes');
    // kazoo takes every child for a lease: its own, and our `leases`.
    assert.equal(await (await open('kazoo')).call('try_acquire'), 'no');
    await assert.rejects((await open('kazoo', '3')).call('try_acquire'), /Inconsistent max leases/);
    await theirs.call('release');
  },
};

export const barrierChecks: readonly Check[] = [
  ...kinds.map(barrierCheck),
  doubleBarrierCheck(['ours', 'kazoo']),
  doubleBarrierCheck(['kazoo', 'ours']),
  doubleBarrierCheck(['ours', 'Curator']),
  doubleBarrierCheck(['Curator', 'ours']),
  doubleBarrierCheck(['kazoo', 'Curator', 'ours']),
  semaphore,
  killedHolder,
  mutex,
  separateSemaphores,
];
