/** Conditional writes. */
import { openAcl } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError, textOf } from '../expect.ts';

const docs = "Programmer's Guide, ZooKeeper Data Model, Znodes";

export const versionChecks: readonly RunnableCheck[] = [
  {
    name: 'versions.set-data',
    title: 'each setData adds one to the version; with a version that the znode does not have it fails with BadVersion and changes nothing',
    behaviourIds: ['A5', 'C3-8', 'C3-10'],
    docs: `${docs}; ZooKeeper.setData`,
    async run(context) {
      const zk = await context.openClient();
      const path = `${context.rootPath}/a`;
      await zk.create(path, '0');
      expectEqual('the version, unconditional', (await zk.setData(path, '1')).version, 1);
      expectEqual('the version, conditional', (await zk.setData(path, '2', { version: 1 })).version, 2);
      expectEqual('the version after the same data', (await zk.setData(path, '2', { version: 2 })).version, 3);
      for (const version of [0, 2, 4, 2147483647, -2])
        await expectError(`version ${version}`, zk.setData(path, 'x', { version }), 'BadVersion');
      const { data, stat } = await zk.getData(path);
      expectEqual('data and version', [textOf(data), stat.version], ['2', 3]);
    },
  },
  {
    name: 'versions.delete',
    title: 'delete compares the version, and -1 matches any',
    behaviourIds: ['A5', 'C3-10'],
    docs: `${docs}; ZooKeeper.delete`,
    async run(context) {
      const zk = await context.openClient();
      for (const name of ['a', 'b']) {
        await zk.create(`${context.rootPath}/${name}`);
        await zk.setData(`${context.rootPath}/${name}`, 'x');
      }
      await expectError('version 0', zk.delete(`${context.rootPath}/a`, { version: 0 }), 'BadVersion');
      await zk.delete(`${context.rootPath}/a`, { version: 1 });
      await zk.delete(`${context.rootPath}/b`, { version: -1 });
      expectEqual('the remaining znodes', (await zk.getChildren(context.rootPath)).children, []);
    },
  },
  {
    name: 'versions.set-acl',
    title: 'setACL compares aversion and increments it',
    behaviourIds: ['A5', 'C3-26', 'B48'],
    docs: 'ZooKeeper.setACL',
    async run(context) {
      const zk = await context.openClient();
      const path = `${context.rootPath}/a`;
      await zk.create(path);
      await zk.setData(path, 'x');
      await expectError('the version of the data', zk.setACL(path, openAcl, { version: 1 }), 'BadVersion');
      expectEqual('aversion', (await zk.setACL(path, openAcl, { version: 0 })).aversion, 1);
      expectEqual('aversion, unconditional', (await zk.setACL(path, openAcl)).aversion, 2);
      expectEqual('the version of the data', (await zk.getACL(path)).stat.version, 1);
    },
  },
  {
    name: 'versions.begin-anew',
    title: 'a znode that is created again starts at version 0, with a new czxid',
    behaviourIds: ['C3-8', 'C3-25'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const path = `${context.rootPath}/a`;
      const first = await zk.create(path);
      await zk.setData(path, 'x');
      await zk.delete(path);
      const { stat } = await zk.create(path);
      expectEqual('versions', [stat.version, stat.cversion, stat.aversion], [0, 0, 0]);
      expectEqual('whether czxid has grown', stat.czxid > first.stat.czxid, true);
    },
  },
  {
    name: 'versions.compare-and-set',
    title: 'of several conditional writes with one version, one succeeds',
    behaviourIds: ['A5', 'C3-10'],
    docs,
    async run(context) {
      const clients = await Promise.all(Array.from({ length: 4 }, () => context.openClient()));
      const path = `${context.rootPath}/a`;
      await clients[0]!.create(path, '0');
      const done = await Promise.allSettled(clients.map((zk, at) => zk.setData(path, String(at), { version: 0 })));
      const winners = done.flatMap(({ status }, at) => (status === 'fulfilled' ? [at] : []));
      expectEqual('the number of successful writes', winners.length, 1);
      await context.catchUp(clients[0]!);
      const { data, stat } = await clients[0]!.getData(path);
      expectEqual('data and version', [textOf(data), stat.version], [String(winners[0]), 1]);
    },
  },
];
