/** delete, and what cannot be deleted. */
import type { RunnableCheck } from '../check.ts';
import { equal, refused } from '../expect.ts';

/** No znode has this version, so that a wrong server does no harm either. */
const noVersion = { version: 1_234_567 };

export const deleteChecks: readonly RunnableCheck[] = [
  {
    name: 'delete.refusals',
    title: 'delete fails with NotEmpty on a znode with children and with NoNode on a missing one; otherwise it succeeds',
    rows: ['A17'],
    docs: 'ZooKeeper.delete',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      await zk.create(`${ground.root}/a/b`, null, { mode: 'ephemeral' });
      await refused('a znode with a child', zk.delete(`${ground.root}/a`), 'NotEmpty');
      await refused('nothing', zk.delete(`${ground.root}/x`), 'NoNode');
      await refused('a child of a missing znode', zk.delete(`${ground.root}/x/y`), 'NoNode');
      await zk.delete(`${ground.root}/a/b`);
      await zk.delete(`${ground.root}/a`);
      await refused('the deleted znode', zk.delete(`${ground.root}/a`), 'NoNode');
      equal('the existing children', await zk.exists(`${ground.root}/a`), null);
    },
  },
  {
    name: 'delete.order-of-judgement',
    title: 'delete reports a wrong version before it reports children',
    rows: ['A17'],
    docs: 'PrepRequestProcessor, OpCode.delete',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      await zk.create(`${ground.root}/a/b`);
      await refused('both', zk.delete(`${ground.root}/a`, noVersion), 'BadVersion');
    },
  },
  {
    name: 'delete.reserved',
    title: "ZooKeeper's own znodes cannot be deleted (BadArguments) or created again (NodeExists)",
    rows: ['A2', 'C3-7'],
    docs: "Programmer's Guide, ZooKeeper Data Model: the token zookeeper is reserved; DataTree.isSpecialPath",
    async run(ground) {
      const zk = await ground.open();
      for (const path of ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']) {
        await refused(`delete ${path}`, zk.delete(path, noVersion), 'BadArguments');
      }
      for (const path of ['/', '/zookeeper']) await refused(`create ${path}`, zk.create(path), 'NodeExists');
    },
  },
  {
    name: 'delete.someone-elses-ephemeral',
    title: 'another session can delete an ephemeral znode, and the session of the znode stays open',
    rows: ['A7'],
    docs: "Programmer's Guide, Ephemeral Nodes",
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      await other.delete(path);
      await ground.caughtUp(zk);
      equal('the znode', await zk.exists(path), null);
      equal(
        'an ephemeral znode of another session at the same path',
        (await other.create(path, null, { mode: 'ephemeral' })).stat.ephemeralOwner,
        other.sessionId,
      );
      await zk.close();
      equal('that znode after the end of the first session', (await other.exists(path))?.ephemeralOwner, other.sessionId);
    },
  },
];
