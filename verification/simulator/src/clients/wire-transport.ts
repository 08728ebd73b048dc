/** A transport over a virtual network, through which the client library uses the virtual wire. */
import type { ServerAddress, Transport, TransportCnxn, TransportSink } from '@tskeeper/client';
import type { Network, StreamId } from '@tskeeper/runtime';
import { type PingsOnlyMode, PingsOnlyWire } from './pings-only-wire.ts';

/** Of a four letter word; no frame is as short. */
const wordBytes = 4;

export class WireTransport implements Transport {
  readonly #network: Network;
  readonly #sinks = new Map<StreamId, TransportSink>();
  readonly #wires = new Map<StreamId, PingsOnlyWire>();
  /** The latest connection, as long as its client keeps it; not one with a four letter word. */
  stream: StreamId | undefined;

  constructor(network: Network) {
    this.#network = network;
    network.start({
      accepted: (stream) => network.reset(stream),
      connected: (stream) => this.#sinks.get(stream)?.connected(),
      received: (batch) => {
        for (let at = 0; at < batch.count; at++) {
          const stream = batch.streams[at]!;
          const received = batch.buffers[at]!.subarray(batch.starts[at], batch.ends[at]);
          const wire = this.#wires.get(stream);
          const bytes = wire === undefined ? received : wire.toClient(received);
          if (bytes.length > 0) this.#sinks.get(stream)?.received(bytes);
        }
      },
      drained() {},
      ended: (stream) => {
        network.end(stream);
        this.#closed(stream, undefined);
      },
      closed: (stream, error) => this.#closed(stream, error),
    });
  }

  /** From now on the server at the other end of the latest connection answers only pings. */
  answerOnlyPings(mode: PingsOnlyMode): void {
    if (this.stream !== undefined) this.#wires.get(this.stream)?.begin(mode);
  }

  resolve(host: string): Promise<readonly string[]> {
    return this.#network.resolve(host);
  }

  connect({ host, port }: ServerAddress, sink: TransportSink): TransportCnxn {
    const stream = this.#network.connect({ address: host, port });
    const before = this.stream;
    this.stream = stream;
    this.#sinks.set(stream, sink);
    const wire = new PingsOnlyWire();
    this.#wires.set(stream, wire);
    return {
      send: (bytes) => {
        // A question before the handshake, whose answer is not a frame.
        if (bytes.length === wordBytes) {
          this.#wires.delete(stream);
          if (this.stream === stream) this.stream = before !== undefined && this.#sinks.has(before) ? before : undefined;
        }
        // A copy: a full window keeps what it is given, and the client may reuse its buffer.
        const buffer = wire.toServer(Buffer.from(bytes));
        if (buffer.length === 0) return;
        this.#network.send({ count: 1, streams: [stream], buffers: [buffer], starts: [0], ends: [buffer.length], kept: [false] });
      },
      end: () => {
        if (this.#forget(stream)) this.#network.end(stream);
      },
      destroy: () => {
        if (this.#forget(stream)) this.#network.reset(stream);
      },
    };
  }

  #forget(stream: StreamId): boolean {
    if (this.stream === stream) this.stream = undefined;
    this.#wires.delete(stream);
    return this.#sinks.delete(stream);
  }

  #closed(stream: StreamId, error: string | undefined): void {
    const sink = this.#sinks.get(stream);
    this.#forget(stream);
    sink?.closed(error);
  }
}
