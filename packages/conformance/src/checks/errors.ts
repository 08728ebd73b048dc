/** The errors of each operation on a missing znode, and their numbers. */
import { type Client, openAcl } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError } from '../expect.ts';
import type { Release } from '../release.ts';

interface OperationUnderTest {
  readonly op: string;
  readonly since?: Release;
  readonly ask: (zk: Client, path: string) => Promise<unknown>;
}

const operationsOnMissingNode: readonly OperationUnderTest[] = [
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
    behaviourIds: ['A17'],
    docs: 'KeeperException.Code',
    async run(context) {
      const zk = await context.openClient();
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      for (const { op, since, ask } of operationsOnMissingNode) {
        if (since !== undefined && !context.isRelease(...since)) continue;
        const error = await expectError(op, ask(zk, `${context.rootPath}/missing`), 'NoNode');
        expectEqual(`errno of ${op}`, error.errno, -101);
      }
      expectEqual('changes of the session', states, []);
    },
  },
  {
    name: 'errors.numbers',
    title: 'errors have the numbers of ZooKeeper',
    behaviourIds: ['A17'],
    docs: 'KeeperException.Code',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`);
      await zk.create(`${context.rootPath}/a/b`);
      await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      expectEqual('NodeExists', (await expectError('create', zk.create(`${context.rootPath}/a`), 'NodeExists')).errno, -110);
      expectEqual('NotEmpty', (await expectError('delete', zk.delete(`${context.rootPath}/a`), 'NotEmpty')).errno, -111);
      expectEqual(
        'BadVersion',
        (await expectError('setData', zk.setData(`${context.rootPath}/a`, null, { version: 5 }), 'BadVersion')).errno,
        -103,
      );
      expectEqual(
        'NoChildrenForEphemerals',
        (await expectError('create', zk.create(`${context.rootPath}/e/x`), 'NoChildrenForEphemerals')).errno,
        -108,
      );
      expectEqual('InvalidACL', (await expectError('setACL', zk.setACL(`${context.rootPath}/a`, []), 'InvalidACL')).errno, -114);
      expectEqual('BadArguments', (await expectError('delete', zk.delete('/zookeeper', { version: 7 }), 'BadArguments')).errno, -8);
    },
  },
];
