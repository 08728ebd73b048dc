/** Scenarios of majorities: any majority serves, and fewer servers do not. */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { keepAll } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';

/** Longer than a server may be silent, and what follows that. */
const detectionMs = 3000;

/**
 * Writes until a reply arrives: a connection may be lost meanwhile, which leaves the outcome
 * unknown.
 */
async function writeUntilAnswered(scenario: ScenarioRun, client: RawClient, path: string): Promise<void> {
  const isAnswered = async () => {
    await scenario.waitFor(`${client.name} is served`, () => client.ready);
    const record = { path, data: Buffer.from(path), acl: openAcl, flags: CreateMode.persistent };
    const request = client.send('create', record);
    await scenario.world.runUntil(() => request?.reply !== undefined || !client.ready, detectionMs);
    return request?.reply !== undefined;
  };
  for (let tries = 0; tries < 20; tries++) if (await isAnswered()) return;
  scenario.run.reportViolation(`${client.name} got no reply to its create of ${path}`);
}

function expectNotServing(scenario: ScenarioRun): void {
  const serving = scenario.world.servers.filter(({ role }) => role === 'leader' || role === 'follower' || role === 'observer');
  if (serving.length > 0) scenario.run.reportViolation(`${serving.map(({ name }) => name).join(', ')} serve without a majority`);
}

export const elevenServers: Scenario = {
  description: 'five of eleven servers end, and the others serve; a sixth ends, and no server serves; one restarts, and they serve again',
  run: () =>
    ScenarioRun.executeEnsemble(
      71,
      async (scenario) => {
        const client = await scenario.rawClient({ timeoutMs: 4000 });
        await writeUntilAnswered(scenario, client, '/eleven');
        const { servers } = scenario.world;
        for (const server of servers.slice(6)) server.kill();
        await writeUntilAnswered(scenario, client, '/six');
        servers[5]!.kill();
        await scenario.world.run(detectionMs);
        expectNotServing(scenario);
        servers[9]!.boot();
        await writeUntilAnswered(scenario, client, '/six-again');
      },
      { servers: 11 },
    ),
};

export const quorumComesBack: Scenario = {
  description:
    'all servers lose power at once, and each time another majority returns: acknowledged writes are there, and fewer than a majority does not serve',
  run: () =>
    ScenarioRun.executeEnsemble(
      72,
      async (scenario) => {
        const client = await scenario.rawClient({ timeoutMs: 4000 });
        const { servers } = scenario.world;
        for (let round = 0; round < 5; round++) {
          await writeUntilAnswered(scenario, client, `/round-${round}`);
          for (const server of servers) if (server.process !== undefined) server.losePower(keepAll);
          const back = [0, 2, 4].map((step) => servers[(round + step) % servers.length]!);
          back[0]!.boot();
          back[1]!.boot();
          await scenario.world.run(detectionMs);
          expectNotServing(scenario);
          back[2]!.boot();
        }
        await writeUntilAnswered(scenario, client, '/last');
      },
      { servers: 5 },
    ),
};
