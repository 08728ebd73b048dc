/** Watches after a lost connection. */
import { type Client, op } from '@tskeeper/client';
import { OpCode, operations, Xid } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual } from '../expect.ts';
import { nextState } from '../check-context.ts';
import { EventRecorder } from '../event-recorder.ts';
import { FaultyTransport } from '../faulty-transport.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Things to Remember about Watches";

/**
 * Calls made before the reconnect could fail with a connection attempt that is still in progress.
 */
function restoreConnection(zk: Client, faultyTransport: FaultyTransport): Promise<string> {
  const back = nextState(zk, 'SyncConnected');
  faultyTransport.heal();
  return back;
}

export const watchRestoredChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-restored.missed',
    title: 'after a reconnect a watch fires once for a change that it missed',
    behaviourIds: ['A25', 'B43', 'C2-11'],
    docs: `${docs}; DataTree.setWatches`,
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const [zk, other, recorder] = [
        await context.openClient({ transport: faultyTransport }),
        await context.openClient(),
        new EventRecorder(),
      ];
      const { rootPath } = context;
      for (const name of ['data', 'gone', 'same', 'children']) await zk.create(`${rootPath}/${name}`);
      for (const name of ['data', 'same']) await zk.getData(`${rootPath}/${name}`, { watch: recorder.watch });
      await zk.exists(`${rootPath}/gone`, { watch: recorder.watch });
      await zk.exists(`${rootPath}/born`, { watch: recorder.watch });
      await zk.getChildren(`${rootPath}/children`, { watch: recorder.watch });
      const lost = nextState(zk, 'Disconnected');
      faultyTransport.partition();
      faultyTransport.cutConnections();
      await context.waitFor('the loss of the connection', lost);
      await other.setData(`${rootPath}/data`, 'x');
      await other.delete(`${rootPath}/gone`);
      await other.create(`${rootPath}/born`);
      await other.create(`${rootPath}/children/x`);
      await context.waitFor('a new connection', restoreConnection(zk, faultyTransport));
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(rootPath).toSorted(), [
        'NodeChildrenChanged /children',
        'NodeCreated /born',
        'NodeDataChanged /data',
        'NodeDeleted /gone',
      ]);
      await other.setData(`${rootPath}/data`, 'y');
      await other.setData(`${rootPath}/same`, 'y');
      await context.catchUp(zk);
      expectEqual('the events of later changes', recorder.takeText(rootPath), ['NodeDataChanged /same']);
    },
  },
  {
    name: 'watches-restored.staying',
    title: 'persistent watches are set again, and receive later events',
    behaviourIds: ['A25', 'B43', 'B44', 'E20'],
    docs: 'ZOOKEEPER-1416; DataTree.setWatches',
    since: [3, 6, 0],
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const [zk, other] = [await context.openClient({ transport: faultyTransport }), await context.openClient()];
      const [persistent, recursive] = [new EventRecorder(), new EventRecorder()];
      const { path } = await zk.create(`${context.rootPath}/a`);
      await zk.addWatch(path, { watch: persistent.watch });
      await zk.addWatch(context.rootPath, { mode: 'persistentRecursive', watch: recursive.watch });
      const lost = nextState(zk, 'Disconnected');
      faultyTransport.partition();
      faultyTransport.cutConnections();
      await context.waitFor('the loss of the connection', lost);
      await other.setData(path, '1');
      await context.waitFor('a new connection', restoreConnection(zk, faultyTransport));
      await context.catchUp(zk);
      // ZooKeeper does not specify what they receive of the missed changes, so either is correct.
      persistent.take();
      recursive.take();
      await other.setData(path, '2');
      await other.create(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('the persistent one', persistent.takeText(context.rootPath), ['NodeDataChanged /a', 'NodeChildrenChanged /a']);
      expectEqual('the recursive one', recursive.takeText(context.rootPath), ['NodeDataChanged /a', 'NodeCreated /a/b']);
    },
  },
  {
    name: 'watches-restored.many',
    title: 'more watches than one request can hold are all restored',
    behaviourIds: ['A25', 'B43'],
    docs: 'ZOOKEEPER-706',
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const [zk, other, recorder] = [
        await context.openClient({ transport: faultyTransport }),
        await context.openClient(),
        new EventRecorder(),
      ];
      const paths = Array.from({ length: 3000 }, (_, at) => `${context.rootPath}/${'x'.repeat(400)}${at}`);
      await Promise.all(paths.map((path) => zk.exists(path, { watch: recorder.watch })));
      const back = nextState(zk, 'SyncConnected');
      faultyTransport.cutConnections();
      await context.waitFor('a new connection', back);
      await zk.sync();
      const born = [paths[0]!, paths[1500]!, paths[2999]!];
      await other.multi(born.map((path) => op.create(path)));
      await context.catchUp(zk);
      expectEqual(
        'the events',
        recorder.take().map(({ type, path }) => `${type} ${path.slice(-4)}`),
        born.map((path) => `NodeCreated ${path.slice(-4)}`),
      );
    },
  },
  {
    name: 'watches-restored.frames',
    title: 'setWatches is answered with its xid -8, and its events precede that reply with state SyncConnected',
    behaviourIds: ['A25'],
    docs: 'zookeeper.jute, SetWatches; ClientCnxn.SETWATCHES_XID',
    async run(context) {
      const zk = await context.openClient();
      const { stat } = await zk.create(`${context.rootPath}/a`);
      await zk.setData(`${context.rootPath}/a`, 'x');
      const cnxn = await context.openRawCnxnWithSession();
      const request = {
        relativeZxid: Number(stat.czxid),
        dataWatches: [`${context.rootPath}/a`, `${context.rootPath}/missing`],
        existWatches: [`${context.rootPath}/born`],
        childWatches: [`${context.rootPath}/a`],
      };
      const reply = await cnxn.call(OpCode.setWatches, (writer) => operations.setWatches.request.write(writer, request), Xid.setWatches);
      expectEqual('xid and error', [reply?.xid, reply?.err], [Xid.setWatches, 0]);
      expectEqual('events', cnxn.events, [
        { type: 3, state: 3, path: `${context.rootPath}/a` },
        { type: 2, state: 3, path: `${context.rootPath}/missing` },
      ]);
      await zk.create(`${context.rootPath}/born`);
      await zk.create(`${context.rootPath}/a/b`);
      await context.waitFor('two more events', cnxn.waitForEvents(4));
      expectEqual('events of the restored watches', cnxn.events.slice(2), [
        { type: 1, state: 3, path: `${context.rootPath}/born` },
        { type: 4, state: 3, path: `${context.rootPath}/a` },
      ]);
    },
  },
];
