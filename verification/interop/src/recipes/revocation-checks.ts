/**
 * Revocation of a lock, which does not work across clients by itself: ZooKeeper's recipe and
 * Curator use different words for it.
 */
import assert from 'node:assert/strict';

import type { Client } from '@tskeeper/client';

import { type Check, type RecipeCheckContext, waitQueueAt, until } from './check-context.ts';
import type { Handle } from './recipe-client.ts';
import { textOf } from './verbs.ts';

/** What is written to the znode of the holder. */
const ownRevocationData = 'unlock';
const curatorRevocationData = '__REVOKE__';

/** One of each, of locks that react to a revocation in their own way. */
async function openRevocableLocks({ clients, root }: RecipeCheckContext): Promise<readonly [ours: Handle, Curator: Handle]> {
  return [await clients.ours.open('revocable-lock', root, 'lock-'), await clients.Curator.open('revocable-lock', root)];
}

async function holderOf(zk: Client, root: string): Promise<string> {
  return `${root}/${(await waitQueueAt(zk, root))[0]}`;
}

async function dataOf(zk: Client, path: string): Promise<string> {
  return textOf((await zk.getData(path)).data);
}

const notHeardByCurator: Check = {
  name: 'a revocable lock of Curator does not react to our revocation, and ends when its znode is deleted',
  async run(context) {
    const { zk, root, clients } = context;
    const [, curator] = await openRevocableLocks(context);
    const ours = await clients.ours.open('lock', root, 'lock-');
    await curator.call('acquire');
    const holder = await holderOf(zk, root);
    const asked = ours.call('revoke');
    await until('it is asked', async () => (await dataOf(zk, holder)) === ownRevocationData);
    assert.equal(await curator.call('asked'), 'no');
    const insists = await clients.ours.open('lock', root, 'lock-');
    const begun = performance.now();
    const deleteAfterMs = 300;
    await insists.call('revoke', String(deleteAfterMs));
    await asked;
    assert(performance.now() - begun >= deleteAfterMs, 'it was released');
    assert.equal(await curator.call('asked'), 'no');
    assert.deepEqual(await waitQueueAt(zk, root), []);
    assert.equal(await ours.call('try_acquire'), 'yes');
    await ours.call('release');
  },
};

const notHeardByOurs: Check = {
  name: "a revocable lock of ours does not react to Curator's Revoker, and stays held",
  async run(context) {
    const { zk, root } = context;
    const [ours, curator] = await openRevocableLocks(context);
    await ours.call('acquire');
    const holder = await holderOf(zk, root);
    await curator.call('revoke', holder);
    assert.equal(await dataOf(zk, holder), curatorRevocationData);
    assert.equal(await curator.call('try_acquire'), 'no');
    assert.deepEqual([await ours.call('asked'), await ours.call('state')], ['no', 'held']);
    // It still reacts to our own word.
    await zk.setData(holder, ownRevocationData);
    await until('it is released', async () => (await waitQueueAt(zk, root)).length === 0);
    assert.equal(await ours.call('state'), 'released');
    assert.equal(await ours.call('asked'), 'yes');
    assert.equal(await curator.call('try_acquire'), 'yes');
    await curator.call('release');
  },
};

const withOtherData: Check = {
  name: 'a revocation works across clients with the word of the other: a revocable lock of Curator receives it, and releases the lock to ours',
  async run(context) {
    const { zk, root } = context;
    const [ours, curator] = await openRevocableLocks(context);
    await curator.call('acquire');
    const acquired = ours.call('acquire');
    await until('both are in the queue', async () => (await waitQueueAt(zk, root)).length === 2);
    await zk.setData(await holderOf(zk, root), curatorRevocationData);
    await curator.call('await_asked');
    await curator.call('release');
    await acquired;
    assert.equal(await ours.call('asked'), 'no');
    await ours.call('release');
  },
};

export const revocationChecks: readonly Check[] = [notHeardByCurator, notHeardByOurs, withOtherData];
