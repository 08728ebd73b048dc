/**
 * Ensembles of real processes elect a leader, serve at every server, and continue without lost
 * servers as long as a quorum remains.
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';
import { describe, expect, it } from 'vitest';
import { endpointOf, OperationClient } from '@tskeeper/harness';
import { inFolder, modesOf, startEnsemble } from './servers.ts';

const notServing = 'This ZooKeeper instance is not currently serving requests\n';

/**
 * Served by a server that has a leader: one that has not noticed the end of its leader yet still
 * answers reads.
 */
async function isServed(zk: Client): Promise<true | undefined> {
  try {
    await zk.sync('/');
    return true;
  } catch (error) {
    if (KeeperError.is(error, 'ConnectionLoss')) return undefined;
    throw error;
  }
}

describe('an ensemble of three', () => {
  it('serves writes at each server, and continues when its leader is killed', async () => {
    await inFolder(async (folder) => {
      await using ensemble = await startEnsemble(folder, { voters: 3, observers: 1 });
      expect((await modesOf(ensemble)).toSorted()).toEqual(['follower', 'follower', 'leader', 'observer']);
      for (const { sid, connectString } of ensemble.peers) {
        await using zk = await connect(connectString);
        await zk.create(`/by-${sid}`, `${sid}`);
      }
      await using zk = await connect(ensemble.connectString);
      const leader = (await ensemble.leader()).sid;
      await ensemble.kill(leader);
      await ensemble.leader();
      await ensemble.until('clients are served', () => isServed(zk));
      await zk.create('/after', 'the leader has gone');
      await ensemble.start([leader]);
      for (const { connectString } of ensemble.peers) {
        await using reader = await connect(connectString);
        await reader.sync('/');
        expect((await reader.getChildren('/')).children.toSorted()).toEqual(['after', 'by-1', 'by-2', 'by-3', 'by-4', 'zookeeper']);
      }
    });
  });

  it('reads a dynamic configuration file, and keeps everything when all servers are killed at once', async () => {
    await inFolder(async (folder) => {
      await using ensemble = await startEnsemble(folder, { voters: 3, hasDynamicFile: true });
      const zk = await connect(ensemble.connectString);
      for (let n = 0; n < 50; n++) await zk.create(`/n${n}`, `${n}`);
      await ensemble.kill(1, 2, 3);
      await ensemble.start([1, 2, 3]);
      await ensemble.until('the session goes on', async () => (await zk.exists('/n49').catch(() => null)) ?? undefined);
      expect((await zk.getChildren('/')).children).toHaveLength(51);
      await zk.close();
    });
  });
});

describe('an ensemble of eleven', () => {
  it('C0-14: serves without five of its servers, C0-15: rejects requests without six, and serves again when one restarts', async () => {
    await inFolder(async (folder) => {
      await using ensemble = await startEnsemble(folder, { voters: 11 });
      const leader = (await ensemble.leader()).sid;
      // The leader is among the first to end.
      const down = [leader, ...ensemble.peers.map(({ sid }) => sid).filter((sid) => sid !== leader)].slice(0, 6);
      await using zk = await connect(ensemble.connectString);
      await zk.create('/a', 'all');
      await ensemble.kill(...down.slice(0, 5));
      await ensemble.until('six serve', async () => {
        const modes = await modesOf(ensemble);
        return (modes.includes('leader') && !modes.includes('none')) || undefined;
      });
      await ensemble.until('clients are served', () => isServed(zk));
      expect(await zk.exists('/a')).not.toBeNull();
      await zk.create('/b', 'six of eleven');

      await ensemble.kill(down[5]!);
      await ensemble.until('no server serves', async () => (await modesOf(ensemble)).every((mode) => mode === 'none') || undefined);
      for (const server of ensemble.running) {
        expect(await server.ask('srvr')).toBe(notServing);
        const client = await OperationClient.open(endpointOf(server.connectString));
        expect(await client.openSession(10_000)).toBeUndefined();
      }

      await ensemble.launch([down[3]!]);
      await ensemble.until('clients are served', () => isServed(zk));
      expect(await zk.exists('/b')).not.toBeNull();
      await zk.create('/c', 'six again');
      expect((await zk.getChildren('/')).children.toSorted()).toEqual(['a', 'b', 'c', 'zookeeper']);
    });
  });
});
