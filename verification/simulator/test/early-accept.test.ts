/**
 * Links on which a component between two servers accepts connections in place of the dialled
 * server, as Docker's proxy, sidecars and tunnels do. A server that does not listen is then not
 * recognisable by a refused connection. A leader that is killed or cut off behind such links has a
 * successor as soon as on other links.
 */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import type { AcceptingProxy } from '@tskeeper/runtime/internal';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { RawClient } from '../src/clients/raw-client.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

const roleOf = ({ process }: ServerHost) => process?.runtime?.inspect.role();
const leadersOf = (world: VirtualWorld) => world.servers.filter((server) => roleOf(server) === 'leader');
const isWhole = (world: VirtualWorld) =>
  leadersOf(world).length === 1 && world.servers.every((server) => roleOf(server) === 'leader' || roleOf(server) === 'follower');

async function started(seed: number, tickTimeMs: number, delayMs: number, early: AcceptingProxy): Promise<VirtualWorld> {
  const world = new VirtualWorld(seed, { servers: 3, ensemble: {}, core: { tickTimeMs, maxSessionTimeoutMs: 40_000 } });
  const random = new SeededRandom(seed);
  // No two segments take the same time; otherwise all seeds would be the same.
  world.wire.conditionsOf = (from, to) => ({ delayMs: world.extraDelayMs(from, to) + random.below(64 * 3) / 64 });
  for (const [at, a] of world.servers.entries()) {
    for (const b of world.servers.slice(at + 1)) {
      const link = world.link(a.name, b.name);
      link.distanceMs = delayMs;
      link.earlyAccept = early;
    }
  }
  for (const server of world.servers) await server.start();
  expect(await world.runUntil(() => isWhole(world), 20_000)).toBe(true);
  await world.run(200 + random.below(3000));
  return world;
}

/** The time until one of these servers serves as the leader. */
async function msUntilLed(world: VirtualWorld, by: readonly ServerHost[]): Promise<number> {
  const sinceMs = world.clock.elapsedMs;
  const isLed = () => by.every((server) => roleOf(server) !== 'looking') && by.some((server) => roleOf(server) === 'leader');
  await world.runUntil(isLed, 60_000);
  const ms = world.clock.elapsedMs - sinceMs;
  expect(isLed(), by.map(roleOf).join()).toBe(true);
  return ms;
}

async function expectWrite(world: VirtualWorld): Promise<void> {
  const client = new RawClient(world, new SeededRandom(1), { name: 'client', address: '10.9.0.1', timeoutMs: 4000 });
  expect(await world.runUntil(() => client.ready, 10_000)).toBe(true);
  const write = client.send('create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
  await world.runUntil(() => write?.reply !== undefined, 5000);
  expect(write?.reply?.err).toBe(0);
}

const rounds = breadth(4, 30);
const kinds: readonly AcceptingProxy[] = [
  { location: 'far end', refusal: 'end', refusalMs: 0, dialTimeoutMs: 4000 },
  { location: 'far end', refusal: 'reset', refusalMs: 5, dialTimeoutMs: 4000 },
  { location: 'near end', refusal: 'end', refusalMs: 1, dialTimeoutMs: 60_000 },
  { location: 'near end', refusal: 'reset', refusalMs: 0, dialTimeoutMs: 1500 },
];

describe.each([2, 20, 100])('with links that accept early and take %i ms', (delayMs) => {
  it.each([200, 2000])(`a leader that is killed has a successor within 3 s, with a tick of %i ms (${rounds} times)`, async (tickTimeMs) => {
    const took: number[] = [];
    for (let seed = 1; seed <= rounds; seed++) {
      const world = await started(seed, tickTimeMs, delayMs, kinds[seed % kinds.length]!);
      const [leader] = leadersOf(world);
      leader!.kill();
      took.push(
        await msUntilLed(
          world,
          world.servers.filter((server) => server !== leader),
        ),
      );
      await expectWrite(world);
    }
    expect(Math.max(...took), took.map(Math.round).join()).toBeLessThanOrEqual(3000);
  });

  it(`a leader that is cut off has a successor within syncLimit and 2 s (${rounds} times)`, async () => {
    const took: number[] = [];
    for (let seed = 1; seed <= rounds; seed++) {
      const world = await started(seed, 200, delayMs, kinds[seed % kinds.length]!);
      const [leader] = leadersOf(world);
      const others = world.servers.filter((server) => server !== leader);
      for (const other of others) world.link(leader!.name, other.name).cut();
      for (const other of others) world.link(other.name, leader!.name).cut();
      took.push(await msUntilLed(world, others));
      await expectWrite(world);
    }
    expect(Math.max(...took), took.map(Math.round).join()).toBeLessThanOrEqual(5 * 200 + 2000);
  });

  it(`a leader that receives nothing but can send has a successor within syncLimit, 2 s and ten link delays (${rounds} times)`, async () => {
    const took: number[] = [];
    for (let seed = 1; seed <= rounds; seed++) {
      const world = await started(seed, 200, delayMs, kinds[seed % kinds.length]!);
      const [leader] = leadersOf(world);
      const others = world.servers.filter((server) => server !== leader);
      for (const other of others) {
        const link = world.link(leader!.name, other.name);
        link.cutOneWay(link.a === leader!.name ? 'backward' : 'forward');
      }
      took.push(await msUntilLed(world, others));
      await expectWrite(world);
    }
    expect(Math.max(...took), took.map(Math.round).join()).toBeLessThanOrEqual(5 * 200 + 2000 + 10 * delayMs);
  });
});
