/** The network of a client's machine: real sockets over the cables, and a tap on each that writes down what is asked and answered. */
import { connect, type Socket } from 'node:net';
import type { Endpoint, Listener, NetworkSink, SendBatch, StreamId } from '@tskeeper/runtime';
import type { ClientMachine, CnxnRecord, Recording } from '@tskeeper/simulator';
import { CnxnTap } from '@tskeeper/simulator/internal';
import type { RealClock } from './real-clock.ts';

/** What machines share: time, paper, and who may be told apart by the port it has dialled from. */
export interface Ground {
  readonly clock: RealClock;
  readonly recording: Recording;
  /** The port of the cable that leads to this server. */
  cablePort(client: string, server: string): number;
  /** A connection from this port has been made. Ports are used again; the name that is returned is not. */
  nameCnxn(localPort: number): string;
}

interface Stream {
  readonly socket: Socket;
  readonly tap: CnxnTap;
}

export class RealMachine implements ClientMachine {
  readonly #ground: Ground;
  readonly #client: string;
  readonly #streams = new Map<StreamId, Stream>();
  #sink: NetworkSink | undefined;
  #lastStream = 0;
  #unplugged = false;

  constructor(ground: Ground, client: string) {
    this.#ground = ground;
    this.#client = client;
  }

  start(sink: NetworkSink): void {
    this.#sink = sink;
  }

  connect({ address: server }: Endpoint): StreamId {
    if (this.#unplugged) return -1;
    const { clock, recording } = this.#ground;
    const id = ++this.#lastStream;
    // Its address is that of whoever comes through the proxy.
    const cnxn = { client: this.#client, server, address: '127.0.0.1', openedMs: clock.elapsedMs };
    const tap = new CnxnTap(recording, cnxn);
    const socket = connect({ port: this.#ground.cablePort(this.#client, server), host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    this.#streams.set(id, { socket, tap });
    let error: string | undefined;
    socket.on('connect', () => {
      tap.connected(this.#ground.nameCnxn(socket.localPort ?? 0));
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
    tap.received(bytes, this.#ground.clock.elapsedMs);
    this.#sink?.received({ count: 1, streams: [id], buffers: [bytes], starts: [0], ends: [bytes.length] });
  }

  send({ count, streams, buffers, starts, ends }: SendBatch): void {
    if (this.#unplugged) return;
    for (let at = 0; at < count; at++) {
      const stream = this.#streams.get(streams[at]!);
      if (stream === undefined) continue;
      // The sender may use its buffer again.
      const bytes = Buffer.from(buffers[at]!.subarray(starts[at], ends[at]));
      stream.tap.sent(bytes, this.#ground.clock.elapsedMs);
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

  /** Harm comes over the cables. */
  wireOf(): undefined {
    return undefined;
  }

  /** Its sockets stay open, and nobody reads them: the server is not told that the client has gone. */
  unplug(): void {
    this.#unplugged = true;
    for (const { socket } of this.#streams.values()) socket.pause();
  }

  close(): void {
    this.#unplugged = true;
    for (const { socket } of this.#streams.values()) socket.destroy();
  }

  listen(): Promise<Listener> {
    return Promise.reject(new Error('nobody dials a client'));
  }

  /** Servers are called by their names, and the cables know where they are. */
  resolve(host: string): Promise<string[]> {
    return Promise.resolve([host]);
  }
}
