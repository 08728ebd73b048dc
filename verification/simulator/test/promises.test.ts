/**
 * The promises about leaders and followers, seen from outside: whole servers, their logs, and their
 * behaviour when links and processes fail.
 */
import { CreateMode, epochOf, openAcl, Reader, readTxn, type Zxid } from '@tskeeper/protocol';
import { VirtualDisk, readLog, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { RawClient } from '../src/clients/raw-client.ts';
import { leaderEpochsOf, servingPeriodsOf } from '../src/record/committed-history.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

function leaderOf(world: VirtualWorld): ServerHost | undefined {
  return world.servers.find(({ role }) => role === 'leader');
}

function isWhole(world: VirtualWorld): boolean {
  const roles = world.servers.map(({ role }) => role);
  return roles.filter((role) => role === 'leader').length === 1 && roles.every((role) => role === 'leader' || role === 'follower');
}

async function started(seed: number, servers = 3): Promise<VirtualWorld> {
  const world = new VirtualWorld(seed, { servers, ensemble: {} });
  world.wire.conditionsOf = () => ({ delayMs: 0.5 });
  for (const server of world.servers) await server.start();
  expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
  return world;
}

async function joined(world: VirtualWorld, number: number, server: ServerHost): Promise<RawClient> {
  const options = { name: `client-${number}`, address: `10.9.0.${number}`, timeoutMs: 4000, server };
  const client = new RawClient(world, new SeededRandom(number), options);
  expect(await world.runUntil(() => client.ready, 10_000)).toBe(true);
  return client;
}

async function writes(world: VirtualWorld, client: RawClient, path: string): Promise<Zxid> {
  const record = { path, data: Buffer.from(path), acl: openAcl, flags: CreateMode.persistent };
  const request = client.send('create', record);
  expect(await world.runUntil(() => request?.reply !== undefined, 5000)).toBe(true);
  return request!.reply!.zxid;
}

/** The txns in the log of a server. */
async function logOf(server: ServerHost): Promise<string[]> {
  const txns: string[] = [];
  const files = [...server.evidence('log')].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, bytes] of files) {
    const disk = new VirtualDisk();
    disk.putFile(`/${name}`, bytes);
    await readLog(await disk.open(`/${name}`, 'existing'), 4_000_000, (zxid, from, start, stop) => {
      const { header, txn } = readTxn(new Reader(Buffer.from(from.subarray(start, stop))));
      txns.push(`${zxid.toString(16)} ${header.type} ${'path' in txn ? txn.path : ''}`);
    });
  }
  return txns;
}

async function expectSameLogs(world: VirtualWorld): Promise<string[]> {
  await world.run(500);
  const [first, ...others] = await Promise.all(world.servers.map(logOf));
  for (const other of others) expect(other).toEqual(first);
  return first!;
}

const eventsOf = (world: VirtualWorld, kind: string) => world.recording.peerEvents.filter((event) => event.kind === kind);

describe('a leader', () => {
  it('C0-9: commits every change first, whichever server got the request', async () => {
    const world = await started(1);
    for (const [at, server] of world.servers.entries()) await writes(world, await joined(world, at + 1, server), `/n${at}`);
    await world.run(100);
    const leader = leaderOf(world)!;
    const applied = world.recording.peerEvents.flatMap((event) => (event.kind === 'applied' ? [event] : []));
    // Three sessions and three znodes.
    expect(applied.filter(({ server }) => server === leader.name)).toHaveLength(6);
    const first = new Map<Zxid, string>();
    for (const { server, zxid } of applied) if (!first.has(zxid)) first.set(zxid, server);
    expect(new Set(first.values())).toEqual(new Set([leader.name]));
  });

  it('C0-17: is the only one of its epoch, however often the leader fails', async () => {
    const world = await started(2);
    for (let round = 0; round < 6; round++) {
      const old = leaderOf(world)!;
      old.kill();
      expect(await world.runUntil(() => leaderOf(world) !== undefined, 10_000)).toBe(true);
      await old.start();
      expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    }
    const epochs = leaderEpochsOf(world.recording).map(({ epoch }) => epoch);
    expect(epochs.length).toBe(7);
    expect(epochs).toEqual([...new Set(epochs)].toSorted((a, b) => a - b));
  });

  it('C4-12: continues when a link to a follower breaks, and sends the missing txns when the follower is back', async () => {
    const world = await started(3);
    const leader = leaderOf(world)!;
    const client = await joined(world, 1, leader);
    const isTo = (port: number) => port === 2888;
    for (let round = 0; round < 5; round++) {
      const cnxns = [...world.wire.cnxns].filter(({ listener }) => listener.address === leader.address && isTo(listener.port));
      const { backward } = cnxns[round % cnxns.length]!;
      backward.resetAfter(backward.deliveredBytes + 70);
      for (let count = 0; count < 5; count++) await writes(world, client, `/n${round}-${count}`);
    }
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    expect([leaderOf(world), leaderEpochsOf(world.recording).length]).toEqual([leader, 1]);
    expect((await expectSameLogs(world)).filter((line) => line.includes('/n'))).toHaveLength(25);
  });

  it('C4-15: synchronises a quorum before it serves: it sends missing txns and truncates txns that it does not have', async () => {
    const world = await started(4);
    const old = leaderOf(world)!;
    const client = await joined(world, 1, old);
    await writes(world, client, '/kept');
    // The old leader logs a txn that reaches no other server.
    for (const server of world.servers) if (server !== old) world.link(old.name, server.name).cutOneWay('forward');
    client.send('create', { path: '/lost', data: null, acl: openAcl, flags: CreateMode.persistent });
    await world.run(50);
    client.abandon();
    old.kill();
    for (const link of world.links) link.heal();
    expect(await world.runUntil(() => leaderOf(world) !== undefined, 10_000)).toBe(true);
    await old.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    const ways = () => eventsOf(world, 'syncsLearner').map((event) => (event.kind === 'syncsLearner' ? event.by : ''));
    expect(ways()).toContain('trunc');
    // An empty server gets a snapshot, and a server that was away gets the txns that it missed.
    const [empty] = world.servers.filter((server) => server !== leaderOf(world));
    empty!.kill();
    empty!.wipe();
    await empty!.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    const other = await joined(world, 2, leaderOf(world)!);
    const [away] = world.servers.filter((server) => server !== leaderOf(world) && server !== empty);
    away!.kill();
    await writes(world, other, '/meanwhile');
    await away!.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    expect(new Set(ways())).toEqual(new Set(['diff', 'trunc', 'snap']));
    await world.run(200);
    const states = world.servers.map(({ process }) => process!.runtime!.inspect);
    expect(new Set(states.map((inspect) => `${inspect.lastZxid()} ${inspect.nodeCount()}`)).size).toBe(1);
  });
});

