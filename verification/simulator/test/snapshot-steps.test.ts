import { CreateMode, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { RawClient } from '../src/clients/raw-client.ts';
import { VirtualWorld } from '../src/index.ts';

/** A follower gets a snapshot, and after it the next txns of the leader. */
async function restarted(hasQuota: boolean): Promise<{ steps: number; usage: string | undefined }> {
  const world = new VirtualWorld(1, {
    servers: 3,
    ensemble: { zab: { forceSnapshotSync: true } },
    core: { tickTimeMs: 200, stepUnits: 4 },
  });
  for (const server of world.servers) await server.start();
  const isWhole = () => world.servers.every(({ role }) => role === 'leader' || role === 'follower');
  expect(await world.runUntil(isWhole, 10_000)).toBe(true);
  const leader = world.servers.find(({ role }) => role === 'leader')!;
  const follower = world.servers.find(({ role }) => role === 'follower')!;
  const client = new RawClient(world, new SeededRandom(1), { name: 'writer', address: '10.9.0.1', timeoutMs: 4000, server: leader });
  expect(await world.runUntil(() => client.ready, 10_000)).toBe(true);
  const create = (path: string, data = '') => ({
    kind: 'create' as const,
    path,
    data: Buffer.from(data),
    acl: openAcl,
    flags: CreateMode.persistent,
  });
  const write = async (ops: ReturnType<typeof create>[]) => {
    const call = client.send('multi', { ops });
    expect(await world.runUntil(() => call?.reply !== undefined, 10_000)).toBe(true);
    expect(call?.reply?.err).toBe(0);
  };
  await write([create('/a'), ...Array.from({ length: 100 }, (_, at) => create(`/a/${at}`, 'x'))]);
  await write([create('/zookeeper/quota/a')]);
  if (hasQuota) await write(['limits', 'stats'].map((name) => create(`/zookeeper/quota/a/zookeeper_${name}`, 'count=500')));
  follower.kill();
  const endedBefore = world.recording.stepsYielded.get('sync') ?? 0;
  await follower.start();
  // Txns that the leader commits meanwhile follow the snapshot on the same connection.
  for (let round = 0; round < 5; round++) await write([create(`/a/n${round}`, 'x')]);
  expect(await world.runUntil(isWhole, 10_000)).toBe(true);
  await world.run(500);
  const steps = (world.recording.stepsYielded.get('sync') ?? 0) - endedBefore;
  const reader = new RawClient(world, new SeededRandom(2), { name: 'reader', address: '10.9.0.2', timeoutMs: 4000, server: follower });
  expect(await world.runUntil(() => reader.ready, 10_000)).toBe(true);
  const read = reader.send('getData', { path: '/zookeeper/quota/a/zookeeper_stats', watch: false });
  expect(await world.runUntil(() => read?.reply !== undefined, 10_000)).toBe(true);
  const body = read?.reply?.body as { readonly data: Buffer } | null;
  return { steps, usage: body?.data.toString() };
}

test('a follower that gets a snapshot counts its quotas in many steps, and processes nothing of its leader in between', async () => {
  const { steps, usage } = await restarted(true);
  expect(usage).toBe('count=106,bytes=105');
  // Four znodes per step.
  expect(steps - (await restarted(false)).steps).toBeGreaterThan(106 / 4);
});
