/**
 * The client library and read-only servers of ours, in virtual time: it finds one, uses it, and
 * leaves it for a server with a quorum.
 */
import { type Client, connect, KeeperError, type WatchListener } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { serverPort } from '../src/clients/client-world.ts';
import { WireTransport } from '../src/clients/wire-transport.ts';
import type { ServerHost } from '../src/world/server-host.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

async function started(): Promise<VirtualWorld> {
  const world = new VirtualWorld(1, {
    servers: 3,
    ensemble: { options: { readOnlyMode: true } },
    core: { localSessions: 'upgradable' },
    options: { fourLetterWords: ['srvr', 'isro'] },
  });
  for (const server of world.servers) await server.start();
  await until(world, () => world.servers.every(({ role }) => role === 'leader' || role === 'follower'));
  return world;
}

async function until(world: VirtualWorld, condition: () => boolean): Promise<void> {
  if (!(await world.runUntil(condition, 20_000))) throw new Error('timed out after 20000 ms of virtual time');
}

/** Lets time pass until the promise is settled, and returns its value or its error. */
async function outcome<T>(world: VirtualWorld, promise: Promise<T>): Promise<T | KeeperError> {
  const settled: (T | KeeperError)[] = [];
  void promise.then(
    (value) => settled.push(value),
    (error: unknown) => settled.push(error as KeeperError),
  );
  await until(world, () => settled.length > 0);
  return settled[0]!;
}

/** The text of a znode. */
async function textOf(world: VirtualWorld, zk: Client, listener?: WatchListener): Promise<string> {
  const read = await outcome(world, zk.getData('/a', listener === undefined ? {} : { watch: listener }));
  return read instanceof KeeperError ? read.code : Buffer.from(read.data ?? []).toString();
}

async function opened(world: VirtualWorld, servers: readonly ServerHost[], readOnly = true): Promise<Client> {
  const transport = new WireTransport(world.clientNetwork(`client ${servers.length}`, `10.9.0.${servers.length}`));
  const list = servers.map(({ name }) => `${name}:${serverPort}`).join(',');
  const random = new SeededRandom(1);
  const options = { sessionTimeoutMs: 3000, connectTimeoutMs: Infinity, readOnly, transport, clock: world.clock, random };
  const client = await outcome(world, connect(list, options));
  if (client instanceof KeeperError) throw client;
  return client;
}

/** The last of these servers is alone, and in read-only mode. */
async function isolateLast(world: VirtualWorld): Promise<ServerHost> {
  const [one, other, alone] = world.servers as [ServerHost, ServerHost, ServerHost];
  world.link(one.name, alone.name).cut();
  world.link(other.name, alone.name).cut();
  await until(world, () => alone.role === 'read-only');
  await until(world, () => [one, other].every(({ role }) => role === 'leader' || role === 'follower'));
  return alone;
}

describe('B39: a client that accepts a read-only server', () => {
  it('B39, A34: reads there, cannot write, and leaves it with its watches for a server with a quorum that it finds by isro', async () => {
    const world = await started();
    const writer = await opened(world, world.servers.slice(0, 2), false);
    // The session becomes global, so it survives the next election.
    await outcome(world, writer.create('/writer', null, { mode: 'ephemeral' }));
    await outcome(world, writer.create('/a', 'x'));
    await outcome(world, writer.sync('/'));
    await world.run(500);
    const alone = await isolateLast(world);
    const [one, other] = world.servers as [ServerHost, ServerHost, ServerHost];
    // At first it reaches only the read-only server.
    const name = 'client 3';
    for (const server of [one, other]) world.link(name, server.name).cut();
    const zk = await opened(world, world.servers);
    expect([zk.state, zk.connectedServer]).toEqual(['connectedReadOnly', `${alone.name}:${serverPort}`]);
    const { sessionId } = zk;
    const heard: string[] = [];
    expect(await textOf(world, zk, ({ type }) => void (type !== 'None' && heard.push(type)))).toBe('x');
    expect(await outcome(world, zk.setData('/a', 'y'))).toMatchObject({ code: 'NotReadOnly', outcome: 'refused', retryable: true });
    await outcome(world, writer.setData('/a', 'z'));
    // What it shows is stale.
    expect(await textOf(world, zk)).toBe('x');
    for (const server of [one, other]) world.link(name, server.name).heal();
    await until(world, () => zk.state === 'connected');
    expect(alone.role).toBe('read-only');
    expect(zk.sessionId).not.toBe(sessionId);
    await until(world, () => heard.length > 0);
    expect(heard).toEqual(['NodeDataChanged']);
    expect(await outcome(world, zk.create('/mine', null, { mode: 'ephemeral' }))).toMatchObject({
      stat: { ephemeralOwner: zk.sessionId },
    });
  });

  it('B39, A34: keeps its session of the ensemble while a read-only server turns it away', async () => {
    const world = await started();
    const zk = await opened(world, world.servers);
    const { sessionId } = zk;
    await outcome(world, zk.create('/mine', null, { mode: 'ephemeral' }));
    const states: string[] = [];
    zk.on('state', ({ state }) => states.push(state));
    for (const server of world.servers) for (const peer of world.servers) if (server !== peer) world.link(server.name, peer.name).cut();
    await until(world, () => world.servers.every(({ role }) => role === 'read-only'));
    await world.run(500);
    for (const server of world.servers) for (const peer of world.servers) if (server !== peer) world.link(server.name, peer.name).heal();
    await until(world, () => zk.state === 'connected');
    expect([zk.sessionId, states]).toEqual([sessionId, ['Disconnected', 'SyncConnected']]);
    expect(await outcome(world, zk.exists('/mine'))).toMatchObject({ ephemeralOwner: sessionId });
  });

  it('A34: a client that does not accept one is not served by it', async () => {
    const world = await started();
    const alone = await isolateLast(world);
    const transport = new WireTransport(world.clientNetwork('client', '10.9.0.9'));
    const options = { connectTimeoutMs: 3000, transport, clock: world.clock, random: new SeededRandom(1) };
    expect(await outcome(world, connect(`${alone.name}:${serverPort}`, options))).toMatchObject({ code: 'ConnectionLoss' });
    expect(alone.role).toBe('read-only');
  });
});
