/** The server list of a client of a real ensemble, over TCP. */
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
