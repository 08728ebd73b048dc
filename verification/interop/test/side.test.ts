/**
 * The clients of a differential run with a server that closes a connection before it has sent
 * everything.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { OpCode, Writer, Xid } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { Side } from '../src/differential/side.ts';
import type { Step } from '../src/differential/step.ts';
import { frameOf, record } from '@tskeeper/harness';

function message(xid: number, fields: (writer: Writer) => void = () => undefined): Buffer {
  const writer = new Writer(64);
  writer.int32(xid);
  writer.int64(1);
  writer.int32(0);
  fields(writer);
  return frameOf(Buffer.from(writer.written()));
}

const welcome = frameOf(
  Buffer.concat([
    Buffer.from([0, 0, 0, 0]),
    Buffer.from([0, 0, 0x75, 0x30]),
    Buffer.alloc(7),
    Buffer.from([1, 0, 0, 0, 16]),
    Buffer.alloc(17),
  ]),
);

const event = message(Xid.notification, (writer) => {
  writer.int32(4);
  writer.int32(3);
  writer.buffer(Buffer.from('/b'));
});

/** Sends an event before its answer to the first ping, and closes on anything else. */
async function closingServer(): Promise<Server> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(welcome);
      socket.on('data', (bytes) => {
        if (bytes.readInt32BE(0) !== 8 || bytes.readInt32BE(4) !== Xid.ping) socket.end();
        else socket.write(Buffer.concat([event, message(Xid.ping)]));
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const mayEnd: readonly (readonly [string, Step])[] = [
  ['a request', { kind: 'last', client: 0, op: { type: OpCode.setData, text: 'setData', fields: () => record.nothing() } }],
  ['a frame', { kind: 'frame', client: 0, text: 'a frame', length: -1, bytes: Buffer.alloc(0) }],
];

test.each(mayEnd)('pending bytes for a client have arrived before %s that may close its connection is sent', async (_, step) => {
  const server = await closingServer();
  try {
    const side = new Side((server.address() as AddressInfo).port, 1, { zxid: (zxid) => zxid });
    await side.run({
      kind: 'handshake',
      client: 0,
      session: 'new',
      timeOut: 30_000,
      readOnly: false,
      protocolVersion: 0,
      lastZxidSeen: 'zero',
    });
    await side.run(step);
    expect(side.takeLogs()[0]!.map((entry) => entry.message.kind)).toEqual(['handshake', 'event', 'reply', 'closed']);
  } finally {
    server.close();
  }
});
