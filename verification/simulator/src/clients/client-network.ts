/**
 * The network stack of a client's machine, with a tap on every connection. Clients of any kind use
 * it like any other `Network`.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Endpoint, NetworkSink, SendBatch, StreamId } from '@tskeeper/runtime';
import type { VirtualNetwork, VirtualCnxn, VirtualWire } from '@tskeeper/runtime/internal';
import { CnxnTap } from '../record/cnxn-tap.ts';
import type { CnxnRecord, Recording } from '../record/recording.ts';
import type { ClientMachine } from './client-world.ts';

/** What a client's machine is connected to. */
export interface ClientEnvironment {
  readonly wire: VirtualWire;
  readonly clock: { readonly elapsedMs: Millis };
  readonly recording: Recording;
  /** The server at this address. */
  serverAt(address: string): { readonly name: string } | undefined;
  /** Adds bytes to the trace. */
  traceBytes(bytes: Uint8Array): void;
}

export class ClientNetwork implements ClientMachine {
  readonly #world: ClientEnvironment;
  readonly #client: string;
  readonly #network: VirtualNetwork;
  #unplugged = false;
  readonly #taps = new Map<StreamId, CnxnTap>();

  constructor(world: ClientEnvironment, client: string, address: string) {
    this.#world = world;
    this.#client = client;
    this.#network = world.wire.stack(address);
  }

  /**
   * The machine is off the network for good: its connections stay as they are, and nothing is sent.
   */
  unplug(): void {
    this.#unplugged = true;
    this.#network.start({
      accepted() {},
      connected() {},
      received() {},
      drained() {},
      ended() {},
      closed() {},
    });
  }

  get #nowMs(): Millis {
    return this.#world.clock.elapsedMs;
  }

  /** The record of an open connection. */
  recordOf(stream: StreamId): CnxnRecord | undefined {
    return this.#taps.get(stream)?.record;
  }

  /** The wire of a connection, for faults. */
  wireOf(stream: StreamId): VirtualCnxn | undefined {
    // The latest: an older one may have had the same id, and still be on the wire.
    let found: VirtualCnxn | undefined;
    for (const each of this.#world.wire.cnxns) {
      if (each.forward.from.stack === this.#network && each.forward.from.stream === stream) found = each;
    }
    return found;
  }

  start(sink: NetworkSink): void {
    this.#network.start({
      accepted: (stream, listener, remote) => sink.accepted(stream, listener, remote),
      connected: (stream) => {
        const wire = this.wireOf(stream);
        if (wire !== undefined) this.#taps.get(stream)?.connected(`${wire.dialer.address}:${wire.dialer.port}`);
        sink.connected(stream);
      },
      received: (batch) => {
        for (let index = 0; index < batch.count; index++) {
          const bytes = batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]);
          this.#world.traceBytes(bytes);
          this.#taps.get(batch.streams[index]!)?.received(bytes, this.#nowMs);
        }
        sink.received(batch);
      },
      drained: (stream) => sink.drained(stream),
      ended: (stream) => sink.ended(stream),
      closed: (stream, error) => {
        this.#taps.get(stream)?.closed(this.#nowMs);
        this.#taps.delete(stream);
        sink.closed(stream, error);
      },
    });
  }

  connect(endpoint: Endpoint): StreamId {
    if (this.#unplugged) return -1;
    const stream = this.#network.connect(endpoint);
    const server = this.#world.serverAt(endpoint.address)?.name ?? endpoint.address;
    const cnxn = { client: this.#client, server, address: this.#network.address, port: endpoint.port, openedMs: this.#nowMs };
    this.#taps.set(stream, new CnxnTap(this.#world.recording, cnxn));
    return stream;
  }

  send(batch: SendBatch): void {
    if (this.#unplugged) return;
    for (let index = 0; index < batch.count; index++) {
      this.#taps.get(batch.streams[index]!)?.sent(batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]), this.#nowMs);
    }
    this.#network.send(batch);
  }

  listen: ClientMachine['listen'] = (options) => this.#network.listen(options);
  resolve: ClientMachine['resolve'] = (host) => this.#network.resolve(host);
  end(stream: StreamId): void {
    if (!this.#unplugged) this.#network.end(stream);
  }

  reset(stream: StreamId): void {
    if (!this.#unplugged) this.#network.reset(stream);
  }

  pause: ClientMachine['pause'] = (stream) => this.#network.pause(stream);
  resume: ClientMachine['resume'] = (stream) => this.#network.resume(stream);
}
