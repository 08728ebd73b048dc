/** The proxies affect real sockets as the episodes assume. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually, type Proxy, ProxyNetwork, redirectDialBack, reservePort } from '@tskeeper/harness';

let network: ProxyNetwork;
let proxy: Proxy;
let server: Server;
/** The bytes that reached the server, and its sockets. */
let received: string;
let accepted: Socket[];
/** The number of bytes of each chunk passed to the server. */
let passedBytes: number[];

beforeEach(async () => {
  received = '';
  accepted = [];
  passedBytes = [];
  server = createServer((socket) => {
    accepted.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      socket.write(bytes);
    });
  });
  const port = await reservePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  network = new ProxyNetwork();
  proxy = await network.add('a', 'b', 'quorum', port, { onBytes: (_, bytes) => void passedBytes.push(bytes.length) });
  await network.accept('b');
});

afterEach(() => {
  network.close();
  for (const socket of accepted) socket.destroy();
  server.close();
});

/** A client connected to `a`, and the bytes it has received. */
function dial(): { readonly socket: Socket; readonly back: () => string; readonly error: () => string | undefined } {
  const socket = connect(proxy.port, '127.0.0.1');
  let back = '';
  let error: string | undefined;
  socket.on('data', (bytes) => {
    back += bytes.toString('latin1');
  });
  socket.on('error', (cause: NodeJS.ErrnoException) => {
    error = cause.code;
  });
  return { socket, back: () => back, error: () => error };
}

/** Long enough for an expected event, and for an unexpected one to have happened. */
const soonMs = 5000;
const notSoonMs = 150;

describe('a cable', () => {
  it('forwards bytes in both directions', async () => {
    const { socket, back } = dial();
    socket.write('hello');
    expect(await eventually(() => back() === 'hello', soonMs, 1)).toBe(true);
  });

  it('cut one way holds back the bytes in that direction only, and delivers them when it heals', async () => {
    const { socket, back } = dial();
    socket.write('1');
    await eventually(() => back() === '1', soonMs, 1);
    network.direction('b', 'a').isCut = true;
    socket.write('2');
    expect(await eventually(() => received === '12', soonMs, 1)).toBe(true);
    expect(await eventually(() => back() !== '1', notSoonMs, 1)).toBe(false);
    network.heal();
    expect(await eventually(() => back() === '12', soonMs, 1)).toBe(true);
  });

  it('cut during a connect leaves the client without an answer until it heals', async () => {
    network.direction('b', 'a').isCut = true;
    const { socket, back } = dial();
    socket.write('hello');
    expect(await eventually(() => received !== '', notSoonMs, 1)).toBe(false);
    network.heal();
    expect(await eventually(() => back() === 'hello', soonMs, 1)).toBe(true);
  });

  it('does not report the end of a connection while it is cut', async () => {
    const { socket, back } = dial();
    socket.write('1');
    await eventually(() => back() === '1', soonMs, 1);
    let isOver = false;
    socket.on('close', () => {
      isOver = true;
    });
    for (const lane of [network.direction('a', 'b'), network.direction('b', 'a')]) lane.isCut = true;
    accepted[0]!.resetAndDestroy();
    expect(await eventually(() => isOver, notSoonMs, 1)).toBe(false);
    network.heal();
    expect(await eventually(() => isOver, soonMs, 1)).toBe(true);
  });

  it('delays bytes, and forwards a few at a time', async () => {
    const lane = network.direction('a', 'b');
    lane.delayMs = 50;
    const { socket } = dial();
    const sentMs = performance.now();
    socket.write('late');
    await eventually(() => received === 'late', soonMs, 1);
    expect(performance.now() - sentMs).toBeGreaterThanOrEqual(50);
    lane.delayMs = 0;
    lane.chunkBytes = 1;
    socket.write('bytes');
    await eventually(() => received === 'latebytes', soonMs, 1);
    // A busy server reads several at once.
    expect(passedBytes).toEqual([4, 1, 1, 1, 1, 1]);
  });

  it('resets a connection in the middle of a message', async () => {
    const { socket, back, error } = dial();
    socket.write('1');
    await eventually(() => back() === '1', soonMs, 1);
    [...proxy.connections][0]!.forward.resetAfterBytes = 3;
    socket.write('23456');
    expect(await eventually(() => error() === 'ECONNRESET', soonMs, 1)).toBe(true);
    expect(await eventually(() => received === '1234', soonMs, 1)).toBe(true);
  });

  it('holds back the bytes of one connection and not of the next', async () => {
    const old = dial();
    old.socket.write('o');
    await eventually(() => old.back() === 'o', soonMs, 1);
    const pipe = [...proxy.connections][0]!.forward;
    pipe.isHeld = true;
    old.socket.write('OLD');
    const fresh = dial();
    fresh.socket.write('new');
    expect(await eventually(() => received === 'onew', soonMs, 1)).toBe(true);
    pipe.isHeld = false;
    pipe.pump();
    expect(await eventually(() => received === 'onewOLD', soonMs, 1)).toBe(true);
  });

  it('refuses connections without a server, and accepts them again afterwards', async () => {
    network.refuse('b');
    const refused = dial();
    expect(await eventually(() => refused.error() === 'ECONNREFUSED', soonMs, 1)).toBe(true);
    await network.accept('b');
    const { socket, back } = dial();
    socket.write('hello');
    expect(await eventually(() => back() === 'hello', soonMs, 1)).toBe(true);
  });
});

describe('the beginning of a connection to an election port', () => {
  it('names the return path through the proxies instead of its own port, however it is cut', () => {
    const address = Buffer.from('127.0.0.1:3888');
    const head = Buffer.alloc(20);
    head.writeBigInt64BE(-65536n, 0);
    head.writeBigInt64BE(2n, 8);
    head.writeInt32BE(address.length, 16);
    const message = Buffer.concat([head, address, Buffer.from('next')]);
    const rewrite = redirectDialBack(12_345);
    expect(rewrite(message.subarray(0, 19))).toBeUndefined();
    expect(rewrite(message.subarray(0, 30))).toBeUndefined();
    const rewritten = rewrite(message)!;
    expect(rewritten.subarray(0, 16)).toEqual(message.subarray(0, 16));
    expect(rewritten.readInt32BE(16)).toBe('127.0.0.1:12345'.length);
    expect(rewritten.subarray(20).toString()).toBe('127.0.0.1:12345next');
  });
});
