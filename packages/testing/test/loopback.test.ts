/** When the last byte has arrived, everything sent over TCP before has arrived. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { Loopback } from '../src/loopback.ts';

it('roundTrip resolves after the bytes that other sockets sent before it have arrived', async () => {
  const loopback = await Loopback.open();
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const from = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [to] = (await once(server, 'connection')) as [Socket];
  let heard = 0;
  to.on('data', (bytes) => (heard += bytes.length));
  for (let round = 1; round <= 100; round++) {
    from.write('x');
    await loopback.roundTrip();
    await new Promise<void>((resolve) => void setImmediate(resolve));
    expect(heard).toBe(round);
  }
  for (const each of [from, to]) each.destroy();
  server.close();
  loopback.close();
});

it('roundTrip resolves when the connection is closed', async () => {
  const loopback = await Loopback.open();
  const passing = loopback.roundTrip();
  loopback.close();
  await expect(passing).resolves.toBeUndefined();
  await expect(loopback.roundTrip()).resolves.toBeUndefined();
});
