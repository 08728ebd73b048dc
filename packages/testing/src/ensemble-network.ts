/**
 * The network between the servers of an ensemble: streams inside this process, so that no port is
 * needed, no other program interferes, and a cut lets nothing through.
 *
 * Each server is a machine with one address, which runs one process at a time. Bytes arrive in the
 * next turn of the event loop. A cut is one-way, from one machine to another: bytes sent in the
 * meantime wait and arrive, in order, when the cut is healed, as TCP would resend them; no stream
 * is closed. A machine without a process refuses connections; on a machine with a process, a dial
 * waits a moment for it to listen, and while the process starts, until the start has finished.
 */
import {
  type Endpoint,
  type Listener,
  ListenError,
  type ListenOptions,
  type Network,
  type NetworkSink,
  type SendBatch,
  type StreamId,
} from '@tskeeper/runtime';
import { ReceivedList, StreamTable } from '@tskeeper/runtime/internal';
import type { ActivityTracker } from './activity-tracker.ts';

/** Number of a machine. */
export type MachineId = number;

/** Address of a machine. No packet leaves the process. */
export function addressOf(machine: MachineId): string {
  return `10.0.0.${machine}`;
}

export function hostOf(machine: MachineId): string {
  return `server-${machine}`;
}

function numberIn(pattern: RegExp, text: string): MachineId | undefined {
  const digits = pattern.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/**
 * A server that has won an election listens for learners some turns later, after the last votes
 * have arrived. Servers that notice the result earlier keep dialling for as long, so that none has
 * to pause before a retry.
 */
const dialRetriesMax = 30;

/** What arrives at one end of a stream, in order. */
type Arrival = Buffer | 'end' | 'reset';

/** One end of a stream. */
class StreamEnd {
  readonly network: PeerNetwork;
  readonly stream: StreamId;
  readonly remote: Endpoint;
  /** The other end; undefined while it is dialled. */
  other: StreamEnd | undefined;
  arrivals: Arrival[] = [];
  isPaused = false;
  /** Remaining turns in which to dial again if the other side does not listen. */
  dialRetries = dialRetriesMax;
  endSent = false;
  endSeen = false;
  /** `closed` is scheduled; no other event is delivered before it. */
  isClosed = false;

  constructor(network: PeerNetwork, stream: StreamId, remote: Endpoint) {
    this.network = network;
    this.stream = stream;
    this.remote = remote;
  }
}

export class EnsembleNetwork {
  readonly #activity: ActivityTracker;
  readonly #networks = new Map<MachineId, PeerNetwork>();
  /** The cuts from one machine to another. */
  readonly #cuts = new Map<MachineId, Map<MachineId, Set<() => void>>>();
  #dials: StreamEnd[] = [];
  #isFlushing = false;

  /** All machines, starting with 1. */
  readonly machines: readonly MachineId[];

  constructor(activity: ActivityTracker, machines: number) {
    this.#activity = activity;
    this.machines = Array.from({ length: machines }, (_, index) => index + 1);
  }

  /** The network of a new process on this machine. The process before it must have ended. */
  startProcess(machine: MachineId): PeerNetwork {
    if (this.#networks.has(machine)) throw new Error(`machine ${machine} already runs a process`);
    const network = new PeerNetwork(this, machine);
    this.#networks.set(machine, network);
    return network;
  }

  /** The process has ended. */
  ended(network: PeerNetwork): void {
    if (this.#networks.get(network.machine) === network) this.#networks.delete(network.machine);
    this.flush();
  }

  /** Nothing that `from` sends arrives at `to` until the returned function is called. */
  cut(from: MachineId, to: MachineId): () => void {
    let cutsOfSender = this.#cuts.get(from);
    if (cutsOfSender === undefined) this.#cuts.set(from, (cutsOfSender = new Map()));
    let cuts = cutsOfSender.get(to);
    if (cuts === undefined) cutsOfSender.set(to, (cuts = new Set()));
    const heal = (): void => {
      cuts.delete(heal);
      this.flush();
    };
    cuts.add(heal);
    return heal;
  }

  isCut(from: MachineId, to: MachineId): boolean {
    return (this.#cuts.get(from)?.get(to)?.size ?? 0) > 0;
  }

  /** Every pair of machines with a cut, in this direction. */
  get cuts(): (readonly [from: MachineId, to: MachineId])[] {
    return this.machines.flatMap((from) => this.machines.filter((to) => this.isCut(from, to)).map((to) => [from, to] as const));
  }

  healAll(): void {
    this.#cuts.clear();
    this.flush();
  }

  machineAt(address: string): MachineId | undefined {
    return numberIn(/^10\.0\.0\.(\d+)$/, address);
  }

  machineOf(host: string): MachineId | undefined {
    return numberIn(/^server-(\d+)$/, host) ?? this.machineAt(host);
  }

  /** Something can arrive: deliver it in the next turn. */
  flush(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#activity.nextTurn(() => {
      this.#isFlushing = false;
      this.#connect();
      for (const network of this.#networks.values()) network.deliver();
    });
  }

  dial(end: StreamEnd): void {
    this.#dials.push(end);
    this.flush();
  }

  #connect(): void {
    const dials = this.#dials;
    this.#dials = [];
    for (const end of dials) {
      if (end.isClosed) continue;
      const { machine } = end.network;
      const to = this.machineAt(end.remote.address)!;
      const network = this.#networks.get(to);
      // Connecting takes a packet in each direction.
      if (this.isCut(machine, to) || this.isCut(to, machine)) this.#dials.push(end);
      else if (network === undefined) end.network.closeStream(end, 'ECONNREFUSED');
      else if (!network.accept(end)) this.#retryDial(end, network);
    }
  }

  /** The process on that machine does not listen yet. */
  #retryDial(end: StreamEnd, network: PeerNetwork): void {
    if (network.isStarting) {
      this.#dials.push(end);
    } else if (end.dialRetries-- > 0) {
      this.dial(end);
    } else {
      end.network.closeStream(end, 'ECONNREFUSED');
    }
  }
}

interface PeerListener extends Listener {
  readonly endpoint: Endpoint;
}

interface PendingOpen {
  readonly end: StreamEnd;
  readonly deliver: (sink: NetworkSink) => void;
}

/** The network between servers as one process sees it. */
export class PeerNetwork implements Network {
  readonly machine: MachineId;
  readonly #ensembleNetwork: EnsembleNetwork;
  readonly #listeners = new Set<PeerListener>();
  #isStarting = true;
  #hasEnded = false;
  #sink: NetworkSink | undefined;
  readonly #ends = new StreamTable<StreamEnd>();
  #nextPort = 32_768;
  /** Streams opened and not yet delivered, in order. */
  #opened: PendingOpen[] = [];
  /** Closed streams, with the reason. */
  #closed: { readonly end: StreamEnd; readonly error: string | undefined }[] = [];

  constructor(ensembleNetwork: EnsembleNetwork, machine: MachineId) {
    this.#ensembleNetwork = ensembleNetwork;
    this.machine = machine;
  }

  /** Whether the process is starting: after `markStarted` a dial no longer waits long. */
  get isStarting(): boolean {
    return this.#isStarting;
  }

  markStarted(): void {
    this.#isStarting = false;
    this.#ensembleNetwork.flush();
  }

  /** The process ends at once: its streams are reset, and it receives no further events. */
  kill(): void {
    if (this.#hasEnded) return;
    for (const end of this.#ends.values()) if (!end.isClosed) this.#reset(end);
    this.#hasEnded = true;
    this.#listeners.clear();
    this.#ensembleNetwork.ended(this);
  }

  // --- Calls of the server

  start(sink: NetworkSink): void {
    this.#sink = sink;
  }

  listen({ address, port }: ListenOptions): Promise<Listener> {
    const endpoint: Endpoint = { address: address ?? '::', port: port === 0 ? this.#nextPort++ : port };
    if ([...this.#listeners].some((other) => other.endpoint.port === port))
      return Promise.reject(
        new ListenError('EADDRINUSE', `port ${port} of ${hostOf(this.machine)} is already in use. Choose another port.`),
      );
    const listener: PeerListener = {
      endpoint,
      close: () => {
        this.#listeners.delete(listener);
        return Promise.resolve();
      },
    };
    this.#listeners.add(listener);
    this.#ensembleNetwork.flush();
    return Promise.resolve(listener);
  }

  connect(endpoint: Endpoint): StreamId {
    const end = this.#addStream(endpoint);
    this.#ensembleNetwork.dial(end);
    return end.stream;
  }

  resolve(host: string): Promise<string[]> {
    const machine = this.#ensembleNetwork.machineOf(host);
    if (machine !== undefined) return Promise.resolve([addressOf(machine)]);
    return Promise.reject(new Error(`the ensemble has no server with the name ${host}.`));
  }

  send(batch: SendBatch): void {
    for (let index = 0; index < batch.count; index++) {
      batch.kept[index] = false;
      const end = this.#ends.get(batch.streams[index]!);
      if (end === undefined || end.isClosed || end.endSent) continue;
      // Copy, since the sender reuses its buffer.
      this.#arrives(end.other, Buffer.from(batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index])));
    }
  }

  end(stream: StreamId): void {
    const end = this.#ends.get(stream);
    if (end === undefined || end.isClosed || end.endSent) return;
    if (end.other === undefined) {
      this.reset(stream);
      return;
    }
    end.endSent = true;
    this.#arrives(end.other, 'end');
    this.#maybeClose(end);
  }

  reset(stream: StreamId): void {
    const end = this.#ends.get(stream);
    if (end !== undefined && !end.isClosed) this.#reset(end);
  }

  pause(stream: StreamId): void {
    const end = this.#ends.get(stream);
    if (end !== undefined) end.isPaused = true;
  }

  resume(stream: StreamId): void {
    const end = this.#ends.get(stream);
    if (end === undefined || !end.isPaused) return;
    end.isPaused = false;
    this.#ensembleNetwork.flush();
  }

  // --- Calls of the wire

  /** Offers a dialled stream. Returns false if the process does not listen on that port. */
  accept(dialler: StreamEnd): boolean {
    const listener = [...this.#listeners].find(({ endpoint }) => endpoint.port === dialler.remote.port);
    if (listener === undefined) return false;
    const from: Endpoint = { address: addressOf(dialler.network.machine), port: dialler.network.#nextPort++ };
    const end = this.#addStream(from);
    end.other = dialler;
    dialler.other = end;
    this.#opened.push({ end, deliver: (sink) => sink.accepted(end.stream, listener, from) });
    dialler.network.#opened.push({ end: dialler, deliver: (sink) => sink.connected(dialler.stream) });
    return true;
  }

  /** The stream is gone. */
  closeStream(end: StreamEnd, error: string | undefined): void {
    if (end.isClosed) return;
    end.isClosed = true;
    end.arrivals = [];
    this.#closed.push({ end, error });
    this.#ensembleNetwork.flush();
  }

  /** Delivers everything that has arrived to the process. The process may end during the call. */
  deliver(): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    const opened = this.#opened;
    this.#opened = [];
    for (const { end, deliver } of opened) if (!end.isClosed && !this.#hasEnded) deliver(sink);
    const batch = new ReceivedList();
    const endings: (() => void)[] = [];
    for (const end of this.#ends.values()) this.#deliverArrivals(end, batch, endings, sink);
    if (batch.count > 0 && !this.#hasEnded) sink.received(batch);
    for (const happens of endings) if (!this.#hasEnded) happens();
    const closed = this.#closed;
    this.#closed = [];
    for (const { end, error } of closed) {
      if (this.#hasEnded) return;
      sink.closed(end.stream, error);
      // Only now may the number be reused.
      this.#ends.delete(end.stream);
    }
  }

  /** Takes the bytes of a stream that have arrived. A reset also passes a paused stream. */
  #deliverArrivals(end: StreamEnd, batch: ReceivedList, endings: (() => void)[], sink: NetworkSink): void {
    if (end.isClosed || end.arrivals.length === 0 || this.#ensembleNetwork.isCut(end.other!.network.machine, this.machine)) return;
    const isReset = end.arrivals.at(-1) === 'reset';
    if (end.isPaused && !isReset) return;
    for (const arrival of end.arrivals) {
      if (typeof arrival !== 'string') batch.add(end.stream, arrival);
      else if (arrival === 'reset') endings.push(() => this.closeStream(end, 'ECONNRESET'));
      else
        endings.push(() => {
          if (end.isClosed) return;
          end.endSeen = true;
          sink.ended(end.stream);
          this.#maybeClose(end);
        });
    }
    end.arrivals = [];
  }

  #arrives(at: StreamEnd | undefined, what: Arrival): void {
    if (at === undefined || at.isClosed) return;
    at.arrivals.push(what);
    this.#ensembleNetwork.flush();
  }

  #reset(end: StreamEnd): void {
    this.#arrives(end.other, 'reset');
    this.closeStream(end, undefined);
  }

  #maybeClose(end: StreamEnd): void {
    if (end.endSent && end.endSeen) this.closeStream(end, undefined);
  }

  #addStream(remote: Endpoint): StreamEnd {
    return this.#ends.add((stream) => new StreamEnd(this, stream, remote));
  }
}
