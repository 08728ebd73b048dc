/** Local sessions of a whole ensemble, as its configuration asks for them. */
import { connect, KeeperError } from '@tskeeper/client';
import { describe, expect, it } from 'vitest';
import { type EnsembleServer, TestEnsemble } from '../src/index.ts';

function countsOf(servers: readonly EnsembleServer[]): string[] {
  return servers.map(({ inspect }) => `${inspect.sessionCount()} ${inspect.localSessionCount()}`);
}

describe('an ensemble with local sessions', () => {
  it('A33: with localSessionsEnabled, a session is known to its own server, and may not own an ephemeral', async () => {
    await using ensemble = await TestEnsemble.start({ config: { localSessionsEnabled: true } });
    const before = ensemble.leader.inspect.lastZxid();
    for (const [at, server] of ensemble.servers.entries()) {
      await using client = await connect(server.connectString);
      expect(countsOf(ensemble.servers)).toEqual(ensemble.servers.map((each) => (each === server ? '0 1' : '0 0')));
      const refused = await client.create('/e', undefined, { mode: 'ephemeral' }).catch((error: unknown) => error as KeeperError);
      expect(refused).toMatchObject({ code: 'EphemeralOnLocalSession', outcome: 'refused' });
      expect((refused as KeeperError).message).toContain('set localSessionsUpgradingEnabled=true on all of them');
      await client.create(`/p${at}`);
    }
    await ensemble.synced();
    // A refusal and a create through each server, and nothing for their sessions.
    expect(ensemble.leader.inspect.lastZxid()).toBe(before + 2 * ensemble.servers.length);
  });

  it('A33: with localSessionsUpgradingEnabled as well, a session becomes global with its first ephemeral, and moves like any other', async () => {
    await using ensemble = await TestEnsemble.start({ config: { localSessionsEnabled: true, localSessionsUpgradingEnabled: true } });
    const [server] = ensemble.followers;
    await using client = await connect(`${server!.connectString},${ensemble.leader.connectString}`);
    const { sessionId } = client;
    await client.create('/e', undefined, { mode: 'ephemeral' });
    await ensemble.synced();
    expect(countsOf(ensemble.servers)).toEqual(ensemble.servers.map(() => '1 0'));
    await server!.stop();
    await client.sync('/').catch(() => client.sync('/'));
    expect([client.sessionId, (await client.exists('/e'))?.ephemeralOwner]).toEqual([sessionId, sessionId]);
  });
});
