/** Guarantees between the servers of an ensemble. */
import type { Client } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, textOf } from '../expect.ts';
import { type Ground, nextState } from '../ground.ts';
import { Heard } from '../heard.ts';
import { expectSeenAtOnce } from './multi.ts';

const docs = "Programmer's Guide, Consistency Guarantees";
const sessions = "Programmer's Guide, ZooKeeper Sessions";
const needs = ['ensemble'] as const;

/**
 * Must be followed by a linearizable read; its sync suffices at any server except Apache's leader.
 */
async function synced(ground: Ground, zk: Client, server: number): Promise<void> {
  if (server === ground.leader) await ground.caughtUp(zk);
}

export const ensembleChecks: readonly RunnableCheck[] = [
  {
    name: 'ensemble.write-anywhere',
    title: 'a write at one server is readable at every other after a sync',
    rows: ['A15', 'A18'],
    docs,
    needs,
    async run(ground) {
      const clients = await Promise.all(ground.facts.servers.map((_, server) => ground.open({ server })));
      for (const [at, writer] of clients.entries()) {
        const { path, stat } = await writer.create(`${ground.root}/${at}`, String(at));
        for (const [server, reader] of clients.entries()) {
          await synced(ground, reader, server);
          const read = await reader.getData(path, { linearizable: true });
          equal('data and czxid at another server', [textOf(read.data), read.stat.czxid], [String(at), stat.czxid]);
        }
      }
    },
  },
  {
    name: 'ensemble.session-moves',
    title: 'a session continues at another server, with its ephemeral znodes and its watches',
    rows: ['C2-8', 'C2-11', 'A30'],
    docs: sessions,
    needs,
    async run(ground) {
      const first = await ground.open({ server: 0, yieldsSession: true });
      const { path } = await first.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      const session = { id: first.sessionId, password: first.sessionPassword };
      const second = await ground.open({ server: 1, session });
      equal('the id', second.sessionId, session.id);
      await synced(ground, second, 1);
      equal('the owner of the ephemeral znode', (await second.exists(path, { linearizable: true }))?.ephemeralOwner, session.id);
      await second.create(`${ground.root}/f`, null, { mode: 'ephemeral' });
      await second.close();
      const other = await ground.open({ server: 0 });
      await ground.caughtUp(other);
      equal('the znodes after its end', (await other.getChildren(ground.root)).children, []);
    },
  },
  {
    name: 'ensemble.session-moved',
    title: 'after a session has moved, a write on its old connection is not applied and closes that connection',
    rows: ['C2-21', 'A31'],
    docs: `${sessions}: SESSION_MOVED`,
    needs,
    async run(ground) {
      const old = await ground.openRaw(0);
      const { response } = (await old.shakeHands())!;
      const session = { id: response.sessionId, password: new Uint8Array(response.passwd!) };
      const moved = await ground.openRawSession({ session }, 1);
      const write = (path: string) => (writer: Parameters<typeof operations.setData.request.write>[0]) =>
        operations.setData.request.write(writer, { path, data: Buffer.from('late'), version: -1 });
      await (await ground.open()).create(`${ground.root}/a`, 'x');
      // Write at the new server first, so that all servers know where the session is. Use an xid
      // that the old connection does not use: a server that is behind would take a txn of the same
      // session and xid for the answer to its own client.
      equal('a write at the new server', (await moved.call(OpCode.setData, write(ground.root), 1000))?.err, 0);
      const late = await ground.until('the end of the old connection', old.call(OpCode.setData, write(`${ground.root}/a`)));
      equal('the error of a reply from the old server', late?.err, undefined);
      const zk = await ground.open({ server: 1 });
      equal('the data', textOf((await zk.getData(`${ground.root}/a`, { linearizable: true })).data), 'x');
    },
  },
  {
    name: 'ensemble.watches',
    title: 'a watch at one server fires for a write at another before the client can read it',
    rows: ['A21', 'A18'],
    docs: "Programmer's Guide, What ZooKeeper Guarantees about Watches",
    needs,
    async run(ground) {
      const [zk, other, heard] = [await ground.open({ server: 0 }), await ground.open({ server: 1 }), new Heard()];
      await zk.getChildren(ground.root, { watch: heard.watch });
      await zk.exists(`${ground.root}/a`, { watch: heard.watch });
      await other.create(`${ground.root}/a`);
      await ground.caughtUp(zk);
      equal('the events', heard.takeText(ground.root), ['NodeCreated /a', 'NodeChildrenChanged ']);
    },
  },
  {
    name: 'ensemble.ephemerals',
    title: 'an ephemeral znode is visible at every server, and deleted at every server when its session ends at one',
    rows: ['C3-15', 'C2-16'],
    docs: "Programmer's Guide, Ephemeral Nodes",
    needs,
    async run(ground) {
      const zk = await ground.open({ server: 1 });
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      const others = await Promise.all(ground.facts.servers.map((_, server) => ground.open({ server })));
      for (const [server, other] of others.entries()) {
        await synced(ground, other, server);
        equal('its owner', (await other.exists(path, { linearizable: true }))?.ephemeralOwner, zk.sessionId);
      }
      await zk.close();
      for (const other of others) {
        await ground.caughtUp(other);
        equal('the ephemeral', await other.exists(path), null);
      }
    },
  },
  {
    name: 'ensemble.sequence',
    title: 'sequential znodes created at all servers at once have one sequence, in the order of their zxids',
    rows: ['A6', 'C3-17', 'A18'],
    docs: "Programmer's Guide, Sequence Nodes",
    needs,
    async run(ground) {
      const clients = await Promise.all(ground.facts.servers.map((_, server) => ground.open({ server })));
      const created = await Promise.all(
        clients.flatMap((zk) => Array.from({ length: 20 }, () => zk.create(`${ground.root}/s-`, null, { mode: 'persistentSequential' }))),
      );
      created.sort((one, other) => (one.stat.czxid < other.stat.czxid ? -1 : 1));
      equal(
        'the numbers, by zxid',
        created.map(({ path }) => Number(path.slice(-10))),
        created.map((_, at) => at),
      );
    },
  },
  {
    name: 'ensemble.multi',
    title: 'a multi at one server is atomic at another',
    rows: ['A12', 'A18'],
    docs,
    needs,
    async run(ground) {
      await expectSeenAtOnce(ground, await ground.open({ server: 0 }), await ground.open({ server: 1 }));
    },
  },
  {
    name: 'ensemble.expiry',
    title: 'an expired session is gone at every server, and cannot be resumed at any',
    rows: ['C2-12', 'C2-16'],
    docs: sessions,
    needs: ['ensemble', 'patience'],
    async run(ground) {
      const [other, heard] = [await ground.open({ server: 0 }), new Heard()];
      const cnxn = await ground.openRaw(1);
      const { response } = (await cnxn.shakeHands({ timeOut: 1 }))!;
      const session = { id: response.sessionId, password: new Uint8Array(response.passwd!) };
      const request = { path: `${ground.root}/e`, data: null, acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }], flags: 1 };
      equal('the create', (await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request)))?.err, 0);
      await ground.caughtUp(other);
      // If this read takes longer than the session lasts, there is no event to wait for.
      const isThere = (await other.exists(request.path, { watch: heard.watch })) !== null;
      if (isThere) await ground.until('NodeDeleted for an ephemeral znode of a silent session', heard.count(1));
      for (const [server] of ground.facts.servers.entries()) {
        const back = await ground.openRaw(server);
        equal('the granted timeout', (await back.shakeHands({ session }))?.response.timeOut, 0);
      }
    },
  },
  {
    name: 'ensemble.client-goes-on',
    title: 'a client whose server is removed from its list continues at another server, with the same session',
    rows: ['C2-6', 'C2-25', 'B36'],
    docs: `${sessions}: updateServerList`,
    needs,
    async run(ground) {
      const zk = await ground.open({ server: 0 });
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      const { sessionId } = zk;
      const back = nextState(zk, 'SyncConnected', 'Expired');
      zk.updateServerList([ground.serverAt(1)]);
      equal('the state at the other server', await ground.until('a connection to the other server', back), 'SyncConnected');
      equal('the owner of the ephemeral znode', (await zk.exists(path, { linearizable: true }))?.ephemeralOwner, sessionId);
      equal('the id', zk.sessionId, sessionId);
    },
  },
];
