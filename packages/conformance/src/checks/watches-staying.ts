/** Watches that stay until they are removed. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal } from '../expect.ts';
import { Heard } from '../heard.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Persistent, Recursive Watches";
const since = [3, 6, 0] as const;

export const watchStayingChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-staying.persistent',
    title: 'a persistent watch receives each change of a znode and each creation and deletion of its children, and stays',
    rows: ['A22', 'B44'],
    docs,
    since,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      await zk.addWatch(path, { watch: heard.watch });
      await other.create(path);
      await other.setData(path, '1');
      await other.setData(path, '2');
      await other.create(`${path}/b`);
      await other.setData(`${path}/b`, 'x');
      await other.create(`${path}/b/c`);
      await other.delete(`${path}/b/c`);
      await other.delete(`${path}/b`);
      await other.delete(path);
      await other.create(path);
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), [
        'NodeCreated /a',
        'NodeDataChanged /a',
        'NodeDataChanged /a',
        'NodeChildrenChanged /a',
        'NodeChildrenChanged /a',
        'NodeDeleted /a',
        'NodeCreated /a',
      ]);
    },
  },
  {
    name: 'watches-staying.recursive',
    title: 'a recursive watch receives each change of a znode and its descendants, and never NodeChildrenChanged',
    rows: ['A22', 'B44'],
    docs,
    since,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      await zk.addWatch(path, { mode: 'persistentRecursive', watch: heard.watch });
      await other.create(path);
      await other.create(`${path}/b`);
      await other.create(`${path}/b/c`);
      await other.setData(`${path}/b/c`, 'x');
      await other.create(`${ground.root}/ab`);
      await other.delete(`${path}/b/c`);
      await other.delete(`${path}/b`);
      await other.setData(path, 'x');
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), [
        'NodeCreated /a',
        'NodeCreated /a/b',
        'NodeCreated /a/b/c',
        'NodeDataChanged /a/b/c',
        'NodeDeleted /a/b/c',
        'NodeDeleted /a/b',
        'NodeDataChanged /a',
      ]);
    },
  },
  {
    name: 'watches-staying.recursive-frames',
    title: 'a recursive watch receives one event for a created or deleted child, and none for its parent',
    rows: ['A22'],
    docs: 'ZOOKEEPER-1416; WatcherOrBitSet and PathParentIterator of WatchManager',
    since,
    async run(ground) {
      const [zk, cnxn] = [await ground.open(), await ground.openRawSession()];
      // A client drops events without a watch of its own, so check the frames.
      const reply = await cnxn.call(OpCode.addWatch, (writer) => operations.addWatch.request.write(writer, { path: ground.root, mode: 1 }));
      equal('the error', reply?.err, 0);
      await zk.create(`${ground.root}/a`);
      await zk.create(`${ground.root}/a/b`);
      await zk.delete(`${ground.root}/a/b`);
      await zk.setData(`${ground.root}/a`, 'x');
      await ground.until('four events', cnxn.untilEvents(4));
      await cnxn.ping();
      equal(
        'the events',
        cnxn.events.map(({ type, path }) => [type, path.slice(ground.root.length)]),
        [
          [1, '/a'],
          [1, '/a/b'],
          [2, '/a/b'],
          [3, '/a'],
        ],
      );
    },
  },
  {
    name: 'watches-staying.ephemerals-of-a-session',
    title: 'a recursive watch receives an event for each ephemeral znode that is deleted with its session',
    rows: ['A22', 'A32', 'C2-16'],
    docs,
    since,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      for (const name of ['a', 'b', 'c']) await other.create(`${ground.root}/${name}`, null, { mode: 'ephemeral' });
      await ground.caughtUp(zk);
      await zk.addWatch(ground.root, { mode: 'persistentRecursive', watch: heard.watch });
      await other.close();
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root).toSorted(), ['NodeDeleted /a', 'NodeDeleted /b', 'NodeDeleted /c']);
    },
  },
  {
    name: 'watches-staying.several-modes',
    title: 'one client may watch one path once, persistently and recursively at the same time; none of these watches ends another',
    rows: ['A23'],
    docs: 'ZOOKEEPER-4466',
    since: [3, 9, 0],
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const [once, persistent, recursive] = [new Heard(), new Heard(), new Heard()];
      const { path } = await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      await zk.addWatch(path, { mode: 'persistentRecursive', watch: recursive.watch });
      await zk.addWatch(path, { watch: persistent.watch });
      await zk.getData(path, { watch: once.watch });
      await other.setData(path, '1');
      await other.setData(path, '2');
      await other.create(`${path}/b`);
      await ground.caughtUp(zk);
      equal('the one-time watch', once.takeText(ground.root), ['NodeDataChanged /a']);
      equal('the persistent one', persistent.takeText(ground.root), ['NodeDataChanged /a', 'NodeDataChanged /a', 'NodeChildrenChanged /a']);
      equal('the recursive one', recursive.takeText(ground.root), ['NodeDataChanged /a', 'NodeDataChanged /a', 'NodeCreated /a/b']);
    },
  },
  {
    name: 'watches-staying.zxid',
    title: 'each event of a persistent watch has the zxid of its own change',
    rows: ['A26', 'B45'],
    docs: 'ZOOKEEPER-4655',
    since: [3, 9, 0],
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      await zk.addWatch(ground.root, { mode: 'persistentRecursive', watch: heard.watch });
      const { stat } = await other.create(`${ground.root}/a`);
      const { mzxid } = await other.setData(`${ground.root}/a`, 'x');
      await ground.caughtUp(zk);
      equal(
        'the zxids',
        heard.take().map(({ zxid }) => zxid),
        [stat.czxid, mzxid],
      );
    },
  },
  {
    name: 'watches-staying.unknown-mode',
    title: 'an addWatch with an unknown mode is rejected and sets no watch',
    rows: ['A22'],
    docs: 'FinalRequestProcessor, OpCode.addWatch; AddWatchMode.fromInt',
    since,
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.addWatch, (writer) => operations.addWatch.request.write(writer, { path: ground.root, mode: 7 }));
      equal('the error', reply?.err, -5);
      await (await ground.open()).setData(ground.root, 'x');
      await cnxn.ping();
      equal('events', cnxn.events, []);
    },
  },
];
