/**
 * Links that are permanently cut between some servers, in one direction or in both (F19). As soon
 * as a quorum can communicate, it must get a leader soon and keep it: P35.
 */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { breadth, sample } from '../../../test/breadth.ts';
import { RawClient } from '../src/clients/raw-client.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

const tickTimeMs = 200;
/** P35: ten times syncLimit. */
const boundMs = 10 * 5 * tickTimeMs;

const roleOf = ({ process }: ServerHost) => process?.runtime?.inspect.role();
const leadersOf = (world: VirtualWorld) => world.servers.filter((server) => roleOf(server) === 'leader');

async function started(seed: number, servers: number): Promise<VirtualWorld> {
  const world = new VirtualWorld(seed, { servers, ensemble: {}, core: { tickTimeMs } });
  world.wire.conditionsOf = () => ({ delayMs: 0.5 });
  for (const server of world.servers) await server.start();
  const isWhole = () => world.servers.every((server) => roleOf(server) === 'leader' || roleOf(server) === 'follower');
  expect(await world.runUntil(isWhole, 10_000)).toBe(true);
  return world;
}

/** Nothing from one server reaches the other. */
function mute(world: VirtualWorld, from: ServerHost, to: ServerHost): void {
  const link = world.link(from.name, to.name);
  link.cutOneWay(link.a === from.name ? 'forward' : 'backward');
}

function isolate(world: VirtualWorld, a: ServerHost, b: ServerHost): void {
  mute(world, a, b);
  mute(world, b, a);
}

/**
 * Cuts some links of a server to all servers, or all its links to a quorum, so that other servers
 * forward what it sends.
 */
function cutOff(world: VirtualWorld, random: SeededRandom, other: ServerHost, core: readonly ServerHost[]): void {
  const kind = random.below(4);
  for (const each of kind === 0 ? world.servers : core) {
    if (each === other) continue;
    if (kind === 0 ? random.below(2) === 0 : kind !== 2) mute(world, other, each);
    if (kind === 0 ? random.below(2) === 0 : kind !== 1) mute(world, each, other);
  }
}

/** One of these servers leads, and the others follow it. */
function isLedAmong(world: VirtualWorld, core: readonly ServerHost[]): boolean {
  const leaders = leadersOf(world);
  return leaders.length === 1 && core.includes(leaders[0]!) && core.every((server) => roleOf(server) !== 'looking');
}

/** One server leads and a quorum follows it; servers that cannot reach it continue to look. */
function isLed(world: VirtualWorld): boolean {
  const followers = world.servers.filter((server) => roleOf(server) === 'follower');
  return leadersOf(world).length === 1 && followers.length + 1 > world.servers.length / 2;
}

/**
 * There is one leader within the bound, and it continues to lead, whatever the other servers do.
 */
