/** The bench's driver of our client does what it is asked to do, and reports it. */
import { connect, op } from '@tskeeper/client';
import { expect, it } from 'vitest';
import { availableClients, startClient } from '../../bench/clients/clients.js';
import { inFolder, kind, start } from './servers.ts';

it.each(['ours', 'bare'])(`the bench's client "%s" works with a server of kind ${kind}`, async (name) => {
  await inFolder(async (folder) => {
    const server = await start(folder);
    const zk = await connect(server.connectString);
    await zk.create('/bench');
    await Promise.all([0, 1, 2, 3].map((index) => zk.create(`/bench/${index}`, 'x'.repeat(100))));
    const { clients, absent } = await availableClients([name], () => undefined);
    expect(absent).toEqual([]);
    const client = await startClient(clients[0], server.connectString);
    try {
      const load = { do: 'load', root: '/bench', znodes: 4, bytes: 100, inFlight: 4, seconds: 0.2 };
      const { operations, seconds, cpuSeconds, p50Us, p99Us } = await client.ask({ ...load, op: 'getData' });
      // Each request has completed at least once, however busy the machine is.
      expect(operations).toBeGreaterThanOrEqual(load.inFlight);
      // A timer of Node starts at the beginning of its turn, in whole milliseconds: it may fire
      // almost one of them early.
      expect(seconds).toBeGreaterThan(0.199);
      expect(cpuSeconds).toBeGreaterThan(0);
      expect(p99Us).toBeGreaterThanOrEqual(p50Us);
      await expect(client.ask({ ...load, op: 'getData', bytes: 99 })).rejects.toThrow('expected 99 bytes, got 100');
      if (name === 'bare') return;
      expect((await client.ask({ ...load, op: 'createAndDelete' })).operations).toBeGreaterThan(1);
      expect((await client.ask({ ...load, op: 'setData' })).operations).toBeGreaterThan(1);
      expect(await client.ask({ do: 'watch', root: '/bench', count: 4 })).toEqual({ armed: 4 });
      await zk.multi([0, 1, 2, 3].map((index) => op.setData(`/bench/${index}`, 'y')));
      expect((await client.answer()).events).toBe(4);
      expect((await client.ask({ do: 'connect', times: 2 })).connects).toBe(2);
      await client.quit();
    } finally {
      client.kill();
      await zk.close();
      await server.stop();
    }
  });
});
