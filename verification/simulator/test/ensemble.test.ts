/**
 * Complete servers of an ensemble, with their ports and disks, and clients that reconnect on their
 * own.
 */
import { CreateMode, makeZxid, OpCode, openAcl } from '@tskeeper/protocol';
import { keepAll, loseAll, type RuntimeOptions, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import { drawCrashChoice } from '../src/faults/crash-choice.ts';
import { RawClient } from '../src/clients/raw-client.ts';
import type { Request } from '../src/record/recording.ts';
import { writeSeedTxns } from '../src/run/seed-state.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

const rolesOf = (world: VirtualWorld) => world.servers.map(({ process }) => process?.runtime?.inspect.role());

function isWhole(world: VirtualWorld): boolean {
  const roles = rolesOf(world);
  return (
    roles.filter((role) => role === 'leader').length === 1 &&
    roles.every((role) => role === 'leader' || role === 'follower' || role === 'observer')
  );
}

function leaderOf(world: VirtualWorld): ServerHost | undefined {
  return world.servers.find(({ process }) => process?.runtime?.inspect.role() === 'leader');
}

async function started(seed: number, servers: number, observers = 0, options: Partial<RuntimeOptions> = {}): Promise<VirtualWorld> {
  const ensemble = { observers, options: { commitLogCount: 20 } };
  const world = new VirtualWorld(seed, { servers, ensemble, options: { snapCount: 30, ...options } });
  world.wire.conditionsOf = () => ({ delayMs: 0.5 });
  for (const server of world.servers) await server.start();
  expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
  return world;
}

async function joined(world: VirtualWorld, number: number): Promise<RawClient> {
  const client = new RawClient(world, new SeededRandom(number), { name: `client-${number}`, address: `10.9.0.${number}`, timeoutMs: 4000 });
  expect(await world.runUntil(() => client.ready, 10_000)).toBe(true);
  return client;
}

async function answered(world: VirtualWorld, request: Request | undefined): Promise<Request['reply']> {
  await world.runUntil(() => request?.reply !== undefined, 5000);
  return request?.reply;
}

const create = (path: string) => ({ path, data: Buffer.from(path), acl: openAcl, flags: CreateMode.persistent });

/** All servers have the same state. */
async function expectSame(world: VirtualWorld): Promise<void> {
  const states = () =>
    world.servers.map(({ process }) => {
      const inspect = process!.runtime!.inspect;
      return `${inspect.lastZxid()} ${inspect.nodeCount()} ${inspect.approximateDataBytes()} ${inspect.sessionCount()}`;
    });
  await world.runUntil(() => new Set(states()).size === 1, 5000);
  expect(new Set(states()).size).toBe(1);
}

describe('servers of an ensemble', () => {
  it('elect a leader, serve clients at every server, and continue when the leader is killed', async () => {
    const world = await started(1, 3, 0);
    const client = await joined(world, 1);
    expect((await answered(world, client.send('create', create('/a'))))?.err).toBe(0);
    const old = leaderOf(world)!;
    old.kill();
    expect(await world.runUntil(() => leaderOf(world) !== undefined && leaderOf(world) !== old, 10_000)).toBe(true);
    await world.runUntil(() => client.ready, 10_000);
    expect((await answered(world, client.send('create', create('/b'))))?.err).toBe(0);
    await old.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    await expectSame(world);
  });

  it('elect again when one server is down and the leader restarts at once, although one of the two waits for fewer servers than the other', async () => {
    const world = await started(4, 3, 0);
    const [first, second, third] = world.servers as [ServerHost, ServerHost, ServerHost];
    third.kill();
    expect(await world.runUntil(() => leaderOf(world) === second && rolesOf(world)[0] === 'follower', 10_000)).toBe(true);
    // The first server knows that the third does not listen. The second restarts and never had a
    // connection to the third.
    second.kill();
    second.boot();
    expect(await world.runUntil(() => leaderOf(world) !== undefined && first.process?.runtime?.inspect.role() === 'follower', 5000)).toBe(
      true,
    );
  });

  it('lose all data with their disks: no pending write of an old disk reaches the new one after a power loss', async () => {
    for (const choice of [loseAll, keepAll]) {
      const world = await started(2, 3);
      const server = world.servers[1]!;
      const { disk, logFolder, snapshotFolder } = server;
      // A log has just got its name and a snapshot has just lost its name when the disk is lost.
      // Neither change is durable.
      void disk.open(`${logFolder}/new.log.100000022`, 'create');
      await world.run(10);
      void disk.rename(`${logFolder}/new.log.100000022`, `${logFolder}/log.100000022`);
      void disk.remove(`${snapshotFolder}/snapshot.0`);
      await world.run(10);
      expect(disk.capture().unsynced.filter(({ kind }) => kind === 'name')).toHaveLength(3);
      server.kill();
      server.wipe();
      server.losePower(choice);
      expect(disk.files()).toEqual([]);
      await server.start();
      expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    }
  });

  it('rejoin with a log that lacks many txns, and with an empty folder', async () => {
    const world = await started(2, 4, 1);
    const client = await joined(world, 1);
    const away = world.servers.filter((server) => server !== leaderOf(world)).slice(0, 2);
    away[0]!.kill();
    await world.run(2000);
    await world.runUntil(() => client.ready, 10_000);
    for (let count = 0; count < 120; count++) {
      const reply = await answered(world, client.send('create', create(`/n${count}`)));
      expect(reply?.err).toBe(0);
    }
    await away[0]!.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    await expectSame(world);
    // Its disk was replaced.
    away[1]!.kill();
    for (const path of away[1]!.disk.files()) away[1]!.disk.eraseFile(path);
    await away[1]!.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    await expectSame(world);
  });
});

describe('a slow link', () => {
  it('E26: needs longer than initLimit for a snapshot, and neither server gives up', async () => {
    const world = await started(4, 3);
    const client = await joined(world, 1);
    for (let count = 0; count < 40; count++) {
      const reply = await answered(world, client.send('create', { ...create(`/n${count}`), data: Buffer.alloc(50_000, count) }));
      expect(reply?.err).toBe(0);
    }
    const away = world.servers.find((server) => server !== leaderOf(world))!;
    away.kill();
    for (const path of away.disk.files()) away.disk.eraseFile(path);
    // 2 MB at 250 KB/s; initLimit is two seconds.
    world.wire.conditionsOf = () => ({ delayMs: 0.5, windowBytes: 16_384, pieceBytes: 2500, pieceIntervalMs: 10 });
    const begunMs = world.clock.now().elapsedMs;
    await away.start();
    expect(await world.runUntil(() => isWhole(world), 30_000)).toBe(true);
    expect(world.clock.now().elapsedMs - begunMs).toBeGreaterThan(6000);
    expect(away.logLines.filter((line) => line.includes('nothing was received'))).toEqual([]);
    expect(leaderOf(world)!.logLines.filter((line) => line.includes('nothing was received'))).toEqual([]);
    await expectSame(world);
  });

  it('delays a leader that needs the learner on it for its quorum, and the leader waits', async () => {
    const world = await started(5, 3);
    const client = await joined(world, 1);
    for (let count = 0; count < 40; count++) {
      const reply = await answered(world, client.send('create', { ...create(`/n${count}`), data: Buffer.alloc(50_000, count) }));
      expect(reply?.err).toBe(0);
    }
    for (const server of world.servers) server.kill();
    const [full, empty] = world.servers as [ServerHost, ServerHost];
    for (const path of empty.disk.files()) empty.disk.eraseFile(path);
    world.wire.conditionsOf = () => ({ delayMs: 0.5, windowBytes: 16_384, pieceBytes: 2500, pieceIntervalMs: 10 });
    await full.start();
    await empty.start();
    const begunMs = world.clock.now().elapsedMs;
    expect(await world.runUntil(() => leaderOf(world) !== undefined, 30_000)).toBe(true);
    expect(world.clock.now().elapsedMs - begunMs).toBeGreaterThan(6000);
    expect(full.logLines.filter((line) => /nothing was received|no quorum within initLimit/.test(line))).toEqual([]);
  });
});

describe('an epoch whose zxids are used up', () => {
  it('A64: ends with one change of leader: sessions survive, no acknowledged write is lost, and writes continue within a tick', async () => {
    const ensemble = { options: { commitLogCount: 20 }, zab: { counterMax: 60 } };
    const world = new VirtualWorld(6, { servers: 3, ensemble, options: { snapCount: 30 } });
    world.wire.conditionsOf = () => ({ delayMs: 0.5 });
    for (const server of world.servers) await server.start();
    expect(await world.runUntil(() => isWhole(world), 10_000)).toBe(true);
    const client = await joined(world, 1);
    const { session } = client;
    const acknowledged: string[] = [];
    const zxids: number[] = [];
    let lastMs = world.clock.now().elapsedMs;
    let gapMs = 0;
    for (let count = 0; count < 400; count++) {
      await world.runUntil(() => client.ready, 5000);
      const path = `/n${count}`;
      const request = client.send('create', create(path));
      await world.runUntil(() => request?.reply !== undefined || !client.ready, 5000);
      const reply = request?.reply;
      if (reply?.err !== 0) continue;
      acknowledged.push(path);
      zxids.push(reply.zxid);
      gapMs = Math.max(gapMs, world.clock.now().elapsedMs - lastMs);
      lastMs = world.clock.now().elapsedMs;
    }
    const epochs = new Set(zxids.map((zxid) => Math.floor(zxid / 2 ** 32)));
    expect(epochs.size).toBeGreaterThan(5);
    expect(zxids).toEqual(zxids.toSorted((a, b) => a - b));
    expect(client.session).toBe(session);
    expect(gapMs).toBeLessThan(200);
    await expectSame(world);
    const reader = await joined(world, 2);
    for (const path of acknowledged) expect((await answered(world, reader.send('exists', { path, watch: false })))?.err).toBe(0);
  });
});

describe('a leader whose disk fails while the log is read for a learner', () => {
  it('ends, and the other servers continue', async () => {
    const world = await started(5, 3);
    const client = await joined(world, 1);
    const leader = leaderOf(world)!;
    const away = world.servers.find((server) => server !== leader)!;
    away.kill();
    for (let count = 0; count < 60; count++) {
      await world.runUntil(() => client.ready, 10_000);
      await answered(world, client.send('create', create(`/n${count}`)));
    }
    leader.disk.fault = ({ operation, path }) => (operation === 'close' && path.includes('/log.') ? { code: 'EIO' } : undefined);
    Object.assign(leader, { onFailure: () => leader.kill() });
    await away.start();
    expect(await world.runUntil(() => leader.process === undefined, 10_000)).toBe(true);
    expect(await world.runUntil(() => leaderOf(world) !== undefined, 10_000)).toBe(true);
  });
});

describe('a server whose snapshot contains a txn that its leader does not have', () => {
  it('cannot truncate its log, and gets a snapshot instead', async () => {
    const world = await started(5, 3);
    const client = await joined(world, 1);
    expect((await answered(world, client.send('create', create('/a'))))?.err).toBe(0);
    const third = world.servers[2]!;
    third.kill();
    expect(await world.runUntil(() => leaderOf(world) !== undefined && leaderOf(world) !== third, 10_000)).toBe(true);
    for (const path of third.disk.files()) third.disk.eraseFile(path);
    // The state that a leader leaves which has sent a snapshot with a txn that only it had, and
    // failed before its epoch began.
    const txn = {
      kind: 'create',
      path: '/never-committed',
      data: Buffer.alloc(0),
      acl: openAcl,
      ephemeral: false,
      parentCVersion: 1,
    } as const;
    await writeSeedTxns(world, third, makeZxid(1, 0x100), 1_700_000_000_000, [{ type: OpCode.create, txn }]);
    third.boot();
    expect(await world.runUntil(() => isWhole(world), 5000)).toBe(true);
    expect(third.logLines.join('\n')).toContain('the leader is asked for a snapshot');
    await expectSame(world);
  });
});

describe('a server whose folder is empty and not trusted to be new (db.autocreate=false)', () => {
  it('does not vote before it has the data of the other servers', async () => {
    const world = await started(3, 3);
    const client = await joined(world, 1);
    expect((await answered(world, client.send('create', create('/a'))))?.err).toBe(0);
    const lost = world.servers.filter((server) => server !== leaderOf(world));
    for (const server of world.servers) server.kill();
    for (const server of lost) {
      for (const path of server.disk.files()) server.disk.eraseFile(path);
      Object.assign(server.options, { dbAutocreate: false });
      server.boot();
    }
    // Two of three are a quorum, and both are empty: they must not start an empty ensemble.
    await world.run(5000);
    expect(rolesOf(world).filter((role) => role !== undefined)).toEqual(['looking', 'looking']);
  });
});

/** Kills, power losses and cut links at random moments; then all faults end. */
async function storm(seed: number): Promise<number> {
  const world = await started(seed, 3 + (seed % 2), seed % 2);
  const random = new SeededRandom(seed);
  const clients = [await joined(world, 1), await joined(world, 2), await joined(world, 3)];
  const asked: { readonly path: string; readonly request: Request }[] = [];
  let count = 0;
  const work = () => {
    for (const client of clients) {
      if (!client.ready || client.outstandingCount > 3) continue;
      const path = `/n${count++}`;
      const request = client.send('create', create(path));
      if (request !== undefined) asked.push({ path, request });
    }
  };
  for (let round = 0; round < 40; round++) {
    work();
    await world.run(random.below(150));
    const server = world.servers[random.below(world.servers.length)]!;
    const other = world.servers[random.below(world.servers.length)]!;
    switch (random.below(7)) {
      case 0:
        server.kill();
        break;
      case 1:
        server.losePower(drawCrashChoice(random));
        break;
      case 2:
        leaderOf(world)?.kill();
        break;
      case 3:
        if (server !== other) world.link(server.name, other.name).cut();
        break;
      case 4:
        for (const link of world.links) link.heal();
        break;
      default:
        for (const each of world.servers) if (each.process === undefined) each.boot();
    }
  }
  for (const link of world.links) link.heal();
  for (const each of world.servers) if (each.process === undefined) each.boot();
  if (!(await world.runUntil(() => isWhole(world), 30_000))) {
    throw new Error(
      `the ensemble is not complete:  ${rolesOf(world).join()} ${world.servers.flatMap(({ name, logLines }) => logLines.slice(-6).map((line) => `${name}: ${line}`)).join('\n')}`,
    );
  }
  await world.runUntil(() => clients.every((client) => client.ready && client.outstandingCount === 0), 10_000);
  await expectSame(world);
  const reader = await joined(world, 9);
  let acknowledged = 0;
  for (const { path, request } of asked) {
    if (request.reply?.err !== 0) continue;
    acknowledged++;
    const reply = await answered(world, reader.send('exists', { path, watch: false }));
    if (reply?.err !== 0) throw new Error(`${path} was acknowledged at ${request.reply.zxid}, but was lost`);
  }
  return acknowledged;
}

describe('servers of an ensemble during random kills, power losses and cuts', () => {
  const storms = Number(process.env['TSKEEPER_STORMS'] ?? breadth(2, 10));

  it(`lose no acknowledged write (${storms} times)`, async () => {
    let acknowledged = 0;
    for (let seed = 1; seed <= storms; seed++) {
      try {
        acknowledged += await storm(seed);
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
    expect(acknowledged).toBeGreaterThan(storms * 5);
  });
});
