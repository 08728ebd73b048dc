/** delete, and what cannot be deleted. */
import type { RunnableCheck } from '../check.ts';
import { equal, refused } from '../expect.ts';

/** No znode has it, so that a server that gets the rest wrong does no harm either. */
const noVersion = { version: 1_234_567 };

export const deleteChecks: readonly RunnableCheck[] = [
  {
    name: 'delete.refusals',
    title: 'delete is NotEmpty where there are children, NoNode where there is nothing, and does the rest',
    rows: ['A17'],
    docs: 'ZooKeeper.delete',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      await zk.create(`${ground.root}/a/b`, null, { mode: 'ephemeral' });
      await refused('a znode with a child', zk.delete(`${ground.root}/a`), 'NotEmpty');
      await refused('nothing', zk.delete(`${ground.root}/x`), 'NoNode');
      await refused('nothing below nothing', zk.delete(`${ground.root}/x/y`), 'NoNode');
      await zk.delete(`${ground.root}/a/b`);
      await zk.delete(`${ground.root}/a`);
      await refused('what was deleted', zk.delete(`${ground.root}/a`), 'NoNode');
      equal('what is there', await zk.exists(`${ground.root}/a`), null);
    },
  },
  {
    name: 'delete.order-of-judgement',
    title: 'a wrong version is told ahead of children that are in the way',
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
    title: 'what ZooKeeper itself needs cannot be deleted (BadArguments) or made again (NodeExists)',
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
    title: 'an ephemeral can be deleted by others, and its session goes on',
    rows: ['A7'],
    docs: "Programmer's Guide, Ephemeral Nodes",
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      await other.delete(path);
      await ground.caughtUp(zk);
      equal('the znode', await zk.exists(path), null);
      equal(
        'an ephemeral of another session in its place',
        (await other.create(path, null, { mode: 'ephemeral' })).stat.ephemeralOwner,
        other.sessionId,
      );
      await zk.close();
      equal('that, behind the end of the first session', (await other.exists(path))?.ephemeralOwner, other.sessionId);
    },
  },
];
