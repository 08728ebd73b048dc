/** Authentication of a session. */
import { creatorAcl } from '@tskeeper/client';
import { OpCode, operations, Xid } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError, textOf } from '../expect.ts';
import { identities, nextState } from '../check-context.ts';
import { FaultyTransport } from '../faulty-transport.ts';

const docs = "Programmer's Guide, Pluggable ZooKeeper authentication";

export const authChecks: readonly RunnableCheck[] = [
  {
    name: 'auth.who-am-i',
    title: 'whoAmI lists the address and each identity of the session, without passwords',
    behaviourIds: ['A16', 'B48'],
    docs: 'ZooKeeper.whoAmI; ZOOKEEPER-3969',
    since: [3, 7, 0],
    async run(context) {
      const zk = await context.openClient();
      expectEqual('schemes at first', [...new Set((await zk.whoAmI()).map(({ authScheme }) => authScheme))], ['ip']);
      await zk.addAuth('digest', identities.alice);
      await zk.addAuth('digest', identities.bob);
      const users = (await zk.whoAmI()).filter(({ authScheme }) => authScheme === 'digest').map(({ user }) => user);
      expectEqual('users', users.toSorted(), ['alice', 'bob']);
    },
  },
  {
    name: 'auth.refused',
    title: 'an unknown scheme fails with AuthFailed and ends the session of the client',
    behaviourIds: ['C2-2', 'B40'],
    docs: `${docs}; KeeperException.AuthFailedException`,
    async run(context) {
      const zk = await context.openClient();
      await expectError('addAuth', zk.addAuth('nonsense', 'x'), 'AuthFailed');
      expectEqual('the reason for the end of the client', zk.endReason, 'authFailed');
      await expectError('a later call', zk.exists(context.rootPath), 'AuthFailed');
    },
  },
  {
    name: 'auth.frames',
    title: 'auth is answered with its xid -4, and a rejection (-115) closes the connection',
    behaviourIds: ['A10'],
    docs: 'ZooKeeperServer.processPacket, OpCode.auth',
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const auth = (scheme: string, text: string) =>
        cnxn.call(OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme, auth: Buffer.from(text) }), Xid.auth);
      const good = await auth('digest', identities.alice);
      expectEqual('xid and error', [good?.xid, good?.err], [Xid.auth, 0]);
      const bad = await auth('nonsense', 'x');
      expectEqual('xid and error of a rejection', [bad?.xid, bad?.err], [Xid.auth, -115]);
      await context.waitFor('the end of the connection after a rejected identity', cnxn.closed());
    },
  },
  {
    name: 'auth.after-a-reconnect',
    title: 'a client sends its identities again on the next connection, before everything else',
    behaviourIds: ['B40'],
    docs: `${docs}; ClientCnxn.SendThread.primeConnection`,
    async run(context) {
      const faultyTransport = new FaultyTransport();
      const zk = await context.openClient({ transport: faultyTransport });
      await zk.addAuth('digest', identities.alice);
      await zk.addAuth('digest', identities.keeper);
      const { path } = await zk.create(`${context.rootPath}/mine`, 'x', { acl: creatorAcl });
      const back = nextState(zk, 'SyncConnected');
      faultyTransport.cutConnections();
      await context.waitFor('a new connection', back);
      expectEqual('data of its own znode', textOf((await zk.getData(path)).data), 'x');
    },
  },
];
