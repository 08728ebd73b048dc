/**
 * The network of one server process of an ensemble in a test: clients reach it over TCP, other
 * servers over the wire inside this process. The server sees one network. After the process has
 * ended nothing passes in either direction.
 */
import type { Endpoint, Listener, ListenOptions, Network, NetworkSink, ReceivedBatch, SendBatch, StreamId } from '@tskeeper/runtime';
import type { ActivityTracker } from './activity-tracker.ts';
import type { PeerNetwork, EnsembleNetwork } from './ensemble-network.ts';
import type { FaultyNetwork } from './faulty-network.ts';

/** Ports on which servers listen for each other. */
export const quorumPort = 2888;
export const electionPort = 3888;

/** A stream number combines the number on its own network and the network, in the last bit. */
type Side = 0 | 1;
const toClients = 0;
const toPeers = 1;

export class ProcessNetwork implements Network {
  readonly #clients: FaultyNetwork;
  readonly #peers: PeerNetwork;
  readonly #ensembleNetwork: EnsembleNetwork;
  readonly #activity: ActivityTracker;
  readonly #listening = new Set<Promise<Listener>>();
  #hasEnded = false;

  constructor(clients: FaultyNetwork, peers: PeerNetwork, ensembleNetwork: EnsembleNetwork, activity: ActivityTracker) {
    this.#clients = clients;
    this.#peers = peers;
    this.#ensembleNetwork = ensembleNetwork;
    this.#activity = activity;
  }

  /** The process ends at once. Resolves when its ports are free. */
  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#peers.kill();
    this.#clients.heal();
    this.#clients.cut();
    // Also release a port whose `listen` is pending.
    const asked = await Promise.allSettled(this.#listening);
    await Promise.all(asked.filter((outcome) => outcome.status === 'fulfilled').map(({ value }) => value.close()));
  }

  /**
   * Resets the connections with these numbers, or those of all clients; returns how many there
   * were.
   */
  cut(streams?: Iterable<StreamId>): number {
    if (streams === undefined) return this.#clients.cut();
    return this.#clients.cut(Array.from(streams, (stream) => stream >> 1));
  }

  // --- Calls of the server

  start(sink: NetworkSink): void {
    this.#clients.start(this.#sinkOf(toClients, sink));
    this.#peers.start(this.#sinkOf(toPeers, sink));
  }

  async listen(options: ListenOptions): Promise<Listener> {
    if (this.#hasEnded) return await new Promise(() => undefined);
    const { address, port } = options;
    // quorumListenOnAllIPs=true leaves the address open; the port says whether servers or clients
    // connect there.
    const isForPeers =
      address === undefined ? port === quorumPort || port === electionPort : this.#ensembleNetwork.machineAt(address) !== undefined;
    if (isForPeers) return await this.#peers.listen(options);
    const listening = this.#clients.listen(options);
    this.#listening.add(listening);
    return await listening;
  }

  connect(endpoint: Endpoint): StreamId {
    if (this.#ensembleNetwork.machineAt(endpoint.address) === undefined) return this.#clients.connect(endpoint) * 2 + toClients;
    return this.#peers.connect(endpoint) * 2 + toPeers;
  }

  resolve(host: string): Promise<string[]> {
    return this.#ensembleNetwork.machineOf(host) === undefined ? this.#clients.resolve(host) : this.#peers.resolve(host);
  }

  send(batch: SendBatch): void {
    if (this.#hasEnded) {
      batch.kept.fill(false, 0, batch.count);
      return;
    }
    for (const side of [toClients, toPeers] as const) {
      const places = Array.from({ length: batch.count }, (_, index) => index).filter((index) => (batch.streams[index]! & 1) === side);
      if (places.length === 0) continue;
      const part: SendBatch = {
        count: places.length,
        streams: places.map((index) => batch.streams[index]! >> 1),
        buffers: places.map((index) => batch.buffers[index]!),
        starts: places.map((index) => batch.starts[index]!),
        ends: places.map((index) => batch.ends[index]!),
        kept: [],
      };
      if (side === toClients) this.#activity.notifyExternalTraffic();
      this.#networkOf(side).send(part);
      places.forEach((place, index) => (batch.kept[place] = part.kept[index]!));
    }
  }

  end(stream: StreamId): void {
    if (!this.#hasEnded) this.#networkOf(stream & 1).end(stream >> 1);
  }

  reset(stream: StreamId): void {
    if (!this.#hasEnded) this.#networkOf(stream & 1).reset(stream >> 1);
  }

  pause(stream: StreamId): void {
    if (!this.#hasEnded) this.#networkOf(stream & 1).pause(stream >> 1);
  }

  resume(stream: StreamId): void {
    if (!this.#hasEnded) this.#networkOf(stream & 1).resume(stream >> 1);
  }

  #networkOf(side: number): Network {
    return side === toPeers ? this.#peers : this.#clients;
  }

  // --- Events of the networks

  #sinkOf(side: Side, sink: NetworkSink): NetworkSink {
    const deliver = (what: () => void): void => {
      if (this.#hasEnded) return;
      what();
      if (side === toClients) this.#activity.notifyExternalTraffic();
      else this.#activity.notifyChange();
    };
    const outer = (stream: StreamId): StreamId => stream * 2 + side;
    return {
      accepted: (stream, listener, remote) => {
        // It was opened while the process ended: the system resets it.
        if (this.#hasEnded) this.#networkOf(side).reset(stream);
        else deliver(() => sink.accepted(outer(stream), listener, remote));
      },
      connected: (stream) => deliver(() => sink.connected(outer(stream))),
      received: (batch) => deliver(() => sink.received(renumber(batch, outer))),
      drained: (stream) => deliver(() => sink.drained(outer(stream))),
      ended: (stream) => deliver(() => sink.ended(outer(stream))),
      closed: (stream, error) => deliver(() => sink.closed(outer(stream), error)),
    };
  }
}

function renumber({ count, streams, buffers, starts, ends }: ReceivedBatch, outer: (stream: StreamId) => StreamId): ReceivedBatch {
  return { count, streams: Array.from({ length: count }, (_, index) => outer(streams[index]!)), buffers, starts, ends };
}
