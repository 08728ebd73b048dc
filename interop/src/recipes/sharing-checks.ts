/** Sets that members of ours and of kazoo's SetPartitioner share, and znodes that ours and Curator's keep. */
import assert from 'node:assert/strict';

import { type Check, childrenOf, type Ground, until } from './ground.ts';
import type { Handle, Peer } from './peer.ts';
import { textOf } from './verbs.ts';

const items = ['a', 'b', 'c', 'd', 'e'];
const timeBoundaryMs = '500';

async function member(peer: Peer, { root }: Ground, name: string): Promise<Handle> {
  return await peer.open('partitioner', root, name, items.join(','), timeBoundaryMs);
}

/** As both deal them out: the items in their order to the members in theirs. */
function sharesOf(count: number): string[] {
  return Array.from({ length: count }, (_, own) => items.filter((_item, index) => index % count === own).join(','));
}

/** Resolves when each has its share, by its place among them, and works on nothing else. */
async function areShared(ground: Ground, members: readonly Handle[]): Promise<void> {
  const shares = sharesOf(members.length);
  await until(`${members.length} members have ${shares.join(' and ')}`, async () => {
    const owned = await Promise.all(members.map((each) => each.tell('owned')));
    return owned.every((share, index) => share === shares[index]);
  });
  assert.deepEqual((await childrenOf(ground.zk, `${ground.root}/inside`)).toSorted(), items);
}

const partitioner: Check = {
  name: "kazoo's SetPartitioner: members of both kinds share a set, no two ever at work on one item, while others come, leave and are killed",
  hasRoot: true,
  async run(ground) {
    const { peers, root, zk } = ground;
    // kazoo takes them for granted once it has made them, and containers would go.
    for (const each of ['inside', 'party', ...items.map((item) => `locks/${item}`)]) await zk.ensurePath(`${root}/${each}`);
    const anna = await member(peers.ours, ground, 'anna');
    await areShared(ground, [anna]);
    const bert = await member(peers.kazoo, ground, 'bert');
    await areShared(ground, [anna, bert]);
    for (const kind of ['ours', 'kazoo'] as const) {
      const mortal = await ground.another(kind);
      // Whose name is the first, so that all shares change.
      const all = [await member(mortal, ground, 'adam'), anna, bert];
      await areShared(ground, all);
      await ground.kill(mortal);
      await areShared(ground, [anna, bert]);
    }
    await anna.tell('close');
    await areShared(ground, [bert]);
    await bert.tell('close');
    assert.deepEqual(await childrenOf(zk, `${root}/inside`), []);
  },
};

const pairs = [
  ['ours', 'Curator'],
  ['Curator', 'ours'],
] as const;

const keepers: Check = {
  name: "Curator's PersistentNode: a znode that both keep is made again when it was deleted, or whoever has made it is killed",
  async run(ground) {
    for (const [first, second] of pairs) {
      const path = `${ground.root}-${first}`;
      const ownerOf = async () => (await ground.zk.exists(path))?.ephemeralOwner;
      const mortal = await ground.another(first);
      await (await mortal.open('persistent-node', path, 'kept')).tell('keep');
      await until('it is there', async () => (await ownerOf()) !== undefined);
      const mortals = await ownerOf();
      const heir = await ground.peers[second].open('persistent-node', path, 'kept');
      await heir.tell('keep');
      const isAnothers = async () => ![undefined, mortals].includes(await ownerOf());
      await ground.kill(mortal);
      await until('the other has made it again', isAnothers);
      const { czxid } = (await ground.zk.exists(path))!;
      await ground.zk.delete(path);
      await until('it is made again', async () => ((await ground.zk.exists(path))?.czxid ?? 0n) > czxid);
      assert.equal(textOf((await ground.zk.getData(path)).data), 'kept');
      await heir.tell('drop');
      await until('it is dropped', async () => (await ownerOf()) === undefined);
    }
  },
};

const overwritten: Check = {
  name: "Curator's PersistentNode: it writes its data over those of ours, and deletes what ours has made when it ends, which ours makes again",
  async run({ peers, root, zk }) {
    const text = async () => textOf((await zk.getData(root)).data);
    const [ours, theirs] = [
      await peers.ours.open('persistent-node', root, 'ours'),
      await peers.Curator.open('persistent-node', root, 'theirs'),
    ];
    await ours.tell('keep');
    await until('it is there', async () => (await zk.exists(root)) !== null);
    const { czxid } = (await zk.exists(root))!;
    await theirs.tell('keep');
    await until('it is written over', async () => (await text()) === 'theirs');
    assert.equal((await zk.exists(root))?.czxid, czxid);
    await theirs.tell('drop');
    await until('it is made again', async () => ((await zk.exists(root))?.czxid ?? 0n) > czxid);
    assert.equal(await text(), 'ours');
    await ours.tell('drop');
    assert.equal(await zk.exists(root), null);
  },
};

/** Half of it may pass between two words of whoever keeps it, and some more when a process stands still. */
const ttlMs = 4000;

const withTtl: Check = {
  name: "Curator's PersistentTtlNode: either keeps what the other has made beyond its end, and it goes when nobody does",
  async run(ground) {
    await Promise.all(
      pairs.map(async ([first, second]) => {
        const path = `${ground.root}-${first}`;
        const now = async () => (await ground.zk.exists(path))?.czxid;
        const lastWordMs = async () => (await ground.zk.exists(`${path}/touch`))?.mtime ?? 0;
        const mortal = await ground.another(first);
        await (await mortal.open('ttl-node', path, 'kept', String(ttlMs))).tell('keep');
        await until('it is there', async () => (await now()) !== undefined);
        const made = await now();
        const heir = await ground.peers[second].open('ttl-node', path, 'kept', String(ttlMs));
        await heir.tell('keep');
        await ground.kill(mortal);
        const wordMs = (await lastWordMs()) || (await ground.zk.exists(path))!.mtime;
        await until('the other has had a word when its time would have been over', async () => {
          assert.equal(await now(), made);
          return (await lastWordMs()) > wordMs + ttlMs;
        });
        await heir.tell('drop');
        await until('it is gone', async () => (await now()) === undefined);
      }),
    );
  },
};

export const sharingChecks: readonly Check[] = [partitioner, keepers, overwritten, withTtl];
