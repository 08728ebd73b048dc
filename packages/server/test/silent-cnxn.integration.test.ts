/**
 * How a silent connection ends, as the kernel shows it to the client: the sockets are real, only
 * the clock is virtual.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { coreDefaults } from '@tskeeper/core';
import { writeConnectRequest, Writer } from '@tskeeper/protocol';
import { ManualClock, VirtualDisk, type Runtime, runtimeDefaults, SeededRandom, silentLogger, startRuntime } from '@tskeeper/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { NetNetwork } from '../src/net-network.ts';

let clock: ManualClock;
let runtime: Runtime;
let sockets: Socket[];

/** Runs without advancing the time, until the condition holds. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(0);
  }
}

/** Advances the time in steps so short that the server does not see a suspension of its process. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    clock.advance(Math.min(left, 100));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function settled<T>(promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const note = () => void (isSettled = true);
  promise.then(note, note);
  await until(() => isSettled);
  return promise;
}

beforeEach(async () => {
  clock = new ManualClock(1_000_000);
  sockets = [];
  runtime = await settled(
    startRuntime(
      { disk: new VirtualDisk().attach(), network: new NetNetwork({ logger: silentLogger }), clock, random: new SeededRandom(1) },
      coreDefaults,
      { ...runtimeDefaults, dataDir: '/data', dataLogDir: '/data', clientPort: 0, clientPortAddress: '127.0.0.1' },
      {
        logger: silentLogger,
        snappy: undefined,
        host: { version: 'test', environment: () => [], openFileDescriptors: () => undefined, maxFileDescriptors: () => undefined },
        failed: (error) => {
          throw error;
        },
      },
    ),
  );
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await settled(runtime.close());
});

/** A connection, and the events of its end at the client. */
async function dial(): Promise<{ readonly socket: Socket; readonly heard: string[] }> {
  const socket = connect({ host: '127.0.0.1', port: runtime.clientEndpoint.port });
  sockets.push(socket);
  const heard: string[] = [];
  socket.on('end', () => heard.push('end'));
  socket.on('error', ({ code }: NodeJS.ErrnoException) => heard.push(String(code)));
  socket.on('close', () => heard.push('closed'));
  socket.resume();
  await once(socket, 'connect');
  return { socket, heard };
}

/**
 * Another connection is accepted and answered: by then earlier ones have been accepted too, and
 * bytes sent to them have arrived.
 */
async function answerAnother(): Promise<void> {
  const { socket, heard } = await dial();
  socket.write('srvr');
  await until(() => heard.includes('closed'));
}

it('F28: a silent connection without a session is closed by FIN on a real socket, ten seconds after it was accepted', async () => {
  const silent = await dial();
  await answerAnother();
  await pass(9_900);
  await answerAnother();
  expect(silent.heard).toEqual([]);
  await pass(200);
  await until(() => silent.heard.includes('closed'));
  expect(silent.heard).toEqual(['end', 'closed']);
});

it('F28: a connection whose client vanishes is closed by FIN on a real socket, when its session has expired', async () => {
  const silent = await dial();
  const writer = new Writer();
  const start = writer.beginFrame();
  const passwd = Buffer.alloc(16);
  writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 10_000, sessionId: 0n, passwd, readOnly: false });
  writer.endFrame(start);
  silent.socket.write(writer.written());
  await until(() => runtime.inspect.sessionCount() === 1);
  await pass(9_000);
  await answerAnother();
  expect(silent.heard).toEqual([]);
  await pass(11_000);
  await until(() => silent.heard.includes('closed'));
  expect(silent.heard).toEqual(['end', 'closed']);
  expect(runtime.inspect.sessionCount()).toBe(0);
});
