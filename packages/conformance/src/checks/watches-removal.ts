/** checkWatches and removeWatches. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError } from '../expect.ts';
import type { CheckContext } from '../check-context.ts';
import { EventRecorder } from '../event-recorder.ts';
import type { RawCnxn } from '../raw-cnxn.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Remove Watches";

/**
 * A connection with a data watch and a child watch on a znode. A client drops events without a
 * watch of its own, whatever the server believes, so only the frames show whether the server has
 * removed a watch.
 */
async function openWatchingCnxn(context: CheckContext, path: string): Promise<RawCnxn> {
  const cnxn = await context.openRawCnxnWithSession();
  const request = { path, watch: true };
  await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, request));
  await cnxn.call(OpCode.getChildren, (writer) => operations.getChildren.request.write(writer, request));
  return cnxn;
}

async function removeWatches(cnxn: RawCnxn, path: string, type: number): Promise<number | undefined> {
  return (await cnxn.call(OpCode.removeWatches, (writer) => operations.removeWatches.request.write(writer, { path, type })))?.err;
}

/** Types and paths of the events sent so far. */
async function sentEvents(cnxn: RawCnxn): Promise<readonly (readonly [number, string | null])[]> {
  await cnxn.ping();
  return cnxn.events.map(({ type, path }) => [type, path]);
}

