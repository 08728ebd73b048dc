/**
 * A client port on a network in memory, driven as the runtime drives it, and clients that send raw
 * bytes.
 */
import type { Now } from '@tskeeper/core';
import { FrameDecoder } from '@tskeeper/protocol';
import type { Logger, Network, NetworkSink, StreamId } from '../../src/index.ts';
import {
  ClientPort,
  clientPortDefaults,
  type ClientPortOptions,
  type FourLetterWord,
  FourLetterWords,
  fourLetterWords,
  VirtualNetwork,
  ServerMetrics,
  type VirtualCnxn,
  VirtualWire,
} from '../../src/internal.ts';
import { ManualClock } from '../../src/virtual/manual-clock.ts';
import type { Throttle } from '../../src/ports/client/cnxn-limits.ts';
import { FakeCore, testFacts } from './fake-core.ts';

const serverAddress = '10.0.0.1';
export const port = 2181;

export interface RigOptions {
  readonly options?: Partial<ClientPortOptions>;
  readonly whitelist?: ReadonlySet<FourLetterWord>;
  readonly throttle?: Throttle;
  readonly core?: FakeCore;
}

/** A client's end of a connection. */
export interface TestClient {
  readonly stream: StreamId;
  readonly network: VirtualNetwork;
  readonly cnxn: VirtualCnxn;
  readonly received: Buffer;
  readonly pieces: Buffer[];
  connected: boolean;
  ended: boolean;
  /** undefined while it is open; 'end' when it ended well. */
  closed: string | undefined;
  send(bytes: Buffer | string): void;
  end(): void;
  reset(): void;
  /** The frames received so far, as text. */
  frames(): string[];
}

export class PortRig {
  readonly clock = new ManualClock(1_000_000);
  readonly wire = new VirtualWire(this.clock);
  readonly core: FakeCore;
  readonly metrics = new ServerMetrics();
  readonly lines: string[] = [];
  readonly port: ClientPort;
  readonly network: VirtualNetwork;
  #wakeAt: object | undefined;
  turns = 0;

  private constructor(setup: RigOptions) {
    this.core = setup.core ?? new FakeCore();
    this.network = this.wire.stack(serverAddress);
    const logger: Logger = { debug() {}, info() {}, warn: (line) => this.lines.push(line), error: (line) => this.lines.push(line) };
    this.port = new ClientPort({
      network: this.network,
      options: { ...clientPortDefaults, ...setup.options },
      throttle: setup.throttle,
      observer: this.metrics,
      limitObserver: this.metrics,
      logger,
    });
    const words = new FourLetterWords({
      whitelist: setup.whitelist ?? new Set(fourLetterWords),
      inspect: this.core.inspect,
      metrics: this.metrics,
      facts: testFacts,
    });
    this.port.attach(this.core);
    this.port.words = words;
    this.core.reply = (cnxn) => this.port.reply(cnxn);
    this.core.close = (cnxn) => this.port.close(cnxn);
    const runTurn = (input: (now: Now) => void) => this.runTurn(input);
    this.network.start({
      accepted: (stream, listener, remote) => runTurn((now) => this.port.accepted(stream, listener, remote, now)),
      connected() {},
      received: (batch) => runTurn((now) => this.port.received(batch, now)),
      drained: (stream) => runTurn((now) => this.port.drained(stream, now)),
      ended: (stream) => runTurn((now) => this.port.ended(stream, now)),
      closed: (stream, error) => runTurn((now) => this.port.closed(stream, error, now)),
    });
  }

  static async open(setup: RigOptions = {}): Promise<PortRig> {
    const rig = new PortRig(setup);
    await rig.port.listen({ address: undefined, port, backlog: undefined });
    return rig;
  }

  /** One turn of the loop. */
  runTurn(input: (now: Now) => void): void {
    this.turns++;
    const now = this.clock.now();
    input(now);
    if (this.core.busyTurns > 0) {
      this.core.busyTurns--;
      this.core.workUnits += this.core.unitsPerTurn;
    }
    this.port.endTurn(now);
    if (this.#wakeAt !== undefined) this.clock.cancel(this.#wakeAt);
    const deadline = this.port.needsTurn ? now.elapsedMs : this.port.deadline();
    this.#wakeAt =
      deadline === undefined
        ? undefined
        : this.clock.after(Math.max(0, deadline - now.elapsedMs), () => this.runTurn((then) => this.#wake(then)));
  }

  /** A round takes a millisecond. */
  #wake(now: Now): void {
    this.port.beginProbes(now);
    this.clock.after(1, () => this.port.endProbes());
    this.port.wake(now);
  }

  /** Runs everything that needs no time. */
  settle(): void {
    this.clock.advance(0);
  }

  dial(address = '10.0.9.1'): TestClient {
    const client = dialRaw(this.wire, address);
    this.settle();
    return client;
  }

  /** Connects and completes the handshake. */
  join(address?: string): TestClient {
    const client = this.dial(address);
    client.send(handshake());
    this.settle();
    return client;
  }
}

const sinks = new WeakMap<VirtualNetwork, Map<StreamId, TestClient>>();

function clientsOf(network: VirtualNetwork): Map<StreamId, TestClient> {
  let clients = sinks.get(network);
  if (clients !== undefined) return clients;
  const found = (clients = new Map<StreamId, TestClient>());
  sinks.set(network, found);
  const sink: NetworkSink = {
    accepted() {},
    connected: (stream) => void (found.get(stream)!.connected = true),
    received(batch) {
      for (let index = 0; index < batch.count; index++) {
        const client = found.get(batch.streams[index]!)!;
        client.pieces.push(batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]));
      }
    },
    drained() {},
    ended(stream) {
      const client = found.get(stream)!;
      client.ended = true;
      network.end(stream);
    },
    closed(stream, error) {
      found.get(stream)!.closed = error ?? 'end';
      found.delete(stream);
    },
  };
  network.start(sink);
  return clients;
}

export function dialRaw(wire: VirtualWire, address: string): TestClient {
  const network = wire.stack(address);
  const clients = clientsOf(network);
  const stream = network.connect({ address: serverAddress, port });
  const before = wire.cnxns.size;
  const client: TestClient = {
    stream,
    network,
    pieces: [],
    get received() {
      return Buffer.concat(client.pieces);
    },
    connected: false,
    ended: false,
    closed: undefined,
    get cnxn() {
      return [...wire.cnxns][before]!;
    },
    send(bytes) {
      sendRaw(network, stream, typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    },
    end() {
      network.end(stream);
    },
    reset() {
      network.reset(stream);
    },
    frames: () => framesOf(client.received),
  };
  clients.set(stream, client);
  return client;
}

export function sendRaw(network: Network, stream: StreamId, bytes: Buffer): void {
  network.send({ count: 1, streams: [stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
}

export function framesOf(bytes: Buffer): string[] {
  const frames: string[] = [];
  new FrameDecoder(0x7fffffff).feed(bytes, 0, bytes.length, (reader) => {
    frames.push(reader.bytes.toString('latin1', reader.offset, reader.limit));
    return true;
  });
  return frames;
}

export function frame(body: Buffer | string): Buffer {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** A ConnectRequest; a session id of 0 asks for a new session. */
export function handshake(sessionId = 0n): Buffer {
  const body = Buffer.alloc(45);
  body.writeInt32BE(6000, 12);
  body.writeBigInt64BE(sessionId, 16);
  body.writeInt32BE(16, 24);
  return frame(body);
}
