/**
 * A live client keeps its session while servers are paused. A dead client loses its session in
 * time, whatever other clients request.
 */
import { CreateMode, epochOf, type Millis, OpCode, openAcl, PacketType } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { RawClient } from '../src/clients/raw-client.ts';
import { check, findingText, VirtualWorld } from '../src/index.ts';
import { SidClaimant } from '../src/scenarios/sid-claimant.ts';
import type { ServerHost } from '../src/world/server-host.ts';

const tickTimeMs = 200;

async function started(world: VirtualWorld): Promise<VirtualWorld> {
  world.wire.conditionsOf = () => ({ delayMs: 0.5 });
  for (const server of world.servers) await server.start();
  const serves = new Set(['leader', 'follower', 'standalone']);
  expect(await world.runUntil(() => world.servers.every(({ role }) => role !== undefined && serves.has(role)), 10_000)).toBe(true);
  return world;
}

let clients = 0;
async function client(world: VirtualWorld, server: ServerHost, timeoutMs: Millis): Promise<RawClient> {
  const number = ++clients;
  const found = new RawClient(world, new SeededRandom(number), {
    name: `client-${number}`,
    address: `10.9.0.${number}`,
    timeoutMs,
    server,
  });
  expect(await world.runUntil(() => found.ready, 10_000)).toBe(true);
  return found;
}

describe('C2-15: a session does not expire (P21)', () => {
  test.each([450, 500, 600, 700, 800, 900])('when the leader is paused for %d ms, which is shorter than syncLimit', async (ms) => {
    const world = await started(new VirtualWorld(ms, { servers: 3, ensemble: {}, core: { tickTimeMs } }));
    const leader = world.servers.find(({ role }) => role === 'leader')!;
    const owners: RawClient[] = [];
    for (const server of world.servers) owners.push(await client(world, server, 500));
    await world.run(1000);
    leader.process!.pause(ms);
    await world.run(3000);
    expect(leader.role).toBe('leader');
    expect(owners.map(({ lostSessions }) => lostSessions)).toEqual([[], [], []]);
  });

  test('when its follower is paused and the client sends to it during the pause', async () => {
    const world = await started(new VirtualWorld(1, { servers: 3, ensemble: {}, core: { tickTimeMs } }));
    const follower = world.servers.find(({ role }) => role === 'follower')!;
    const owner = await client(world, follower, 500);
    await world.run(1000);
    for (let ms = 0; ms < 800; ms += 100) {
      if (ms === 0) follower.process!.pause(800);
      owner.send('ping', undefined);
      await world.run(100);
    }
    await world.run(2000);
    expect(owner.lostSessions).toEqual([]);
  });
});

test('P21 does not count bytes that reach a closing follower, nor bytes that the follower could not report to its leader before it closed', async () => {
  const world = await started(new VirtualWorld(1, { servers: 3, ensemble: {}, core: { tickTimeMs } }));
  const follower = world.servers.find(({ role }) => role === 'follower')!;
  const owner = await client(world, follower, 500);
  const writer = await client(world, follower, 2000);
  await world.run(1000);
  follower.diskDelayMs = () => 600;
  writer.send('setData', { path: '/', data: Buffer.alloc(1), version: -1 });
  for (let ms = 0; ms < 1000; ms += 50) world.clock.at(world.clock.elapsedMs + ms, 'ping', undefined, () => owner.send('ping', undefined));
  await world.run(10);
  await follower.stop();
  owner.abandon();
  await world.run(3000);
  await world.readLogs();
  expect(world.recording.log.map(({ logged }) => logged.header.type)).toContain(OpCode.closeSession);
  expect(check(world.recording).map(findingText)).toEqual([]);
});

test('the checkers of expiry do not count bytes that reach a connection which its server has closed', async () => {
  const options = { largeRequestThreshold: 100, largeRequestMaxBytes: 1000 };
  const world = await started(new VirtualWorld(1, { servers: 1, core: { tickTimeMs }, options }));
  world.wire.conditionsOf = () => ({ delayMs: 100 });
  const owner = await client(world, world.server, 2000);
  owner.abandon();
  owner.send('setData', { path: '/', data: Buffer.alloc(1100), version: -1 });
  await world.run(190);
  owner.send('ping', undefined);
  await world.run(3000);
  await world.readLogs();
  expect(world.recording.log.map(({ logged }) => logged.header.type)).toEqual([OpCode.createSession, OpCode.closeSession]);
  expect(check(world.recording).map(findingText)).toEqual([]);
});

