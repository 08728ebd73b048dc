import { CreateMode, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { RawClient } from '../src/clients/raw-client.ts';
import { connectRawClient, VirtualWorld } from '../src/index.ts';

test('E28: after a pause no session expires whose client sent meanwhile, even if requests of others take many steps', async () => {
  const world = new VirtualWorld(1);
  const server = await world.server.start();
  const busy = await connectRawClient(world, 1000);
  const others = [await connectRawClient(world, 1000), await connectRawClient(world, 1000)];
  server.pause(3000);
  busy.send('multi', {
    ops: Array.from({ length: 5000 }, () => ({
      kind: 'create' as const,
      path: '/n-',
      data: Buffer.from('x'),
      acl: openAcl,
      flags: CreateMode.persistentSequential,
    })),
  });
  for (const client of others) client.send('ping', undefined);
  await world.run(3500);
  expect([busy, ...others].map(({ lostSessions }) => lostSessions)).toEqual([[], [], []]);
});

describe('P10: after a pause longer than syncLimit', () => {
  const tickTimeMs = 200;

  async function threeServers(seed: number) {
    const world = new VirtualWorld(seed, { servers: 3, ensemble: {}, core: { tickTimeMs } });
    world.wire.conditionsOf = () => ({ delayMs: 0.5 });
    for (const server of world.servers) await server.start();
    const isWhole = () => world.servers.every(({ role }) => role === 'leader' || role === 'follower');
    expect(await world.runUntil(isWhole, 10_000)).toBe(true);
    return world;
  }

  test.each(['leader', 'follower'])('a %s does not answer from its old state a request that arrived during the pause', async (role) => {
    for (const seed of [1, 2, 3]) {
      const world = await threeServers(seed);
      const paused = world.servers.find((server) => server.role === role)!;
      const client = new RawClient(world, new SeededRandom(seed), {
        name: 'reader',
        address: '10.9.0.1',
        timeoutMs: 20_000,
        server: paused,
      });
      const writer = new RawClient(world, new SeededRandom(seed), {
        name: 'writer',
        address: '10.9.0.2',
        timeoutMs: 20_000,
        server: world.servers.find((server) => server !== paused)!,
      });
      expect(await world.runUntil(() => client.ready && writer.ready, 10_000)).toBe(true);
      paused.process!.pause(2500);
      await world.run(1900);
      expect(await world.runUntil(() => writer.ready, 10_000)).toBe(true);
      const created = writer.send('create', { path: '/new', data: null, acl: openAcl, flags: CreateMode.persistent });
      const read = client.send('exists', { path: '/new', watch: false });
      expect(await world.runUntil(() => created?.reply?.err === 0, 500)).toBe(true);
      await world.run(2000);
      expect(read?.reply?.err, `seed ${seed}`).toBeUndefined();
    }
  });
});
