/**
 * An address that makes a server hold memory for it: over several connections it creates sessions,
 * requests a large amount first, begins long requests, and reads nothing. After a while it
 * disconnects.
 */
import { Writer, operations, writeConnectRequest, writeRequestHeader } from '@tskeeper/protocol';
import type { Millis } from '@tskeeper/protocol';
import type { StreamId } from '@tskeeper/runtime';
import { type ClientMachine, type ClientWorld, serverPort } from './client-world.ts';

export interface MemoryHogOptions {
  readonly name: string;
  readonly address: string;
  readonly timeoutMs: Millis;
  readonly server: ClientWorld['servers'][number];
  /** By connection: how many bytes it sends of a request that never ends. */
  readonly bytesPerCnxn: readonly number[];
  /** Number of requests that each connection sends before that; default 1. */
  readonly requestsPerCnxn?: number | undefined;
  /** Bytes that may be in transit to it. */
  readonly windowBytes?: number | undefined;
}

export class MemoryHog {
  readonly #network: ClientMachine;
  readonly #options: MemoryHogOptions;
  /** Connections without a handshake reply so far, and how many bytes each will send. */
  readonly #unanswered = new Map<StreamId, number>();
  readonly #streams = new Set<StreamId>();

  constructor(world: ClientWorld, options: MemoryHogOptions) {
    this.#options = options;
    this.#network = world.clientNetwork(options.name, options.address);
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#shakeHands(stream),
      received: ({ streams, count }) => {
        for (let at = 0; at < count; at++) this.#startLongRequest(streams[at]!);
      },
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => {
        this.#streams.delete(stream);
        this.#unanswered.delete(stream);
      },
    });
    const { address } = options.server;
    if (address === undefined) return;
    for (const bytes of options.bytesPerCnxn) {
      const stream = this.#network.connect({ address, port: serverPort });
      this.#streams.add(stream);
      this.#unanswered.set(stream, bytes);
    }
  }

  hangUp(): void {
    for (const stream of this.#streams) this.#network.reset(stream);
  }

  #shakeHands(stream: StreamId): void {
    this.#frame(stream, (writer) => {
      const { timeoutMs: timeOut } = this.#options;
      writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut, sessionId: 0n, passwd: null, readOnly: false });
    });
  }

  /** Called for the reply to the handshake. */
  #startLongRequest(stream: StreamId): void {
    const bytes = this.#unanswered.get(stream);
    if (bytes === undefined) return;
    this.#unanswered.delete(stream);
    this.#network.pause(stream);
    const { requestsPerCnxn = 1, windowBytes } = this.#options;
    const wire = this.#network.wireOf(stream);
    if (wire !== undefined && windowBytes !== undefined) wire.backward.conditions.windowBytes = windowBytes;
    for (let xid = 1; xid <= requestsPerCnxn; xid++) {
      this.#frame(stream, (writer) => {
        writeRequestHeader(writer, { xid, type: operations.getChildren2.opCode });
        operations.getChildren2.request.write(writer, { path: '/', watch: true });
      });
    }
    const begun = Buffer.alloc(bytes);
    begun.writeInt32BE(bytes + 1000, 0);
    this.#send(stream, begun);
  }

  #frame(stream: StreamId, write: (writer: Writer) => void): void {
    const writer = new Writer();
    const frame = writer.beginFrame();
    write(writer);
    writer.endFrame(frame);
    this.#send(stream, Buffer.from(writer.written()));
  }

  #send(stream: StreamId, bytes: Buffer): void {
    this.#network.send({ count: 1, streams: [stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
  }
}
