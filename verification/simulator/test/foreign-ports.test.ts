/** F25: a server that was configured with the ports of another ensemble. */
import { CreateMode, openAcl, type QuorumConfig, type Sid } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { RawClient } from '../src/clients/raw-client.ts';
import { isIdle } from '../src/run/run.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

/** Longer than a server may be silent, and the time to react to it. */
const noticedMs = 3000;

function only(quorum: QuorumConfig, sids: readonly Sid[]): QuorumConfig {
  return { ...quorum, servers: new Map([...quorum.servers].filter(([sid]) => sids.includes(sid))) };
}

const isLed = (servers: readonly ServerHost[], count: number) =>
  servers.filter(({ role }) => role === 'leader').length === 1 && servers.filter(({ role }) => role === 'follower').length === count - 1;

async function childrenSeenBy(
  world: VirtualWorld,
  server: ServerHost,
  create: string | undefined,
  number: number,
): Promise<readonly string[]> {
  const options = { name: `client-${number}`, address: `10.9.0.${number}`, timeoutMs: 4000, server };
  const client = new RawClient(world, new SeededRandom(number), options);
  expect(await world.runUntil(() => client.ready, 5000)).toBe(true);
  if (create !== undefined) client.send('create', { path: create, data: null, acl: openAcl, flags: CreateMode.persistent });
  const listing = client.send('getChildren', { path: '/', watch: false });
  expect(await world.runUntil(() => isIdle(client), 5000)).toBe(true);
  client.abandon();
  return (listing!.reply!.body as { readonly children: readonly string[] }).children;
}

test('a server with the ports of another ensemble joins neither ensemble, does not lead, and moves no data between them', async () => {
  const world = new VirtualWorld(1, { servers: 6, ensemble: {} });
  const [ours, theirs] = [world.servers.slice(0, 3), world.servers.slice(3)];
  for (const server of world.servers) {
    const member = server.ensembleOptions!;
    server.configure({ ...member, quorum: only(member.quorum, server.sid <= 3 ? [1, 2, 3] : [4, 5, 6]) });
    await server.start();
  }
  expect(await world.runUntil(() => isLed(ours, 3) && isLed(theirs, 3), 10_000)).toBe(true);
  const victim = theirs.find(({ role }) => role === 'follower')!;
  const staying = theirs.filter((server) => server !== victim);
  const leaders = [...ours, ...staying].filter(({ role }) => role === 'leader');
  await childrenSeenBy(world, ours[0]!, '/ours', 1);
  await childrenSeenBy(world, staying[0]!, '/theirs', 2);

  const right = victim.ensembleOptions!;
  const foreign = new Map(
    [...right.quorum.servers].map(([sid, server]) => [
      sid,
      sid === victim.sid ? server : { ...server, addresses: [{ ...server.addresses[0]!, host: `server-${sid - 3}` }] },
    ]),
  );
  victim.kill();
  victim.configure({ ...right, quorum: { ...right.quorum, servers: foreign } });
  const { length } = world.recording.peerEvents;
  victim.boot();
  await world.run(noticedMs);
  expect(victim.role).toBe('looking');
  expect(leaders.map(({ role }) => role)).toEqual(['leader', 'leader']);
  expect(
    world.recording.peerEvents
      .slice(length)
      .filter(({ kind, server }) => kind === 'roleEnded' || (kind === 'serves' && server === victim.name)),
  ).toEqual([]);
  expect(await childrenSeenBy(world, ours[1]!, undefined, 3)).toEqual(['zookeeper', 'ours']);
  expect(await childrenSeenBy(world, staying[1]!, undefined, 4)).toEqual(['zookeeper', 'theirs']);

  victim.kill();
  victim.configure(right);
  victim.boot();
  expect(await world.runUntil(() => victim.role === 'follower', 5000)).toBe(true);
  expect(await childrenSeenBy(world, victim, undefined, 5)).toEqual(['zookeeper', 'theirs']);
});
