/**
 * One process of a server: a runtime in a world of its own, which can end in every way that a
 * process can end.
 *
 * Each process listens at an address of its own, so that packets in transit to an earlier one reach
 * a stack whose process is gone.
 */
import type { CoreOptions, Observer } from '@tskeeper/core';
import { FrameDecoder, type Millis, ProtocolError } from '@tskeeper/protocol';
import {
  type Endpoint,
  type Listener,
  type Logger,
  type EnsembleOptions,
  type MemoryProbe,
  type Network,
  type NetworkSink,
  type ReceivedBatch,
  type Runtime,
  type RuntimeOptions,
  type SeededRandom,
  type SendBatch,
  type SnappyCodec,
  startRuntime,
  type StreamId,
  type Disk,
} from '@tskeeper/runtime';
import { type VirtualNetwork } from '@tskeeper/runtime/internal';
import type { ProcessRecord } from '../record/recording.ts';
import { peerPortKind } from './peer-ports.ts';
import type { MachineClock, TimerOwner, VirtualClock } from './virtual-clock.ts';

export interface ServerProcessOptions {
  readonly clock: VirtualClock;
  readonly machine: MachineClock;
  readonly disk: Disk;
  readonly network: VirtualNetwork;
  readonly random: SeededRandom;
  readonly core: CoreOptions;
  readonly options: RuntimeOptions;
  /** Of a server in an ensemble. */
  readonly ensembleOptions: EnsembleOptions | undefined;
  readonly oracle: (() => boolean) | undefined;
  readonly logger: Logger;
  readonly snappy: SnappyCodec | undefined;
  readonly memory: MemoryProbe | undefined;
  readonly record: ProcessRecord;
  /** Observes the server. */
  readonly observer: Observer | undefined;
  arrived(cnxn: string, atMs: Millis): void;
  /** Bytes that end within a frame. */
  arrivedInPart(cnxn: string, atMs: Millis): void;
  /**
   * Called with bytes that leave the process. `cnxn` counts its connections; `port` is that of the
   * listening end. The bytes are valid during the call.
   */
  sent(cnxn: number, port: number, bytes: Buffer): void;
  /** Whether bytes sent on a stream wait for room. */
  isBlocked(network: VirtualNetwork, stream: StreamId): boolean;
  /** Called when the server reports a fatal error. */
  failed(error: unknown): void;
}

/** Time for a question to the oracle. */
const oracleMs: Millis = 2;

interface ProcessStream {
  readonly stream: StreamId;
  readonly key: string;
  /** Counts the connections of the process. */
  readonly cnxn: number;
  /** The port of the listening end. */
  readonly port: number;
  /** For a client's connection, until it receives something that is not a frame. */
  cutter: FrameDecoder | undefined;
}

export class ServerProcess implements TimerOwner {
  isDead = false;
  pausedUntilMs: Millis = 0;
  runtime: Runtime | undefined;
  readonly record: ProcessRecord;
  /** Resolves with undefined when it serves, or with the error if it does not. */
  readonly started: Promise<Error | undefined>;
  readonly #parts: ServerProcessOptions;
  /** By the stack's stream ids. */
  readonly #streams = new Map<StreamId, ProcessStream>();
  /** The stack's id of each of the process's streams; undefined once it is closed. */
  readonly #innerOf: (StreamId | undefined)[] = [];
  /** Ids that may be reused, the latest first, so that a mix-up shows. */
  readonly #free: StreamId[] = [];
  #deferred: (() => void)[] = [];
  #cnxns = 0;

  constructor(parts: ServerProcessOptions) {
    this.#parts = parts;
    this.record = parts.record;
    this.started = this.#start();
  }

  get address(): string {
    return this.#parts.network.address;
  }

  get isServing(): boolean {
    return this.runtime !== undefined && !this.isDead;
  }