export const watchRemovalChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-removal.by-type',
    title: 'removeWatches removes the data watch or the child watch, and keeps the other',
    behaviourIds: ['A24', 'B44'],
    docs,
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const { path } = await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      const [data, children] = [new EventRecorder(), new EventRecorder()];
      await zk.getData(path, { watch: data.watch });
      await zk.getChildren(path, { watch: children.watch });
      await zk.removeWatches(path, { type: 'data' });
      expectEqual('the data watch', data.takeText(context.rootPath), ['DataWatchRemoved /a']);
      await other.setData(path, 'x');
      await other.create(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('the data watch, after a change', data.takeText(context.rootPath), []);
      expectEqual('the child watch', children.takeText(context.rootPath), ['NodeChildrenChanged /a']);
      await zk.getChildren(path, { watch: children.watch });
      await zk.removeWatches(path, { type: 'children' });
      await other.delete(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('the child watch, removed', children.takeText(context.rootPath), ['ChildWatchRemoved /a']);
      for (const [type, left] of [
        [2, [4, path]],
        [1, [3, path]],
      ] as const) {
        const cnxn = await openWatchingCnxn(context, path);
        expectEqual(`the error of removeWatches of type ${type}`, await removeWatches(cnxn, path, type), 0);
        await zk.setData(path, 'y');
        await zk.create(`${path}/c`);
        await zk.delete(`${path}/c`);
        expectEqual(`the events sent after removeWatches of type ${type}`, await sentEvents(cnxn), [left]);
      }
    },
  },
  {
    name: 'watches-removal.any',
    title: 'the type any removes every watch of the path',
    behaviourIds: ['A24', 'B44'],
    docs,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      await zk.create(path);
      await zk.exists(path, { watch: recorder.watch });
      await zk.getChildren(path, { watch: recorder.watch });
      await zk.removeWatches(path);
      expectEqual('the events', recorder.takeText(context.rootPath).toSorted(), ['ChildWatchRemoved /a', 'DataWatchRemoved /a']);
      await other.setData(path, 'x');
      await other.create(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('events', recorder.takeText(context.rootPath), []);
      const cnxn = await openWatchingCnxn(context, path);
      expectEqual('the error of removeWatches', await removeWatches(cnxn, path, 3), 0);
      await zk.setData(path, 'y');
      await zk.create(`${path}/c`);
      expectEqual('the events sent', await sentEvents(cnxn), []);
    },
  },
  {
    name: 'watches-removal.no-watcher',
    title: 'removeWatches fails with NoWatcher without a watch of that type, or after the watch has fired',
    behaviourIds: ['A24', 'B44'],
    docs: `${docs}; KeeperException.NoWatcherException`,
    async run(context) {
      const [zk, recorder] = [await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      await zk.create(path);
      for (const type of ['any', 'data', 'children'] as const) {
        const error = await expectError(`none at all, type ${type}`, zk.removeWatches(path, { type }), 'NoWatcher');
        expectEqual('errno', error.errno, -121);
      }
      await zk.getData(path, { watch: recorder.watch });
      await expectError('one of another type', zk.removeWatches(path, { type: 'children' }), 'NoWatcher');
      await zk.setData(path, 'x');
      await expectError('one that has fired', zk.removeWatches(path, { type: 'data' }), 'NoWatcher');
    },
  },
  {
    name: 'watches-removal.by-listener',
    title: 'of two listeners on one path the removed one receives no more events, and the other still does',
    behaviourIds: ['B44'],
    docs: `${docs}; ZooKeeper.removeWatches`,
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const [one, two] = [new EventRecorder(), new EventRecorder()];
      const { path } = await zk.create(`${context.rootPath}/a`);
      for (const { watch } of [one, two]) await zk.getData(path, { watch });
      await zk.removeWatches(path, { type: 'data', watch: one.watch });
      expectEqual('the events of the removed one', one.takeText(context.rootPath), ['DataWatchRemoved /a']);
      await expectError('once more', zk.removeWatches(path, { type: 'data', watch: one.watch }), 'NoWatcher');
      await other.setData(path, 'x');
      await context.catchUp(zk);
      expectEqual('the events of both', [one.takeText(context.rootPath), two.takeText(context.rootPath)], [[], ['NodeDataChanged /a']]);
    },
  },
  {
    name: 'watches-removal.of-others',
    title: "a client removes its own watches, and other clients' watches stay",
    behaviourIds: ['A24'],
    docs,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const { path } = await zk.create(`${context.rootPath}/a`);
      await context.catchUp(other);
      await other.getData(path, { watch: recorder.watch });
      await zk.getData(path, { watch: true });
      await zk.removeWatches(path);
      await expectError('once more', zk.removeWatches(path), 'NoWatcher');
      await zk.setData(path, 'x');
      await context.catchUp(other);
      expectEqual('events of the other', recorder.takeText(context.rootPath), ['NodeDataChanged /a']);
    },
  },
  {
    name: 'watches-removal.persistent',
    title: 'a persistent watch is removed by the type any, and receives an event about its removal',
    behaviourIds: ['A24', 'B44'],
    docs,
    since: [3, 6, 0],
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      for (const mode of ['persistent', 'persistentRecursive'] as const) {
        await zk.addWatch(context.rootPath, { mode, watch: recorder.watch });
        await zk.removeWatches(context.rootPath);
        expectEqual(`the event of the ${mode} one`, recorder.takeText(context.rootPath), ['PersistentWatchRemoved ']);
        await other.setData(context.rootPath, mode);
        await context.catchUp(zk);
        expectEqual(`events of the ${mode} one`, recorder.takeText(context.rootPath), []);
        await expectError('once more', zk.removeWatches(context.rootPath), 'NoWatcher');
      }
    },
  },
  {
    name: 'watches-removal.persistent-by-type',
    title: 'persistent and recursive watches are removed by their own types, each without the other',
    behaviourIds: ['A24', 'A23', 'B44', 'E20'],
    docs: 'ZOOKEEPER-4471; Watcher.WatcherType',
    since: [3, 9, 0],
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const [persistent, recursive] = [new EventRecorder(), new EventRecorder()];
      await zk.addWatch(context.rootPath, { watch: persistent.watch });
      await zk.addWatch(context.rootPath, { mode: 'persistentRecursive', watch: recursive.watch });
      await zk.removeWatches(context.rootPath, { type: 'persistent' });
      await expectError('once more', zk.removeWatches(context.rootPath, { type: 'persistent' }), 'NoWatcher');
      await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      expectEqual('the persistent one', persistent.takeText(context.rootPath), ['PersistentWatchRemoved ']);
      expectEqual('the recursive one', recursive.takeText(context.rootPath), ['NodeCreated /a']);
      await zk.removeWatches(context.rootPath, { type: 'persistentRecursive' });
      expectEqual('the recursive one, removed', recursive.takeText(context.rootPath), ['PersistentWatchRemoved ']);
    },
  },
  {
    name: 'watches-removal.check',
    title: 'checkWatches reports whether there is a watch, and removes none; an unknown type is rejected',
    behaviourIds: ['A24', 'A10'],
    docs: `${docs}; FinalRequestProcessor, OpCode.checkWatches`,
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const path = context.rootPath;
      const ask = async (opCode: number, type: number) =>
        (await cnxn.call(opCode, (writer) => operations.checkWatches.request.write(writer, { path, type })))?.err;
      expectEqual('checkWatches without a watch', await ask(OpCode.checkWatches, 3), -121);
      await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, { path, watch: true }));
      expectEqual(
        'checkWatches by data, by children, by any',
        [await ask(OpCode.checkWatches, 2), await ask(OpCode.checkWatches, 1), await ask(OpCode.checkWatches, 3)],
        [0, -121, 0],
      );
      expectEqual('an unknown type', await ask(OpCode.checkWatches, 9), -5);
      expectEqual('removeWatches, twice', [await ask(OpCode.removeWatches, 2), await ask(OpCode.removeWatches, 2)], [0, -121]);
      if (!context.isRelease(3, 9, 0)) return;
      expectEqual('checkWatches by persistent', await ask(OpCode.checkWatches, 4), -121);
    },
  },
];
