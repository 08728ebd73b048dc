/** The server list of a client of a real ensemble, over TCP. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { TestEnsemble } from '@tskeeper/testing';
import { expect, it } from 'vitest';
import { type Client, connect } from '../src/index.ts';

/** Resolves when the client is connected and `isSo` is true. */
function connectedAs(zk: Client, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (zk.state !== 'connected' || !isSo()) return;
      stop();
      resolve();
    };
    const stop = zk.on('state', look);
    look();
  });
}

it('C2-6: a client moves to another server each time its server is killed, with the same session', async () => {
  await using ensemble = await TestEnsemble.start({ servers: 3 });
  await using zk = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
  const { sessionId } = zk;
  await zk.create('/e', 'x', { mode: 'ephemeral' });
  for (let round = 0; round < 2; round++) {
    const lost = ensemble.servers.find(({ connectString }) => connectString === zk.connectedServer)!;
    await lost.kill();
    await connectedAs(zk, () => zk.connectedServer !== lost.connectString);
    expect((await zk.exists('/e'))!.ephemeralOwner).toBe(sessionId);
    await lost.start();
  }
});

it('C2-24, C2-25: a client moves from server to server with new lists while it works, and no call fails', async () => {
  await using ensemble = await TestEnsemble.start({ servers: 3 });
  const [one, two, three] = ensemble.servers.map(({ connectString }) => connectString) as [string, string, string];
  await using zk = await connect(one);
  await zk.create('/n');
  const writes: Promise<unknown>[] = [];
  for (const list of [two, `${one},${three}`, two, one]) {
    const before = zk.connectedServer;
    for (let write = 0; write < 20; write++) writes.push(zk.setData('/n', String(write)));
    expect(zk.updateServerList(list)).toBe(true);
    for (let write = 0; write < 20; write++) writes.push(zk.setData('/n', String(write)));
    await connectedAs(zk, () => zk.connectedServer !== before);
    expect(list).toContain(zk.connectedServer);
  }
  await Promise.all(writes);
  const { stat } = await zk.getData('/n');
  expect(stat.version).toBe(writes.length);
});

it('B36: followConfig does not change the list if the ensemble publishes no client addresses', async () => {
  await using ensemble = await TestEnsemble.start({ servers: 3 });
  await using zk = await connect(ensemble.connectString, { followConfig: true });
  const { data } = await zk.getConfig();
  expect(new TextDecoder().decode(data ?? undefined)).toContain('server.1=');
  expect(zk.servers.toSorted()).toEqual(ensemble.connectString.split(',').toSorted());
});

/** A port on which nothing listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

it('C2-24, C2-26, C2-27, B36: with followConfig clients go where the reconfigurations of an ensemble send them, again and again', async () => {
  await using ensemble = await TestEnsemble.start({ servers: 3, observers: 2, config: { reconfigEnabled: true, skipACL: 'yes' } });
  const addresses = ensemble.servers.map(({ connectString }) => connectString);
  const lineOf = (sid: number, address = addresses[sid - 1]!) =>
    `server.${sid}=server-${sid}:2888:3888:${sid > 3 ? 'observer' : 'participant'};${address}`;
  await using admin = await connect(addresses[0]!);
  const change = async (...lines: readonly string[]) => {
    const { data } = await admin.reconfig({ newMembers: lines });
    return new TextDecoder().decode(data).match(/^server/gm)!.length;
  };
  const three = [1, 2, 3].map((sid) => lineOf(sid));
  expect(await change(...three)).toBe(3);
  const count = 60;
  const clients = await Promise.all(Array.from({ length: count }, () => connect(addresses.slice(0, 3).join(','), { followConfig: true })));
  /** Resolves when each client has this list and is where it wants to be: a call after a new list is answered there. */
  const settled = async (list: readonly string[]): Promise<string[]> => {
    const wanted = list.toSorted().join();
    await expect.poll(() => clients.every(({ servers }) => servers.toSorted().join() === wanted), { timeout: 60_000 }).toBe(true);
    await Promise.all(clients.map((client) => client.sync('/').catch(() => client.sync('/'))));
    return clients.map(({ connectedServer }) => connectedServer!);
  };
  const before = await settled(addresses.slice(0, 3));
  const sessions = clients.map(({ sessionId }) => sessionId);
  // Three become five: each client moves with probability 0.4 (24 of 60, five deviations are 19), to
  // either of the new ones.
  expect(await change(...three, lineOf(4), lineOf(5))).toBe(5);
  const spread = await settled(addresses);
  const moved = spread.filter((server, at) => server !== before[at]);
  expect(moved.length).toBeGreaterThanOrEqual(5);
  expect(moved.length).toBeLessThanOrEqual(43);
  expect(new Set(moved)).toEqual(new Set(addresses.slice(3)));
  // Five become three: only the clients of the two that leave move. Those have reconnected before.
  expect(await change(...three)).toBe(3);
  const back = await settled(addresses.slice(0, 3));
  expect(back.filter((server, at) => server !== spread[at] && !moved.includes(spread[at]!))).toEqual([]);
  // A server gets another address.
  const renamed = `127.0.0.1:${await freePort()}`;
  expect(await change(...three.slice(0, 2), lineOf(3, renamed))).toBe(3);
  const last = await settled([...addresses.slice(0, 2), renamed]);
  expect(last).not.toContain(addresses[2]);
  await using other = await connect(renamed);
  expect(other.connectedServer).toBe(renamed);
  expect(clients.map(({ sessionId }) => sessionId)).toEqual(sessions);
  await Promise.all(clients.map((client) => client.close()));
});
