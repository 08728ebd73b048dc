/** delete, and what cannot be deleted. */
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError } from '../expect.ts';

/** No znode has this version, so that a wrong server does no harm either. */
const absentVersion = { version: 1_234_567 };

export const deleteChecks: readonly RunnableCheck[] = [
  {
    name: 'delete.refusals',
    title: 'delete fails with NotEmpty on a znode with children and with NoNode on a missing one; otherwise it succeeds',
    behaviourIds: ['A17'],
    docs: 'ZooKeeper.delete',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`);
      await zk.create(`${context.rootPath}/a/b`, null, { mode: 'ephemeral' });
      await expectError('a znode with a child', zk.delete(`${context.rootPath}/a`), 'NotEmpty');
      await expectError('nothing', zk.delete(`${context.rootPath}/x`), 'NoNode');
      await expectError('a child of a missing znode', zk.delete(`${context.rootPath}/x/y`), 'NoNode');
      await zk.delete(`${context.rootPath}/a/b`);
      await zk.delete(`${context.rootPath}/a`);
      await expectError('the deleted znode', zk.delete(`${context.rootPath}/a`), 'NoNode');
      expectEqual('the existing children', await zk.exists(`${context.rootPath}/a`), null);
    },
  },
  {
    name: 'delete.order-of-judgement',
    title: 'delete reports a wrong version before it reports children',
    behaviourIds: ['A17'],
    docs: 'PrepRequestProcessor, OpCode.delete',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`);
      await zk.create(`${context.rootPath}/a/b`);
      await expectError('both', zk.delete(`${context.rootPath}/a`, absentVersion), 'BadVersion');
    },
  },
  {
    name: 'delete.reserved',
    title: "ZooKeeper's own znodes cannot be deleted (BadArguments) or created again (NodeExists)",
    behaviourIds: ['A2', 'C3-7'],
    docs: "Programmer's Guide, ZooKeeper Data Model: the token zookeeper is reserved; DataTree.isSpecialPath",
    async run(context) {
      const zk = await context.openClient();
      for (const path of ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']) {
        await expectError(`delete ${path}`, zk.delete(path, absentVersion), 'BadArguments');
      }
      for (const path of ['/', '/zookeeper']) await expectError(`create ${path}`, zk.create(path), 'NodeExists');
    },
  },
  {
    name: 'delete.someone-elses-ephemeral',
    title: 'another session can delete an ephemeral znode, and the session of the znode stays open',
    behaviourIds: ['A7'],
    docs: "Programmer's Guide, Ephemeral Nodes",
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const { path } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      await other.delete(path);
      await context.catchUp(zk);
      expectEqual('the znode', await zk.exists(path), null);
      expectEqual(
        'an ephemeral znode of another session at the same path',
        (await other.create(path, null, { mode: 'ephemeral' })).stat.ephemeralOwner,
        other.sessionId,
      );
      await zk.close();
      expectEqual('that znode after the end of the first session', (await other.exists(path))?.ephemeralOwner, other.sessionId);
    },
  },
];
