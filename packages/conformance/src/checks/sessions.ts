/** Sessions: opening, resuming, ending. */
import { KeeperError, openAcl } from '@tskeeper/client';
import { OpCode, operations, Xid } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, holds, refused } from '../expect.ts';
import { nextState, pause } from '../ground.ts';
import { Heard } from '../heard.ts';
import { Wire } from '../wire.ts';

const docs = "Programmer's Guide, ZooKeeper Sessions";
const password16 = new Uint8Array(16);
/** By how much two clocks may differ in the time between two events. */
const clockMs = 5;

export const sessionChecks: readonly RunnableCheck[] = [
  {
    name: 'sessions.ids',
    title: 'each session has its own id of 64 bits and a password of 16 bytes',
    rows: ['C2-7', 'C2-8'],
    docs,
    async run(ground) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => ground.open()));
      equal('the number of different ids', new Set(clients.map(({ sessionId }) => sessionId)).size, 5);
      for (const { sessionId, sessionPassword } of clients) {
        holds('an id', sessionId !== 0n, 'not 0', sessionId);
        equal('the length of a password', sessionPassword.length, 16);
      }
    },
  },
  {
    name: 'sessions.timeout',
    title: 'a requested timeout is granted if it is within the bounds, else it is set to the bound, and the client receives the result',
    rows: ['C2-10', 'A29', 'C3-27'],
    docs,
    async run(ground) {
      const { min, max } = ground.facts.sessionTimeoutMs;
      holds('the bounds', min > 0 && min <= max, 'a shortest and a longest timeout', { min, max });
      const between = Math.floor((min + max) / 2);
      for (const [asked, granted] of [
        [1, min],
        [min, min],
        [between, between],
        [max, max],
        [0x7fffffff, max],
      ] as const) {
        equal(`the timeout granted for ${asked} ms`, (await ground.open({ sessionTimeoutMs: asked })).sessionTimeoutMs, granted);
      }
    },
  },
  {
    name: 'sessions.taken-up',
    title: 'a session can be resumed with its id and password, and keeps its ephemeral znodes',
    rows: ['C2-8', 'A30', 'C2-11', 'D2'],
    docs,
    async run(ground) {
      const wire = new Wire();
      const first = await ground.open({ transport: wire });
      const { path } = await first.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      const session = { id: first.sessionId, password: first.sessionPassword };
      wire.silence();
      const second = await ground.open({ session });
      equal('the id', second.sessionId, first.sessionId);
      equal('the owner of the ephemeral znode', (await second.exists(path))?.ephemeralOwner, session.id);
      await second.close();
      equal('the ephemeral znode after the end of the session', await (await ground.open()).exists(path), null);
      const expired = nextState(first, 'Expired');
      wire.restore();
      await ground.until('Expired at the client that was silent in the meantime', expired);
    },
  },
  {
    name: 'sessions.wrong-password',
    title: 'a wrong password and an unknown id are answered as an expired session, and the session itself stays alive',
    rows: ['C2-9'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      const connects = (session: { readonly id: bigint; readonly password: Uint8Array }) => ground.open({ session });
      const wrong = zk.sessionPassword.map((byte) => byte ^ 1);
      await refused('a wrong password', connects({ id: zk.sessionId, password: wrong }), 'SessionExpired');
      await refused('no session', connects({ id: zk.sessionId + 0x1234n, password: password16 }), 'SessionExpired');
      // The attempt may have closed the connection, which the client opens again.
      const ephemeral = await zk.exists(path, { retry: true });
      equal('the ephemeral znode of the session', ephemeral?.ephemeralOwner, zk.sessionId);
    },
  },
  {
    name: 'sessions.refused-frame',
    title: 'an expired session is answered with timeout 0, id 0 and a password of zeros, and the connection is closed',
    rows: ['C2-9', 'A30'],
    docs: 'ZooKeeperServer.finishSessionInit',
    async run(ground) {
      const cnxn = await ground.openRaw();
      const answer = await cnxn.shakeHands({ session: { id: 0x7712345678n, password: password16 } });
      const { timeOut, sessionId, passwd } = answer!.response;
      equal('timeout, id and password', [timeOut, sessionId, new Uint8Array(passwd ?? [])], [0, 0n, password16]);
      await ground.until('the end of the connection', cnxn.closed());
    },
  },
  {
    name: 'sessions.handshake-of-old-clients',
    title: 'a handshake without the readOnly byte is answered without one',
    rows: ['A19'],
    docs: 'ZOOKEEPER-4814; ConnectResponse',
    async run(ground) {
      const [old, young] = [await ground.openRaw(), await ground.openRaw()];
      const answer = await old.shakeHands({ withReadOnly: false });
      holds('a handshake without the byte', answer !== undefined, 'an answer', answer);
      equal('the byte, and bytes after it', [answer.response.readOnly, answer.rest], [undefined, 0]);
      equal('the byte for a client that sends it', (await young.shakeHands())?.response.readOnly, false);
      equal('the error of a ping', (await old.ping())?.err, 0);
    },
  },
  {
    name: 'sessions.client-ahead',
    title: 'a server rejects a client that has seen a later zxid than the server has, so that the client never sees older state',
    rows: ['A18'],
    docs: "Programmer's Guide, Consistency Guarantees, Single System Image; ZooKeeperServer.processConnectRequest",
    async run(ground) {
      const cnxn = await ground.openRaw();
      equal('an answer', await cnxn.shakeHands({ lastZxidSeen: 0x7fffffff00000 }), undefined);
    },
  },
  {
    name: 'sessions.close',
    title:
      'close ends a session at once: earlier requests are answered, its ephemeral znodes are deleted, watches fire, and the session cannot be resumed',
    rows: ['C2-2', 'C3-15', 'A7'],
    docs: `${docs}; Ephemeral Nodes`,
    async run(ground) {
      const [zk, other, heard] = [await ground.open(), await ground.open(), new Heard()];
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      await zk.create(`${ground.root}/p`);
      await ground.caughtUp(other);
      await other.exists(path, { watch: heard.watch });
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      const asked = zk.exists(path);
      await zk.close();
      equal('an earlier request', (await asked)?.ephemeralOwner, session.id);
      await ground.caughtUp(other);
      equal('the ephemeral', await other.exists(path), null);
      equal('the events', heard.takeText(ground.root), ['NodeDeleted /e']);
      equal('the persistent znode', (await other.getChildren(ground.root)).children, ['p']);
      await refused('a call', zk.exists(path), 'SessionExpired');
      await refused('a taking up', ground.open({ session }), 'SessionExpired');
    },
  },
  {
    name: 'sessions.two-handles',
    title: 'a session has one connection: a client that resumes it gets it, and the earlier client loses its own',
    rows: ['C2-23', 'A31'],
    docs: `${docs}: two clients with one session`,
    async run(ground) {
      const first = await ground.open({ yieldsSession: true });
      const lost = nextState(first, 'Disconnected');
      const second = await ground.open({ session: { id: first.sessionId, password: first.sessionPassword }, yieldsSession: true });
      await ground.until('the loss of the first connection', lost);
      equal('the ids', second.sessionId, first.sessionId);
    },
  },
  {
    name: 'sessions.reconnect',
    title: 'a client that loses its connection resumes the same session, and pending requests fail with ConnectionLoss',
    rows: ['C2-11', 'C2-20'],
    docs,
    async run(ground) {
      const wire = new Wire();
      const zk = await ground.open({ transport: wire });
      const { path } = await zk.create(`${ground.root}/e`, null, { mode: 'ephemeral' });
      const { sessionId } = zk;
      wire.silence();
      const asked = zk.exists(path);
      const back = nextState(zk, 'SyncConnected', 'Expired');
      wire.restore();
      await refused('the pending request', asked, 'ConnectionLoss');
      equal('the state of the reconnected client', await ground.until('a new connection', back), 'SyncConnected');
      equal('the owner of the ephemeral znode', (await zk.exists(path))?.ephemeralOwner, sessionId);
    },
  },
  {
    name: 'sessions.expiry',
    title:
      'the session of a silent client expires: its ephemeral znodes are deleted, watches fire, and the client learns of it when it reconnects',
    rows: ['C2-12', 'C2-14', 'C2-15', 'C2-16', 'C2-17', 'A32'],
    docs,
    needs: ['patience'],
    async run(ground) {
      const wire = new Wire();
      const zk = await ground.open({ transport: wire, sessionTimeoutMs: 1 });
      const [other, heard] = [await ground.open(), new Heard()];
      // A server that pauses for a moment may close the connection of such a short session.
      const again = { retry: true, idempotent: true };
      for (const name of ['a', 'b']) await zk.create(`${ground.root}/${name}`, null, { mode: 'ephemeral', ...again });
      await ground.caughtUp(other);
      await other.exists(`${ground.root}/a`, { watch: heard.watch });
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      // The server received its last message after this moment.
      const begun = performance.now();
      await zk.exists(ground.root, { retry: true });
      const states: string[] = [];
      zk.on('state', ({ state }) => void states.push(state));
      wire.silence();
      await ground.until('NodeDeleted for an ephemeral znode of a silent session', heard.count(1));
      const ms = performance.now() - begun;
      holds('the time until that event', ms >= zk.sessionTimeoutMs - clockMs, `${zk.sessionTimeoutMs} ms`, Math.round(ms));
      equal('the event', heard.takeText(ground.root), ['NodeDeleted /a']);
      equal('the remaining ephemeral znodes', (await other.getChildren(ground.root)).children, []);
      const back = nextState(zk, 'Expired', 'SyncConnected');
      wire.restore();
      equal('the state of the reconnected client', await ground.until('a reply to the reconnected client', back), 'Expired');
      equal('the events that it receives', states, ['Disconnected', 'Expired']);
      await refused('a call', zk.exists(ground.root), 'SessionExpired');
      await refused('a taking up', ground.open({ session }), 'SessionExpired');
    },
  },
  {
    name: 'sessions.pings',
    title: 'a session whose client sends only pings stays alive',
    rows: ['C2-19', 'A32'],
    docs,
    needs: ['patience'],
    async run(ground) {
      const [other, gone] = [await ground.open(), new Heard()];
      // Raw connections, since a client closes a connection on which it receives nothing for a
      // while.
      const idle = await ground.openRawSession({ timeOut: 1 });
      const silent = await ground.openRawSession({ timeOut: 1 });
      for (const [cnxn, name] of [
        [idle, 'idle'],
        [silent, 'silent'],
      ] as const) {
        const request = { path: `${ground.root}/${name}`, data: null, acl: openAcl, flags: 1 };
        const reply = await cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
        equal(`the error of the create of ${name}`, reply?.err, 0);
      }
      await ground.caughtUp(other);
      const isThere = (await other.exists(`${ground.root}/silent`, { watch: gone.watch })) !== null;
      // When the silent session has expired, the other one has sent nothing but pings for as long.
      const over = new AbortController();
      const told = gone.count(isThere ? 1 : 0).then(() => over.abort());
      while (!over.signal.aborted) {
        equal('xid and error of a ping', await idle.ping().then((reply) => [reply?.xid, reply?.err]), [Xid.ping, 0]);
        await Promise.race([told, pause(ground.facts.sessionTimeoutMs.min / 8)]);
      }
      const left = (await other.getChildren(ground.root)).children;
      equal('the remaining ephemeral znodes', left, ['idle']);
    },
  },
  {
    name: 'sessions.ended',
    title: 'requests of a client whose session has ended fail with SessionExpired and are not applied',
    rows: ['C2-2', 'C2-20'],
    docs,
    async run(ground) {
      const zk = await ground.open();
      await zk.close();
      const calls = await Promise.allSettled([zk.create(`${ground.root}/a`), zk.getData(ground.root), zk.sync()]);
      const codes = calls.map((call) => (call.status === 'rejected' && KeeperError.is(call.reason) ? call.reason.code : 'Ok'));
      equal('the error of each request', codes, ['SessionExpired', 'SessionExpired', 'SessionExpired']);
      // The client above sends no more requests; test a connection that does so right after the end
      // of its session.
      const cnxn = await ground.openRawSession();
      void cnxn.call(OpCode.closeSession);
      const request = { path: `${ground.root}/b`, data: null, acl: openAcl, flags: 0 };
      const create = cnxn.call(OpCode.create2, (writer) => operations.create2.request.write(writer, request));
      await ground.until('the reply to a create after the end of the session, or the end of the connection', create);
      equal('the existing znodes', (await (await ground.open()).getChildren(ground.root)).children, []);
    },
  },
];
