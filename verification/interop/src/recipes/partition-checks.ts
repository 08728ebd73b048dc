/**
 * Sets shared by members of ours and of kazoo's SetPartitioner, and znodes kept by ours and
 * Curator's.
 */
import assert from 'node:assert/strict';

import { type Check, childrenOf, type RecipeCheckContext, until } from './check-context.ts';
import type { Handle, RecipeClient } from './recipe-client.ts';
import { textOf } from './verbs.ts';

const items = ['a', 'b', 'c', 'd', 'e'];
const timeBoundaryMs = '500';

async function member(peer: RecipeClient, { root }: RecipeCheckContext, name: string): Promise<Handle> {
  return await peer.open('partitioner', root, name, items.join(','), timeBoundaryMs);
}

/** How both deal the items: in order, to the members in order. */
function sharesOf(count: number): string[] {
  return Array.from({ length: count }, (_, own) => items.filter((_item, index) => index % count === own).join(','));
}

/** Resolves when each member has its share, by its position, and works on nothing else. */
async function untilShared(context: RecipeCheckContext, members: readonly Handle[]): Promise<void> {
  const shares = sharesOf(members.length);
  await until(`${members.length} members have ${shares.join(' and ')}`, async () => {
    const owned = await Promise.all(members.map((each) => each.call('owned')));
    return owned.every((share, index) => share === shares[index]);
  });
  assert.deepEqual((await childrenOf(context.zk, `${context.root}/inside`)).toSorted(), items);
}

const partitioner: Check = {
  name: "kazoo's SetPartitioner: members of both kinds share a set, no two work on one item, while members join, leave and are killed",
  hasRoot: true,
  async run(context) {
    const { clients, root, zk } = context;
    // kazoo assumes that they exist after it has created them, and containers would be deleted.
    for (const each of ['inside', 'party', ...items.map((item) => `locks/${item}`)]) await zk.ensurePath(`${root}/${each}`);
    const anna = await member(clients.ours, context, 'anna');
    await untilShared(context, [anna]);
    const bert = await member(clients.kazoo, context, 'bert');
    await untilShared(context, [anna, bert]);
    for (const kind of ['ours', 'kazoo'] as const) {
      const mortal = await context.startClient(kind);
      // Its name is the first, so that all shares change.
      const all = [await member(mortal, context, 'adam'), anna, bert];
      await untilShared(context, all);
      await context.killClient(mortal);
      await untilShared(context, [anna, bert]);
    }
    await anna.call('close');
    await untilShared(context, [bert]);
    await bert.call('close');
    assert.deepEqual(await childrenOf(zk, `${root}/inside`), []);
  },
};

const pairs = [
  ['ours', 'Curator'],
  ['Curator', 'ours'],
] as const;

const persistentNodes: Check = {
  name: "Curator's PersistentNode: a znode kept by both is created again after a delete, and after its creator is killed",
  async run(context) {
    for (const [first, second] of pairs) {
      const path = `${context.root}-${first}`;
      const ownerOf = async () => (await context.zk.exists(path))?.ephemeralOwner;
      const mortal = await context.startClient(first);
      await (await mortal.open('persistent-node', path, 'kept')).call('keep');
      await until('it exists', async () => (await ownerOf()) !== undefined);
      const mortals = await ownerOf();
      const heir = await context.clients[second].open('persistent-node', path, 'kept');
      await heir.call('keep');
      const isAnothers = async () => ![undefined, mortals].includes(await ownerOf());
      await context.killClient(mortal);
      await until('the other has created it again', isAnothers);
      const { czxid } = (await context.zk.exists(path))!;
      await context.zk.delete(path);
      await until('it is created again', async () => ((await context.zk.exists(path))?.czxid ?? 0n) > czxid);
      assert.equal(textOf((await context.zk.getData(path)).data), 'kept');
      await heir.call('drop');
      await until('it is dropped', async () => (await ownerOf()) === undefined);
    }
  },
};

const overwritten: Check = {
  name: "Curator's PersistentNode: it overwrites the data of ours, and deletes the znode of ours when it ends, which ours creates again",
  async run({ clients, root, zk }) {
    const text = async () => textOf((await zk.getData(root)).data);
    const [ours, theirs] = [
      await clients.ours.open('persistent-node', root, 'ours'),
      await clients.Curator.open('persistent-node', root, 'theirs'),
    ];
    await ours.call('keep');
    await until('it exists', async () => (await zk.exists(root)) !== null);
    const { czxid } = (await zk.exists(root))!;
    await theirs.call('keep');
    await until('it is overwritten', async () => (await text()) === 'theirs');
    assert.equal((await zk.exists(root))?.czxid, czxid);
    await theirs.call('drop');
    await until('it is created again', async () => ((await zk.exists(root))?.czxid ?? 0n) > czxid);
    assert.equal(await text(), 'ours');
    await ours.call('drop');
    assert.equal(await zk.exists(root), null);
  },
};

/** Half of it may pass between two refreshes, and some more when a process pauses. */
const ttlMs = 4000;

const withTtl: Check = {
  name: "Curator's PersistentTtlNode: either keeps the znode of the other alive, and it is deleted when neither does",
  async run(context) {
    await Promise.all(
      pairs.map(async ([first, second]) => {
        const path = `${context.root}-${first}`;
        const now = async () => (await context.zk.exists(path))?.czxid;
        const lastWordMs = async () => (await context.zk.exists(`${path}/touch`))?.mtime ?? 0;
        const mortal = await context.startClient(first);
        await (await mortal.open('ttl-node', path, 'kept', String(ttlMs))).call('keep');
        await until('it exists', async () => (await now()) !== undefined);
        const made = await now();
        const heir = await context.clients[second].open('ttl-node', path, 'kept', String(ttlMs));
        await heir.call('keep');
        await context.killClient(mortal);
        const wordMs = (await lastWordMs()) || (await context.zk.exists(path))!.mtime;
        await until('the other has refreshed it when its TTL would have ended', async () => {
          assert.equal(await now(), made);
          return (await lastWordMs()) > wordMs + ttlMs;
        });
        await heir.call('drop');
        await until('it is deleted', async () => (await now()) === undefined);
      }),
    );
  },
};

export const partitionChecks: readonly Check[] = [partitioner, persistentNodes, overwritten, withTtl];