describe('updates', () => {
  it('C0-10: are ordered by zxid and sent to every server, and the newest of several updates of one znode is the result everywhere', async () => {
    const world = await started(5);
    const clients = await Promise.all(world.servers.map((server, at) => joined(world, at + 1, server)));
    await writes(world, clients[0]!, '/a');
    await world.run(50);
    const asked = Array.from({ length: 12 }, (_, at) => {
      const record = { path: '/a', data: Buffer.from(`${at}`), version: -1 };
      return clients[at % clients.length]!.send('setData', record)!;
    });
    expect(await world.runUntil(() => asked.every(({ reply }) => reply !== undefined), 5000)).toBe(true);
    const zxids = asked.map(({ reply }) => reply!.zxid);
    expect(new Set(zxids).size).toBe(12);
    const newest = asked[zxids.indexOf(Math.max(...zxids))]!.record as { readonly data: Buffer };
    await world.run(50);
    for (const client of clients) {
      const read = client.send('getData', { path: '/a', watch: false })!;
      await world.runUntil(() => read.reply !== undefined, 5000);
      expect(String((read.reply!.body as { readonly data: Buffer }).data)).toBe(String(newest.data));
    }
  });

  it('C4-1: become txns at the leader and have the same order in the log of each server', async () => {
    const world = await started(6);
    const clients = await Promise.all(world.servers.map((server, at) => joined(world, at + 1, server)));
    for (let count = 0; count < 5; count++) {
      for (const [at, client] of clients.entries()) {
        const path = `/n${count}-${at}`;
        client.send('create', { path, data: null, acl: openAcl, flags: CreateMode.persistent });
        client.send('setData', { path, data: Buffer.from(path), version: 0 });
        if (count % 2 === 0) client.send('delete', { path, version: 1 });
      }
    }
    const log = await expectSameLogs(world);
    expect(log).toHaveLength(3 + 5 * 3 * 2 + 3 * 3);
  });
});

describe('a follower', () => {
  it('C4-4: returns to an election when its leader fails or gives up', async () => {
    const world = await started(7);
    const failing = leaderOf(world)!;
    const before = eventsOf(world, 'looking').length;
    failing.kill();
    expect(await world.runUntil(() => eventsOf(world, 'looking').length === before + 2, 1000)).toBe(true);
    expect(await world.runUntil(() => leaderOf(world) !== undefined, 10_000)).toBe(true);
    await failing.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    // A leader without links notices the silence, and so do the others.
    const leader = leaderOf(world)!;
    for (const server of world.servers) if (server !== leader) world.link(leader.name, server.name).cut();
    expect(await world.runUntil(() => leaderOf(world) !== undefined && leaderOf(world) !== leader, 10_000)).toBe(true);
    expect(await world.runUntil(() => leader.role === 'looking', 10_000)).toBe(true);
  });

  it('C4-18: follows one leader at a time, as long as it receives its messages', async () => {
    const world = await started(8, 5);
    const random = new SeededRandom(8);
    for (let round = 0; round < 8; round++) {
      const [a, b] = [leaderOf(world) ?? world.server, world.servers[random.below(5)]!];
      for (const server of world.servers) if (server !== a && server !== b) world.link(a.name, server.name).cut();
      await world.run(300 + random.below(1500));
      for (const link of world.links) link.heal();
      await world.run(random.below(600));
    }
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    const terms = servingPeriodsOf(world.recording);
    const leaders = new Map(leaderEpochsOf(world.recording).map(({ epoch, server }) => [epoch, server]));
    expect(leaders.size).toBeGreaterThan(2);
    for (const { name } of world.servers) {
      const own = terms.filter(({ server }) => server === name);
      for (const [at, term] of own.entries()) {
        expect(leaders.has(term.epoch)).toBe(true);
        const next = own[at + 1];
        if (next !== undefined) expect([term.toMs <= next.fromMs, term.epoch <= next.epoch]).toEqual([true, true]);
      }
    }
    // No server serves in an earlier epoch than before, and its log contains no later epoch.
    expect(epochOf(leaderOf(world)!.process!.runtime!.inspect.lastZxid())).toBe(Math.max(...leaders.keys()));
  });
});
