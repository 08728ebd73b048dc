import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Endpoint, Listener, NetworkSink, ReceivedBatch, SendBatch, StreamId } from '@tskeeper/runtime';
import { silentLogger } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatEndpoint, listenSentence, NetNetwork, plainAddress } from '../src/net-network.ts';
import { portOwner } from '../src/port-owner.ts';

/** Records its calls, and lets a test wait for them. */
class Recorder implements NetworkSink {
  readonly heard: string[] = [];
  readonly text = new Map<StreamId, string>();
  readonly remotes: Endpoint[] = [];
  batches: number[][] = [];
  onAccepted: (stream: StreamId) => void = () => undefined;
  #waiting: (() => void)[] = [];

  accepted(stream: StreamId, listener: Listener, remote: Endpoint): void {
    this.remotes.push(remote);
    this.#note(`accepted ${stream} ${listener.endpoint.port > 0}`);
    this.onAccepted(stream);
  }
  connected(stream: StreamId): void {
    this.#note(`connected ${stream}`);
  }
  received(batch: ReceivedBatch): void {
    const streams: number[] = [];
    for (let index = 0; index < batch.count; index++) {
      const stream = batch.streams[index]!;
      streams.push(stream);
      const bytes = batch.buffers[index]!.toString('latin1', batch.starts[index], batch.ends[index]);
      this.text.set(stream, (this.text.get(stream) ?? '') + bytes);
    }
    this.batches.push(streams);
    this.#note(`received ${[...new Set(streams)].join(',')}`);
  }
  drained(stream: StreamId): void {
    this.#note(`drained ${stream}`);
  }
  ended(stream: StreamId): void {
    this.#note(`ended ${stream}`);
  }
  closed(stream: StreamId, error: string | undefined): void {
    this.#note(`closed ${stream} ${error}`);
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
  async untilHeard(line: string): Promise<void> {
    await this.until(() => this.heard.includes(line));
  }
  #note(line: string): void {
    this.heard.push(line);
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

function batchOf(...parts: [StreamId, string | Buffer][]): SendBatch {
  const buffers = parts.map(([, bytes]) => Buffer.from(bytes as string));
  return {
    count: parts.length,
    streams: parts.map(([stream]) => stream),
    buffers,
    starts: buffers.map(() => 0),
    ends: buffers.map((buffer) => buffer.length),
    kept: [],
  };
}

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'));

let network: NetNetwork;
let sink: Recorder;
let listener: Listener;
let clients: Socket[];

beforeEach(async () => {
  network = new NetNetwork({ logger: silentLogger });
  sink = new Recorder();
  network.start(sink);
  listener = await network.listen({ address: '127.0.0.1', port: 0, backlog: undefined });
  clients = [];
});
afterEach(async () => {
  for (const socket of clients) socket.destroy();
  await listener.close();
});

async function client(): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: listener.endpoint.port, allowHalfOpen: true });
  socket.on('error', () => undefined);
  clients.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Unlike `once`, it does not reject on an error of the socket. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.on('close', () => resolve()));
}

async function text(socket: Socket, length: number): Promise<string> {
  let received = '';
  while (received.length < length) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    received += chunk.toString('latin1');
  }
  return received;
}

/** Whether the kernel probes a connection, by its ports: timer 02 of /proc/net/tcp. */
function isProbed(localPort: number, remotePort: number): boolean {
  const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0');
  const lines = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const line = lines.find(([, local, remote]) => local?.endsWith(`:${hex(localPort)}`) && remote?.endsWith(`:${hex(remotePort)}`));
  if (line === undefined) throw new Error(`no connection from port ${localPort} to ${remotePort}`);
  return line[5]!.startsWith('02:');
}

describe.skipIf(!existsSync('/proc/net/tcp'))('NetNetwork with keep-alive', () => {
  it.each([
    [{ keepAlive: true }, [true, false, false]],
    [{ serverKeepAlive: true }, [false, true, true]],
  ])('%j: the kernel probes exactly the configured connections: of clients, from servers, to servers', async (options, probed) => {
    const own = new NetNetwork({ logger: silentLogger, ...options });
    const heard = new Recorder();
    own.start(heard);
    const listeners = [
      await own.listen({ address: '127.0.0.1', port: 0, backlog: undefined }),
      await own.listen({ address: '127.0.0.1', port: 0, backlog: undefined, forServers: true }),
    ];
    for (const { endpoint } of listeners) {
      const socket = connect({ host: '127.0.0.1', port: endpoint.port });
      clients.push(socket);
      await once(socket, 'connect');
    }
    await heard.until(() => heard.remotes.length === 2);
    const seen = listeners.map(({ endpoint }, index) => isProbed(endpoint.port, heard.remotes[index]!.port));
    // It dials the listener of the other network.
    const stream = own.connect(listener.endpoint);
    await heard.untilHeard(`connected ${stream}`);
    await sink.until(() => sink.remotes.length === 1);
    expect([...seen, isProbed(sink.remotes[0]!.port, listener.endpoint.port)]).toEqual(probed);
    own.reset(stream);
    for (const one of listeners) await one.close();
  });
});

