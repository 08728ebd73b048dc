/** The eleven fields of a Stat, after each operation that may change them. */
import { openAcl } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectThat } from '../expect.ts';

const docs = "Programmer's Guide, ZooKeeper Stat Structure";

export const statChecks: readonly RunnableCheck[] = [
  {
    name: 'stat.set-data',
    title: 'setData changes version, mzxid, mtime and dataLength, and nothing else',
    behaviourIds: ['A4', 'C3-26', 'C3-29'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const { stat: before } = await zk.create(`${context.rootPath}/a`, 'one');
      const after = await zk.setData(`${context.rootPath}/a`, 'three');
      const { mzxid, mtime } = after;
      expectEqual('the Stat', { ...after }, { ...before, mzxid, mtime, version: 1, dataLength: 5 });
      expectThat('mzxid', mzxid > before.mzxid, `above ${before.mzxid}`, mzxid);
      expectThat('mtime', mtime >= before.ctime, 'not before ctime', { mtime, ctime: before.ctime });
      expectEqual('the Stat, read', await zk.exists(`${context.rootPath}/a`), after);
    },
  },
  {
    name: 'stat.set-acl',
    title: 'setACL changes aversion, and nothing else',
    behaviourIds: ['A4', 'C3-26', 'C3-29'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const { stat: before } = await zk.create(`${context.rootPath}/a`, 'one');
      expectEqual('the Stat', { ...(await zk.setACL(`${context.rootPath}/a`, openAcl)) }, { ...before, aversion: 1 });
      expectEqual('the Stat, read', { ...(await zk.exists(`${context.rootPath}/a`))! }, { ...before, aversion: 1 });
    },
  },
  {
    name: 'stat.children',
    title: 'creating and deleting children changes cversion, pzxid and numChildren of the parent, and nothing else',
    behaviourIds: ['A4', 'C3-26', 'C3-29'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const { stat: born } = await zk.create(`${context.rootPath}/p`, 'x');
      const { stat: child } = await zk.create(`${context.rootPath}/p/a`);
      expectEqual(
        'behind a create',
        { ...(await zk.exists(`${context.rootPath}/p`))! },
        { ...born, cversion: 1, pzxid: child.czxid, numChildren: 1 },
      );
      await zk.create(`${context.rootPath}/p/b`);
      await zk.delete(`${context.rootPath}/p/a`);
      const after = (await zk.exists(`${context.rootPath}/p`))!;
      expectEqual('after two creates and a delete', { ...after }, { ...born, cversion: 3, pzxid: after.pzxid, numChildren: 1 });
      const { stat: other } = await zk.create(`${context.rootPath}/q`);
      expectThat('pzxid', after.pzxid > child.czxid && after.pzxid < other.czxid, 'the zxid of the delete', after.pzxid);
    },
  },
  {
    name: 'stat.not-of-the-parent',
    title: 'changes of the data of a child, or of a deeper znode, do not change the parent',
    behaviourIds: ['A4', 'C3-29'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/p`);
      await zk.create(`${context.rootPath}/p/a`);
      const before = await zk.exists(`${context.rootPath}/p`);
      await zk.setData(`${context.rootPath}/p/a`, 'x');
      await zk.setACL(`${context.rootPath}/p/a`, openAcl);
      await zk.create(`${context.rootPath}/p/a/b`);
      await zk.delete(`${context.rootPath}/p/a/b`);
      expectEqual('the Stat of the parent', await zk.exists(`${context.rootPath}/p`), before);
    },
  },
  {
    name: 'stat.multi',
    title: 'all changes of a multi have one zxid and one time',
    behaviourIds: ['A12', 'C3-25'],
    docs: 'DataTree.processTxn',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/p`);
      await zk.multi([
        { op: 'create', path: `${context.rootPath}/p/a` },
        { op: 'create', path: `${context.rootPath}/p/b` },
        { op: 'setData', path: `${context.rootPath}/p`, data: 'x' },
      ]);
      const [parent, a, b] = [
        (await zk.exists(`${context.rootPath}/p`))!,
        (await zk.exists(`${context.rootPath}/p/a`))!,
        (await zk.exists(`${context.rootPath}/p/b`))!,
      ];
      expectEqual(
        'mzxid and pzxid of the parent, czxid of the children',
        [parent.mzxid, parent.pzxid, b.czxid],
        [a.czxid, a.czxid, a.czxid],
      );
      expectEqual('mtime of the parent, ctime of the children', [parent.mtime, b.ctime], [a.ctime, a.ctime]);
      expectEqual('cversion and numChildren', [parent.cversion, parent.numChildren], [2, 2]);
    },
  },
  {
    name: 'stat.refusal-changes-nothing',
    title: 'a rejected write changes no field',
    behaviourIds: ['A4', 'A5'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/p`, 'x');
      await zk.create(`${context.rootPath}/p/a`);
      const before = await zk.exists(`${context.rootPath}/p`);
      const refusals = await Promise.allSettled([
        zk.setData(`${context.rootPath}/p`, 'y', { version: 7 }),
        zk.setACL(`${context.rootPath}/p`, openAcl, { version: 7 }),
        zk.delete(`${context.rootPath}/p`),
        zk.create(`${context.rootPath}/p/a`),
        zk.delete(`${context.rootPath}/p/b`),
      ]);
      expectEqual('the number of rejected writes', refusals.filter(({ status }) => status === 'rejected').length, 5);
      expectEqual('the Stat', await zk.exists(`${context.rootPath}/p`), before);
    },
  },
  {
    name: 'stat.zxids-grow',
    title: 'each change has its own zxid, higher than the ones before',
    behaviourIds: ['C3-25', 'A18'],
    docs: "Programmer's Guide, Time in ZooKeeper, Zxid",
    async run(context) {
      const [one, other] = [await context.openClient(), await context.openClient()];
      const zxids: bigint[] = [];
      for (let at = 0; at < 5; at++) {
        for (const zk of [one, other]) {
          const { stat } = await zk.create(`${context.rootPath}/${at}-${zk === one ? 'a' : 'b'}`);
          zxids.push(stat.czxid, (await zk.setData(`${context.rootPath}/${at}-${zk === one ? 'a' : 'b'}`, 'x')).mzxid);
        }
      }
      expectThat(
        'the zxids',
        zxids.every((zxid, at) => at === 0 || zxid > zxids[at - 1]!),
        'each higher than the one before',
        zxids,
      );
    },
  },
];
