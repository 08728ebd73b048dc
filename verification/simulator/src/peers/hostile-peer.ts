/**
 * A machine outside the ensemble that speaks to the ports of its servers: it connects to them, and
 * may listen for those that connect back. It sends the bytes it is given; their meaning is up to
 * the attack.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Endpoint, Listener, StreamId } from '@tskeeper/runtime';
import type { VirtualNetwork } from '@tskeeper/runtime/internal';
import type { VirtualWorld } from '../world/virtual-world.ts';

/** What an attack does with one connection. */
export interface CnxnHandler {
  /** The connection is established. */
  opened?(cnxn: HostileCnxn): void;
  received?(cnxn: HostileCnxn, bytes: Buffer): void;
}

export interface HostileCnxn {
  send(bytes: Uint8Array): void;
  /** Sends no more, but keeps receiving. */
  end(): void;
  reset(): void;
  /** Stops reading. */
  stopReading(): void;
  after(ms: Millis, run: () => void): void;
}

/** Addresses that neither servers nor clients have. */
const hostileNet = 66;

export class HostilePeer {
  readonly address: string;
  readonly #world: VirtualWorld;
  readonly #network: VirtualNetwork;
  readonly #conversations = new Map<StreamId, CnxnHandler>();
  #listenHandler: CnxnHandler | undefined;
  #isGone = false;

  constructor(world: VirtualWorld, number: number) {
    this.#world = world;
    this.address = `10.${hostileNet}.${number >> 8}.${number & 255}`;
    this.#network = world.wire.stack(this.address);
    this.#network.start({
      accepted: (stream, _listener: Listener, _remote: Endpoint) => {
        if (this.#listenHandler === undefined) return;
        this.#conversations.set(stream, this.#listenHandler);
        this.#listenHandler.opened?.(this.#cnxn(stream));
      },
      connected: (stream) => this.#conversations.get(stream)?.opened?.(this.#cnxn(stream)),
      received: (batch) => {
        for (let index = 0; index < batch.count; index++) {
          const stream = batch.streams[index]!;
          const bytes = batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]);
          this.#conversations.get(stream)?.received?.(this.#cnxn(stream), bytes);
        }
      },
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => void this.#conversations.delete(stream),
    });
  }

  dial(endpoint: Endpoint, conversation: CnxnHandler): void {
    if (this.#isGone) return;
    this.#conversations.set(this.#network.connect(endpoint), conversation);
  }

  /** Every connection to this port gets this conversation. */
  listen(port: number, conversation: CnxnHandler): void {
    this.#listenHandler = conversation;
    void this.#network.listen({ address: undefined, port, backlog: undefined });
  }

  /** Drops its connections, and makes no more. */
  leave(): void {
    this.#isGone = true;
    this.#network.stopListening();
    for (const stream of this.#conversations.keys()) this.#network.reset(stream);
  }

  #cnxn(stream: StreamId): HostileCnxn {
    const conversation = this.#conversations.get(stream);
    // The id of a closed connection may be reused.
    const isHere = () => !this.#isGone && this.#conversations.get(stream) === conversation;
    return {
      send: (bytes) => {
        if (!isHere() || bytes.length === 0) return;
        const buffer = Buffer.from(bytes);
        this.#network.send({ count: 1, streams: [stream], buffers: [buffer], starts: [0], ends: [buffer.length], kept: [false] });
      },
      end: () => {
        if (isHere()) this.#network.end(stream);
      },
      reset: () => {
        if (isHere()) this.#network.reset(stream);
      },
      stopReading: () => {
        if (isHere()) this.#network.pause(stream);
      },
      after: (ms, run) => {
        const { clock } = this.#world;
        clock.at(clock.elapsedMs + ms, 'hostile peer', undefined, () => {
          if (isHere()) run();
        });
      },
    };
  }
}