describe('NetNetwork', () => {
  it('accepts, receives and sends', async () => {
    const socket = await client();
    socket.write('hello');
    await sink.until(() => sink.text.get(0) === 'hello');
    expect(sink.heard[0]).toBe('accepted 0 true');
    expect(sink.remotes[0]).toEqual({ address: '127.0.0.1', port: socket.localPort });
    const batch = batchOf([0, 'world']);
    const answer = text(socket, 5);
    network.send(batch);
    expect(batch.kept).toEqual([false]);
    expect(await answer).toBe('world');
  });

  it('sends the given part of a buffer', async () => {
    const socket = await client();
    await sink.untilHeard('accepted 0 true');
    const answer = text(socket, 3);
    network.send({ ...batchOf([0, 'xxabcxx']), starts: [2], ends: [5] });
    expect(await answer).toBe('abc');
  });

  it('delivers what arrived on many streams in one turn by one call', async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, client));
    await sink.until(() => sink.heard.length === 20);
    // Nothing is read during this turn, so all of it is ready for the next one.
    await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.write('x', () => resolve()))));
    const until = performance.now() + 20;
    while (performance.now() < until);
    await sink.until(() => sink.text.size === 20);
    expect(sink.batches.length).toBeLessThan(20);
    expect(Math.max(...sink.batches.map((batch) => batch.length))).toBeGreaterThan(1);
  });

  it('keeps a buffer that the system does not accept at once, and calls drained when it is sent', async () => {
    const socket = await client();
    socket.pause();
    await sink.untilHeard('accepted 0 true');
    const big = Buffer.alloc(32 << 20, 'a');
    const batch = batchOf([0, big]);
    network.send(batch);
    expect(batch.kept).toEqual([true]);
    expect(sink.heard).not.toContain('drained 0');
    let length = 0;
    socket.on('data', (chunk) => (length += chunk.length));
    socket.resume();
    await sink.untilHeard('drained 0');
    await once(socket, 'data');
    network.end(0);
    await once(socket, 'end');
    expect(length).toBe(big.length);
  });

  it('reports the end of a peer after its last bytes, and can still answer', async () => {
    const socket = await client();
    socket.end('last');
    await sink.untilHeard('ended 0');
    expect(sink.heard).toEqual(['accepted 0 true', 'received 0', 'ended 0']);
    const answer = text(socket, 6);
    network.send(batchOf([0, 'answer']));
    expect(await answer).toBe('answer');
    network.end(0);
    await sink.untilHeard('closed 0 undefined');
  });

  it('reports why a stream was closed', async () => {
    const socket = await client();
    await sink.untilHeard('accepted 0 true');
    socket.resetAndDestroy();
    await sink.until(() => sink.heard.length === 2);
    expect(sink.heard).toEqual(['accepted 0 true', 'closed 0 ECONNRESET']);
  });

  it('resets a stream at once, delivers none of its later bytes, and reuses its number after closed', async () => {
    const socket = await client();
    await sink.untilHeard('accepted 0 true');
    socket.write('never seen');
    const gone = closed(socket);
    network.reset(0);
    network.reset(0);
    await sink.untilHeard('closed 0 undefined');
    await gone;
    expect(sink.text.size).toBe(0);
    network.send(batchOf([0, 'to no stream']));
    network.end(0);
    network.pause(0);
    network.resume(0);
    await client();
    await sink.until(() => sink.heard.filter((line) => line === 'accepted 0 true').length === 2);
  });

  it.each([0, 1, 2, 3])('resets a stream whose end was requested %i ticks ago, and reports that it is closed', async (ticks) => {
    sink.onAccepted = (stream) => {
      network.end(stream);
      // On the way to the system the end passes through stages; in one of them the system refuses a
      // reset.
      let drop = () => network.reset(stream);
      for (let tick = 0; tick < ticks; tick++) {
        const then = drop;
        drop = () => process.nextTick(then);
      }
      drop();
    };
    const socket = connect({ host: '127.0.0.1', port: listener.endpoint.port });
    socket.on('error', () => undefined);
    await Promise.all([closed(socket), sink.until(() => sink.heard.some((line) => line.startsWith('closed 0')))]);
    expect(sink.heard.filter((line) => line.startsWith('closed'))).toHaveLength(1);
  });

  it('can reset a stream within a call that reports it', async () => {
    sink.onAccepted = (stream) => network.reset(stream);
    const socket = connect({ host: '127.0.0.1', port: listener.endpoint.port });
    socket.on('error', () => undefined);
    await Promise.all([closed(socket), sink.untilHeard('closed 0 undefined')]);
    expect(sink.heard).toEqual(['accepted 0 true', 'closed 0 undefined']);
  });

  it('stops reading a paused stream until it is resumed', async () => {
    sink.onAccepted = (stream) => network.pause(stream);
    const first = await client();
    first.write('held back');
    sink.onAccepted = () => undefined;
    const second = await client();
    second.write('passes');
    await sink.until(() => sink.text.get(1) === 'passes');
    expect(sink.text.has(0)).toBe(false);
    network.resume(0);
    await sink.until(() => sink.text.get(0) === 'held back');
  });

  it('connects, and reports the result', async () => {
    const server = createServer((socket) => socket.end('hi')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const stream = network.connect({ address: '127.0.0.1', port });
    await sink.untilHeard(`ended ${stream}`);
    expect(sink.heard).toEqual([`connected ${stream}`, `received ${stream}`, `ended ${stream}`]);
    expect(sink.text.get(stream)).toBe('hi');
    network.end(stream);
    await sink.untilHeard(`closed ${stream} undefined`);
    server.close();
    await once(server, 'close');

    const refused = network.connect({ address: '127.0.0.1', port });
    await sink.untilHeard(`closed ${refused} ECONNREFUSED`);
  });

  it('gives up a connection attempt at once after a reset', async () => {
    const stream = network.connect({ address: '127.0.0.1', port: listener.endpoint.port });
    network.reset(stream);
    await sink.untilHeard(`closed ${stream} undefined`);
    expect(sink.heard).not.toContain(`connected ${stream}`);
  });

  it('resolves names', async () => {
    expect(await network.resolve('10.0.0.1')).toEqual(['10.0.0.1']);
    expect((await network.resolve('localhost')).some((address) => ['127.0.0.1', '::1'].includes(address))).toBe(true);
  });
});

