/**
 * A network in memory. Several nodes' stacks share one wire; a stack is an ordinary `Network`.
 * Nothing happens by itself: every delivery is an entry in the given scheduler, so that one seed,
 * or one test, decides the order of everything.
 *
 * pipe.ts has a connection, virtual-wire.ts what lies between the machines, this file one machine.
 */
import type { Millis } from '@tskeeper/protocol';
import {
  type Endpoint,
  type Listener,
  ListenError,
  type ListenOptions,
  type Network,
  type NetworkSink,
  type SendBatch,
  type StreamId,
} from '../network.ts';
import { ReceivedList } from '../received-list.ts';
import { StreamTable } from '../stream-table.ts';
import { StreamEnd, type StreamStack, type WireScheduler } from './pipe.ts';

/** First of the ports for dialling sides, as in Linux. */
const firstEphemeralPort = 32_768;

/** What a machine needs of the wire between the machines. */
export interface NetworkWire {
  dial(side: StreamEnd, endpoint: Endpoint): void;
  addressesOf(host: string): readonly string[];
  /** The stream is over. */
  forget(side: StreamEnd): void;
}

/** One node's stack. */
export class VirtualNetwork implements Network, StreamStack {
  readonly address: string;
  readonly #wire: NetworkWire;
  readonly #scheduler: WireScheduler;
  #sink: NetworkSink | undefined;
  readonly #listeners = new Set<Listener>();
  readonly #sides = new StreamTable<StreamEnd>();
  #nextPort = firstEphemeralPort;
  /** The machine is off: dials are not answered. */
  isPoweredOff = false;
  #ready = new Set<StreamEnd>();
  #deliveryArmed = false;
  /** For tests. */
  sentBytes = 0;
  receivedBytes = 0;
  sendCalls = 0;
  acceptedCount = 0;

  constructor(wire: NetworkWire, address: string, scheduler: WireScheduler) {
    this.#wire = wire;
    this.address = address;
    this.#scheduler = scheduler;
  }

  // --- Network

  start(sink: NetworkSink): void {
    this.#sink = sink;
  }

  /** A machine has one address, so two listeners of one port exclude each other, as in Linux. */
  listen({ address, port }: ListenOptions): Promise<Listener> {
    if (address !== undefined && address !== this.address) {
      return Promise.reject(
        new ListenError('EADDRNOTAVAIL', `port ${port} of ${address} cannot be used: this machine has no such address.`),
      );
    }
    for (const { endpoint } of this.#listeners) {
      if (port !== 0 && endpoint.port === port) {
        return Promise.reject(new ListenError('EADDRINUSE', `port ${port} is already in use by this process. Choose another port.`));
      }
    }
    const listener: Listener = {
      endpoint: { address: address ?? '::', port: port === 0 ? this.#nextPort++ : port },
      close: () => {
        this.#listeners.delete(listener);
        return Promise.resolve();
      },
    };
    this.#listeners.add(listener);
    return Promise.resolve(listener);
  }

  /** Stops listening: dials are refused. */
  stopListening(): void {
    this.#listeners.clear();
  }

  connect(endpoint: Endpoint): StreamId {
    const side = this.#newStream({ address: this.address, port: this.#nextPort++ });
    this.#wire.dial(side, endpoint);
    return side.stream;
  }

  resolve(host: string): Promise<string[]> {
    const addresses = this.#wire.addressesOf(host);
    if (addresses.length > 0) return Promise.resolve([...addresses]);
    return Promise.reject(new Error(`the name ${host} does not resolve (ENOTFOUND).`));
  }

  send(batch: SendBatch): void {
    this.sendCalls++;
    for (let index = 0; index < batch.count; index++) {
      const side = this.#sides.get(batch.streams[index]!);
      batch.kept[index] =
        side !== undefined && side.isOpen && !side.isClosed
          ? side.out.send(batch.buffers[index]!, batch.starts[index]!, batch.ends[index]!)
          : false;
    }
  }

  end(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side === undefined || side.isClosed || side.endSent) return;
    if (!side.isOpen) {
      this.reset(stream);
      return;
    }
    side.endSent = true;
    side.out.end();
    this.#closeIfBothEnded(side);
  }

