/** checkWatches and removeWatches. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, refused } from '../expect.ts';
import type { Ground } from '../ground.ts';
import { Heard } from '../heard.ts';
import type { RawCnxn } from '../raw-cnxn.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Remove Watches";

/**
 * A connection with a data watch and a child watch on a znode. A client drops events without a
 * watch of its own, whatever the server believes, so only the frames show whether the server has
 * removed a watch.
 */
async function watching(ground: Ground, path: string): Promise<RawCnxn> {
  const cnxn = await ground.openRawSession();
  const request = { path, watch: true };
  await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, request));
  await cnxn.call(OpCode.getChildren, (writer) => operations.getChildren.request.write(writer, request));
  return cnxn;
}

async function removed(cnxn: RawCnxn, path: string, type: number): Promise<number | undefined> {
  return (await cnxn.call(OpCode.removeWatches, (writer) => operations.removeWatches.request.write(writer, { path, type })))?.err;
}

/** Types and paths of the events sent so far. */
async function sent(cnxn: RawCnxn): Promise<readonly (readonly [number, string | null])[]> {
  await cnxn.ping();
  return cnxn.events.map(({ type, path }) => [type, path]);
}

export const watchRemovalChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-removal.by-type',
    title: 'removeWatches removes the data watch or the child watch, and keeps the other',
    rows: ['A24', 'B44'],
    docs,
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const { path } = await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      const [data, children] = [new Heard(), new Heard()];
      await zk.getData(path, { watch: data.watch });
      await zk.getChildren(path, { watch: children.watch });
      await zk.removeWatches(path, { type: 'data' });
      equal('the data watch', data.takeText(ground.root), ['DataWatchRemoved /a']);
      await other.setData(path, 'x');
      await other.create(`${path}/b`);
      await ground.caughtUp(zk);
      equal('the data watch, after a change', data.takeText(ground.root), []);
      equal('the child watch', children.takeText(ground.root), ['NodeChildrenChanged /a']);
      await zk.getChildren(path, { watch: children.watch });
      await zk.removeWatches(path, { type: 'children' });
      await other.delete(`${path}/b`);
      await ground.caughtUp(zk);
      equal('the child watch, removed', children.takeText(ground.root), ['ChildWatchRemoved /a']);
      for (const [type, left] of [
        [2, [4, path]],
        [1, [3, path]],
      ] as const) {
        const cnxn = await watching(ground, path);
        equal(`the error of removeWatches of type ${type}`, await removed(cnxn, path, type), 0);
        await zk.setData(path, 'y');
        await zk.create(`${path}/c`);
        await zk.delete(`${path}/c`);
        equal(`the events sent after removeWatches of type ${type}`, await sent(cnxn), [left]);
      }
    },
  },
  {
    name: 'watches-removal.any',
    title: 'the type any removes every watch of the path',
    rows: ['A24', 'B44'],
    docs,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      await zk.create(path);
      await zk.exists(path, { watch: heard.watch });
      await zk.getChildren(path, { watch: heard.watch });
      await zk.removeWatches(path);
      equal('the events', heard.takeText(ground.root).toSorted(), ['ChildWatchRemoved /a', 'DataWatchRemoved /a']);
      await other.setData(path, 'x');
      await other.create(`${path}/b`);
      await ground.caughtUp(zk);
      equal('events', heard.takeText(ground.root), []);
      const cnxn = await watching(ground, path);
      equal('the error of removeWatches', await removed(cnxn, path, 3), 0);
      await zk.setData(path, 'y');
      await zk.create(`${path}/c`);
      equal('the events sent', await sent(cnxn), []);
    },
  },
  {
    name: 'watches-removal.no-watcher',
    title: 'removeWatches fails with NoWatcher without a watch of that type, or after the watch has fired',
    rows: ['A24', 'B44'],
    docs: `${docs}; KeeperException.NoWatcherException`,
    async run(ground) {
      const [zk, heard] = [await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      await zk.create(path);
      for (const type of ['any', 'data', 'children'] as const) {
        const error = await refused(`none at all, type ${type}`, zk.removeWatches(path, { type }), 'NoWatcher');
        equal('errno', error.errno, -121);
      }
      await zk.getData(path, { watch: heard.watch });
      await refused('one of another type', zk.removeWatches(path, { type: 'children' }), 'NoWatcher');
      await zk.setData(path, 'x');
      await refused('one that has fired', zk.removeWatches(path, { type: 'data' }), 'NoWatcher');
    },
  },
  {
    name: 'watches-removal.by-listener',
    title: 'of two listeners on one path the removed one receives no more events, and the other still does',
    rows: ['B44'],
    docs: `${docs}; ZooKeeper.removeWatches`,
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const [one, two] = [new Heard(), new Heard()];
      const { path } = await zk.create(`${ground.root}/a`);
      for (const { watch } of [one, two]) await zk.getData(path, { watch });
      await zk.removeWatches(path, { type: 'data', watch: one.watch });
      equal('the events of the removed one', one.takeText(ground.root), ['DataWatchRemoved /a']);
      await refused('once more', zk.removeWatches(path, { type: 'data', watch: one.watch }), 'NoWatcher');
      await other.setData(path, 'x');
      await ground.caughtUp(zk);
      equal('the events of both', [one.takeText(ground.root), two.takeText(ground.root)], [[], ['NodeDataChanged /a']]);
    },
  },
  {
    name: 'watches-removal.of-others',
    title: "a client removes its own watches, and other clients' watches stay",
    rows: ['A24'],
    docs,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const { path } = await zk.create(`${ground.root}/a`);
      await ground.caughtUp(other);
      await other.getData(path, { watch: heard.watch });
      await zk.getData(path, { watch: true });
      await zk.removeWatches(path);
      await refused('once more', zk.removeWatches(path), 'NoWatcher');
      await zk.setData(path, 'x');
      await ground.caughtUp(other);
      equal('events of the other', heard.takeText(ground.root), ['NodeDataChanged /a']);
    },
  },
  {
    name: 'watches-removal.persistent',
    title: 'a persistent watch is removed by the type any, and receives an event about its removal',
    rows: ['A24', 'B44'],
    docs,
    since: [3, 6, 0],
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      for (const mode of ['persistent', 'persistentRecursive'] as const) {
        await zk.addWatch(ground.root, { mode, watch: heard.watch });
        await zk.removeWatches(ground.root);
        equal(`the event of the ${mode} one`, heard.takeText(ground.root), ['PersistentWatchRemoved ']);
        await other.setData(ground.root, mode);
        await ground.caughtUp(zk);
        equal(`events of the ${mode} one`, heard.takeText(ground.root), []);
        await refused('once more', zk.removeWatches(ground.root), 'NoWatcher');
      }
    },
  },
  {
    name: 'watches-removal.persistent-by-type',
    title: 'persistent and recursive watches are removed by their own types, each without the other',
    rows: ['A24', 'A23', 'B44', 'E20'],
    docs: 'ZOOKEEPER-4471; Watcher.WatcherType',
    since: [3, 9, 0],
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const [persistent, recursive] = [new Heard(), new Heard()];
      await zk.addWatch(ground.root, { watch: persistent.watch });
      await zk.addWatch(ground.root, { mode: 'persistentRecursive', watch: recursive.watch });
      await zk.removeWatches(ground.root, { type: 'persistent' });
      await refused('once more', zk.removeWatches(ground.root, { type: 'persistent' }), 'NoWatcher');
      await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      equal('the persistent one', persistent.takeText(ground.root), ['PersistentWatchRemoved ']);
      equal('the recursive one', recursive.takeText(ground.root), ['NodeCreated /a']);
      await zk.removeWatches(ground.root, { type: 'persistentRecursive' });
      equal('the recursive one, removed', recursive.takeText(ground.root), ['PersistentWatchRemoved ']);
    },
  },
  {
    name: 'watches-removal.check',
    title: 'checkWatches reports whether there is a watch, and removes none; an unknown type is rejected',
    rows: ['A24', 'A10'],
    docs: `${docs}; FinalRequestProcessor, OpCode.checkWatches`,
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const path = ground.root;
      const ask = async (opCode: number, type: number) =>
        (await cnxn.call(opCode, (writer) => operations.checkWatches.request.write(writer, { path, type })))?.err;
      equal('checkWatches without a watch', await ask(OpCode.checkWatches, 3), -121);
      await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, { path, watch: true }));
      equal(
        'checkWatches by data, by children, by any',
        [await ask(OpCode.checkWatches, 2), await ask(OpCode.checkWatches, 1), await ask(OpCode.checkWatches, 3)],
        [0, -121, 0],
      );
      equal('an unknown type', await ask(OpCode.checkWatches, 9), -5);
      equal('removeWatches, twice', [await ask(OpCode.removeWatches, 2), await ask(OpCode.removeWatches, 2)], [0, -121]);
      if (!ground.isRelease(3, 9, 0)) return;
      equal('checkWatches by persistent', await ask(OpCode.checkWatches, 4), -121);
    },
  },
];
