/** Sessions that move from server to server, with the client library. */
import { type Client, connect, type ConnectOptions, KeeperError } from '@tskeeper/client';
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { sample } from '../../../test/breadth.ts';
import { serverPort } from '../src/clients/client-world.ts';
import { RawClient } from '../src/clients/raw-client.ts';
import { WireTransport } from '../src/clients/wire-transport.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

async function started(seed: number, observers = 0): Promise<VirtualWorld> {
  const world = new VirtualWorld(seed, { servers: 3 + observers, ensemble: { observers } });
  world.wire.conditionsOf = () => ({ delayMs: 0.5 });
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

const roleOf = (server: ServerHost) => server.process!.runtime!.inspect.role();

/** A client with only this server. */
function clientOf(world: VirtualWorld, { name }: ServerHost, number: number, options: ConnectOptions = {}): Promise<Client> {
  const transport = options.transport ?? new WireTransport(world.clientNetwork(`client-${number}`, addressOf(number)));
  const random = new SeededRandom(number);
  return connect(`${name}:${serverPort}`, { clock: world.clock, random, sessionTimeoutMs: 4000, ...options, transport });
}

const codeOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'Ok',
    (error: unknown) => (KeeperError.is(error) ? error.code : String(error)),
  );

describe('a client that must change servers', () => {
  it.each(sample([1, 2, 3], 1))('C2-22: never gets SessionMoved, and keeps its session (seed %i)', async (seed) => {
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
      servers.add(zk.connectedServer);
      // The connection breaks in the middle, so that many requests arrive at a server that the
      // session has left.
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
    // Time to notice the last break and to reconnect.
    await world.run(2000);
    expect(zk.state).toBe('connected');
    expect(await go(world, zk.getEphemerals())).toEqual(['/e']);
    await go(world, zk.close());
  });
});

describe('a session that a second process resumes before a write of the first one is committed', () => {
  it.each(['follower', 'observer'] as const)(
    'sends each process its own replies, although both count their requests from 1: at a %s',
    async (role) => {
      const world = await started(6, 1);
      const [here, ...followers] = world.servers.filter((server) => roleOf(server) === 'follower');
      const there = role === 'follower' ? followers[0]! : world.servers.find((server) => roleOf(server) === role)!;
      const first = await go(world, clientOf(world, here!, 1));
      // A quorum has the write when one of these servers has it.
      for (const server of world.servers) if (server !== here) server.diskDelayMs = () => 100;
      const created = first.create('/a');
      await world.run(5);
      const second = await go(world, clientOf(world, there, 2, { session: { id: first.sessionId, password: first.sessionPassword } }));
      const answers = [
        codeOf(created),
        codeOf(second.delete('/b')),
        codeOf(second.exists('/a').then((stat) => expect(stat).not.toBeNull())),
      ];
      expect(await go(world, Promise.all(answers))).toEqual(['Ok', 'NoNode', 'Ok']);
    },
  );
});

describe('a server that has asked its leader twice whether a session exists', () => {
  it('waits for the last answer, since the session may have been at another server in between', async () => {
    const world = await started(7);
    const leader = world.servers.find((server) => roleOf(server) === 'leader')!;
    const [here, there] = world.servers.filter((server) => server !== leader) as [ServerHost, ServerHost];
    const wire = new WireTransport(world.clientNetwork('client-1', addressOf(1)));
    let isGone = false;
    const nobody = { send: () => undefined, end: () => undefined, destroy: () => undefined };
    const dial = wire.connect.bind(wire);
    wire.connect = (address, sink) => (isGone ? nobody : dial(address, sink));
    const first = await go(world, clientOf(world, here, 1, { transport: wire }));
    isGone = true;
    const session = { id: first.sessionId, password: first.sessionPassword };
    world.link(there.name, leader.name).slow(200);
    const impatient = new AbortController();
    const given = codeOf(clientOf(world, there, 2, { session, signal: impatient.signal }));
    await world.run(50);
    impatient.abort(new Error('too slow'));
    const third = clientOf(world, there, 3, { session });
    // The leader has received the first question, but not the second.
    await world.run(170);
    const elsewhere = await go(world, clientOf(world, here, 4, { session }));
    const created = codeOf(elsewhere.create('/a'));
    const deleted = third.then((zk) => codeOf(zk.delete('/b')));
    expect(await go(world, Promise.all([given, created, deleted]))).toEqual(['Error: too slow', 'Ok', 'NoNode']);
  });
});

describe('two clients with one session', () => {
  it('C2-23: take it from each other, each write belongs to its owner at that time, and the yielding client leaves it to the other', async () => {
    const world = await started(4);
    const first = await joining(world, 1);
    await go(world, first.create('/e', null, { mode: 'ephemeral' }));
    const session = { id: first.sessionId, password: first.sessionPassword };
    const second = await joining(world, 2, { session, yieldSession: true });
    expect(second.sessionId).toBe(first.sessionId);
    const lost = [0, 0];
    for (const [at, zk] of [first, second].entries()) zk.on('state', ({ state }) => void (lost[at]! += state === 'Disconnected' ? 1 : 0));
    const isOver = () => second.endReason !== undefined;
    for (let ms = 0; ms < 60_000 && !isOver(); ms += 100) {
      for (const zk of [first, second]) zk.setData('/e', 'x').catch(() => undefined);
      await world.run(100);
    }
    expect(second.endReason).toBe('moved');
    // Not before both sides had lost it several times.
    expect(Math.min(...lost)).toBeGreaterThanOrEqual(4);
    const error = await go(
      world,
      second.getData('/e').catch((reason: unknown) => reason),
    );
    expect(error).toMatchObject({ code: 'SessionMoved' });
    // The session still exists, with its ephemeral znode.
    await world.run(8000);
    expect(first.state).toBe('connected');
    expect((await go(world, first.exists('/e')))?.ephemeralOwner).toBe(first.sessionId);
    await go(world, first.close());
  });
});

describe('a waiting request of a client that has moved to another server', () => {
  it('P13: is not applied after requests at the other server, although the client is back', async () => {
    const core = { requestThrottleLimit: 1, requestThrottleStallMs: 10, requestThrottleDropStale: false };
    const world = new VirtualWorld(1, { servers: 3, ensemble: {}, core });
    world.wire.conditionsOf = () => ({ delayMs: 0.5 });
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
    // While this request is in progress, the first server processes no other one.
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