  reset(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side === undefined || side.isClosed) return;
    // The other side may have accepted a connection that this side does not know to be open yet.
    side.out?.sendReset();
    this.breakStream(side, undefined);
  }

  pause(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side !== undefined) side.isPaused = true;
  }

  resume(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side === undefined || !side.isPaused) return;
    side.isPaused = false;
    if (side.isOpen && !side.isClosed) side.in.resume();
  }

  // --- For the wire

  accept(to: Endpoint, from: Endpoint): StreamEnd | undefined {
    for (const listener of this.#listeners) {
      if (listener.endpoint.port !== to.port || this.#sink === undefined) continue;
      const side = this.#newStream({ address: this.address, port: to.port });
      this.#accepting.set(side, { listener, from });
      return side;
    }
    return undefined;
  }

  readonly #accepting = new Map<StreamEnd, { readonly listener: Listener; readonly from: Endpoint }>();

  reportAccepted(side: StreamEnd, from: Endpoint): void {
    const { listener } = this.#accepting.get(side)!;
    this.#accepting.delete(side);
    this.acceptedCount++;
    this.#started.accepted(side.stream, listener, from);
  }

  reportConnected(side: StreamEnd): void {
    if (side.isClosed) return;
    side.isOpen = true;
    this.#started.connected(side.stream);
    side.in.resume();
  }

  /** There will be something to read after this time. */
  scheduleRead(side: StreamEnd, delayMs: Millis): void {
    this.#scheduler.after(Math.max(0, delayMs), () => {
      this.#ready.add(side);
      if (this.#deliveryArmed) return;
      this.#deliveryArmed = true;
      // After everything that becomes ready at the same instant, so that it travels in one batch.
      this.#scheduler.after(0, () => this.#deliver());
    });
  }

  reportDrained(side: StreamEnd): void {
    this.#scheduler.after(0, () => {
      if (side.isClosed || side.out.isBlocked) return;
      this.#started.drained(side.stream);
      this.#closeIfBothEnded(side);
    });
  }

  breakStream(side: StreamEnd, error: string | undefined): void {
    if (side.isClosed) return;
    side.isClosed = true;
    if (side.in !== undefined) side.in.destroy();
    if (side.out !== undefined) side.out.destroy();
    this.#reportClosed(side, error);
  }

  /** Number of existing streams. */
  get streamCount(): number {
    return this.#sides.count;
  }

  get #started(): NetworkSink {
    if (this.#sink === undefined) throw new Error('the network was used before it was started');
    return this.#sink;
  }

  #newStream(endpoint: Endpoint): StreamEnd {
    return this.#sides.add((stream) => new StreamEnd(this, stream, endpoint));
  }

  #deliver(): void {
    this.#deliveryArmed = false;
    const ready = this.#ready;
    this.#ready = new Set();
    const batch = new ReceivedList();
    const ended: StreamEnd[] = [];
    for (const side of ready) {
      if (side.isClosed || side.isPaused || !side.isOpen) continue;
      const taken = side.in.read((bytes) => {
        this.receivedBytes += bytes.length;
        batch.add(side.stream, bytes);
      });
      if (taken.ended && !side.endSeen) ended.push(side);
    }
    if (batch.count > 0) this.#started.received(batch);
    for (const side of ended) {
      if (side.isClosed || side.endSeen) continue;
      side.endSeen = true;
      this.#started.ended(side.stream);
      this.#closeIfBothEnded(side);
    }
  }

  #closeIfBothEnded(side: StreamEnd): void {
    if (!side.endSent || !side.endSeen || side.isClosed) return;
    // Bytes that this side has sent must still arrive, so its pipe lives until the peer has read to
    // the end.
    if (side.out.isBlocked) return;
    side.isClosed = true;
    this.#reportClosed(side, undefined);
  }

  #reportClosed(side: StreamEnd, error: string | undefined): void {
    this.#scheduler.after(0, () => {
      this.#started.closed(side.stream, error);
      this.#sides.delete(side.stream);
      this.#wire.forget(side);
    });
  }
}
