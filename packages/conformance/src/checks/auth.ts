/** Authentication of a session. */
import { creatorAcl } from '@tskeeper/client';
import { OpCode, operations, Xid } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, refused, textOf } from '../expect.ts';
import { identities, nextState } from '../ground.ts';
import { Wire } from '../wire.ts';

const docs = "Programmer's Guide, Pluggable ZooKeeper authentication";

export const authChecks: readonly RunnableCheck[] = [
  {
    name: 'auth.who-am-i',
    title: 'whoAmI lists the address and each identity of the session, without passwords',
    rows: ['A16', 'B48'],
    docs: 'ZooKeeper.whoAmI; ZOOKEEPER-3969',
    since: [3, 7, 0],
    async run(ground) {
      const zk = await ground.open();
      equal('schemes at first', [...new Set((await zk.whoAmI()).map(({ authScheme }) => authScheme))], ['ip']);
      await zk.addAuth('digest', identities.alice);
      await zk.addAuth('digest', identities.bob);
      const users = (await zk.whoAmI()).filter(({ authScheme }) => authScheme === 'digest').map(({ user }) => user);
      equal('users', users.toSorted(), ['alice', 'bob']);
    },
  },
  {
    name: 'auth.refused',
    title: 'an unknown scheme fails with AuthFailed and ends the session of the client',
    rows: ['C2-2', 'B40'],
    docs: `${docs}; KeeperException.AuthFailedException`,
    async run(ground) {
      const zk = await ground.open();
      await refused('addAuth', zk.addAuth('nonsense', 'x'), 'AuthFailed');
      equal('the reason for the end of the client', zk.closedBecause, 'authFailed');
      await refused('a later call', zk.exists(ground.root), 'AuthFailed');
    },
  },
  {
    name: 'auth.frames',
    title: 'auth is answered with its xid -4, and a rejection (-115) closes the connection',
    rows: ['A10'],
    docs: 'ZooKeeperServer.processPacket, OpCode.auth',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const auth = (scheme: string, text: string) =>
        cnxn.call(OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme, auth: Buffer.from(text) }), Xid.auth);
      const good = await auth('digest', identities.alice);
      equal('xid and error', [good?.xid, good?.err], [Xid.auth, 0]);
      const bad = await auth('nonsense', 'x');
      equal('xid and error of a rejection', [bad?.xid, bad?.err], [Xid.auth, -115]);
      await ground.until('the end of the connection after a rejected identity', cnxn.closed());
    },
  },
  {
    name: 'auth.after-a-reconnect',
    title: 'a client sends its identities again on the next connection, before everything else',
    rows: ['B40'],
    docs: `${docs}; ClientCnxn.SendThread.primeConnection`,
    async run(ground) {
      const wire = new Wire();
      const zk = await ground.open({ transport: wire });
      await zk.addAuth('digest', identities.alice);
      await zk.addAuth('digest', identities.keeper);
      const { path } = await zk.create(`${ground.root}/mine`, 'x', { acl: creatorAcl });
      const back = nextState(zk, 'SyncConnected');
      wire.cut();
      await ground.until('a new connection', back);
      equal('data of its own znode', textOf((await zk.getData(path)).data), 'x');
    },
  },
];
