/** A minimal client with a server that delays its answers until the next request. */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { OpCode, Xid } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { lostWakeupPorts, RawClient, record } from '@tskeeper/harness';
import { answerTo, welcome } from './answers.ts';

test('a RawClient requests a missing reply by a ping, and skips the reply to the ping', async () => {
  const asked: number[] = [];
  const server = createServer((socket) => {
    socket.on('data', (bytes) => {
      for (let at = 0; at < bytes.length; at += 4 + bytes.readInt32BE(at)) {
        const xid = bytes.readInt32BE(at + 4);
        asked.push(xid);
        if (asked.length === 1) socket.write(welcome());
        if (asked.length === 3) socket.write(answerTo(asked[1]!));
        if (asked.length > 2) socket.write(answerTo(xid));
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  lostWakeupPorts.add(port);
  try {
    const client = await RawClient.connectOrThrow(port, 30_000);
    expect((await client.call(OpCode.delete, record.pathAndInt('/a', -1))).err).toBe(0);
    expect((await client.call(OpCode.delete, record.pathAndInt('/b', -1))).err).toBe(0);
    expect(asked.slice(1)).toEqual([1, Xid.ping, 2]);
    client.abandon();
  } finally {
    lostWakeupPorts.delete(port);
    server.close();
  }
});

test('a RawClient whose connection has ended fails each later call at once', async () => {
  const server = createServer((socket) => {
    socket.once('data', () => {
      socket.write(welcome());
      socket.once('data', () => socket.destroy());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const client = await RawClient.connectOrThrow((server.address() as AddressInfo).port, 30_000);
    const ended = 'no reply to exists: the server has closed the connection';
    for (let i = 0; i < 2; i++) await expect(client.call(OpCode.exists, record.pathAndWatch('/', false))).rejects.toThrow(ended);
    await expect(client.close()).rejects.toThrow('no reply to closeSession: the server has closed the connection');
  } finally {
    server.close();
  }
});