describe('P22: a session without a client ends within its timeout, a tick and a second', () => {
  /** Requests that take many steps each, one after the other, and more than the servers can do. */
  function keepBusy(world: VirtualWorld, busy: readonly RawClient[], kind: 'checks' | 'listings'): void {
    const ops = Array.from({ length: 1000 }, () => ({ kind: 'check' as const, path: '/', version: -1 }));
    const more = () => {
      for (const each of busy) {
        if (!each.ready || each.outstandingCount > 4) continue;
        if (kind === 'checks') each.send('multi', { ops });
        else each.send('getChildren', { path: '/many', watch: false });
      }
      world.clock.at(world.clock.elapsedMs + 5, 'work', undefined, more);
    };
    more();
  }

  test.each([
    ['checks', 'standalone', 'standalone'],
    ['listings', 'standalone', 'standalone'],
    ['checks', 'leader', 'leader'],
    ['listings', 'leader', 'follower'],
    ['checks', 'follower', 'leader'],
    ['listings', 'follower', 'follower'],
  ] as const)(
    'while other clients request many %s from the %s and the session belongs to a client of the %s',
    async (kind, where, whose) => {
      const ensemble = where === 'standalone' ? {} : { servers: 3, ensemble: {} };
      const world = await started(new VirtualWorld(7, { ...ensemble, core: { tickTimeMs, stepUnits: 1000 } }));
      const find = (role: string) => world.servers.find((server) => server.role === role)!;
      const maker = await client(world, find(where), 4000);
      maker.send('create', { path: '/many', data: null, acl: openAcl, flags: CreateMode.persistent });
      const ops = Array.from({ length: 2000 }, () => ({
        kind: 'create' as const,
        path: '/many/n-',
        data: null,
        acl: openAcl,
        flags: CreateMode.persistentSequential,
      }));
      for (let count = 0; count < 2; count++) maker.send('multi', { ops });
      expect(await world.runUntil(() => maker.outstandingCount === 0, 10_000)).toBe(true);
      const busy: RawClient[] = [];
      for (let count = 0; count < 4; count++) busy.push(await client(world, find(where), 4000));
      const honest = await client(world, find(whose), 1000);
      const dead = await client(world, find(whose), 1000);
      dead.send('create', { path: '/lock', data: null, acl: openAcl, flags: CreateMode.ephemeral });
      await world.run(100);
      for (const server of world.servers) server.turnMs = () => 2;
      keepBusy(world, busy, kind);
      await world.run(500);
      dead.abandon();
      dead.goOffline(1_000_000);
      const silentMs = world.clock.elapsedMs;
      const { inspect } = find(whose).process!.runtime!;
      expect(await world.runUntil(() => inspect.ephemeralCount() === 0, 20_000)).toBe(true);
      const livedMs = world.clock.elapsedMs - silentMs;
      expect(livedMs).toBeLessThanOrEqual(1000 + tickTimeMs + 1000);
      await world.run(2000);
      expect([honest, ...busy].map(({ lostSessions }) => lostSessions)).toEqual([[], [], [], [], []]);
    },
  );

  test('after the request in progress, however long that takes, and P22 excuses no more than that', async () => {
    const world = await started(new VirtualWorld(9, { servers: 1, core: { tickTimeMs, stepUnits: 4 } }));
    const writer = await client(world, world.server, 4000);
    const dead = await client(world, world.server, 600);
    dead.abandon();
    dead.goOffline(1_000_000);
    await world.run(200);
    world.server.turnMs = () => 1;
    const ops = Array.from({ length: 600 }, () => ({ kind: 'setData' as const, path: '/', data: null, version: -1 }));
    writer.send('multi', { ops });
    await world.run(4000);
    world.server.turnMs = () => 0;
    await world.run(1000);
    await world.readLogs();
    expect(world.recording.log.map(({ logged }) => logged.header.type)).toContain(OpCode.closeSession);
    const longestMs = Math.max(...world.recording.jobs.map(({ fromMs, toMs }) => toMs - fromMs));
    expect(longestMs).toBeGreaterThan(2 * tickTimeMs);
    expect(check(world.recording).map(findingText)).toEqual([]);
    world.recording.jobs.length = 0;
    expect(check(world.recording).map(({ checker }) => checker)).toEqual(['lateExpiry']);
  });

  test('though unconfigured observers join one after the other and answer no PING', async () => {
    const world = await started(new VirtualWorld(8, { servers: 3, ensemble: { zab: { syncLimitTicks: 20 } }, core: { tickTimeMs } }));
    const find = (role: string) => world.servers.find((server) => server.role === role)!;
    const leader = find('leader');
    const dead = await client(world, find('follower'), 1000);
    dead.send('create', { path: '/lock', data: null, acl: openAcl, flags: CreateMode.ephemeral });
    const epoch = epochOf(leader.process!.runtime!.inspect.lastZxid());
    const strangers: SidClaimant[] = [];
    const come = () => {
      const stranger = new SidClaimant(world, `10.6.3.${strangers.length}`);
      strangers.push(stranger);
      stranger.claimSid(leader.address!, 100 + strangers.length, PacketType.OBSERVERINFO, 0);
      world.clock.at(world.clock.elapsedMs + 50, 'accepts', undefined, () => stranger.acceptEpoch(epoch));
      world.clock.at(world.clock.elapsedMs + 300, 'comes', undefined, come);
    };
    come();
    await world.run(700);
    expect(strangers.map(({ answeredCount }) => answeredCount)).toEqual([1, 1, 1]);
    dead.abandon();
    dead.goOffline(1_000_000);
    const silentMs = world.clock.elapsedMs;
    const { inspect } = leader.process!.runtime!;
    expect(await world.runUntil(() => inspect.ephemeralCount() === 0, 20_000)).toBe(true);
    expect(world.clock.elapsedMs - silentMs).toBeLessThanOrEqual(1000 + tickTimeMs + 1000);
  });
});
