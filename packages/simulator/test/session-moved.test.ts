/** Sessions that go from server to server, with the client that people use. */
import { type Client, connect, type ConnectOptions, KeeperError } from '@tskeeper/client';
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { serverPort } from '../src/clients/client-world.ts';
import { RawClient } from '../src/clients/raw-client.ts';
import { WireTransport } from '../src/clients/wire-transport.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

async function started(seed: number, observers = 0): Promise<VirtualWorld> {
  const world = new VirtualWorld(seed, { servers: 3 + observers, ensemble: { observers } });
  world.wire.mannersOf = () => ({ delayMs: 0.5 });
  for (const server of world.servers) await server.start();
  const roles = () => world.servers.map(({ process }) => process?.runtime?.inspect.role());
  expect(
    await world.runUntil(() => roles().filter((role) => role === 'follower').length === 2 && !roles().includes('looking'), 10_000),
  ).toBe(true);
  return world;
}

const addressOf = (number: number): string => `10.9.0.${number}`;

const go = <Result>(world: VirtualWorld, promise: Promise<Result>): Promise<Result> => world.until(promise, 20_000);

function joining(world: VirtualWorld, number: number, options: ConnectOptions = {}): Promise<Client> {
  const name = `client-${number}`;
  const transport = new WireTransport(world.clientNetwork(name, addressOf(number)));
  const servers = world.servers.map((server) => `${server.name}:${serverPort}`).join();
  const random = new SeededRandom(number);
  return go(world, connect(servers, { transport, clock: world.clock, random, sessionTimeoutMs: 4000, ...options }));
}

