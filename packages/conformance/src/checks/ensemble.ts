/** Guarantees between the servers of an ensemble. */
import type { Client } from '@tskeeper/client';
import { OpCode, operations } from '@tskeeper/protocol';
import { NotApplicable, type RunnableCheck } from '../check.ts';
import { expectEqual, textOf } from '../expect.ts';
import { type CheckContext, nextState } from '../check-context.ts';
import { EventRecorder } from '../event-recorder.ts';
import { expectSeenAtOnce } from './multi.ts';

const docs = "Programmer's Guide, Consistency Guarantees";
const sessions = "Programmer's Guide, ZooKeeper Sessions";
const needs = ['ensemble'] as const;

/**
 * Must be followed by a linearizable read; its sync suffices at any server except Apache's leader.
 */
async function catchUpAtLeader(context: CheckContext, zk: Client, server: number): Promise<void> {
  if (server === context.leader) await context.catchUp(zk);
}

export const ensembleChecks: readonly RunnableCheck[] = [
  {
    name: 'ensemble.write-anywhere',
    title: 'a write at one server is readable at every other after a sync',
    behaviourIds: ['A15', 'A18'],
    docs,
    needs,
    async run(context) {
      const clients = await Promise.all(context.facts.servers.map((_, server) => context.openClient({ server })));
      for (const [at, writer] of clients.entries()) {
        const { path, stat } = await writer.create(`${context.rootPath}/${at}`, String(at));
        for (const [server, reader] of clients.entries()) {
          await catchUpAtLeader(context, reader, server);
          const read = await reader.getData(path, { linearizable: true });
          expectEqual('data and czxid at another server', [textOf(read.data), read.stat.czxid], [String(at), stat.czxid]);
        }
      }
    },
  },
  {
    name: 'ensemble.session-moves',
    title: 'a session continues at another server, with its ephemeral znodes and its watches',
    behaviourIds: ['C2-8', 'C2-11', 'A30'],
    docs: sessions,
    needs,
    async run(context) {
      const first = await context.openClient({ server: 0, yieldSession: true });
      const { path } = await first.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      const session = { id: first.sessionId, password: first.sessionPassword };
      const second = await context.openClient({ server: 1, session });
      expectEqual('the id', second.sessionId, session.id);
      await catchUpAtLeader(context, second, 1);
      expectEqual('the owner of the ephemeral znode', (await second.exists(path, { linearizable: true }))?.ephemeralOwner, session.id);
      await second.create(`${context.rootPath}/f`, null, { mode: 'ephemeral' });
      await second.close();
      const other = await context.openClient({ server: 0 });
      await context.catchUp(other);
      expectEqual('the znodes after its end', (await other.getChildren(context.rootPath)).children, []);
    },
  },
  {
    name: 'ensemble.session-moved',
    title: 'after a session has moved, a write on its old connection is not applied and closes that connection',
    behaviourIds: ['C2-21', 'A31'],
    docs: `${sessions}: SESSION_MOVED`,
    needs,
    async run(context) {
      if (context.facts.localSessions !== 'disabled') throw new NotApplicable('its session is local: no other server knows it');
      const old = await context.openRawCnxn(0);
      const { response } = (await old.handshake())!;
      const session = { id: response.sessionId, password: new Uint8Array(response.passwd!) };
      const moved = await context.openRawCnxnWithSession({ session }, 1);
      const write = (path: string) => (writer: Parameters<typeof operations.setData.request.write>[0]) =>
        operations.setData.request.write(writer, { path, data: Buffer.from('late'), version: -1 });
      await (await context.openClient()).create(`${context.rootPath}/a`, 'x');
      // Write at the new server first, so that all servers know where the session is. Use an xid
      // that the old connection does not use: a server that is behind would take a txn of the same
      // session and xid for the answer to its own client.
      expectEqual('a write at the new server', (await moved.call(OpCode.setData, write(context.rootPath), 1000))?.err, 0);
      const late = await context.waitFor('the end of the old connection', old.call(OpCode.setData, write(`${context.rootPath}/a`)));
      expectEqual('the error of a reply from the old server', late?.err, undefined);
      const zk = await context.openClient({ server: 1 });
      expectEqual('the data', textOf((await zk.getData(`${context.rootPath}/a`, { linearizable: true })).data), 'x');
    },
  },
  {
    name: 'ensemble.watches',
    title: 'a watch at one server fires for a write at another before the client can read it',
    behaviourIds: ['A21', 'A18'],
    docs: "Programmer's Guide, What ZooKeeper Guarantees about Watches",
    needs,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient({ server: 0 }), await context.openClient({ server: 1 }), new EventRecorder()];
      await zk.getChildren(context.rootPath, { watch: recorder.watch });
      await zk.exists(`${context.rootPath}/a`, { watch: recorder.watch });
      await other.create(`${context.rootPath}/a`);
      await context.catchUp(zk);
      expectEqual('the events', recorder.takeText(context.rootPath), ['NodeCreated /a', 'NodeChildrenChanged ']);
    },
  },
  {
    name: 'ensemble.ephemerals',
    title: 'an ephemeral znode is visible at every server, and deleted at every server when its session ends at one',
    behaviourIds: ['C3-15', 'C2-16'],
    docs: "Programmer's Guide, Ephemeral Nodes",
    needs,
    async run(context) {
      const zk = await context.openClient({ server: 1 });
      const { path } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      const others = await Promise.all(context.facts.servers.map((_, server) => context.openClient({ server })));
      for (const [server, other] of others.entries()) {
        await catchUpAtLeader(context, other, server);
        expectEqual('its owner', (await other.exists(path, { linearizable: true }))?.ephemeralOwner, zk.sessionId);
      }
      await zk.close();
      for (const other of others) {
        await context.catchUp(other);
        expectEqual('the ephemeral', await other.exists(path), null);
      }
    },
  },
  {
    name: 'ensemble.sequence',
    title: 'sequential znodes created at all servers at once have one sequence, in the order of their zxids',
    behaviourIds: ['A6', 'C3-17', 'A18'],
    docs: "Programmer's Guide, Sequence Nodes",
    needs,
    async run(context) {
      const clients = await Promise.all(context.facts.servers.map((_, server) => context.openClient({ server })));
      const created = await Promise.all(
        clients.flatMap((zk) =>
          Array.from({ length: 20 }, () => zk.create(`${context.rootPath}/s-`, null, { mode: 'persistentSequential' })),
        ),
      );
      created.sort((one, other) => (one.stat.czxid < other.stat.czxid ? -1 : 1));
      expectEqual(
        'the numbers, by zxid',
        created.map(({ path }) => Number(path.slice(-10))),
        created.map((_, at) => at),
      );
    },
  },
  {
    name: 'ensemble.multi',
    title: 'a multi at one server is atomic at another',
    behaviourIds: ['A12', 'A18'],
    docs,
    needs,
    async run(context) {
      await expectSeenAtOnce(context, await context.openClient({ server: 0 }), await context.openClient({ server: 1 }));
    },
  },
  {
    name: 'ensemble.expiry',
    title: 'an expired session is gone at every server, and cannot be resumed at any',
    behaviourIds: ['C2-12', 'C2-16'],
    docs: sessions,
    needs: ['ensemble', 'slow'],
    async run(context) {
      const [other, recorder] = [await context.openClient({ server: 0 }), new EventRecorder()];
      const cnxn = await context.openRawCnxn(1);
      const { response } = (await cnxn.handshake({ timeOut: 1 }))!;
      const session = { id: response.sessionId, password: new Uint8Array(response.passwd!) };
      const request = { path: `${context.rootPath}/e`, data: null, acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }], flags: 1 };
      expectEqual('the create', (await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request)))?.err, 0);
      await context.catchUp(other);
      // If this read takes longer than the session lasts, there is no event to wait for.
      const isThere = (await other.exists(request.path, { watch: recorder.watch })) !== null;
      if (isThere) await context.waitFor('NodeDeleted for an ephemeral znode of a silent session', recorder.waitForCount(1));
      for (const [server] of context.facts.servers.entries()) {
        const back = await context.openRawCnxn(server);
        expectEqual('the granted timeout', (await back.handshake({ session }))?.response.timeOut, 0);
      }
    },
  },
  {
    name: 'ensemble.client-goes-on',
    title: 'a client whose server is removed from its list continues at another server, with the same session',
    behaviourIds: ['C2-6', 'C2-25', 'B36'],
    docs: `${sessions}: updateServerList`,
    needs,
    async run(context) {
      const zk = await context.openClient({ server: 0 });
      const { path } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      const { sessionId } = zk;
      const back = nextState(zk, 'SyncConnected', 'Expired');
      zk.updateServerList([context.serverAt(1)]);
      expectEqual('the state at the other server', await context.waitFor('a connection to the other server', back), 'SyncConnected');
      expectEqual('the owner of the ephemeral znode', (await zk.exists(path, { linearizable: true }))?.ephemeralOwner, sessionId);
      expectEqual('the id', zk.sessionId, sessionId);
    },
  },
];