async function expectOneLeader(world: VirtualWorld, settled: () => boolean): Promise<void> {
  await world.run(boundMs);
  expect(settled(), `no leader after ${boundMs} ms: ${world.servers.map(roleOf).join()}`).toBe(true);
  const leader = leadersOf(world)[0]!;
  for (let ms = 0; ms < 20_000; ms += 100) {
    await world.run(100);
    expect(
      leadersOf(world).map(({ name }) => name),
      `after ${ms} ms more`,
    ).toEqual([leader.name]);
  }
  const client = new RawClient(world, new SeededRandom(1), { name: 'client', address: '10.9.0.1', timeoutMs: 4000 });
  expect(await world.runUntil(() => client.ready, 10_000)).toBe(true);
  const write = client.send('create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
  await world.runUntil(() => write?.reply !== undefined, 5000);
  expect(write?.reply?.err).toBe(0);
}

describe.each(sample([1, 2, 3], 1))('F19, C4-20: in an ensemble of five, seed %i', (seed) => {
  async function fiveWithLeader(): Promise<{ world: VirtualWorld; leader: ServerHost; others: ServerHost[] }> {
    const world = await started(seed, 5);
    const leader = leadersOf(world)[0]!;
    return { world, leader, others: world.servers.filter((server) => server !== leader) };
  }

  it('a leader that receives nothing is replaced although its votes arrive and are the best', async () => {
    const { world, leader, others } = await fiveWithLeader();
    for (const other of others) mute(world, other, leader);
    await expectOneLeader(world, () => isLedAmong(world, others));
  });

  it('a leader whose messages no longer arrive is replaced', async () => {
    const { world, leader, others } = await fiveWithLeader();
    for (const other of others) mute(world, leader, other);
    await expectOneLeader(world, () => isLedAmong(world, others));
  });

  it('a leader that only one other server can reach is replaced although that server forwards its vote', async () => {
    const { world, leader, others } = await fiveWithLeader();
    const [, ...unreached] = others;
    for (const other of unreached) isolate(world, leader, other);
    await expectOneLeader(world, () => isLedAmong(world, unreached));
  });

  it('a server with the best vote that only one other server can reach is not elected again and again', async () => {
    const { world, leader, others } = await fiveWithLeader();
    for (const server of world.servers) server.kill();
    const [, ...unreached] = others;
    for (const server of world.servers) await server.start();
    for (const other of unreached) isolate(world, leader, other);
    await expectOneLeader(world, () => isLedAmong(world, unreached));
  });

  it('a server that cannot reach the leader continues to look for it and does not disturb the others', async () => {
    const { world, leader, others } = await fiveWithLeader();
    isolate(world, leader, others[0]!);
    await expectOneLeader(world, () => isLedAmong(world, [leader, ...others.slice(1)]));
    expect(leadersOf(world)).toEqual([leader]);
  });

  it('a follower that receives nothing does not disturb the others', async () => {
    const { world, leader, others } = await fiveWithLeader();
    const [deaf, ...rest] = others as [ServerHost, ...ServerHost[]];
    for (const other of [leader, ...rest]) mute(world, other, deaf);
    await expectOneLeader(world, () => isLedAmong(world, [leader, ...rest]));
    expect(leadersOf(world)).toEqual([leader]);
  });
});

describe('whatever other links are permanently cut', () => {
  const count = Number(process.env['TSKEEPER_CUTS'] ?? breadth(1, 8));
  // Regression seeds. In the first of these, two servers were elected in turns without end, and no
  // server could synchronise with them. In the last two, an election took 16 s, since the quorum
  // disagreed about which server it cannot reach.
  const seeds = [...Array.from({ length: count }, (_, at) => at + 1), ...sample([52, 121, 211, 437], 1), 2919, 2991];

  it(`a quorum whose members reach each other has a leader soon and keeps it (${count} seeds and the regression seeds)`, async () => {
    for (const seed of seeds) {
      const random = new SeededRandom(seed);
      const world = await started(seed, 3 + 2 * random.below(3));
      const core = [...world.servers];
      while (core.length > (world.servers.length + 1) / 2) core.splice(random.below(core.length), 1);
      if (random.below(2) === 0) for (const server of world.servers) server.kill();
      for (const other of world.servers.filter((server) => !core.includes(server))) cutOff(world, random, other, core);
      for (const server of world.servers) if (server.process === undefined) server.boot();
      try {
        await expectOneLeader(world, () => isLed(world));
      } catch (error) {
        const cuts = [...world.links].map(
          (link) => `${link.a}-${link.b} ${(['forward', 'backward'] as const).filter((way) => link.isCutOneWay(way)).join()}`,
        );
        const said = world.servers.flatMap(({ name, logLines }) => logLines.slice(-8).map((line) => `${name}: ${line}`));
        throw new Error([`seed ${seed}: ${(error as Error).message}`, core.map(({ name }) => name), ...cuts, ...said].join('\n'), {
          cause: error,
        });
      }
    }
  });
});