describe('a client that is driven from server to server', () => {
  it.each([1, 2, 3])('C2-22: never hears that its session has moved, and keeps it (seed %i)', async (seed) => {
    const world = await started(seed);
    const random = new SeededRandom(seed);
    const zk = await joining(world, 1);
    const { sessionId } = zk;
    const codes = new Map<string, number>();
    const servers = new Set<string | undefined>();
    await go(world, zk.create('/e', null, { mode: 'ephemeral' }));
    for (let round = 0; round < 60; round++) {
      const calls = Array.from({ length: 5 }, (_, at) => (at % 2 === 0 ? zk.setData('/e', `${round}`) : zk.getData('/e')));
      const settled = Promise.allSettled(calls);
      await world.run(random.below(20));
      servers.add(zk.connectedTo);
      // The line breaks in the midst of it, so that much of what was asked arrives at a server that it has left.
      for (const { forward, dialer } of world.wire.cnxns)
        if (dialer.address === addressOf(1)) forward.from.stack.reset(forward.from.stream);
      for (const result of await go(world, settled)) {
        const code = result.status === 'fulfilled' ? 'Ok' : KeeperError.is(result.reason) ? result.reason.code : String(result.reason);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    }
    expect([...codes.keys()].toSorted()).toEqual(['ConnectionLoss', 'Ok']);
    expect(servers.size).toBeGreaterThan(2);
    expect(zk.sessionId).toBe(sessionId);
    // The last break has been noticed, and got over.
    await world.run(2000);
    expect(zk.state).toBe('connected');
    expect(await go(world, zk.getEphemerals())).toEqual(['/e']);
    await go(world, zk.close());
  });
});

describe('a session that another process takes up while a write of the first is not committed', () => {
  it.each(['follower', 'observer'] as const)(
    'answers each with its own, though both count their requests from 1: at a %s',
    async (role) => {
      const world = await started(6, 1);
      const roleOf = (server: ServerHost) => server.process!.runtime!.inspect.role();
      const [here, ...followers] = world.servers.filter((server) => roleOf(server) === 'follower');
      const there = role === 'follower' ? followers[0]! : world.servers.find((server) => roleOf(server) === role)!;
      const at = ({ name }: ServerHost, number: number, options: ConnectOptions = {}) => {
        const transport = new WireTransport(world.clientNetwork(`client-${number}`, addressOf(number)));
        const random = new SeededRandom(number);
        return go(world, connect(`${name}:${serverPort}`, { transport, clock: world.clock, random, sessionTimeoutMs: 4000, ...options }));
      };
      const first = await at(here!, 1);
      // A quorum has it when one of these has it.
      for (const server of world.servers) if (server !== here) server.diskDelayMs = () => 100;
      const created = first.create('/a');
      await world.run(5);
      const second = await at(there, 2, { session: { id: first.sessionId, password: first.sessionPassword } });
      const codeOf = (call: Promise<unknown>) =>
        call.then(
          () => 'Ok',
          (error: unknown) => (KeeperError.is(error) ? error.code : String(error)),
        );
      const answers = [
        codeOf(created),
        codeOf(second.delete('/b')),
        codeOf(second.exists('/a').then((stat) => expect(stat).not.toBeNull())),
      ];
      expect(await go(world, Promise.all(answers))).toEqual(['Ok', 'NoNode', 'Ok']);
    },
  );
});

describe('two clients with one session', () => {
  it('C2-23: take it from each other, each write is that of the one who has it, and the one that yields leaves it to the other', async () => {
    const world = await started(4);
    const first = await joining(world, 1);
    await go(world, first.create('/e', null, { mode: 'ephemeral' }));
    const session = { id: first.sessionId, password: first.sessionPassword };
    const second = await joining(world, 2, { session, yieldsSession: true });
    expect(second.sessionId).toBe(first.sessionId);
    const lost = [0, 0];
    for (const [at, zk] of [first, second].entries()) zk.on('state', ({ state }) => void (lost[at]! += state === 'Disconnected' ? 1 : 0));
    const isOver = () => second.closedBecause !== undefined;
    for (let ms = 0; ms < 60_000 && !isOver(); ms += 100) {
      for (const zk of [first, second]) zk.setData('/e', 'x').catch(() => undefined);
      await world.run(100);
    }
    expect(second.closedBecause).toBe('moved');
    // Not before it had been so a number of times, on both sides.
    expect(Math.min(...lost)).toBeGreaterThanOrEqual(4);
    const error = await go(
      world,
      second.getData('/e').catch((reason: unknown) => reason),
    );
    expect(error).toMatchObject({ code: 'SessionMoved' });
    // The session lives, with all that is its.
    await world.run(8000);
    expect(first.state).toBe('connected');
    expect((await go(world, first.exists('/e')))?.ephemeralOwner).toBe(first.sessionId);
    await go(world, first.close());
  });
});

describe('what waited of a client that has gone on elsewhere', () => {
  it('P13: does not happen behind that, though the client is back', async () => {
    const core = { requestThrottleLimit: 1, requestThrottleStallMs: 10, requestThrottleDropStale: false };
    const world = new VirtualWorld(1, { servers: 3, ensemble: {}, core });
    world.wire.mannersOf = () => ({ delayMs: 0.5 });
    for (const server of world.servers) await server.start();
    const followers = () => world.servers.filter(({ role }) => role === 'follower');
    expect(await world.runUntil(() => followers().length === 2, 10_000)).toBe(true);
    const [first, second] = followers();
    const options = { name: 'client', address: addressOf(1), timeoutMs: 4000, server: first! };
    const client = new RawClient(world, new SeededRandom(1), options);
    const other = new RawClient(world, new SeededRandom(2), { ...options, name: 'other', address: addressOf(2) });
    const isThere = () => world.runUntil(() => client.ready && other.ready, 1000);
    const create = (path: string, by = client) => by.send('create', { path, data: null, acl: openAcl, flags: CreateMode.persistent });
    const moveTo = async (server: typeof first) => {
      await world.run(5);
      for (const { forward, dialer } of world.wire.cnxns)
        if (dialer.address === addressOf(1)) forward.from.stack.reset(forward.from.stream);
      options.server = server!;
      await world.run(5);
      expect(await isThere()).toBe(true);
    };
    expect(await isThere()).toBe(true);
    for (const server of world.servers) server.diskDelayMs = () => 500;
    // For as long as this one is under way, the first server takes up no other.
    create('/slow', other);
    await world.run(1);
    create('/held-back');
    await moveTo(second);
    create('/new');
    await moveTo(first);
    for (const server of world.servers) server.diskDelayMs = () => 0;
    await world.run(3000);
    const found = ['/slow', '/held-back', '/new'].map((path) => client.send('exists', { path, watch: false }));
    expect(await world.runUntil(() => found.every((request) => request?.reply !== undefined), 5000)).toBe(true);
    expect(found.map((request) => request!.reply!.err)).toEqual([0, -101, 0]);
  });
});
