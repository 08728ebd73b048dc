/** Watches that fire once. */
import { digestId, op, openAcl, Perms } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, refused } from '../expect.ts';
import { identities, underWay } from '../ground.ts';
import { Heard } from '../heard.ts';

const docs = "Programmer's Guide, ZooKeeper Watches, Semantics of Watches";

export const watchOnceChecks: readonly RunnableCheck[] = [
  {
    name: 'watches-once.exists',
    title: 'a watch by exists fires on creation, change or deletion, whichever comes first',
    rows: ['A21', 'C3-11'],
    docs,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      const steps = [
        ['NodeCreated', () => other.create(path)],
        ['NodeDataChanged', () => other.setData(path, 'x')],
        ['NodeDeleted', () => other.delete(path)],
      ] as const;
      for (const [type, change] of steps) {
        await zk.exists(path, { watch: heard.watch });
        await change();
        await ground.caughtUp(zk);
        equal('the events', heard.takeText(ground.root), [`${type} /a`]);
      }
    },
  },
  {
    name: 'watches-once.data',
    title: 'a watch by getData fires on a change or on deletion, and not for a child',
    rows: ['A21', 'C3-11'],
    docs,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const { path } = await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      await zk.getData(path, { watch: heard.watch });
      await other.create(`${path}/b`);
      await other.delete(`${path}/b`);
      await other.setACL(path, openAcl);
      await ground.caughtUp(zk);
      equal('events of children and of the ACL', heard.takeText(ground.root), []);
      await other.setData(path, 'x');
      await ground.caughtUp(zk);
      equal('events of a change', heard.takeText(ground.root), ['NodeDataChanged /a']);
      await zk.getData(path, { watch: heard.watch });
      await other.delete(path);
      await ground.caughtUp(zk);
      equal('events of deletion', heard.takeText(ground.root), ['NodeDeleted /a']);
    },
  },
  {
    name: 'watches-once.children',
    title: 'a watch by getChildren fires when a child is created or deleted and on deletion, and on nothing else',
    rows: ['A21', 'C3-11'],
    docs,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const { path } = await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      await zk.getChildren(path, { watch: heard.watch });
      await other.setData(path, 'x');
      await ground.caughtUp(zk);
      equal('events of a change of data', heard.takeText(ground.root), []);
      await other.create(`${path}/b`);
      await ground.caughtUp(zk);
      equal('events of a created child', heard.takeText(ground.root), ['NodeChildrenChanged /a']);
      await zk.getChildren(path, { watch: heard.watch });
      await other.setData(`${path}/b`, 'x');
      await other.create(`${path}/b/c`);
      await other.delete(`${path}/b/c`);
      await ground.caughtUp(zk);
      equal("events of a child's changes", heard.takeText(ground.root), []);
      await other.delete(`${path}/b`);
      await ground.caughtUp(zk);
      equal('events of a deleted child', heard.takeText(ground.root), ['NodeChildrenChanged /a']);
      await zk.getChildren(path, { watch: heard.watch });
      await other.delete(path);
      await ground.caughtUp(zk);
      equal('events of deletion', heard.takeText(ground.root), ['NodeDeleted /a']);
    },
  },
  {
    name: 'watches-once.once',
    title: 'a watch fires once: later changes send no event until it is set again',
    rows: ['A21', 'C3-11'],
    docs: `${docs}: one-time trigger`,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const { path } = await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      await zk.getData(path, { watch: heard.watch });
      for (const data of ['1', '2', '3']) await other.setData(path, data);
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), ['NodeDataChanged /a']);
      // A client may drop an event without a watch of its own, so check the frames as well.
      const cnxn = await ground.openRawSession();
      await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, { path, watch: true }));
      for (const data of ['4', '5']) await zk.setData(path, data);
      await ground.until('an event on a connection with a watch', cnxn.untilEvents(1));
      await cnxn.ping();
      equal('the number of events for two changes', cnxn.events.length, 1);
    },
  },
  {
    name: 'watches-once.before-the-reply',
    title: 'a client receives the event of a change before it can read it: the event precedes the reply',
    rows: ['A21', 'A18'],
    docs: "Programmer's Guide, What ZooKeeper Guarantees about Watches",
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const { path } = await zk.create(`${ground.root}/a`, '0');
      const order: string[] = [];
      const watch = ({ type }: { readonly type: string }): void => void order.push(type);
      await zk.getData(path, { watch });
      await zk.setData(path, '1').then(() => order.push('reply'));
      equal('its own change', order.splice(0), ['NodeDataChanged', 'reply']);
      await zk.getData(path, { watch });
      const change = underWay([other.setData(path, '2')]);
      let version = 1;
      while (version === 1) {
        ({ version } = (await zk.getData(path)).stat);
        order.push(version === 1 ? 'old' : 'new');
      }
      await change;
      equal("another client's change", order.slice(-2), ['NodeDataChanged', 'new']);
    },
  },
  {
    name: 'watches-once.refused-read',
    title: 'a rejected read sets no watch, except by exists',
    rows: ['A21'],
    docs: `${docs}; ZooKeeper.getData`,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      await refused('getData', zk.getData(path, { watch: heard.watch }), 'NoNode');
      await refused('getChildren', zk.getChildren(path, { watch: heard.watch }), 'NoNode');
      // A client drops an event without a watch of its own, so check the frames as well.
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.getData, (writer) => operations.getData.request.write(writer, { path, watch: true }));
      equal('the error of getData', reply?.err, -101);
      await other.create(path);
      await other.create(`${path}/b`);
      await other.setData(path, 'x');
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), []);
      await cnxn.call(OpCode.sync, (writer) => operations.sync.request.write(writer, { path: '/' }));
      await cnxn.ping();
      equal('the events sent', cnxn.events, []);
    },
  },
  {
    name: 'watches-once.several',
    title:
      'a client that watches data and children of a znode receives one event for its deletion; the watch of its parent fires separately',
    rows: ['A21', 'A23'],
    docs: `${docs}; WatchManager.triggerWatch`,
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const { path } = await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      const heard = new Heard();
      await zk.getData(path, { watch: heard.watch });
      await zk.exists(path, { watch: heard.watch });
      await zk.getChildren(path, { watch: heard.watch });
      await zk.getChildren(ground.root, { watch: heard.watch });
      await other.delete(path);
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), ['NodeDeleted /a', 'NodeChildrenChanged ']);
    },
  },
  {
    name: 'watches-once.multi',
    title: 'the parts of a multi fire their watches one by one, in their order',
    rows: ['A21', 'A12'],
    docs: 'DataTree.processTxn',
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const { root } = ground;
      await other.create(`${root}/b`);
      await ground.caughtUp(zk);
      await zk.exists(`${root}/a`, { watch: heard.watch });
      await zk.exists(`${root}/b`, { watch: heard.watch });
      await zk.getChildren(root, { watch: heard.watch });
      await other.multi([op.setData(`${root}/b`, 'x'), op.create(`${root}/a`), op.delete(`${root}/b`)]);
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(root), ['NodeDataChanged /b', 'NodeCreated /a', 'NodeChildrenChanged ']);
    },
  },
  {
    name: 'watches-once.zxid',
    title: 'an event has the zxid of its change',
    rows: ['A26', 'B45'],
    docs: 'ZOOKEEPER-4655; WatchedEvent.getZxid',
    since: [3, 9, 0],
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const path = `${ground.root}/a`;
      await zk.exists(path, { watch: heard.watch });
      await zk.getChildren(ground.root, { watch: heard.watch });
      const { stat } = await other.create(path);
      await ground.caughtUp(zk);
      equal(
        'the zxids',
        heard.take().map(({ zxid }) => zxid),
        [stat.czxid, stat.czxid],
      );
    },
  },
  {
    name: 'watches-once.not-readable',
    title: 'a client receives no event for a znode that it may not read',
    rows: ['A27'],
    docs: 'CVE-2024-23944, ZOOKEEPER-4799',
    since: [3, 9, 2],
    async run(ground) {
      const auth = [{ scheme: 'digest', auth: identities.keeper }];
      const [zk, owner, heard] = [await ground.open(), await ground.open({ auth }), new Heard()];
      const keeper = { perms: Perms.all, id: { scheme: 'digest', id: digestId(identities.keeper) } };
      await zk.exists(`${ground.root}/hidden`, { watch: heard.watch });
      await zk.exists(`${ground.root}/open`, { watch: heard.watch });
      await owner.create(`${ground.root}/hidden`, null, { acl: [keeper] });
      await owner.create(`${ground.root}/open`);
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), ['NodeCreated /open']);
    },
  },
];
