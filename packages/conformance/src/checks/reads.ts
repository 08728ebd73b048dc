/** exists, getData, getChildren and the other reads. */
import { OpCode, operations, readGetChildrenReply } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, textOf } from '../expect.ts';
import { underWay } from '../ground.ts';

export const readChecks: readonly RunnableCheck[] = [
  {
    name: 'reads.exists',
    title: 'exists returns the Stat of a znode, or reports that the znode is missing',
    rows: ['A10'],
    docs: 'ZooKeeper.exists',
    async run(ground) {
      const zk = await ground.open();
      const { path, stat } = await zk.create(`${ground.root}/a`, 'x');
      equal('a znode', await zk.exists(path), stat);
      equal('none', await zk.exists(`${ground.root}/b`), null);
      equal('a missing child of a missing znode', await zk.exists(`${ground.root}/b/c`), null);
    },
  },
  {
    name: 'reads.data-with-version',
    title: 'getData returns data and Stat of one moment',
    rows: ['C3-9', 'C3-12'],
    docs: "Programmer's Guide, ZooKeeper Data Model, Znodes",
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const path = `${ground.root}/a`;
      await zk.create(path, '0');
      const writing = underWay(Array.from({ length: 200 }, (_, at) => other.setData(path, String(at + 1))));
      for (let at = 0; at < 50; at++) {
        const { data, stat } = await zk.getData(path);
        equal('the data of that version', textOf(data), String(stat.version));
      }
      await writing;
    },
  },
  {
    name: 'reads.children',
    title: 'getChildren lists the names of the direct children only',
    rows: ['A10'],
    docs: 'ZooKeeper.getChildren',
    async run(ground) {
      const zk = await ground.open();
      for (const name of ['a', 'b', 'b/c', 'a b', 'ä']) await zk.create(`${ground.root}/${name}`);
      const { children, stat } = await zk.getChildren(ground.root);
      equal('the names', children.toSorted(), ['a', 'a b', 'b', 'ä']);
      equal('the Stat', await zk.exists(ground.root), stat);
      equal('of one without children', (await zk.getChildren(`${ground.root}/a`)).children, []);
    },
  },
  {
    name: 'reads.children-without-stat',
    title: 'the first version of getChildren returns the names alone',
    rows: ['A10'],
    docs: 'zookeeper.jute, GetChildrenResponse',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.getChildren, (writer) =>
        operations.getChildren.request.write(writer, { path: ground.root, watch: false }),
      );
      equal('the error', reply?.err, 0);
      equal('the names', readGetChildrenReply(reply!.body).children, ['a']);
      equal('bytes after them', reply!.body.remaining, 0);
    },
  },
  {
    name: 'reads.number-of-descendants',
    title: 'getAllChildrenNumber counts all descendants',
    rows: ['A16', 'B48'],
    docs: 'ZooKeeper.getAllChildrenNumber',
    since: [3, 6, 0],
    async run(ground) {
      const zk = await ground.open();
      for (const path of ['a', 'a/b', 'a/b/c', 'ab', 'd']) await zk.create(`${ground.root}/${path}`);
      equal('below all', await zk.getAllChildrenNumber(ground.root), 5);
      // Not the znodes whose name only starts with the same characters.
      equal('below a', await zk.getAllChildrenNumber(`${ground.root}/a`), 2);
      equal('below a leaf', await zk.getAllChildrenNumber(`${ground.root}/d`), 0);
    },
  },
  {
    name: 'reads.ephemerals',
    title: 'getEphemerals lists the ephemeral znodes of the calling session whose paths start with a text',
    rows: ['A16', 'B48', 'C3-16'],
    docs: "Programmer's Guide, Ephemeral Nodes; ZooKeeper.getEphemerals",
    since: [3, 6, 0],
    async run(ground) {
      const [zk, other] = [await ground.open(), await ground.open()];
      const { root } = ground;
      for (const name of ['a', 'ab', 'b']) await zk.create(`${root}/${name}`, null, { mode: 'ephemeral' });
      await zk.create(`${root}/persistent`);
      await other.create(`${root}/other`, null, { mode: 'ephemeral' });
      const all = ['a', 'ab', 'b'].map((name) => `${root}/${name}`);
      equal('all', (await zk.getEphemerals()).toSorted(), all);
      equal('those that start with a text', (await zk.getEphemerals(`${root}/a`)).toSorted(), all.slice(0, 2));
      equal('those that start with another', await zk.getEphemerals(`${root}/x`), []);
      equal('those of another session', await other.getEphemerals(), [`${root}/other`]);
    },
  },
  {
    name: 'reads.own-writes',
    title: 'a session reads its own writes',
    rows: ['A18'],
    docs: "Programmer's Guide, Consistency Guarantees",
    async run(ground) {
      const zk = await ground.open();
      const path = `${ground.root}/a`;
      await zk.create(path, '0');
      for (let at = 1; at <= 20; at++) {
        const [, read] = await Promise.all([zk.setData(path, String(at)), zk.getData(path)]);
        equal('a read sent after the write', textOf(read.data), String(at));
      }
    },
  },
  {
    name: 'reads.linearizable',
    title: 'a read after a sync sees every write that was acknowledged to any client before',
    rows: ['A15', 'B48'],
    docs: "Programmer's Guide, Consistency Guarantees: sync; ZooKeeper.sync",
    async run(ground) {
      // At another server than the first, if there is one, and not at the leader: Apache's leader
      // answers a sync before it has applied everything.
      const server = ground.facts.servers.findLastIndex((_, at) => at !== ground.leader);
      const [zk, other] = [await ground.open(), await ground.open({ server })];
      const path = `${ground.root}/a`;
      await zk.create(path, '0');
      for (let at = 1; at <= 20; at++) {
        await zk.setData(path, String(at));
        equal('another session, after a sync', textOf((await other.getData(path, { linearizable: true })).data), String(at));
      }
    },
  },
  {
    name: 'reads.sync',
    title: 'sync returns the path of its request, whether or not the znode exists',
    rows: ['A15'],
    docs: 'zookeeper.jute, SyncResponse',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      for (const path of [ground.root, `${ground.root}/missing`]) {
        const reply = await cnxn.call(OpCode.sync, (writer) => operations.sync.request.write(writer, { path }));
        equal('the error', reply?.err, 0);
        equal('the path', operations.sync.reply.read(reply!.body).path, path);
      }
    },
  },
];
