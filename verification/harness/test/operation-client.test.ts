import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { ErrorCode } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { OperationClient } from '@tskeeper/harness';
import { answerTo, welcome } from './answers.ts';

test('calls that wait at the same time each get their own reply, also when the replies arrive together', async () => {
  const count = 20;
  const errOf = (xid: number): number => (xid % 2 === 0 ? ErrorCode.NoNode : ErrorCode.Ok);
  const server = createServer((socket) => {
    const xids: number[] = [];
    socket.on('data', (bytes) => {
      for (let at = 0; at < bytes.length; at += 4 + bytes.readInt32BE(at)) xids.push(bytes.readInt32BE(at + 4));
      if (xids.length === 1) socket.write(welcome());
      if (xids.length === 1 + count) socket.write(Buffer.concat(xids.slice(1).map((xid) => answerTo(xid, errOf(xid)))));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const client = await OperationClient.open({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    await client.openSession(30_000);
    const calls = Array.from({ length: count }, () => client.call({ kind: 'delete', path: '/a', version: -1 }));
    const replies = await Promise.all(calls);
    expect(replies.map((reply) => [reply?.xid, reply?.err])).toEqual(
      Array.from({ length: count }, (_, index) => [index + 1, errOf(index + 1)]),
    );
    client.destroy();
  } finally {
    server.close();
  }
});
