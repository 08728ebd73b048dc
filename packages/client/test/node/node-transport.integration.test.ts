/** The default transport over real sockets. */
import { createSocket, type Socket as DatagramSocket } from 'node:dgram';
import { getServers, setServers } from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { NodeTransport, type TransportCnxn, type TransportSink } from '../../src/index.ts';
import { systemClock } from '../../src/node/system-clock.ts';
import { systemRandom } from '../../src/node/system-random.ts';

let servers: Server[] = [];
let sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  servers = [];
  sockets = [];
});

async function listen(serve: (socket: Socket) => void, host = '127.0.0.1'): Promise<number> {
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    serve(socket);
  });
  servers.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

interface Dialled {
  readonly cnxn: TransportCnxn;
  readonly connected: Promise<void>;
  readonly closed: Promise<string | undefined>;
  readonly received: Buffer[];
}

function dial(host: string, port: number): Dialled {
  const received: Buffer[] = [];
  let sink!: TransportSink;
  const connected = new Promise<void>((resolveConnected) => {
    sink = { connected: resolveConnected, received: (bytes) => void received.push(Buffer.from(bytes)), closed: () => undefined };
  });
  const closed = new Promise<string | undefined>((resolve) => {
    sink.closed = resolve;
  });
  return { cnxn: new NodeTransport().connect({ host, port }, sink), connected, closed, received };
}

describe('TCP', () => {
  it.each(['127.0.0.1', '::1'])('carries bytes both ways over %s, and reports the end', async (host) => {
    const port = await listen((socket) => socket.once('data', (bytes) => socket.end(bytes)), host);
    const { cnxn, connected, closed, received } = dial(host, port);
    await connected;
    cnxn.send(Buffer.from('hello'));
    expect(await closed).toBe(undefined);
    expect(Buffer.concat(received).toString()).toBe('hello');
  });

  it('reports an error by the code of the system', async () => {
    const port = await listen((socket) => socket.resetAndDestroy());
    const reset = dial('127.0.0.1', port);
    expect(await reset.closed).toBe('ECONNRESET');
    const [server] = servers.splice(0);
    server!.close();
    await once(server!, 'close');
    expect(await dial('127.0.0.1', port).closed).toBe('ECONNREFUSED');
  });

  it('calls the sink no more after end or destroy, and sends what is queued after end', async () => {
    const texts: string[] = [];
    const ended: Promise<void>[] = [];
    const port = await listen((socket) => {
      let text = '';
      socket.on('data', (bytes) => (text += bytes.toString()));
      ended.push(new Promise((resolve) => void socket.on('close', () => resolve(void texts.push(text)))));
      socket.write('unheard');
    });
    const gently = dial('127.0.0.1', port);
    await gently.connected;
    gently.cnxn.send(Buffer.from('last words'));
    gently.cnxn.end();
    const hard = dial('127.0.0.1', port);
    await hard.connected;
    hard.cnxn.destroy();
    while (ended.length < 2) await new Promise((resolve) => void setImmediate(resolve));
    await Promise.all(ended);
    expect(texts).toContain('last words');
    expect([...gently.received, ...hard.received]).toEqual([]);
  });

  it('does not wait forever for a peer that never closes its side', async () => {
    const closed: Promise<string>[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.resume();
      closed.push(new Promise((resolve) => void socket.on('close', () => resolve('gone'))));
      // Its end is never answered; only a reset shows that the other side is gone for good.
      socket.on('end', () => {
        const probe = setInterval(() => socket.write('still here'), 50);
        socket.on('close', () => clearInterval(probe));
      });
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { cnxn, connected } = dial('127.0.0.1', (server.address() as AddressInfo).port);
    await connected;
    cnxn.end();
    while (closed.length < 1) await new Promise((resolve) => void setImmediate(resolve));
    expect(await closed[0]).toBe('gone');
  });

  it('resolves names and leaves addresses unchanged', async () => {
    const transport = new NodeTransport();
    expect(await transport.resolve('127.0.0.1')).toEqual(['127.0.0.1']);
    expect(await transport.resolve('::1')).toEqual(['::1']);
    const local = await transport.resolve('localhost');
    expect(local.every((address) => address === '127.0.0.1' || address === '::1')).toBe(true);
    await expect(transport.resolve('no.such.name.invalid')).rejects.toMatchObject({ syscall: 'getaddrinfo' });
  });
});

describe('B37: SRV names', () => {
  /** Answers the question in each datagram: with these records, or with a name error. */
  async function nameServer(records: readonly { host: string; port: number; priority: number; weight: number }[]): Promise<DatagramSocket> {
    const socket = createSocket('udp4');
    socket.on('message', (query, peer) => {
      const question = query.subarray(12, query.indexOf(0, 12) + 5);
      const header = Buffer.from(query.subarray(0, 12));
      header.writeUInt16BE(records.length === 0 ? 0x8183 : 0x8180, 2);
      header.writeUInt16BE(records.length, 6);
      header.writeUInt32BE(0, 8);
      const answers = records.map(({ host, port, priority, weight }) => {
        const labels = [...host.split('.').map((label) => String.fromCharCode(label.length) + label), '\0'].join('');
        const answer = Buffer.alloc(18);
        // The name of the question; SRV, IN, TTL 0; length, priority, weight, port.
        [0xc00c, 33, 1, 0, 0, 6 + labels.length, priority, weight, port].forEach((number, at) => answer.writeUInt16BE(number, at * 2));
        return Buffer.concat([answer, Buffer.from(labels, 'latin1')]);
      });
      socket.send(Buffer.concat([header, question, ...answers]), peer.port, peer.address);
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    setServers([`127.0.0.1:${socket.address().port}`]);
    return socket;
  }

  it('are resolved by DNS, with priorities and weights', async () => {
    const before = getServers();
    const records = [
      { host: 'zk1.example.test', port: 2181, priority: 10, weight: 5 },
      { host: 'zk2.example.test', port: 65_535, priority: 20, weight: 0 },
    ];
    const known = await nameServer(records);
    const unknown = await nameServer([]);
    try {
      await expect(new NodeTransport().resolveSrv('_zookeeper._tcp.missing.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
      setServers([`127.0.0.1:${known.address().port}`]);
      const found = await new NodeTransport().resolveSrv('_zookeeper._tcp.example.test');
      expect(found.toSorted((a, b) => a.priority - b.priority)).toEqual(records);
    } finally {
      setServers(before);
      known.close();
      unknown.close();
    }
  });
});

describe('the machine', () => {
  it('fires no timer early', async () => {
    const before = systemClock.now().elapsedMs;
    await new Promise<void>((resolve) => void systemClock.after(20.4, resolve));
    expect(systemClock.now().elapsedMs - before).toBeGreaterThanOrEqual(20);
    const timer = systemClock.after(1, () => expect.unreachable());
    systemClock.cancel(timer);
    await new Promise<void>((resolve) => void systemClock.after(5, resolve));
  });

  it('draws random numbers that are 32-bit integers', () => {
    const numbers = Array.from({ length: 1000 }, () => systemRandom.uint32());
    expect(numbers.every((number) => Number.isInteger(number) && number >= 0 && number < 2 ** 32)).toBe(true);
    expect(new Set(numbers).size).toBeGreaterThan(990);
  });
});
