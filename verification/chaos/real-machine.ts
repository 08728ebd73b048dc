/**
 * The network of a client's machine: real sockets through the proxies, with a tap on each that
 * records requests and replies.
 */
import { connect, type Socket } from 'node:net';
import type { Endpoint, Listener, NetworkSink, SendBatch, StreamId } from '@tskeeper/runtime';
import type { ClientMachine, CnxnRecord, Recording } from '@tskeeper/simulator';
import { CnxnTap } from '@tskeeper/simulator/internal';
import type { RealClock } from './real-clock.ts';

/** What machines share: clock, recording, and names of connections by their port. */
export interface RealMachineEnvironment {
  readonly clock: RealClock;
  readonly recording: Recording;
  /** The port of the proxy that leads to this server. */
  proxyPort(client: string, server: string): number;
  /** A connection from this port was opened. Ports are reused; the returned name is not. */
  nameCnxn(localPort: number): string;
}

interface Stream {
  readonly socket: Socket;
  readonly tap: CnxnTap;
}

export class RealMachine implements ClientMachine {
  readonly #environment: RealMachineEnvironment;
  readonly #client: string;
  readonly #streams = new Map<StreamId, Stream>();
  #sink: NetworkSink | undefined;
  #lastStream = 0;
  #unplugged = false;

  constructor(ground: RealMachineEnvironment, client: string) {
    this.#environment = ground;
    this.#client = client;
  }

  start(sink: NetworkSink): void {
    this.#sink = sink;
  }

  connect({ address: server }: Endpoint): StreamId {
    if (this.#unplugged) return -1;
    const { clock, recording } = this.#environment;
    const id = ++this.#lastStream;
    // Its address is the proxy's.
    const cnxn = { client: this.#client, server, address: '127.0.0.1', openedMs: clock.elapsedMs };
    const tap = new CnxnTap(recording, cnxn);
    const socket = connect({
      port: this.#environment.proxyPort(this.#client, server),
      host: '127.0.0.1',
      noDelay: true,
      allowHalfOpen: true,
    });
    this.#streams.set(id, { socket, tap });
    let error: string | undefined;
    socket.on('connect', () => {
      tap.connected(this.#environment.nameCnxn(socket.localPort ?? 0));
      if (!this.#unplugged) this.#sink?.connected(id);
    });
    socket.on('data', (bytes) => this.#received(id, tap, bytes));
    socket.on('end', () => {
      if (!this.#unplugged) this.#sink?.ended(id);
    });
    socket.on('error', (cause: NodeJS.ErrnoException) => {
      error = cause.code ?? cause.message;
    });
    socket.on('close', () => {
      tap.closed(clock.elapsedMs);
      this.#streams.delete(id);
      if (!this.#unplugged) this.#sink?.closed(id, error);
    });
    return id;
  }

  #received(id: StreamId, tap: CnxnTap, bytes: Buffer): void {
    if (this.#unplugged) return;
    tap.received(bytes, this.#environment.clock.elapsedMs);
    this.#sink?.received({ count: 1, streams: [id], buffers: [bytes], starts: [0], ends: [bytes.length] });
  }

  send({ count, streams, buffers, starts, ends }: SendBatch): void {
    if (this.#unplugged) return;
    for (let at = 0; at < count; at++) {
      const stream = this.#streams.get(streams[at]!);
      if (stream === undefined) continue;
      // The sender may use its buffer again.
      const bytes = Buffer.from(buffers[at]!.subarray(starts[at], ends[at]));
      stream.tap.sent(bytes, this.#environment.clock.elapsedMs);
      stream.socket.write(bytes);
    }
  }

  end(id: StreamId): void {
    if (!this.#unplugged) this.#streams.get(id)?.socket.end();
  }

  reset(id: StreamId): void {
    if (this.#unplugged) return;
    const socket = this.#streams.get(id)?.socket;
    if (socket?.writableEnded === true) socket.destroy();
    else socket?.resetAndDestroy();
  }

  pause(id: StreamId): void {
    this.#streams.get(id)?.socket.pause();
  }

  resume(id: StreamId): void {
    this.#streams.get(id)?.socket.resume();
  }

  recordOf(id: StreamId): CnxnRecord | undefined {
    return this.#streams.get(id)?.tap.record;
  }

  /** Faults act on the proxies. */
  wireOf(): undefined {
    return undefined;
  }

  /** Its sockets stay open without a reader: the server does not learn that the client has gone. */
  unplug(): void {
    this.#unplugged = true;
    for (const { socket } of this.#streams.values()) socket.pause();
  }

  close(): void {
    this.#unplugged = true;
    for (const { socket } of this.#streams.values()) socket.destroy();
  }

  listen(): Promise<Listener> {
    return Promise.reject(new Error('a client does not accept connections'));
  }

  /** Servers have names here; the proxies know their ports. */
  resolve(host: string): Promise<string[]> {
    return Promise.resolve([host]);
  }
}