describe('listening', () => {
  it('without an address accepts IPv4, written without its mapping, as well as IPv6', async () => {
    const everywhere = await network.listen({ address: undefined, port: 0, backlog: 10 });
    const socket = connect({ host: '127.0.0.1', port: everywhere.endpoint.port });
    clients.push(socket);
    await sink.untilHeard('accepted 0 true');
    expect(sink.remotes[0]!.address).toBe('127.0.0.1');
    await everywhere.close();
  });

  it.runIf(hasIpv6)('without an address accepts IPv6', async () => {
    const everywhere = await network.listen({ address: undefined, port: 0, backlog: undefined });
    clients.push(connect({ host: '::1', port: everywhere.endpoint.port }));
    await sink.untilHeard('accepted 0 true');
    expect([everywhere.endpoint.address, sink.remotes[0]!.address]).toEqual(['::', '::1']);
    await everywhere.close();
  });

  it('stops at once although connections stay open', async () => {
    const socket = await client();
    await sink.untilHeard('accepted 0 true');
    await listener.close();
    const again = await network.listen({ address: '127.0.0.1', port: listener.endpoint.port, backlog: undefined });
    expect(again.endpoint.port).toBe(listener.endpoint.port);
    await again.close();
    const answer = text(socket, 5);
    network.send(batchOf([0, 'still']));
    expect(await answer).toBe('still');
  });

  it.runIf(process.platform === 'linux')('on a port in use names the process that uses it', async () => {
    const { port } = listener.endpoint;
    const { program } = portOwner(port)!;
    await expect(network.listen({ address: '127.0.0.1', port, backlog: undefined })).rejects.toMatchObject({
      name: 'ListenError',
      code: 'EADDRINUSE',
      message: `port ${port} of 127.0.0.1 is already in use by process ${process.pid} (${program}). Stop that process or choose another port.`,
    });
    expect(portOwner(1)).toBeUndefined();
  });

  it('on an address of another machine is explained', async () => {
    await expect(network.listen({ address: '192.0.2.1', port: 0, backlog: undefined })).rejects.toMatchObject({
      name: 'ListenError',
      code: 'EADDRNOTAVAIL',
      message:
        'port 0 of 192.0.2.1 cannot be used because this machine has no such address. Correct the address to listen on, or leave it out to listen on all.',
    });
  });

  it.each([
    ['EADDRINUSE', undefined, 'port 1 is already in use by another process. Stop that process or choose another port.'],
    ['EACCES', undefined, 'port 1 may not be used by this user. Choose a port above 1023 or grant the right to bind it.'],
    [
      'ENOTFOUND',
      'nowhere',
      'port 1 of nowhere cannot be used because the name does not resolve (ENOTFOUND). Correct the address to listen on, or leave it out to listen on all.',
    ],
    ['EOTHER', undefined, 'cannot listen on port 1 (EOTHER).'],
  ])('refused with %s is explained', (code, address, sentence) => {
    expect(listenSentence(code, address, 1, undefined)).toBe(sentence);
  });
});

describe('addresses', () => {
  it.each([
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:10.0.0.1', '10.0.0.1'],
    ['10.0.0.1', '10.0.0.1'],
    ['::1', '::1'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
  ])('%s is written as %s', (address, plain) => {
    expect(plainAddress(address)).toBe(plain);
  });

  it('are written in brackets before a port when they are IPv6', () => {
    expect([formatEndpoint({ address: '::1', port: 2 }), formatEndpoint({ address: '10.0.0.1', port: 2 })]).toEqual([
      '[::1]:2',
      '10.0.0.1:2',
    ]);
  });
});
