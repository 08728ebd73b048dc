/** Sequential znodes and their numbers. */
import { op } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { expectEqual } from '../expect.ts';

const docs = "Programmer's Guide, ZooKeeper Data Model, Sequence Nodes";
const sequential = { mode: 'persistentSequential' } as const;

export const sequenceChecks: readonly RunnableCheck[] = [
  {
    name: 'sequence.format',
    title: 'the number has ten digits, begins at 0 and grows by one',
    behaviourIds: ['A6', 'C3-17', 'C3-18'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const paths: string[] = [];
      for (let at = 0; at < 12; at++) paths.push((await zk.create(`${context.rootPath}/s-`, null, sequential)).path);
      expectEqual(
        'the paths',
        paths,
        Array.from({ length: 12 }, (_, at) => `${context.rootPath}/s-${String(at).padStart(10, '0')}`),
      );
      expectEqual('a read of the last', (await zk.getData(paths.at(-1)!)).stat.version, 0);
    },
  },
  {
    name: 'sequence.one-counter-per-parent',
    title: 'all names below a parent share its counter, other parents have their own, and a name may consist of the digits alone',
    behaviourIds: ['C3-17', 'C3-19', 'A6'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      await zk.create(`${rootPath}/p`);
      const create = async (path: string, mode: 'persistentSequential' | 'ephemeralSequential' = 'persistentSequential') =>
        (await zk.create(`${rootPath}/${path}`, null, { mode })).path.slice(rootPath.length + 1);
      expectEqual(
        'the paths',
        [await create('p/a-'), await create('p/b-', 'ephemeralSequential'), await create('p/'), await create('q-')],
        ['p/a-0000000000', 'p/b-0000000001', 'p/0000000002', 'q-0000000001'],
      );
    },
  },
  {
    name: 'sequence.counts-creates',
    title: 'the number is how many children were ever created: all creates count, deletes do not, and no number is used twice',
    behaviourIds: ['C3-17', 'C3-19'],
    docs: `${docs}; DataTree.createNode`,
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      await zk.create(`${rootPath}/plain`);
      const first = await zk.create(`${rootPath}/s-`, null, sequential);
      expectEqual('after one plain child', first.path, `${rootPath}/s-0000000001`);
      await zk.delete(first.path);
      await zk.delete(`${rootPath}/plain`);
      const second = await zk.create(`${rootPath}/s-`, null, sequential);
      expectEqual('after two deletes', second.path, `${rootPath}/s-0000000002`);
      // A change of data is not a change of the children.
      await zk.setData(rootPath, 'x');
      expectEqual('after a setData of the parent', (await zk.create(`${rootPath}/s-`, null, sequential)).path, `${rootPath}/s-0000000003`);
    },
  },
  {
    name: 'sequence.cversion',
    title: 'the next number of a parent follows from its cversion and its children',
    behaviourIds: ['A4', 'A6', 'C3-26'],
    docs: 'DataNode.copyStat: cversion is shown as twice the creates less the children',
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      for (const name of ['a', 'b', 'c']) await zk.create(`${rootPath}/${name}`);
      await zk.delete(`${rootPath}/b`);
      const stat = (await zk.exists(rootPath))!;
      expectEqual('cversion after three creates and a delete', stat.cversion, 4);
      const next = (stat.cversion + stat.numChildren) / 2;
      expectEqual(
        'the next path',
        (await zk.create(`${rootPath}/`, null, sequential)).path,
        `${rootPath}/${String(next).padStart(10, '0')}`,
      );
    },
  },
  {
    name: 'sequence.across-clients',
    title: 'sessions that create at the same time get different numbers without gaps',
    behaviourIds: ['A6', 'C3-17'],
    docs,
    async run(context) {
      const clients = await Promise.all(Array.from({ length: 4 }, () => context.openClient()));
      const paths = await Promise.all(
        clients.flatMap((zk) => Array.from({ length: 25 }, async () => (await zk.create(`${context.rootPath}/n`, null, sequential)).path)),
      );
      expectEqual(
        'the numbers, sorted',
        paths.map((path) => Number(path.slice(-10))).toSorted((one, other) => one - other),
        Array.from({ length: 100 }, (_, at) => at),
      );
    },
  },
  {
    name: 'sequence.in-multi',
    title: 'sequential creates of one multi have consecutive numbers, and a failed multi uses no number',
    behaviourIds: ['A12', 'B47', 'C3-17'],
    docs: `${docs}; ZooKeeper.multi`,
    async run(context) {
      const zk = await context.openClient();
      const path = `${context.rootPath}/s-`;
      const [one, two] = await zk.multi([op.create(path, null, sequential), op.create(path, null, sequential)]);
      expectEqual('the paths', [one.path, two.path], [`${path}0000000000`, `${path}0000000001`]);
      await zk.multi([op.create(path, null, sequential), op.delete(`${context.rootPath}/missing`)]).catch(() => undefined);
      expectEqual('the next path', (await zk.create(path, null, sequential)).path, `${path}0000000002`);
    },
  },
];
