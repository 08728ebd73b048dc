/**
 * Scenarios of configuration errors: ids, lists of servers, addresses. A misconfigured server does
 * not count, and a log line says so.
 */
import { CreateMode, openAcl, type QuorumConfig, type QuorumServer, type Sid } from '@tskeeper/protocol';
import type { MemberOptions } from '@tskeeper/runtime';
import type { RawClient } from '../clients/raw-client.ts';
import type { ServerHost } from '../world/server-host.ts';
import { type Scenario, Scene } from './scenario.ts';

/** Longer than a server may be silent, and what follows that. */
const noticedMs = 3000;

/** A client of this server writes several times and gets a reply each time. */
async function goesOn(scene: Scene, client: RawClient, name: string): Promise<void> {
  for (let count = 0; count < 5; count++) {
    await scene.ask(client, 'create', { path: `/${name}-${count}`, data: null, acl: openAcl, flags: CreateMode.persistent });
    await scene.world.run(noticedMs / 5);
  }
}

/** Restarts a server with a changed configuration. */
function startsWith(scene: Scene, server: ServerHost, change: (member: MemberOptions) => MemberOptions): MemberOptions {
  server.kill();
  const before = server.member!;
  server.configure(change(before));
  scene.stage.boot(server);
  return before;
}

/** With the right configuration the server joins again. */
async function isCorrected(scene: Scene, server: ServerHost, member: MemberOptions): Promise<void> {
  server.kill();
  server.configure(member);
  scene.stage.boot(server);
  await scene.until('every server serves', () => scene.stage.isWhole);
}

function withServers(quorum: QuorumConfig, change: (servers: Map<Sid, QuorumServer>) => void): QuorumConfig {
  const all = new Map(quorum.servers);
  change(all);
  return { ...quorum, servers: all };
}

function someoneSays(scene: Scene, pattern: RegExp): void {
  if (scene.world.servers.some(({ lines }) => lines.some((line) => pattern.test(line)))) return;
  scene.stage.complain(`no server logged ${pattern.source}`);
}

function onlyLeader(scene: Scene, leader: ServerHost): void {
  const others = scene.world.servers.filter((server) => server !== leader && server.role === 'leader');
  if (leader.role !== 'leader' || others.length > 0) scene.stage.complain(`${leader.name} is not the only leader`);
}

export const doubledMyid: Scenario = {
  story: 'a server is configured with the id of another: the others tell the two apart, there is only one leader, and clients continue',
  run: () =>
    Scene.playEnsemble(81, async (scene) => {
      const { leader } = scene;
      const [namesake, victim] = scene.followers as [ServerHost, ServerHost];
      const clients = [await scene.raw({ server: leader }), await scene.raw({ server: namesake })];
      const before = startsWith(scene, victim, (member) => ({ ...member, zab: { ...member.zab, sid: namesake.sid } }));
      for (const client of clients) await goesOn(scene, client, client.name);
      onlyLeader(scene, leader);
      someoneSays(scene, /two servers have one myid/);
      await isCorrected(scene, victim, before);
    }),
};

export const unlistedServer: Scenario = {
  story: 'a server has an id that no other server lists: its votes do not count, and it does not complete a quorum',
  run: () =>
    Scene.playEnsemble(82, async (scene) => {
      const { leader } = scene;
      const [other, victim] = scene.followers as [ServerHost, ServerHost];
      const client = await scene.raw({ server: leader, timeoutMs: 4000 });
      const before = startsWith(scene, victim, (member) => ({
        ...member,
        zab: { ...member.zab, sid: 9 },
        quorum: withServers(member.quorum, (all) => {
          all.set(9, { ...all.get(victim.sid)!, sid: 9 });
          all.delete(victim.sid);
        }),
      }));
      await goesOn(scene, client, 'with-two');
      onlyLeader(scene, leader);
      // Two of three are needed, and the victim is none of the three.
      other.kill();
      await scene.world.run(noticedMs);
      const serving = scene.world.servers.filter(({ role }) => role !== undefined && role !== 'looking');
      if (serving.length > 0) scene.stage.complain(`${serving.map(({ name }) => name).join(', ')} serve without a quorum`);
      scene.stage.boot(other);
      await isCorrected(scene, victim, before);
      await scene.comesBack(client);
    }),
};
