/** Watches that fire once. */
import { digestId, op, openAcl, Perms } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError } from '../expect.ts';
import { identities, inFlight } from '../check-context.ts';
import { EventRecorder } from '../event-recorder.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Semantics of Watches";

export const oneShotWatchChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-once.exists',
    title: 'a watch by exists fires on creation, change or deletion, whichever comes first',
    behaviourIds: ['A21', 'C3-11'],
    docs,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      const steps = [
        ['NodeCreated', () => other.create(path)],
        ['NodeDataChanged', () => other.setData(path, 'x')],
        ['NodeDeleted', () => other.delete(path)],
      ] as const;
      for (const [type, change] of steps) {
        await zk.exists(path, { watch: recorder.watch });
        await change();
        await context.catchUp(zk);
        expectEqual('the events', recorder.takeText(context.rootPath), [`${type} /a`]);
      }
    },
  },
  {
    name: 'watches-once.data',
    title: 'a watch by getData fires on a change or on deletion, and not for a child',
    behaviourIds: ['A21', 'C3-11'],
    docs,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const { path } = await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      await zk.getData(path, { watch: recorder.watch });
      await other.create(`${path}/b`);
      await other.delete(`${path}/b`);
      await other.setACL(path, openAcl);
      await context.catchUp(zk);
      expectEqual('events of children and of the ACL', recorder.takeText(context.rootPath), []);
      await other.setData(path, 'x');
      await context.catchUp(zk);
      expectEqual('events of a change', recorder.takeText(context.rootPath), ['NodeDataChanged /a']);
      await zk.getData(path, { watch: recorder.watch });
      await other.delete(path);
      await context.catchUp(zk);
      expectEqual('events of deletion', recorder.takeText(context.rootPath), ['NodeDeleted /a']);
    },
  },
  {
    name: 'watches-once.children',
    title: 'a watch by getChildren fires when a child is created or deleted and on deletion, and on nothing else',
    behaviourIds: ['A21', 'C3-11'],
    docs,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const { path } = await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      await zk.getChildren(path, { watch: recorder.watch });
      await other.setData(path, 'x');
      await context.catchUp(zk);
      expectEqual('events of a change of data', recorder.takeText(context.rootPath), []);
      await other.create(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('events of a created child', recorder.takeText(context.rootPath), ['NodeChildrenChanged /a']);
      await zk.getChildren(path, { watch: recorder.watch });
      await other.setData(`${path}/b`, 'x');
      await other.create(`${path}/b/c`);
      await other.delete(`${path}/b/c`);
      await context.catchUp(zk);
      expectEqual("events of a child's changes", recorder.takeText(context.rootPath), []);
      await other.delete(`${path}/b`);
      await context.catchUp(zk);
      expectEqual('events of a deleted child', recorder.takeText(context.rootPath), ['NodeChildrenChanged /a']);
      await zk.getChildren(path, { watch: recorder.watch });
      await other.delete(path);
      await context.catchUp(zk);
      expectEqual('events of deletion', recorder.takeText(context.rootPath), ['NodeDeleted /a']);
    },
  },
  {
    name: 'watches-once.once',
    title: 'a watch fires once: later changes send no event until it is set again',
    behaviourIds: ['A21', 'C3-11'],
    docs: `${docs}: one-time trigger`,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const { path } = await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      await zk.getData(path, { watch: recorder.watch });
      for (const data of ['1', '2', '3']) await other.setData(path, data);
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), ['NodeDataChanged /a']);
      // A client may drop an event without a watch of its own, so check the frames as well.
      const cnxn = await context.openRawCnxnWithSession();
      await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, { path, watch: true }));
      for (const data of ['4', '5']) await zk.setData(path, data);
      await context.waitFor('an event on a connection with a watch', cnxn.waitForEvents(1));
      await cnxn.ping();
      expectEqual('the number of events for two changes', cnxn.events.length, 1);
    },
  },
  {
    name: 'watches-once.before-the-reply',
    title: 'a client receives the event of a change before it can read it: the event precedes the reply',
    behaviourIds: ['A21', 'A18'],
    docs: "Programmer's Guide, What ZooKeeper Guarantees about Watches",
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const { path } = await zk.create(`${context.rootPath}/a`, '0');
      const order: string[] = [];
      const watch = ({ type }: { readonly type: string }): void => void order.push(type);
      await zk.getData(path, { watch });
      await zk.setData(path, '1').then(() => order.push('reply'));
      expectEqual('its own change', order.splice(0), ['NodeDataChanged', 'reply']);
      await zk.getData(path, { watch });
      const change = inFlight([other.setData(path, '2')]);
      let version = 1;
      while (version === 1) {
        ({ version } = (await zk.getData(path)).stat);
        order.push(version === 1 ? 'old' : 'new');
      }
      await change;
      expectEqual("another client's change", order.slice(-2), ['NodeDataChanged', 'new']);
    },
  },
  {
    name: 'watches-once.refused-read',
    title: 'a rejected read sets no watch, except by exists',
    behaviourIds: ['A21'],
    docs: `${docs}; ZooKeeper.getData`,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      await expectError('getData', zk.getData(path, { watch: recorder.watch }), 'NoNode');
      await expectError('getChildren', zk.getChildren(path, { watch: recorder.watch }), 'NoNode');
      // A client drops an event without a watch of its own, so check the frames as well.
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, { path, watch: true }));
      expectEqual('the error of getData', reply?.err, -101);
      await other.create(path);
      await other.create(`${path}/b`);
      await other.setData(path, 'x');
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), []);
      await cnxn.call(OpCode.sync, (writer) => operations.sync.request.write(writer, { path: '/' }));
      await cnxn.ping();
      expectEqual('the events sent', cnxn.events, []);
    },
  },
  {
    name: 'watches-once.several',
    title:
      'a client that watches data and children of a znode receives one event for its deletion; the watch of its parent fires separately',
    behaviourIds: ['A21', 'A23'],
    docs: `${docs}; WatchManager.triggerWatch`,
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const { path } = await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      const recorder = new EventRecorder();
      await zk.getData(path, { watch: recorder.watch });
      await zk.exists(path, { watch: recorder.watch });
      await zk.getChildren(path, { watch: recorder.watch });
      await zk.getChildren(context.rootPath, { watch: recorder.watch });
      await other.delete(path);
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), ['NodeDeleted /a', 'NodeChildrenChanged ']);
    },
  },
  {
    name: 'watches-once.multi',
    title: 'the parts of a multi fire their watches one by one, in their order',
    behaviourIds: ['A21', 'A12'],
    docs: 'DataTree.processTxn',
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const { rootPath } = context;
      await other.create(`${rootPath}/b`);
      await context.catchUp(zk);
      await zk.exists(`${rootPath}/a`, { watch: recorder.watch });
      await zk.exists(`${rootPath}/b`, { watch: recorder.watch });
      await zk.getChildren(rootPath, { watch: recorder.watch });
      await other.multi([op.setData(`${rootPath}/b`, 'x'), op.create(`${rootPath}/a`), op.delete(`${rootPath}/b`)]);
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(rootPath), ['NodeDataChanged /b', 'NodeCreated /a', 'NodeChildrenChanged ']);
    },
  },
  {
    name: 'watches-once.zxid',
    title: 'an event has the zxid of its change',
    behaviourIds: ['A26', 'B45'],
    docs: 'ZOOKEEPER-4655; WatchedEvent.getZxid',
    since: [3, 9, 0],
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const path = `${context.rootPath}/a`;
      await zk.exists(path, { watch: recorder.watch });
      await zk.getChildren(context.rootPath, { watch: recorder.watch });
      const { stat } = await other.create(path);
      await context.catchUp(zk);
      expectEqual(
        'the zxids',
        recorder.take().map(({ zxid }) => zxid),
        [stat.czxid, stat.czxid],
      );
    },
  },
  {
    name: 'watches-once.not-readable',
    title: 'a client receives no event for a znode that it may not read',
    behaviourIds: ['A27'],
    docs: 'CVE-2024-23944, ZOOKEEPER-4799',
    since: [3, 9, 2],
    async run(context) {
      const auth = [{ scheme: 'digest', auth: identities.keeper }];
      const [zk, owner, recorder] = [await context.openClient(), await context.openClient({ auth }), new EventRecorder()];
      const keeper = { perms: Perms.all, id: { scheme: 'digest', id: digestId(identities.keeper) } };
      await zk.exists(`${context.rootPath}/hidden`, { watch: recorder.watch });
      await zk.exists(`${context.rootPath}/open`, { watch: recorder.watch });
      await owner.create(`${context.rootPath}/hidden`, null, { acl: [keeper] });
      await owner.create(`${context.rootPath}/open`);
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), ['NodeCreated /open']);
    },
  },
];