  async #start(): Promise<Error | undefined> {
    const { clock, machine, disk, random, core, options, ensembleOptions, oracle, logger, snappy, memory, record, observer } = this.#parts;
    // The world must know of the process before it does anything.
    await Promise.resolve();
    try {
      const world = { disk, network: this.#network(), clock: clock.forOwner(this, machine), random };
      const hooks = {
        logger,
        snappy,
        memory,
        // The oracle is a file, and reading takes a while.
        oracle:
          oracle === undefined
            ? undefined
            : () => new Promise<boolean>((resolve) => clock.at(clock.elapsedMs + oracleMs, 'oracle', this, () => resolve(oracle()))),
        observer,
        host: {
          version: 'virtual',
          environment: () => [],
          openFileDescriptors: () => undefined,
          maxFileDescriptors: () => undefined,
        },
        failed: (error: unknown) => {
          record.failedMs ??= clock.elapsedMs;
          record.failure = String(error);
          this.#parts.failed(error);
        },
      };
      this.runtime = await startRuntime(world, core, options, hooks, ensembleOptions);
      record.servingMs = clock.elapsedMs;
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  /** Closes the server as an operator does. */
  async close(): Promise<void> {
    this.record.closingMs ??= this.#parts.clock.elapsedMs;
    await this.runtime?.close();
  }

  /** Pauses the process: nothing is lost, nothing is done. */
  pause(ms: Millis): void {
    const { clock } = this.#parts;
    this.pausedUntilMs = Math.max(this.pausedUntilMs, clock.elapsedMs + ms);
  }

  /**
   * The process ends at once, and the kernel resets its connections. If the machine is gone with it
   * (`isDark`), the peers are not notified.
   */
  end(isDark = false): void {
    if (this.isDead) return;
    this.isDead = true;
    const { network, clock, record } = this.#parts;
    record.endedMs = clock.elapsedMs;
    network.start(deadProcessSink(network));
    network.isPoweredOff = isDark;
    if (isDark) {
      for (const stream of this.#streams.keys()) network.pause(stream);
      return;
    }
    this.resetCnxns();
  }

  /** The machine no longer knows these connections, and resets them. */
  resetCnxns(): void {
    const { network, ensembleOptions } = this.#parts;
    network.isPoweredOff = false;
    // Other servers can distinguish a process that is gone from a machine that does not answer.
    if (ensembleOptions !== undefined) network.stopListening();
    for (const stream of this.#streams.keys()) network.reset(stream);
    this.#streams.clear();
  }

  // --- Its network: the stack as it is, except that input is recorded, and held back while the
  // process is paused. Streams have ids of their own, since the stack may reuse an id before the
  // process learns that the stream was closed.

  #network(): Network {
    const { network, record } = this.#parts;
    const forward = (call: (inner: StreamId) => void) => (stream: StreamId) => {
      const inner = this.#innerOf[stream];
      if (!this.isDead && inner !== undefined) call(inner);
    };
    return {
      start: (sink) => network.start(this.#sink(sink)),
      listen: (listenOptions) => (this.isDead ? new Promise(() => undefined) : network.listen(listenOptions)),
      connect: (endpoint) => this.#dial(endpoint),
      resolve: (host) => network.resolve(host),
      send: (batch: SendBatch) => {
        if (!this.isDead) this.#send(batch, record);
      },
      end: forward((inner) => network.end(inner)),
      reset: forward((inner) => network.reset(inner)),
      pause: forward((inner) => network.pause(inner)),
      resume: forward((inner) => network.resume(inner)),
    };
  }

  #registerStream(inner: StreamId, remote: Endpoint, port: number): StreamId {
    const stream = this.#free.pop() ?? this.#innerOf.length;
    this.#innerOf[stream] = inner;
    const cnxn = this.#cnxns++;
    const cutter = peerPortKind(port) === undefined ? new FrameDecoder(0x7fffffff) : undefined;
    this.#streams.set(inner, { stream, key: `${remote.address}:${remote.port}`, cnxn, port, cutter });
    return stream;
  }

  /** A process that has ended connects to nothing. */
  #dial(endpoint: Endpoint): StreamId {
    return this.isDead ? this.#innerOf.length : this.#registerStream(this.#parts.network.connect(endpoint), endpoint, endpoint.port);
  }

  #send(batch: SendBatch, record: ProcessRecord): void {
    const { network } = this.#parts;
    for (let index = 0; index < batch.count; index++) {
      const start = batch.starts[index]!;
      const end = batch.ends[index]!;
      if (record.failedMs !== undefined) record.sentAfterFailure += end - start;
      const inner = this.#innerOf[batch.streams[index]!];
      const kept = [false];
      const known = inner === undefined ? undefined : this.#streams.get(inner);
      if (known !== undefined) this.#parts.sent(known.cnxn, known.port, batch.buffers[index]!.subarray(start, end));
      if (inner !== undefined)
        network.send({ count: 1, streams: [inner], buffers: [batch.buffers[index]!], starts: [start], ends: [end], kept });
      batch.kept[index] = kept[0]!;
    }
  }

  #sink(sink: NetworkSink): NetworkSink {
    const { clock, network } = this.#parts;
    const deliver = (call: () => void) => {
      if (this.pausedUntilMs <= clock.elapsedMs && this.#deferred.length === 0) {
        call();
        return;
      }
      this.#deferred.push(call);
      if (this.#deferred.length > 1) return;
      clock.at(this.pausedUntilMs, 'resume', this, () => {
        const held = this.#deferred;
        this.#deferred = [];
        for (const each of held) if (!this.isDead) each();
      });
    };
    return {
      accepted: (inner, listener: Listener, remote: Endpoint) => {
        const stream = this.#registerStream(inner, remote, listener.endpoint.port);
        deliver(() => sink.accepted(stream, listener, remote));
      },
      connected: (inner) => {
        const { stream } = this.#streams.get(inner)!;
        deliver(() => sink.connected(stream));
      },
      received: (batch) => {
        this.#recordArrivals(batch);
        const { count, buffers, starts, ends } = batch;
        const streams = Array.from({ length: count }, (_, index) => this.#streams.get(batch.streams[index]!)!.stream);
        deliver(() => sink.received({ count, streams, buffers, starts, ends }));
      },
      drained: (inner) => {
        const { stream } = this.#streams.get(inner)!;
        deliver(() => {
          const still = this.#innerOf[stream];
          // The event refers to the moment of delivery. If more was sent since, there will be
          // another.
          if (still === undefined || !this.#parts.isBlocked(network, still)) sink.drained(stream);
        });
      },
      ended: (inner) => {
        const { stream } = this.#streams.get(inner)!;
        deliver(() => sink.ended(stream));
      },
      closed: (inner, error) => {
        const { stream } = this.#streams.get(inner)!;
        this.#streams.delete(inner);
        this.#innerOf[stream] = undefined;
        deliver(() => {
          sink.closed(stream, error);
          this.#free.push(stream);
        });
      },
    };
  }

  #recordArrivals(batch: ReceivedBatch): void {
    const { clock } = this.#parts;
    for (let index = 0; index < batch.count; index++) {
      const stream = this.#streams.get(batch.streams[index]!)!;
      const { key, cutter } = stream;
      if (cutter === undefined) continue;
      // A copy: a cutter may keep what it is fed, and so may the server's own.
      const bytes = Buffer.from(batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]));
      try {
        cutter.feed(bytes, 0, bytes.length, () => {
          this.#parts.arrived(key, clock.elapsedMs);
          return true;
        });
        if (cutter.retainedBytes > 0) this.#parts.arrivedInPart(key, clock.elapsedMs);
      } catch (error) {
        // Bytes that are not a frame do not count as one; the server will notice too.
        if (!(error instanceof ProtocolError)) throw error;
        stream.cutter = undefined;
      }
    }
  }
}

/** What a machine does for a process that has ended. */
function deadProcessSink(network: VirtualNetwork): NetworkSink {
  return {
    accepted: (stream) => network.reset(stream),
    connected() {},
    received() {},
    drained() {},
    ended() {},
    closed() {},
  };
}
