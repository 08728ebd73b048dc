/**
 * Scenarios of configuration errors: ids, lists of servers, addresses. A misconfigured server does
 * not count, and a log line says so.
 */
import { CreateMode, openAcl, type QuorumConfig, type QuorumServer, type Sid } from '@tskeeper/protocol';
import type { EnsembleOptions, LogEvent } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, ScenarioRun } from './scenario.ts';

/** Longer than a server may be silent, and what follows that. */
const detectionMs = 3000;

/** A client of this server writes several times and gets a reply each time. */
async function expectWritesServed(scenario: ScenarioRun, client: RawClient, name: string): Promise<void> {
  for (let count = 0; count < 5; count++) {
    await scenario.request(client, 'create', { path: `/${name}-${count}`, data: null, acl: openAcl, flags: CreateMode.persistent });
    await scenario.world.run(detectionMs / 5);
  }
}

/** Restarts a server with a changed configuration. */
function restartMisconfigured(
  scenario: ScenarioRun,
  server: ServerHost,
  change: (member: EnsembleOptions) => EnsembleOptions,
): EnsembleOptions {
  server.kill();
  const before = server.ensembleOptions!;
  server.configure(change(before));
  scenario.run.boot(server);
  return before;
}

/** With the right configuration the server joins again. */
async function restoreConfig(scenario: ScenarioRun, server: ServerHost, member: EnsembleOptions): Promise<void> {
  server.kill();
  server.configure(member);
  scenario.run.boot(server);
  await scenario.waitFor('every server serves', () => scenario.run.allServing);
}

function withServers(quorum: QuorumConfig, change: (servers: Map<Sid, QuorumServer>) => void): QuorumConfig {
  const all = new Map(quorum.servers);
  change(all);
  return { ...quorum, servers: all };
}

function expectLogged(scenario: ScenarioRun, event: LogEvent): void {
  if (scenario.world.servers.some(({ logEvents }) => logEvents.some((each) => each.event === event))) return;
  scenario.run.reportViolation(`no server logged ${event}`);
}

function expectSoleLeader(scenario: ScenarioRun, leader: ServerHost): void {
  const others = scenario.world.servers.filter((server) => server !== leader && server.role === 'leader');
  if (leader.role !== 'leader' || others.length > 0) scenario.run.reportViolation(`${leader.name} is not the only leader`);
}

export const duplicateMyid: Scenario = {
  description:
    'a server is configured with the id of another: the others distinguish the two, there is only one leader, and clients continue',
  run: () =>
    ScenarioRun.executeEnsemble(81, async (scenario) => {
      const { leader } = scenario;
      const [namesake, victim] = scenario.followers as [ServerHost, ServerHost];
      const clients = [await scenario.rawClient({ server: leader }), await scenario.rawClient({ server: namesake })];
      const before = restartMisconfigured(scenario, victim, (member) => ({ ...member, zab: { ...member.zab, sid: namesake.sid } }));
      for (const client of clients) await expectWritesServed(scenario, client, client.name);
      expectSoleLeader(scenario, leader);
      expectLogged(scenario, 'peer.wrong-sid');
      await restoreConfig(scenario, victim, before);
    }),
};

export const unlistedServer: Scenario = {
  description: 'a server has an id that no other server lists: its votes do not count, and it does not complete a quorum',
  run: () =>
    ScenarioRun.executeEnsemble(82, async (scenario) => {
      const { leader } = scenario;
      const [other, victim] = scenario.followers as [ServerHost, ServerHost];
      const client = await scenario.rawClient({ server: leader, timeoutMs: 4000 });
      const before = restartMisconfigured(scenario, victim, (member) => ({
        ...member,
        zab: { ...member.zab, sid: 9 },
        quorum: withServers(member.quorum, (all) => {
          all.set(9, { ...all.get(victim.sid)!, sid: 9 });
          all.delete(victim.sid);
        }),
      }));
      await expectWritesServed(scenario, client, 'with-two');
      expectSoleLeader(scenario, leader);
      // Two of three are needed, and the victim is none of the three.
      other.kill();
      await scenario.world.run(detectionMs);
      const serving = scenario.world.servers.filter(({ role }) => role !== undefined && role !== 'looking');
      if (serving.length > 0) scenario.run.reportViolation(`${serving.map(({ name }) => name).join(', ')} serve without a quorum`);
      scenario.run.boot(other);
      await restoreConfig(scenario, victim, before);
      await scenario.waitForReconnect(client);
    }),
};
