/** A transport over a `Network` of the runtime, for clients on a virtual network. */
import type { Network, StreamId } from '@tskeeper/runtime';
import type { ServerAddress, Transport, TransportCnxn, TransportSink } from '../../src/index.ts';

export class WireTransport implements Transport {
  readonly #network: Network;
  readonly #sinks = new Map<StreamId, TransportSink>();

  /** The network must not be used by anything else. */
  constructor(network: Network) {
    this.#network = network;
    network.start({
      accepted: (stream) => network.reset(stream),
      connected: (stream) => this.#sinks.get(stream)?.connected(),
      received: (batch) => {
        for (let at = 0; at < batch.count; at++) {
          const bytes = batch.buffers[at]!.subarray(batch.starts[at], batch.ends[at]);
          this.#sinks.get(batch.streams[at]!)?.received(bytes);
        }
      },
      drained: () => undefined,
      ended: (stream) => {
        network.end(stream);
        this.#over(stream, undefined);
      },
      closed: (stream, error) => this.#over(stream, error),
    });
  }

  resolve(host: string): Promise<readonly string[]> {
    return this.#network.resolve(host);
  }

  connect({ host, port }: ServerAddress, sink: TransportSink): TransportCnxn {
    const stream = this.#network.connect({ address: host, port });
    this.#sinks.set(stream, sink);
    return {
      send: (bytes) => {
        const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        this.#network.send({ count: 1, streams: [stream], buffers: [buffer], starts: [0], ends: [buffer.length], kept: [false] });
      },
      end: () => {
        if (this.#sinks.delete(stream)) this.#network.end(stream);
      },
      destroy: () => {
        if (this.#sinks.delete(stream)) this.#network.reset(stream);
      },
    };
  }

  #over(stream: StreamId, error: string | undefined): void {
    const sink = this.#sinks.get(stream);
    this.#sinks.delete(stream);
    sink?.closed(error);
  }
}
