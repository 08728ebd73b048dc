/** The errors of each operation on a missing znode, and their numbers. */
import { type Client, openAcl } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { equal, refused } from '../expect.ts';
import type { Release } from '../release.ts';

interface Asked {
  readonly op: string;
  readonly since?: Release;
  readonly ask: (zk: Client, path: string) => Promise<unknown>;
}

const onNothing: readonly Asked[] = [
  { op: 'getData', ask: (zk, path) => zk.getData(path) },
  { op: 'setData', ask: (zk, path) => zk.setData(path, 'x') },
  { op: 'getChildren', ask: (zk, path) => zk.getChildren(path) },
  { op: 'getACL', ask: (zk, path) => zk.getACL(path) },
  { op: 'setACL', ask: (zk, path) => zk.setACL(path, openAcl) },
  { op: 'delete', ask: (zk, path) => zk.delete(path) },
  { op: 'create', ask: (zk, path) => zk.create(`${path}/x`) },
  { op: 'getAllChildrenNumber', since: [3, 6, 0], ask: (zk, path) => zk.getAllChildrenNumber(path) },
];

export const errorChecks: readonly RunnableCheck[] = [
  {
    name: 'errors.no-node',
    title: 'each operation on a missing znode fails with NoNode (-101), and the connection stays open',
    rows: ['A17'],
    docs: 'KeeperException.Code',
    async run(ground) {
      const zk = await ground.open();
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      for (const { op, since, ask } of onNothing) {
        if (since !== undefined && !ground.isRelease(...since)) continue;
        const error = await refused(op, ask(zk, `${ground.root}/missing`), 'NoNode');
        equal(`errno of ${op}`, error.errno, -101);
      }
      equal('changes of the session', states, []);
    },
  },
  {
    name: 'errors.numbers',
    title: 'errors have the numbers of ZooKeeper',
    rows: ['A17'],
    docs: 'KeeperException.Code',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      await zk.create(`${ground.root}/a/b`);
      await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      equal('NodeExists', (await refused('create', zk.create(`${ground.root}/a`), 'NodeExists')).errno, -110);
      equal('NotEmpty', (await refused('delete', zk.delete(`${ground.root}/a`), 'NotEmpty')).errno, -111);
      equal('BadVersion', (await refused('setData', zk.setData(`${ground.root}/a`, null, { version: 5 }), 'BadVersion')).errno, -103);
      equal('NoChildrenForEphemerals', (await refused('create', zk.create(`${ground.root}/e/x`), 'NoChildrenForEphemerals')).errno, -108);
      equal('InvalidACL', (await refused('setACL', zk.setACL(`${ground.root}/a`, []), 'InvalidACL')).errno, -114);
      equal('BadArguments', (await refused('delete', zk.delete('/zookeeper', { version: 7 }), 'BadArguments')).errno, -8);
    },
  },
];
