/** Sequential znodes and their numbers. */
import { op } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { equal } from '../expect.ts';

const docs = "Programmer's Guide, ZooKeeper Data Model, Sequence Nodes";
const sequential = { mode: 'persistentSequential' } as const;

export const sequenceChecks: readonly RunnableCheck[] = [
  {
    name: 'sequence.format',
    title: 'the number has ten digits, begins at 0 and grows by one',
    rows: ['A6', 'C3-17', 'C3-18'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const paths: string[] = [];
      for (let at = 0; at < 12; at++) paths.push((await zk.create(`${ground.root}/s-`, null, sequential)).path);
      equal(
        'the paths',
        paths,
        Array.from({ length: 12 }, (_, at) => `${ground.root}/s-${String(at).padStart(10, '0')}`),
      );
      equal('a read of the last', (await zk.getData(paths.at(-1)!)).stat.version, 0);
    },
  },
  {
    name: 'sequence.one-counter-per-parent',
    title: 'all names below a parent share its counter, other parents have their own, and a name may consist of the digits alone',
    rows: ['C3-17', 'C3-19', 'A6'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      await zk.create(`${root}/p`);
      const create = async (path: string, mode: 'persistentSequential' | 'ephemeralSequential' = 'persistentSequential') =>
        (await zk.create(`${root}/${path}`, null, { mode })).path.slice(root.length + 1);
      equal(
        'the paths',
        [await create('p/a-'), await create('p/b-', 'ephemeralSequential'), await create('p/'), await create('q-')],
        ['p/a-0000000000', 'p/b-0000000001', 'p/0000000002', 'q-0000000001'],
      );
    },
  },
  {
    name: 'sequence.counts-creates',
    title: 'the number is how many children were ever created: all creates count, deletes do not, and no number is used twice',
    rows: ['C3-17', 'C3-19'],
    docs: `${docs}; DataTree.createNode`,
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      await zk.create(`${root}/plain`);
      const first = await zk.create(`${root}/s-`, null, sequential);
      equal('after one plain child', first.path, `${root}/s-0000000001`);
      await zk.delete(first.path);
      await zk.delete(`${root}/plain`);
      const second = await zk.create(`${root}/s-`, null, sequential);
      equal('after two deletes', second.path, `${root}/s-0000000002`);
      // A change of data is not a change of the children.
      await zk.setData(root, 'x');
      equal('after a setData of the parent', (await zk.create(`${root}/s-`, null, sequential)).path, `${root}/s-0000000003`);
    },
  },
  {
    name: 'sequence.cversion',
    title: 'the next number of a parent follows from its cversion and its children',
    rows: ['A4', 'A6', 'C3-26'],
    docs: 'DataNode.copyStat: cversion is shown as twice the creates less the children',
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      for (const name of ['a', 'b', 'c']) await zk.create(`${root}/${name}`);
      await zk.delete(`${root}/b`);
      const stat = (await zk.exists(root))!;
      equal('cversion after three creates and a delete', stat.cversion, 4);
      const next = (stat.cversion + stat.numChildren) / 2;
      equal('the next path', (await zk.create(`${root}/`, null, sequential)).path, `${root}/${String(next).padStart(10, '0')}`);
    },
  },
  {
    name: 'sequence.across-clients',
    title: 'sessions that create at the same time get different numbers without gaps',
    rows: ['A6', 'C3-17'],
    docs,
    async run(ground) {
      const clients = await Promise.all(Array.from({ length: 4 }, () => ground.open()));
      const paths = await Promise.all(
        clients.flatMap((zk) => Array.from({ length: 25 }, async () => (await zk.create(`${ground.root}/n`, null, sequential)).path)),
      );
      equal(
        'the numbers, sorted',
        paths.map((path) => Number(path.slice(-10))).toSorted((one, other) => one - other),
        Array.from({ length: 100 }, (_, at) => at),
      );
    },
  },
  {
    name: 'sequence.in-multi',
    title: 'sequential creates of one multi have consecutive numbers, and a failed multi uses no number',
    rows: ['A12', 'B47', 'C3-17'],
    docs: `${docs}; ZooKeeper.multi`,
    async run(ground) {
      const zk = await ground.open();
      const path = `${ground.root}/s-`;
      const [one, two] = await zk.multi([op.create(path, null, sequential), op.create(path, null, sequential)]);
      equal('the paths', [one.path, two.path], [`${path}0000000000`, `${path}0000000001`]);
      await zk.multi([op.create(path, null, sequential), op.delete(`${ground.root}/missing`)]).catch(() => undefined);
      equal('the next path', (await zk.create(path, null, sequential)).path, `${path}0000000002`);
    },
  },
];
