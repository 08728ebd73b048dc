/** Sessions: opening, resuming, ending. */
import { KeeperError, openAcl } from '@tskeeper/client';
import { OpCode, operations, Xid } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectThat, expectError } from '../expect.ts';
import { nextState, pause } from '../check-context.ts';
import { EventRecorder } from '../event-recorder.ts';
import { FaultyTransport } from '../faulty-transport.ts';

const docs = "Programmer's Guide, ZooKeeper Sessions";
const password16 = new Uint8Array(16);
/** By how much two clocks may differ in the time between two events. */
const clockToleranceMs = 5;

export const sessionChecks: readonly RunnableCheck[] = [
  {
    name: 'sessions.ids',
    title: 'each session has its own id of 64 bits and a password of 16 bytes',
    behaviourIds: ['C2-7', 'C2-8'],
    docs,
    async run(context) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => context.openClient()));
      expectEqual('the number of different ids', new Set(clients.map(({ sessionId }) => sessionId)).size, 5);
      for (const { sessionId, sessionPassword } of clients) {
        expectThat('an id', sessionId !== 0n, 'not 0', sessionId);
        expectEqual('the length of a password', sessionPassword.length, 16);
      }
    },
  },
  {
    name: 'sessions.timeout',
    title: 'a requested timeout is granted if it is within the bounds, else it is set to the bound, and the client receives the result',
    behaviourIds: ['C2-10', 'A29', 'C3-27'],
    docs,
    async run(context) {
      const { min, max } = context.facts.sessionTimeoutMs;
      expectThat('the bounds', min > 0 && min <= max, 'a shortest and a longest timeout', { min, max });
      const between = Math.floor((min + max) / 2);
      for (const [asked, granted] of [
        [1, min],
        [min, min],
        [between, between],
        [max, max],
        [0x7fffffff, max],
      ] as const) {
        expectEqual(
          `the timeout granted for ${asked} ms`,
          (await context.openClient({ sessionTimeoutMs: asked })).sessionTimeoutMs,
          granted,
        );
      }
    },
  },
  {
    name: 'sessions.taken-up',
    title: 'a session can be resumed with its id and password, and keeps its ephemeral znodes',
    behaviourIds: ['C2-8', 'A30', 'C2-11', 'D2'],
    docs,
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const first = await context.openClient({ transport: faultyTransport });
      const { path } = await first.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      const session = { id: first.sessionId, password: first.sessionPassword };
      faultyTransport.partition();
      const second = await context.openClient({ session });
      expectEqual('the id', second.sessionId, first.sessionId);
      expectEqual('the owner of the ephemeral znode', (await second.exists(path))?.ephemeralOwner, session.id);
      await second.close();
      expectEqual('the ephemeral znode after the end of the session', await (await context.openClient()).exists(path), null);
      const expired = nextState(first, 'Expired');
      faultyTransport.heal();
      await context.waitFor('Expired at the client that was silent in the meantime', expired);
    },
  },
  {
    name: 'sessions.wrong-password',
    title: 'a wrong password and an unknown id are answered as an expired session, and the session itself stays alive',
    behaviourIds: ['C2-9'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      const { path } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      const connects = (session: { readonly id: bigint; readonly password: Uint8Array }) => context.openClient({ session });
      const wrong = zk.sessionPassword.map((byte) => byte ^ 1);
      await expectError('a wrong password', connects({ id: zk.sessionId, password: wrong }), 'SessionExpired');
      await expectError('no session', connects({ id: zk.sessionId + 0x1234n, password: password16 }), 'SessionExpired');
      // The attempt may have closed the connection, which the client opens again.
      const ephemeral = await zk.exists(path, { retry: true });
      expectEqual('the ephemeral znode of the session', ephemeral?.ephemeralOwner, zk.sessionId);
    },
  },
  {
    name: 'sessions.refused-frame',
    title: 'an expired session is answered with timeout 0, id 0 and a password of zeros, and the connection is closed',
    behaviourIds: ['C2-9', 'A30'],
    docs: 'ZooKeeperServer.finishSessionInit',
    async run(context) {
      const cnxn = await context.openRawCnxn();
      const answer = await cnxn.handshake({ session: { id: 0x7712345678n, password: password16 } });
      const { timeOut, sessionId, passwd } = answer!.response;
      expectEqual('timeout, id and password', [timeOut, sessionId, new Uint8Array(passwd ?? [])], [0, 0n, password16]);
      await context.waitFor('the end of the connection', cnxn.closed());
    },
  },
  {
    name: 'sessions.handshake-of-old-clients',
    title: 'a handshake without the readOnly byte is answered without one',
    behaviourIds: ['A19'],
    docs: 'ZOOKEEPER-4814; ConnectResponse',
    async run(context) {
      const [old, young] = [await context.openRawCnxn(), await context.openRawCnxn()];
      const answer = await old.handshake({ withReadOnly: false });
      expectThat('a handshake without the byte', answer !== undefined, 'an answer', answer);
      expectEqual('the byte, and bytes after it', [answer.response.readOnly, answer.rest], [undefined, 0]);
      expectEqual('the byte for a client that sends it', (await young.handshake())?.response.readOnly, false);
      expectEqual('the error of a ping', (await old.ping())?.err, 0);
    },
  },
  {
    name: 'sessions.client-ahead',
    title: 'a server rejects a client that has seen a later zxid than the server has, so that the client never sees older state',
    behaviourIds: ['A18'],
    docs: "Programmer's Guide, Consistency Guarantees, Single System Image; ZooKeeperServer.processConnectRequest",
    async run(context) {
      const cnxn = await context.openRawCnxn();
      expectEqual('an answer', await cnxn.handshake({ lastZxidSeen: 0x7fffffff00000 }), undefined);
    },
  },
  {
    name: 'sessions.close',
    title:
      'close ends a session at once: earlier requests are answered, its ephemeral znodes are deleted, watches fire, and the session cannot be resumed',
    behaviourIds: ['C2-2', 'C3-15', 'A7'],
    docs: `${docs}; Ephemeral Nodes`,
    async run(context) {
      const [zk, other, recorder] = [await context.openClient(), await context.openClient(), new EventRecorder()];
      const { path } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      await zk.create(`${context.rootPath}/p`);
      await context.catchUp(other);
      await other.exists(path, { watch: recorder.watch });
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      const asked = zk.exists(path);
      await zk.close();
      expectEqual('an earlier request', (await asked)?.ephemeralOwner, session.id);
      await context.catchUp(other);
      expectEqual('the ephemeral', await other.exists(path), null);
      expectEqual('the events', recorder.takeText(context.rootPath), ['NodeDeleted /e']);
      expectEqual('the persistent znode', (await other.getChildren(context.rootPath)).children, ['p']);
      await expectError('a call', zk.exists(path), 'SessionExpired');
      await expectError('a resumption', context.openClient({ session }), 'SessionExpired');
    },
  },
  {
    name: 'sessions.two-handles',
    title: 'a session has one connection: a client that resumes it gets it, and the earlier client loses its own',
    behaviourIds: ['C2-23', 'A31'],
    docs: `${docs}: two clients with one session`,
    async run(context) {
      const first = await context.openClient({ yieldSession: true });
      const lost = nextState(first, 'Disconnected');
      const second = await context.openClient({ session: { id: first.sessionId, password: first.sessionPassword }, yieldSession: true });
      await context.waitFor('the loss of the first connection', lost);
      expectEqual('the ids', second.sessionId, first.sessionId);
    },
  },
  {
    name: 'sessions.reconnect',
    title: 'a client that loses its connection resumes the same session, and pending requests fail with ConnectionLoss',
    behaviourIds: ['C2-11', 'C2-20'],
    docs,
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const zk = await context.openClient({ transport: faultyTransport });
      const { path } = await zk.create(`${context.rootPath}/e`, null, { mode: 'ephemeral' });
      const { sessionId } = zk;
      faultyTransport.partition();
      const asked = zk.exists(path);
      const back = nextState(zk, 'SyncConnected', 'Expired');
      faultyTransport.heal();
      await expectError('the pending request', asked, 'ConnectionLoss');
      expectEqual('the state of the reconnected client', await context.waitFor('a new connection', back), 'SyncConnected');
      expectEqual('the owner of the ephemeral znode', (await zk.exists(path))?.ephemeralOwner, sessionId);
    },
  },
  {
    name: 'sessions.expiry',
    title:
      'the session of a silent client expires: its ephemeral znodes are deleted, watches fire, and the client learns of it when it reconnects',
    behaviourIds: ['C2-12', 'C2-14', 'C2-15', 'C2-16', 'C2-17', 'A32'],
    docs,
    needs: ['slow'],
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const zk = await context.openClient({ transport: faultyTransport, sessionTimeoutMs: 1 });
      const [other, recorder] = [await context.openClient(), new EventRecorder()];
      // A server that pauses for a moment may close the connection of such a short session.
      const again = { retry: true, idempotent: true };
      for (const name of ['a', 'b']) await zk.create(`${context.rootPath}/${name}`, null, { mode: 'ephemeral', ...again });
      await context.catchUp(other);
      await other.exists(`${context.rootPath}/a`, { watch: recorder.watch });
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      // The server received its last message after this moment.
      const begun = performance.now();
      await zk.exists(context.rootPath, { retry: true });
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      faultyTransport.partition();
      await context.waitFor('NodeDeleted for an ephemeral znode of a silent session', recorder.waitForCount(1));
      const ms = performance.now() - begun;
      expectThat('the time until that event', ms >= zk.sessionTimeoutMs - clockToleranceMs, `${zk.sessionTimeoutMs} ms`, Math.round(ms));
      expectEqual('the event', recorder.takeText(context.rootPath), ['NodeDeleted /a']);
      expectEqual('the remaining ephemeral znodes', (await other.getChildren(context.rootPath)).children, []);
      const back = nextState(zk, 'Expired', 'SyncConnected');
      faultyTransport.heal();
      expectEqual('the state of the reconnected client', await context.waitFor('a reply to the reconnected client', back), 'Expired');
      expectEqual('the events that it receives', states, ['Disconnected', 'Expired']);
      await expectError('a call', zk.exists(context.rootPath), 'SessionExpired');
      await expectError('a resumption', context.openClient({ session }), 'SessionExpired');
    },
  },
  {
    name: 'sessions.pings',
    title: 'a session whose client sends only pings stays alive',
    behaviourIds: ['C2-19', 'A32'],
    docs,
    needs: ['slow'],
    async run(context) {
      const [other, gone] = [await context.openClient(), new EventRecorder()];
      // Raw connections, since a client closes a connection on which it receives nothing for a
      // while.
      const idle = await context.openRawCnxnWithSession({ timeOut: 1 });
      const silent = await context.openRawCnxnWithSession({ timeOut: 1 });
      for (const [cnxn, name] of [
        [idle, 'idle'],
        [silent, 'silent'],
      ] as const) {
        const request = { path: `${context.rootPath}/${name}`, data: null, acl: openAcl, flags: 1 };
        const reply = await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
        expectEqual(`the error of the create of ${name}`, reply?.err, 0);
      }
      await context.catchUp(other);
      const isThere = (await other.exists(`${context.rootPath}/silent`, { watch: gone.watch })) !== null;
      // When the silent session has expired, the other one has sent nothing but pings for as long.
      const over = new AbortController();
      const ended = gone.waitForCount(isThere ? 1 : 0).then(() => over.abort());
      while (!over.signal.aborted) {
        expectEqual('xid and error of a ping', await idle.ping().then((reply) => [reply?.xid, reply?.err]), [Xid.ping, 0]);
        await Promise.race([ended, pause(context.facts.sessionTimeoutMs.min / 8)]);
      }
      const left = (await other.getChildren(context.rootPath)).children;
      expectEqual('the remaining ephemeral znodes', left, ['idle']);
    },
  },
  {
    name: 'sessions.ended',
    title: 'requests of a client whose session has ended fail with SessionExpired and are not applied',
    behaviourIds: ['C2-2', 'C2-20'],
    docs,
    async run(context) {
      const zk = await context.openClient();
      await zk.close();
      const calls = await Promise.allSettled([zk.create(`${context.rootPath}/a`), zk.getData(context.rootPath), zk.sync()]);
      const codes = calls.map((call) => (call.status === 'rejected' && KeeperError.is(call.reason) ? call.reason.code : 'Ok'));
      expectEqual('the error of each request', codes, ['SessionExpired', 'SessionExpired', 'SessionExpired']);
      // The client above sends no more requests; test a connection that does so right after the end
      // of its session.
      const cnxn = await context.openRawCnxnWithSession();
      void cnxn.call(OpCode.closeSession);
      const request = { path: `${context.rootPath}/b`, data: null, acl: openAcl, flags: 0 };
      const create = cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
      await context.waitFor('the reply to a create after the end of the session, or the end of the connection', create);
      expectEqual('the existing znodes', (await (await context.openClient()).getChildren(context.rootPath)).children, []);
    },
  },
];
