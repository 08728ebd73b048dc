/** exists, getData, getChildren and the other reads. */
import { OpCode, operations, readGetChildrenReply } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, textOf } from '../expect.ts';
import { inFlight } from '../check-context.ts';

export const readChecks: readonly RunnableCheck[] = [
  {
    name: 'reads.exists',
    title: 'exists returns the Stat of a znode, or reports that the znode is missing',
    behaviourIds: ['A10'],
    docs: 'ZooKeeper.exists',
    async run(context) {
      const zk = await context.openClient();
      const { path, stat } = await zk.create(`${context.rootPath}/a`, 'x');
      expectEqual('a znode', await zk.exists(path), stat);
      expectEqual('none', await zk.exists(`${context.rootPath}/b`), null);
      expectEqual('a missing child of a missing znode', await zk.exists(`${context.rootPath}/b/c`), null);
    },
  },
  {
    name: 'reads.data-with-version',
    title: 'getData returns data and Stat of one moment',
    behaviourIds: ['C3-9', 'C3-12'],
    docs: "Programmer's Guide, ZooKeeper Data Model, Znodes",
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const path = `${context.rootPath}/a`;
      await zk.create(path, '0');
      const writing = inFlight(Array.from({ length: 200 }, (_, at) => other.setData(path, String(at + 1))));
      for (let at = 0; at < 50; at++) {
        const { data, stat } = await zk.getData(path);
        expectEqual('the data of that version', textOf(data), String(stat.version));
      }
      await writing;
    },
  },
  {
    name: 'reads.children',
    title: 'getChildren lists the names of the direct children only',
    behaviourIds: ['A10'],
    docs: 'ZooKeeper.getChildren',
    async run(context) {
      const zk = await context.openClient();
      for (const name of ['a', 'b', 'b/c', 'a b', 'ä']) await zk.create(`${context.rootPath}/${name}`);
      const { children, stat } = await zk.getChildren(context.rootPath);
      expectEqual('the names', children.toSorted(), ['a', 'a b', 'b', 'ä']);
      expectEqual('the Stat', await zk.exists(context.rootPath), stat);
      expectEqual('of one without children', (await zk.getChildren(`${context.rootPath}/a`)).children, []);
    },
  },
  {
    name: 'reads.children-without-stat',
    title: 'the first version of getChildren returns the names alone',
    behaviourIds: ['A10'],
    docs: 'zookeeper.jute, GetChildrenResponse',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`);
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.getChildren, (writer) =>
        operations.getChildren.request.write(writer, { path: context.rootPath, watch: false }),
      );
      expectEqual('the error', reply?.err, 0);
      expectEqual('the names', readGetChildrenReply(reply!.body).children, ['a']);
      expectEqual('bytes after them', reply!.body.remaining, 0);
    },
  },
  {
    name: 'reads.number-of-descendants',
    title: 'getAllChildrenNumber counts all descendants',
    behaviourIds: ['A16', 'B48'],
    docs: 'ZooKeeper.getAllChildrenNumber',
    since: [3, 6, 0],
    async run(context) {
      const zk = await context.openClient();
      for (const path of ['a', 'a/b', 'a/b/c', 'ab', 'd']) await zk.create(`${context.rootPath}/${path}`);
      expectEqual('below all', await zk.getAllChildrenNumber(context.rootPath), 5);
      // Not the znodes whose name only starts with the same characters.
      expectEqual('below a', await zk.getAllChildrenNumber(`${context.rootPath}/a`), 2);
      expectEqual('below a leaf', await zk.getAllChildrenNumber(`${context.rootPath}/d`), 0);
    },
  },
  {
    name: 'reads.ephemerals',
    title: 'getEphemerals lists the ephemeral znodes of the calling session whose paths start with a text',
    behaviourIds: ['A16', 'B48', 'C3-16'],
    docs: "Programmer's Guide, Ephemeral Nodes; ZooKeeper.getEphemerals",
    since: [3, 6, 0],
    async run(context) {
      const [zk, other] = [await context.openClient(), await context.openClient()];
      const { rootPath } = context;
      for (const name of ['a', 'ab', 'b']) await zk.create(`${rootPath}/${name}`, null, { mode: 'ephemeral' });
      await zk.create(`${rootPath}/persistent`);
      await other.create(`${rootPath}/other`, null, { mode: 'ephemeral' });
      const all = ['a', 'ab', 'b'].map((name) => `${rootPath}/${name}`);
      expectEqual('all', (await zk.getEphemerals()).toSorted(), all);
      expectEqual('those that start with a text', (await zk.getEphemerals(`${rootPath}/a`)).toSorted(), all.slice(0, 2));
      expectEqual('those that start with another', await zk.getEphemerals(`${rootPath}/x`), []);
      expectEqual('those of another session', await other.getEphemerals(), [`${rootPath}/other`]);
    },
  },
  {
    name: 'reads.own-writes',
    title: 'a session reads its own writes',
    behaviourIds: ['A18'],
    docs: "Programmer's Guide, Consistency Guarantees",
    async run(context) {
      const zk = await context.openClient();
      const path = `${context.rootPath}/a`;
      await zk.create(path, '0');
      for (let at = 1; at <= 20; at++) {
        const [, read] = await Promise.all([zk.setData(path, String(at)), zk.getData(path)]);
        expectEqual('a read sent after the write', textOf(read.data), String(at));
      }
    },
  },
  {
    name: 'reads.linearizable',
    title: 'a read after a sync sees every write that was acknowledged to any client before',
    behaviourIds: ['A15', 'B48'],
    docs: "Programmer's Guide, Consistency Guarantees: sync; ZooKeeper.sync",
    async run(context) {
      // At another server than the first, if there is one, and not at the leader: Apache's leader
      // answers a sync before it has applied everything.
      const server = context.facts.servers.findLastIndex((_, at) => at !== context.leader);
      const [zk, other] = [await context.openClient(), await context.openClient({ server })];
      const path = `${context.rootPath}/a`;
      await zk.create(path, '0');
      for (let at = 1; at <= 20; at++) {
        await zk.setData(path, String(at));
        expectEqual('another session, after a sync', textOf((await other.getData(path, { linearizable: true })).data), String(at));
      }
    },
  },
  {
    name: 'reads.sync',
    title: 'sync returns the path of its request, whether or not the znode exists',
    behaviourIds: ['A15'],
    docs: 'zookeeper.jute, SyncResponse',
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      for (const path of [context.rootPath, `${context.rootPath}/missing`]) {
        const reply = await cnxn.call(OpCode.sync, (writer) => operations.sync.request.write(writer, { path }));
        expectEqual('the error', reply?.err, 0);
        expectEqual('the path', operations.sync.reply.read(reply!.body).path, path);
      }
    },
  },
];
