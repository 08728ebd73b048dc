/** How a session shows who it is. */
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
    title: 'whoAmI lists the address and each identity that was shown, without passwords',
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
    title: 'a scheme that the server does not know is AuthFailed, and ends the session of the client',
    rows: ['C2-2', 'B40'],
    docs: `${docs}; KeeperException.AuthFailedException`,
    async run(ground) {
      const zk = await ground.open();
      await refused('addAuth', zk.addAuth('nonsense', 'x'), 'AuthFailed');
      equal('why the client is at its end', zk.closedBecause, 'authFailed');
      await refused('a call behind it', zk.exists(ground.root), 'AuthFailed');
    },
  },
  {
    name: 'auth.frames',
    title: 'auth is answered with its xid of -4, and a refusal (-115) closes the connection',
    rows: ['A10'],
    docs: 'ZooKeeperServer.processPacket, OpCode.auth',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const auth = (scheme: string, text: string) =>
        cnxn.call(OpCode.auth, (writer) => operations.auth.request.write(writer, { type: 0, scheme, auth: Buffer.from(text) }), Xid.auth);
      const good = await auth('digest', identities.alice);
      equal('xid and error', [good?.xid, good?.err], [Xid.auth, 0]);
      const bad = await auth('nonsense', 'x');
      equal('xid and error of a refusal', [bad?.xid, bad?.err], [Xid.auth, -115]);
      await ground.until('an end of the connection whose identity was refused', cnxn.closed());
    },
  },
  {
    name: 'auth.after-a-reconnect',
    title: 'identities are shown again on the next connection, ahead of everything else',
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
      equal('what is its own', textOf((await zk.getData(path)).data), 'x');
    },
  },
];
