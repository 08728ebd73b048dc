/** The eleven fields of a Stat, after each operation that may change them. */
import { openAcl } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { equal, holds } from '../expect.ts';

const docs = "Programmer's Guide, ZooKeeper Stat Structure";

export const statChecks: readonly RunnableCheck[] = [
  {
    name: 'stat.set-data',
    title: 'setData changes version, mzxid, mtime and dataLength, and nothing else',
    rows: ['A4', 'C3-26', 'C3-29'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const { stat: before } = await zk.create(`${ground.root}/a`, 'one');
      const after = await zk.setData(`${ground.root}/a`, 'three');
      const { mzxid, mtime } = after;
      equal('the Stat', { ...after }, { ...before, mzxid, mtime, version: 1, dataLength: 5 });
      holds('mzxid', mzxid > before.mzxid, `above ${before.mzxid}`, mzxid);
      holds('mtime', mtime >= before.ctime, 'not before ctime', { mtime, ctime: before.ctime });
      equal('the Stat, read', await zk.exists(`${ground.root}/a`), after);
    },
  },
  {
    name: 'stat.set-acl',
    title: 'setACL changes aversion, and nothing else',
    rows: ['A4', 'C3-26', 'C3-29'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const { stat: before } = await zk.create(`${ground.root}/a`, 'one');
      equal('the Stat', { ...(await zk.setACL(`${ground.root}/a`, openAcl)) }, { ...before, aversion: 1 });
      equal('the Stat, read', { ...(await zk.exists(`${ground.root}/a`))! }, { ...before, aversion: 1 });
    },
  },
  {
    name: 'stat.children',
    title: 'creating and deleting children changes cversion, pzxid and numChildren of the parent, and nothing else',
    rows: ['A4', 'C3-26', 'C3-29'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const { stat: born } = await zk.create(`${ground.root}/p`, 'x');
      const { stat: child } = await zk.create(`${ground.root}/p/a`);
      equal('behind a create', { ...(await zk.exists(`${ground.root}/p`))! }, { ...born, cversion: 1, pzxid: child.czxid, numChildren: 1 });
      await zk.create(`${ground.root}/p/b`);
      await zk.delete(`${ground.root}/p/a`);
      const after = (await zk.exists(`${ground.root}/p`))!;
      equal('after two creates and a delete', { ...after }, { ...born, cversion: 3, pzxid: after.pzxid, numChildren: 1 });
      const { stat: other } = await zk.create(`${ground.root}/q`);
      holds('pzxid', after.pzxid > child.czxid && after.pzxid < other.czxid, 'the zxid of the delete', after.pzxid);
    },
  },
  {
    name: 'stat.not-of-the-parent',
    title: 'changes of the data of a child, or of a deeper znode, do not change the parent',
    rows: ['A4', 'C3-29'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/p`);
      await zk.create(`${ground.root}/p/a`);
      const before = await zk.exists(`${ground.root}/p`);
      await zk.setData(`${ground.root}/p/a`, 'x');
      await zk.setACL(`${ground.root}/p/a`, openAcl);
      await zk.create(`${ground.root}/p/a/b`);
      await zk.delete(`${ground.root}/p/a/b`);
      equal('the Stat of the parent', await zk.exists(`${ground.root}/p`), before);
    },
  },
  {
    name: 'stat.multi',
    title: 'all changes of a multi have one zxid and one time',
    rows: ['A12', 'C3-25'],
    docs: 'DataTree.processTxn',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/p`);
      await zk.multi([
        { op: 'create', path: `${ground.root}/p/a` },
        { op: 'create', path: `${ground.root}/p/b` },
        { op: 'setData', path: `${ground.root}/p`, data: 'x' },
      ]);
      const [parent, a, b] = [
        (await zk.exists(`${ground.root}/p`))!,
        (await zk.exists(`${ground.root}/p/a`))!,
        (await zk.exists(`${ground.root}/p/b`))!,
      ];
      equal('mzxid and pzxid of the parent, czxid of the children', [parent.mzxid, parent.pzxid, b.czxid], [a.czxid, a.czxid, a.czxid]);
      equal('mtime of the parent, ctime of the children', [parent.mtime, b.ctime], [a.ctime, a.ctime]);
      equal('cversion and numChildren', [parent.cversion, parent.numChildren], [2, 2]);
    },
  },
  {
    name: 'stat.refusal-changes-nothing',
    title: 'a rejected write changes no field',
    rows: ['A4', 'A5'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/p`, 'x');
      await zk.create(`${ground.root}/p/a`);
      const before = await zk.exists(`${ground.root}/p`);
      const refusals = await Promise.allSettled([
        zk.setData(`${ground.root}/p`, 'y', { version: 7 }),
        zk.setACL(`${ground.root}/p`, openAcl, { version: 7 }),
        zk.delete(`${ground.root}/p`),
        zk.create(`${ground.root}/p/a`),
        zk.delete(`${ground.root}/p/b`),
      ]);
      equal('the number of rejected writes', refusals.filter(({ status }) => status === 'rejected').length, 5);
      equal('the Stat', await zk.exists(`${ground.root}/p`), before);
    },
  },
  {
    name: 'stat.zxids-grow',
    title: 'each change has its own zxid, higher than the ones before',
    rows: ['C3-25', 'A18'],
    docs: "Programmer's Guide, Time in ZooKeeper, Zxid",
    async run(ground) {
      const [one, other] = [await ground.open(), await ground.open()];
      const zxids: bigint[] = [];
      for (let at = 0; at < 5; at++) {
        for (const zk of [one, other]) {
          const { stat } = await zk.create(`${ground.root}/${at}-${zk === one ? 'a' : 'b'}`);
          zxids.push(stat.czxid, (await zk.setData(`${ground.root}/${at}-${zk === one ? 'a' : 'b'}`, 'x')).mzxid);
        }
      }
      holds(
        'the zxids',
        zxids.every((zxid, at) => at === 0 || zxid > zxids[at - 1]!),
        'each higher than the one before',
        zxids,
      );
    },
  },
];
