/** Watches after a lost connection. */
import { type Client, op } from '@tskeeper/client';
import { OpCode, operations, Xid } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal } from '../expect.ts';
import { nextState } from '../ground.ts';
import { Heard } from '../heard.ts';
import { Wire } from '../wire.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Things to Remember about Watches";

/**
 * Calls made before the reconnect could fail with a connection attempt that is still in progress.
 */
function restored(zk: Client, wire: Wire): Promise<string> {
  const back = nextState(zk, 'SyncConnected');
  wire.restore();
  return back;
}

export const watchRestoredChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-restored.missed',
    title: 'after a reconnect a watch fires once for a change that it missed',
    rows: ['A25', 'B43', 'C2-11'],
    docs: `${docs}; DataTree.setWatches`,
    async run(ground) {
      const wire = new Wire();
      const [zk, other, heard] = [await ground.open({ transport: wire }), await ground.open(), new Heard()];
      const { root } = ground;
      for (const name of ['data', 'gone', 'same', 'children']) await zk.create(`${root}/${name}`);
      for (const name of ['data', 'same']) await zk.getData(`${root}/${name}`, { watch: heard.watch });
      await zk.exists(`${root}/gone`, { watch: heard.watch });
      await zk.exists(`${root}/born`, { watch: heard.watch });
      await zk.getChildren(`${root}/children`, { watch: heard.watch });
      const lost = nextState(zk, 'Disconnected');
      wire.silence();
      wire.cut();
      await ground.until('the loss of the connection', lost);
      await other.setData(`${root}/data`, 'x');
      await other.delete(`${root}/gone`);
      await other.create(`${root}/born`);
      await other.create(`${root}/children/x`);
      await ground.until('a new connection', restored(zk, wire));
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(root).toSorted(), [
        'NodeChildrenChanged /children',
        'NodeCreated /born',
        'NodeDataChanged /data',
        'NodeDeleted /gone',
      ]);
      await other.setData(`${root}/data`, 'y');
      await other.setData(`${root}/same`, 'y');
      await ground.caughtUp(zk);
      equal('the events of later changes', heard.takeText(root), ['NodeDataChanged /same']);
    },
  },
  {
    name: 'watches-restored.staying',
    title: 'persistent watches are set again, and receive later events',
    rows: ['A25', 'B43', 'B44', 'E20'],
    docs: 'ZOOKEEPER-1416; DataTree.setWatches',
    since: [3, 6, 0],
    async run(ground) {
      const wire = new Wire();
      const [zk, other] = [await ground.open({ transport: wire }), await ground.open()];
      const [persistent, recursive] = [new Heard(), new Heard()];
      const { path } = await zk.create(`${ground.root}/a`);
      await zk.addWatch(path, { watch: persistent.watch });
      await zk.addWatch(ground.root, { mode: 'persistentRecursive', watch: recursive.watch });
      const lost = nextState(zk, 'Disconnected');
      wire.silence();
      wire.cut();
      await ground.until('the loss of the connection', lost);
      await other.setData(path, '1');
      await ground.until('a new connection', restored(zk, wire));
      await ground.caughtUp(zk);
      // ZooKeeper does not specify what they receive of the missed changes, so either is correct.
      persistent.take();
      recursive.take();
      await other.setData(path, '2');
      await other.create(`${path}/b`);
      await ground.caughtUp(zk);
      equal('the persistent one', persistent.takeText(ground.root), ['NodeDataChanged /a', 'NodeChildrenChanged /a']);
      equal('the recursive one', recursive.takeText(ground.root), ['NodeDataChanged /a', 'NodeCreated /a/b']);
    },
  },
  {
    name: 'watches-restored.many',
    title: 'more watches than one request can hold are all restored',
    rows: ['A25', 'B43'],
    docs: 'ZOOKEEPER-706',
    async run(ground) {
      const wire = new Wire();
      const [zk, other, heard] = [await ground.open({ transport: wire }), await ground.open(), new Heard()];
      const paths = Array.from({ length: 3000 }, (_, at) => `${ground.root}/${'x'.repeat(400)}${at}`);
      await Promise.all(paths.map((path) => zk.exists(path, { watch: heard.watch })));
      const back = nextState(zk, 'SyncConnected');
      wire.cut();
      await ground.until('a new connection', back);
      await zk.sync();
      const born = [paths[0]!, paths[1500]!, paths[2999]!];
      await other.multi(born.map((path) => op.create(path)));
      await ground.caughtUp(zk);
      equal(
        'the events',
        heard.take().map(({ type, path }) => `${type} ${path.slice(-4)}`),
        born.map((path) => `NodeCreated ${path.slice(-4)}`),
      );
    },
  },
  {
    name: 'watches-restored.frames',
    title: 'setWatches is answered with its xid -8, and its events precede that reply with state SyncConnected',
    rows: ['A25'],
    docs: 'zookeeper.jute, SetWatches; ClientCnxn.SETWATCHES_XID',
    async run(ground) {
      const zk = await ground.open();
      const { stat } = await zk.create(`${ground.root}/a`);
      await zk.setData(`${ground.root}/a`, 'x');
      const cnxn = await ground.openRawSession();
      const request = {
        relativeZxid: Number(stat.czxid),
        dataWatches: [`${ground.root}/a`, `${ground.root}/missing`],
        existWatches: [`${ground.root}/born`],
        childWatches: [`${ground.root}/a`],
      };
      const reply = await cnxn.call(OpCode.setWatches, (writer) => operations.setWatches.request.write(writer, request), Xid.setWatches);
      equal('xid and error', [reply?.xid, reply?.err], [Xid.setWatches, 0]);
      equal('events', cnxn.events, [
        { type: 3, state: 3, path: `${ground.root}/a` },
        { type: 2, state: 3, path: `${ground.root}/missing` },
      ]);
      await zk.create(`${ground.root}/born`);
      await zk.create(`${ground.root}/a/b`);
      await ground.until('two more events', cnxn.untilEvents(4));
      equal('events of the restored watches', cnxn.events.slice(2), [
        { type: 1, state: 3, path: `${ground.root}/born` },
        { type: 4, state: 3, path: `${ground.root}/a` },
      ]);
    },
  },
];
