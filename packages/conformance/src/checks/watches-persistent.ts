/** Watches that stay until they are removed. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual } from '../expect.ts';
import { EventRecorder } from '../event-recorder.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Persistent, Recursive Watches";
const since = [3, 6, 0] as const;

export const persistentWatchChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-staying.persistent',
    title: 'a persistent watch receives each change of a znode and each creation and deletion of its children, and stays',
    behaviourIds: ['A22', 'B44'],
    docs,
    since,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      await zk.addWatch(path, { watch: recorder.watch });
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
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), [
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
    behaviourIds: ['A22', 'B44'],
    docs,
    since,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      await zk.addWatch(path, { mode: 'persistentRecursive', watch: recorder.watch });
      await other.create(path);
      await other.create(`${path}/b`);
      await other.create(`${path}/b/c`);
      await other.setData(`${path}/b/c`, 'x');
      await other.create(`${context.rootPath}/ab`);
      await other.delete(`${path}/b/c`);
      await other.delete(`${path}/b`);
      await other.setData(path, 'x');
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), [
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
    behaviourIds: ['A22'],
    docs: 'ZOOKEEPER-1416; WatcherOrBitSet and PathParentIterator of WatchManager',
    since,
    async run(context) {
      const [zk, cnxn] = [await context.openClient(), await context.openRawCnxnWithSession()];
      // A client drops events without a watch of its own, so check the frames.
      const reply = await cnxn.call(OpCode.addWatch, (writer) =>
        operations.addWatch.request.write(writer, { path: context.rootPath, mode: 1 }),
      );
      expectEqual('the error', reply?.err, 0);
      await zk.create(`${context.rootPath}/a`);
      await zk.create(`${context.rootPath}/a/b`);
      await zk.delete(`${context.rootPath}/a/b`);
      await zk.setData(`${context.rootPath}/a`, 'x');
      await context.waitFor('four events', cnxn.waitForEvents(4));
      await cnxn.ping();
      expectEqual(
        'the events',
        cnxn.events.map(({ type, path }) => [type, path.slice(context.rootPath.length)]),
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
    behaviourIds: ['A22', 'A32', 'C2-16'],
    docs,
    since,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      for (const name of ['a', 'b', 'c']) await other.create(`${context.rootPath}/${name}`, null, { mode: 'ephemeral' });
      await context.catchUp(zk);
      await zk.addWatch(context.rootPath, { mode: 'persistentRecursive', watch: recorder.watch });
      await other.close();
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath).toSorted(), ['NodeDeleted /a', 'NodeDeleted /b', 'NodeDeleted /c']);
    },
  },
  {
    name: 'watches-staying.several-modes',
    title: 'one client may watch one path once, persistently and recursively at the same time; none of these watches ends another',
    behaviourIds: ['A23'],
    docs: 'ZOOKEEPER-4466',
    since: [3, 9, 0],
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const [once, persistent, recursive] = [new EventRecorder(), new EventRecorder(), new EventRecorder()];
      const { path } = await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      await zk.addWatch(path, { mode: 'persistentRecursive', watch: recursive.watch });
      await zk.addWatch(path, { watch: persistent.watch });
      await zk.getData(path, { watch: once.watch });
      await other.setData(path, '1');
      await other.setData(path, '2');
      await other.create(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('the one-time watch', once.takeText(context.rootPath), ['NodeDataChanged /a']);
      expectEqual('the persistent one', persistent.takeText(context.rootPath), [
        'NodeDataChanged /a',
        'NodeDataChanged /a',
        'NodeChildrenChanged /a',
      ]);
      expectEqual('the recursive one', recursive.takeText(context.rootPath), [
        'NodeDataChanged /a',
        'NodeDataChanged /a',
        'NodeCreated /a/b',
      ]);
    },
  },
  {
    name: 'watches-staying.zxid',
    title: 'each event of a persistent watch has the zxid of its own change',
    behaviourIds: ['A26', 'B45'],
    docs: 'ZOOKEEPER-4655',
    since: [3, 9, 0],
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      await zk.addWatch(context.rootPath, { mode: 'persistentRecursive', watch: recorder.watch });
      const { stat } = await other.create(`${context.rootPath}/a`);
      const { mzxid } = await other.setData(`${context.rootPath}/a`, 'x');
      await context.catchUp(zk);
      expectEqual(
        'the zxids',
        recorder.take().map(({ zxid }) => zxid),
        [stat.czxid, mzxid],
      );
    },
  },
  {
    name: 'watches-staying.unknown-mode',
    title: 'an addWatch with an unknown mode is rejected and sets no watch',
    behaviourIds: ['A22'],
    docs: 'FinalRequestProcessor, OpCode.addWatch; AddWatchMode.fromInt',
    since,
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.addWatch, (writer) =>
        operations.addWatch.request.write(writer, { path: context.rootPath, mode: 7 }),
      );
      expectEqual('the error', reply?.err, -5);
      await (await context.openClient()).setData(context.rootPath, 'x');
      await cnxn.ping();
      expectEqual('events', cnxn.events, []);
    },
  },
];
