/**
 * Somebody who has much held for him: over several connections from one address he opens sessions, begins long requests, asks for a good
 * deal first, and reads nothing. After a while he hangs up.
 */
import { Writer, operations, writeConnectRequest, writeRequestHeader } from '@tskeeper/protocol';
import type { Millis } from '@tskeeper/protocol';
import type { StreamId } from '@tskeeper/runtime';
import { type ClientMachine, type ClientWorld, serverPort } from './client-world.ts';

export interface HoarderOptions {
  readonly name: string;
  readonly address: string;
  readonly timeoutMs: Millis;
  readonly server: ClientWorld['servers'][number];
  /** Of each connection: what it sends of a request that never ends. */
  readonly bytesOfEach: readonly number[];
  /** What each connection asks for before that; one request where nothing is said. */
  readonly asks?: number | undefined;
  /** What may be on its way to it. */
  readonly windowBytes?: number | undefined;
}

export class Hoarder {
  readonly #network: ClientMachine;
  readonly #options: HoarderOptions;
  /** Connections that have not been answered yet, and what each will send. */
  readonly #fresh = new Map<StreamId, number>();
  readonly #streams = new Set<StreamId>();

  constructor(world: ClientWorld, options: HoarderOptions) {
    this.#options = options;
    this.#network = world.clientNetwork(options.name, options.address);
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#shakeHands(stream),
      received: ({ streams, count }) => {
        for (let at = 0; at < count; at++) this.#hoard(streams[at]!);
      },
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => {
        this.#streams.delete(stream);
        this.#fresh.delete(stream);
      },
    });
    const { address } = options.server;
    if (address === undefined) return;
    for (const bytes of options.bytesOfEach) {
      const stream = this.#network.connect({ address, port: serverPort });
      this.#streams.add(stream);
      this.#fresh.set(stream, bytes);
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

  /** The handshake has been answered. */
  #hoard(stream: StreamId): void {
    const bytes = this.#fresh.get(stream);
    if (bytes === undefined) return;
    this.#fresh.delete(stream);
    this.#network.pause(stream);
    const { asks = 1, windowBytes } = this.#options;
    const wire = this.#network.wireOf(stream);
    if (wire !== undefined && windowBytes !== undefined) wire.backward.manners.windowBytes = windowBytes;
    for (let xid = 1; xid <= asks; xid++) {
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
