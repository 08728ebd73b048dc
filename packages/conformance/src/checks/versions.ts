/** Conditional writes. */
import { openAcl } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { equal, refused, textOf } from '../expect.ts';

const docs = "Programmer's Guide, ZooKeeper Data Model, Znodes";

export const versionChecks: readonly RunnableCheck[] = [
  {
    name: 'versions.set-data',
    title: 'each setData adds one to the version; with a version that the znode does not have it fails with BadVersion and changes nothing',
    rows: ['A5', 'C3-8', 'C3-10'],
    docs: `${docs}; ZooKeeper.setData`,
    async run(ground) {
      const zk = await ground.open();
      const path = `${ground.root}/a`;
      await zk.create(path, '0');
      equal('the version, unconditional', (await zk.setData(path, '1')).version, 1);
      equal('the version, conditional', (await zk.setData(path, '2', { version: 1 })).version, 2);
      equal('the version after the same data', (await zk.setData(path, '2', { version: 2 })).version, 3);
      for (const version of [0, 2, 4, 2147483647, -2])
        await refused(`version ${version}`, zk.setData(path, 'x', { version }), 'BadVersion');
      const { data, stat } = await zk.getData(path);
      equal('data and version', [textOf(data), stat.version], ['2', 3]);
    },
  },
  {
    name: 'versions.delete',
    title: 'delete compares the version, and -1 matches any',
    rows: ['A5', 'C3-10'],
    docs: `${docs}; ZooKeeper.delete`,
    async run(ground) {
      const zk = await ground.open();
      for (const name of ['a', 'b']) {
        await zk.create(`${ground.root}/${name}`);
        await zk.setData(`${ground.root}/${name}`, 'x');
      }
      await refused('version 0', zk.delete(`${ground.root}/a`, { version: 0 }), 'BadVersion');
      await zk.delete(`${ground.root}/a`, { version: 1 });
      await zk.delete(`${ground.root}/b`, { version: -1 });
      equal('the remaining znodes', (await zk.getChildren(ground.root)).children, []);
    },
  },
  {
    name: 'versions.set-acl',
    title: 'setACL compares aversion and increments it',
    rows: ['A5', 'C3-26', 'B48'],
    docs: 'ZooKeeper.setACL',
    async run(ground) {
      const zk = await ground.open();
      const path = `${ground.root}/a`;
      await zk.create(path);
      await zk.setData(path, 'x');
      await refused('the version of the data', zk.setACL(path, openAcl, { version: 1 }), 'BadVersion');
      equal('aversion', (await zk.setACL(path, openAcl, { version: 0 })).aversion, 1);
      equal('aversion, unconditional', (await zk.setACL(path, openAcl)).aversion, 2);
      equal('the version of the data', (await zk.getACL(path)).stat.version, 1);
    },
  },
  {
    name: 'versions.begin-anew',
    title: 'a znode that is created again starts at version 0, with a new czxid',
    rows: ['C3-8', 'C3-25'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const path = `${ground.root}/a`;
      const first = await zk.create(path);
      await zk.setData(path, 'x');
      await zk.delete(path);
      const { stat } = await zk.create(path);
      equal('versions', [stat.version, stat.cversion, stat.aversion], [0, 0, 0]);
      equal('whether czxid has grown', stat.czxid > first.stat.czxid, true);
    },
  },
  {
    name: 'versions.compare-and-set',
    title: 'of several conditional writes with one version, one succeeds',
    rows: ['A5', 'C3-10'],
    docs,
    async run(ground) {
      const clients = await Promise.all(Array.from({ length: 4 }, () => ground.open()));
      const path = `${ground.root}/a`;
      await clients[0]!.create(path, '0');
      const done = await Promise.allSettled(clients.map((zk, at) => zk.setData(path, String(at), { version: 0 })));
      const winners = done.flatMap(({ status }, at) => (status === 'fulfilled' ? [at] : []));
      equal('the number of successful writes', winners.length, 1);
      await ground.caughtUp(clients[0]!);
      const { data, stat } = await clients[0]!.getData(path);
      equal('data and version', [textOf(data), stat.version], [String(winners[0]), 1]);
    },
  },
];
