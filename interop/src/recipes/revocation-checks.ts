/**
 * Revocation of a lock, which does not work across clients by itself: ZooKeeper's recipe and
 * Curator use different words for it.
 */
import assert from 'node:assert/strict';

import type { Client } from '@tskeeper/client';

import { type Check, type Ground, lineAt, until } from './ground.ts';
import type { Handle } from './peer.ts';
import { textOf } from './verbs.ts';

/** What is written to the znode of the holder. */
const wordOfOurs = 'unlock';
const wordOfCurator = '__REVOKE__';

/** One of each, of locks that react to a revocation in their own way. */
async function opened({ peers, root }: Ground): Promise<readonly [ours: Handle, Curator: Handle]> {
  return [await peers.ours.open('revocable-lock', root, 'lock-'), await peers.Curator.open('revocable-lock', root)];
}

async function holderOf(zk: Client, root: string): Promise<string> {
  return `${root}/${(await lineAt(zk, root))[0]}`;
}

async function dataOf(zk: Client, path: string): Promise<string> {
  return textOf((await zk.getData(path)).data);
}

const notHeardByCurator: Check = {
  name: 'a revocable lock of Curator does not react to our revocation, and ends when its znode is deleted',
  async run(ground) {
    const { zk, root, peers } = ground;
    const [, curator] = await opened(ground);
    const ours = await peers.ours.open('lock', root, 'lock-');
    await curator.tell('acquire');
    const holder = await holderOf(zk, root);
    const asked = ours.tell('revoke');
    await until('it is asked', async () => (await dataOf(zk, holder)) === wordOfOurs);
    assert.equal(await curator.tell('asked'), 'no');
    const insists = await peers.ours.open('lock', root, 'lock-');
    const begun = performance.now();
    const deleteAfterMs = 300;
    await insists.tell('revoke', String(deleteAfterMs));
    await asked;
    assert(performance.now() - begun >= deleteAfterMs, 'it was released');
    assert.equal(await curator.tell('asked'), 'no');
    assert.deepEqual(await lineAt(zk, root), []);
    assert.equal(await ours.tell('try_acquire'), 'yes');
    await ours.tell('release');
  },
};

const notHeardByOurs: Check = {
  name: "a revocable lock of ours does not react to Curator's Revoker, and stays held",
  async run(ground) {
    const { zk, root } = ground;
    const [ours, curator] = await opened(ground);
    await ours.tell('acquire');
    const holder = await holderOf(zk, root);
    await curator.tell('revoke', holder);
    assert.equal(await dataOf(zk, holder), wordOfCurator);
    assert.equal(await curator.tell('try_acquire'), 'no');
    assert.deepEqual([await ours.tell('asked'), await ours.tell('state')], ['no', 'held']);
    // It still reacts to our own word.
    await zk.setData(holder, wordOfOurs);
    await until('it is released', async () => (await lineAt(zk, root)).length === 0);
    assert.equal(await ours.tell('state'), 'released');
    assert.equal(await ours.tell('asked'), 'yes');
    assert.equal(await curator.tell('try_acquire'), 'yes');
    await curator.tell('release');
  },
};

const inTheirWords: Check = {
  name: 'a revocation works across clients with the word of the other: a revocable lock of Curator receives it, and releases the lock to ours',
  async run(ground) {
    const { zk, root } = ground;
    const [ours, curator] = await opened(ground);
    await curator.tell('acquire');
    const acquired = ours.tell('acquire');
    await until('both are in the queue', async () => (await lineAt(zk, root)).length === 2);
    await zk.setData(await holderOf(zk, root), wordOfCurator);
    await curator.tell('await_asked');
    await curator.tell('release');
    await acquired;
    assert.equal(await ours.tell('asked'), 'no');
    await ours.tell('release');
  },
};

export const revocationChecks: readonly Check[] = [notHeardByCurator, notHeardByOurs, inTheirWords];
