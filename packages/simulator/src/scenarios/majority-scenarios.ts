/** Scenarios of majorities: any majority serves, and fewer servers do not. */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { keepAll } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import { type Scenario, Scene } from './scenario.ts';

/** Longer than a server may be silent, and what follows that. */
const noticedMs = 3000;

/**
 * Writes until a reply arrives: a connection may be lost meanwhile, which leaves the outcome
 * unknown.
 */
async function insist(scene: Scene, client: RawClient, path: string): Promise<void> {
  const isAnswered = async () => {
    await scene.until(`${client.name} is served`, () => client.ready);
    const record = { path, data: Buffer.from(path), acl: openAcl, flags: CreateMode.persistent };
    const request = client.send('create', record);
    await scene.world.runUntil(() => request?.reply !== undefined || !client.ready, noticedMs);
    return request?.reply !== undefined;
  };
  for (let tries = 0; tries < 20; tries++) if (await isAnswered()) return;
  scene.stage.complain(`${client.name} got no reply to its create of ${path}`);
}

function refuses(scene: Scene): void {
  const serving = scene.world.servers.filter(({ role }) => role === 'leader' || role === 'follower' || role === 'observer');
  if (serving.length > 0) scene.stage.complain(`${serving.map(({ name }) => name).join(', ')} serve without a majority`);
}

export const elevenServers: Scenario = {
  story: 'five of eleven servers end, and the others serve; a sixth ends, and no server serves; one restarts, and they serve again',
  run: () =>
    Scene.playEnsemble(
      71,
      async (scene) => {
        const client = await scene.raw({ timeoutMs: 4000 });
        await insist(scene, client, '/eleven');
        const { servers } = scene.world;
        for (const server of servers.slice(6)) server.kill();
        await insist(scene, client, '/six');
        servers[5]!.kill();
        await scene.world.run(noticedMs);
        refuses(scene);
        servers[9]!.boot();
        await insist(scene, client, '/six-again');
      },
      { servers: 11 },
    ),
};

export const quorumComesBack: Scenario = {
  story:
    'all servers lose power at once, and each time another majority returns: acknowledged writes are there, and fewer than a majority does not serve',
  run: () =>
    Scene.playEnsemble(
      72,
      async (scene) => {
        const client = await scene.raw({ timeoutMs: 4000 });
        const { servers } = scene.world;
        for (let round = 0; round < 5; round++) {
          await insist(scene, client, `/round-${round}`);
          for (const server of servers) if (server.process !== undefined) server.losePower(keepAll);
          const back = [0, 2, 4].map((step) => servers[(round + step) % servers.length]!);
          back[0]!.boot();
          back[1]!.boot();
          await scene.world.run(noticedMs);
          refuses(scene);
          back[2]!.boot();
        }
        await insist(scene, client, '/last');
      },
      { servers: 5 },
    ),
};
