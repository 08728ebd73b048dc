/** Sessions that only their own server knows (`localSessionsEnabled`). */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError } from '../expect.ts';

const docs = "Administrator's Guide, localSessionsEnabled and localSessionsUpgradingEnabled";
const needs = ['ensemble', 'localSessions'] as const;

export const localSessionChecks: readonly RunnableCheck[] = [
  {
    name: 'local-sessions.own-server-only',
    title: 'a local session is resumed at its own server, and has expired for every other',
    behaviourIds: ['A33'],
    docs,
    needs,
    async run(context) {
      const opened = await context.openRawCnxn(0);
      const { response } = (await opened.handshake())!;
      const session = { id: response.sessionId, password: new Uint8Array(response.passwd!) };
      opened.destroy();
      const resumed = await context.openRawCnxn(0);
      expectEqual('the id at its own server', (await resumed.handshake({ session }))?.response.sessionId, session.id);
      for (const [server] of context.facts.servers.entries()) {
        if (server === 0) continue;
        const elsewhere = await context.openRawCnxn(server);
        expectEqual('the granted timeout at another server', (await elsewhere.handshake({ session }))?.response.timeOut, 0);
      }
      // The attempts elsewhere have not ended it.
      const record = { path: context.rootPath, data: Buffer.from('x'), version: -1 };
      const reply = await resumed.call(OpCode.setData, (writer) => operations.setData.request.write(writer, record));
      expectEqual('the error of a write', reply?.err, 0);
    },
  },
  {
    name: 'local-sessions.first-ephemeral',
    title:
      'a local session becomes global with its first ephemeral znode; without localSessionsUpgradingEnabled that is refused with EphemeralOnLocalSession',
    behaviourIds: ['A33'],
    docs,
    needs,
    async run(context) {
      const zk = await context.openClient({ server: 0, yieldSession: true });
      const path = `${context.rootPath}/e`;
      if (context.facts.localSessions === 'enabled') {
        await expectError('the create', zk.create(path, null, { mode: 'ephemeral' }), 'EphemeralOnLocalSession');
        // It goes on without.
        const { stat } = await zk.create(`${context.rootPath}/p`);
        expectEqual('the owner of a persistent znode', stat.ephemeralOwner, 0n);
        expectEqual('the ephemeral znode', await zk.exists(path), null);
        return;
      }
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      const { stat } = await zk.create(path, null, { mode: 'ephemeral' });
      expectEqual('the owner of the ephemeral znode', stat.ephemeralOwner, session.id);
      const elsewhere = await context.openClient({ server: 1, session });
      expectEqual('the id at another server', elsewhere.sessionId, session.id);
      await elsewhere.close();
      const other = await context.openClient({ server: 0 });
      await context.catchUp(other);
      expectEqual('the ephemeral znode after the end of the session', await other.exists(path), null);
    },
  },
];
