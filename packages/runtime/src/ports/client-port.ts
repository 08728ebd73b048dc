/**
 * The client port: everything between a byte stream and the core. It accepts or refuses
 * connections, recognises four letter words, cuts frames, passes them to the core, gathers the
 * core's replies, and closes clients that are silent, slow or too large.
 *
 * The runtime drives it in turns: network events and `wake` as they occur, then `endTurn` once.
 * Nothing is sent before `endTurn`, so that a connection's replies of one turn go out in one write,
 * which is most of the cost of a small request.
 *
 * What is held for clients is counted, and limited in four ways:
 * - a connection is not read while more than `outputHighWaterBytes` of output wait for it, or while
 *   the core accepts no more of its requests;
 * - it is closed when more than `queuedOutputBytesMax` wait after the reply in progress and nothing
 *   has been accepted for `drainTimeoutMs`;
 * - an address that holds more than its share of `inFlightBytesMax` is not read where output waits
 *   for it;
 * - above the limit the connections that hold most, of the addresses that hold most, are closed one
 *   after the other until the rest fits (load-shedder.ts). A connection that holds nothing is served
 *   throughout: its pings and small requests pass, and newcomers are accepted.
 */
import type { ClientOutput, CnxnContext, CnxnId, CnxnInfo, MemoryState, Now, Observer } from '@tskeeper/core';
import { ExpiryQueue, type SessionKind, stepUnitsDefault } from '@tskeeper/core/internal';
import { FrameDecoder, type Millis, ProtocolError, Reader, type SessionId, Writer } from '@tskeeper/protocol';
import type { Logger } from '../logger.ts';
import type { Endpoint, Listener, ListenOptions, Network, ReceivedBatch, SendBatch, StreamId } from '../network.ts';
import { ClientAddress } from './client-address.ts';
import type { ClientCore } from './client-core.ts';
import { ClientCnxn } from './client-cnxn.ts';
import { ClientTurnQueue } from './client-turn-queue.ts';
import type { CnxnList, CnxnView } from './cnxn-list.ts';
import { HalfOpenClients } from './half-open-clients.ts';
import { LoadShedder } from './load-shedder.ts';
import { RateLimitedLog } from './rate-limited-log.ts';
import { DiscardSink } from './discard-sink.ts';
import type { PortObserver } from './port-observer.ts';
import type { Preamble } from './preamble.ts';
import { WriterPool } from './writer-pool.ts';

export interface ClientPortOptions {
  /** jute.maxbuffer: the longest frame accepted. */
  readonly juteMaxBuffer: number;
  /** maxClientCnxns: connections per address; 0 = no limit. */
  readonly maxClientCnxns: number;
  /** maxCnxns, or what descriptors allow: connections in all; 0 = no limit. */
  readonly maxCnxns: number;
  /** The remedy for `maxCnxns`: the rest of a sentence that begins with "Raise". */
  readonly maxCnxnsRemedy: string;
  /** zookeeper.nio.sessionlessCnxnTimeout: how long a connection may stay without a handshake. */
  readonly sessionlessTimeoutMs: Millis;
  /** With more connections without a handshake than this, the oldest are closed early. */
  readonly halfOpenMax: number;
  /** But never one that has not had this long. See docs/decisions/half-open-connections.md. */
  readonly halfOpenGraceMs: Millis;
  /** zookeeper.largeRequestThreshold: frames longer than this count as large; -1 = none does. */
  readonly largeRequestThreshold: number;
  /** zookeeper.largeRequestMaxBytes: limit of all large requests in flight. */
  readonly largeRequestMaxBytes: number;
  /** Limit of input and output held for all clients. */
  readonly inFlightBytesMax: number;
  /** The work of the core in one step, in its units. */
  readonly stepUnits: number;
  /** How often a connection that is not read, and was not heard from, is read a little. */
  readonly probeIntervalMs: Millis;
  /** Waiting output above which a connection is not read. */
  readonly outputHighWaterBytes: number;
  /** Output after the reply in progress above which a client that reads nothing is closed. */
  readonly queuedOutputBytesMax: number;
  readonly drainTimeoutMs: Millis;
  /**
   * Size of one piece for the network, which distinguishes a client that reads slowly from one that
   * does not read.
   */
  readonly sliceBytes: number;
  /** Frames of one connection before another gets its turn. */
  readonly framesPerQuantum: number;
  /** Frames of one turn, about two milliseconds of small reads. */
  readonly framesPerTurn: number;
  /**
   * One place in so many of `maxCnxns` is kept for addresses that have fewer than an equal share,
   * but no more than `reservedCnxnsMax`.
   */
  readonly reservedCnxnsOneIn: number;
  readonly reservedCnxnsMax: number;
  /** What a client may still send after its connection has been closed here. */
  readonly discardedBytesMax: number;
}

/** Limits that no key of the configuration sets: a simulator makes them small. */
export type ClientPortSizes = Pick<
  ClientPortOptions,
  | 'halfOpenMax'
  | 'halfOpenGraceMs'
  | 'outputHighWaterBytes'
  | 'queuedOutputBytesMax'
  | 'drainTimeoutMs'
  | 'sliceBytes'
  | 'framesPerQuantum'
  | 'framesPerTurn'
  | 'reservedCnxnsOneIn'
  | 'reservedCnxnsMax'
  | 'discardedBytesMax'
>;

export const clientPortDefaults: ClientPortOptions = {
  juteMaxBuffer: 0xfffff,
  maxClientCnxns: 60,
  maxCnxns: 0,
  maxCnxnsRemedy: 'maxCnxns to allow more',
  sessionlessTimeoutMs: 10_000,
  halfOpenMax: 250,
  halfOpenGraceMs: 1000,
  largeRequestThreshold: -1,
  largeRequestMaxBytes: 100 * 1024 * 1024,
  inFlightBytesMax: 100 * 1024 * 1024,
  stepUnits: stepUnitsDefault,
  probeIntervalMs: 1000,
  outputHighWaterBytes: 1024 * 1024,
  queuedOutputBytesMax: 4 * 1024 * 1024,
  drainTimeoutMs: 10_000,
  sliceBytes: 1024 * 1024,
  framesPerQuantum: 256,
  framesPerTurn: 2048,
  reservedCnxnsOneIn: 16,
  reservedCnxnsMax: 64,
  discardedBytesMax: 1024 * 1024,
};

/**
 * Decides whether one more session may be opened or resumed now. ConnectionThrottle has this shape.
 */
export interface Throttle {
  readonly deficit: number;
  admit(kind: SessionKind, elapsedMs: Millis): boolean;
}

/** Answers four letter words. FourLetterWords has this shape. */
export interface FourLetterWordHandler extends Preamble {
  /**
   * The answer to the word in these first bytes: pieces of text, each made in a short time. Only
   * one `long` answer is in progress at a time.
   */
  answer(first: Buffer, count: number, cnxns: CnxnList, now: Now): { readonly long: boolean; readonly pieces: Iterator<string> };
}

export interface ClientPortDependencies {
  readonly network: Network;
  readonly options: ClientPortOptions;
  readonly throttle: Throttle | undefined;
  readonly observer: PortObserver;
  readonly limitObserver: Pick<Observer, 'limitReached'>;
  readonly logger: Logger;
}

/** A long answer to a four letter word waits until less output than this waits for its reader. */
const wordOutputBytesMax = 256 * 1024;
/** Steps of the core's work for one connection before another gets its turn. */
const stepsPerQuantum = 1;
/** Steps of the core's work in one turn, where each frame costs more. */
const stepsPerTurn = 8;
/** The cost of a frame in addition to what the core counts. */
const unitsPerFrame = 16;
/** Limit of connections closed for their age in one turn. */
const closingsPerTurn = 1000;
/** How long a client may take to notice that its connection was closed here. */
const lingerMs = 2000;
/** A later wake-up means that the process was suspended, and that input may wait unread... */
const latenessMs = 500;
/** ...so clients get this long before any counts as silent. */
const latenessGraceMs = 200;
/** Offset of `sessionId` in a ConnectRequest: after protocolVersion, lastZxidSeen and timeOut. */
const sessionIdAt = 16;

/** Slices of one call to the network; it grows to the largest turn and keeps that size. */
class OutgoingBatch implements SendBatch {
  count = 0;
  readonly cnxns: (ClientCnxn | undefined)[] = [];
  readonly streams: StreamId[] = [];
  readonly buffers: Buffer[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];
  readonly kept: boolean[] = [];

  add(cnxn: ClientCnxn, buffer: Buffer, start: number, end: number): void {
    const at = this.count++;
    this.cnxns[at] = cnxn;
    this.streams[at] = cnxn.stream;
    this.buffers[at] = buffer;
    this.starts[at] = start;
    this.ends[at] = end;
    this.kept[at] = false;
  }
}

export class ClientPort implements ClientOutput, CnxnList {
  readonly #network: Network;
  #core!: ClientCore;
  readonly #options: ClientPortOptions;
  #words!: FourLetterWordHandler;
  readonly #throttle: Throttle | undefined;
  readonly #observer: PortObserver;
  readonly #limitObserver: Pick<Observer, 'limitReached'>;
  readonly #log: RateLimitedLog;

  readonly #listeners = new Set<Listener>();
  /** By stream, which is also the CnxnId. Sparse: other ports have streams on the same network. */
  readonly #cnxns = new Map<StreamId, ClientCnxn>();
  /** Addresses with at least one connection. */
  readonly #addresses = new Map<string, ClientAddress<ClientCnxn>>();
  readonly #loadShedder: LoadShedder;
  readonly #halfOpen = new HalfOpenClients();
  /**
   * Connections that the core knows, by the time of the next check whether they are alive. Checked
   * late rather than updated often.
   */
  readonly #idle: ExpiryQueue;
  /** Connections with waiting output. The one checked longest ago is first. */
  readonly #awaitingDrain = new Set<ClientCnxn>();
  /**
   * Connections that have been sent everything and an end; the one that has had it longest is
   * first.
   */
  readonly #lingering = new Set<ClientCnxn>();

  /** Connections whose frames wait in their cutters for their turn. */
  readonly #turnQueue = new ClientTurnQueue();
  /** Connections whose frames wait until the core accepts them, or until output has been sent. */
  #blocked: ClientCnxn[] = [];
  /** Connections whose frames have begun to wait in this turn. */
  #newlyStalled: ClientCnxn[] = [];
  /**
   * The connection of the long job in progress; it is charged for the cost when its steps have been
   * taken.
   */
  #jobCnxn: ClientCnxn | undefined;
  #chargedUnits = 0;
  /** Connections that the core has closed in this turn, and that need a call of `disconnected`. */
  #disconnectsToReport: ClientCnxn[] = [];
  #dirty: ClientCnxn[] = [];
  /** Connections that the network does not read. */
  readonly #paused = new Set<ClientCnxn>();
  #probed: ClientCnxn[] = [];
  #nextProbeMs: Millis = 0;
  readonly #withLargeRequests = new Set<ClientCnxn>();
  #largeRequestBytes = 0;
  /** Answers to words in progress; the first one is being worked on. */
  readonly #wordAnswers: { readonly cnxn: ClientCnxn; readonly pieces: Iterator<string> }[] = [];

  readonly #reader = new Reader();
  readonly #pool = new WriterPool();
  readonly #batch = new OutgoingBatch();
  readonly #discardSink = new DiscardSink();

  /** The connection whose frames are being cut. */
  #feeding: ClientCnxn | undefined;
  #quantumFramesLeft = 0;
  /** The value of the core's work at which the go of the fed connection ends. */
  #quantumEndUnits = 0;
  #turnFramesLeft: number;
  /** The same in units of the core's work, spent on feeding in this turn so far. */
  #turnUnits = 0;
  #now: Now = { elapsedMs: 0, wallMs: 0 };
  #retainedBytes = 0;
  #waitingBytes = 0;
  #graceUntilMs: Millis = 0;
  #memoryState: MemoryState = 'ample';
  #closingCount = 0;
  #needsTurn = false;

  readonly #onFrame = (reader: Reader): boolean => this.#frame(reader);

  constructor(parts: ClientPortDependencies) {
    this.#network = parts.network;
    this.#options = parts.options;
    this.#throttle = parts.throttle;
    this.#observer = parts.observer;
    this.#limitObserver = parts.limitObserver;
    this.#turnFramesLeft = parts.options.framesPerTurn;
    this.#log = new RateLimitedLog(parts.logger);
    this.#idle = new ExpiryQueue(parts.options.sessionlessTimeoutMs);
    this.#loadShedder = new LoadShedder(parts.options.inFlightBytesMax);
  }

  /**
   * Sets the core that this port delivers to, and the object that answers four letter words. Both
   * are made after the port, because the core writes to it.
   */
  attach(core: ClientCore, words: FourLetterWordHandler): void {
    this.#core = core;
    this.#words = words;
  }

  // --- Listening

  async listen(options: ListenOptions): Promise<Listener> {
    const listener = await this.#network.listen(options);
    this.#listeners.add(listener);
    return listener;
  }

  owns(listener: Listener): boolean {
    return this.#listeners.has(listener);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#cnxns.has(stream);
  }

  /** Stops accepting, and closes all connections; output written to them is still sent. */
  async shutDown(now: Now): Promise<void> {
    this.#now = now;
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const cnxn of this.#cnxns.values()) this.#close(cnxn);
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  // --- What the network reports

  accepted(stream: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    this.#now = now;
    if (!this.#listeners.has(listener) || !this.#canAccept(remote)) {
      this.#observer.cnxnRejected();
      this.#network.reset(stream);
      return;
    }
    const context: CnxnContext = {
      remoteAddress: remote.address,
      remotePort: remote.port,
      localPort: listener.endpoint.port,
      secure: false,
      peerCertificate: undefined,
    };
    let address = this.#addresses.get(remote.address);
    if (address === undefined) this.#addresses.set(remote.address, (address = new ClientAddress<ClientCnxn>(remote.address)));
    address.cnxnCount++;
    const cutter = new FrameDecoder(this.#options.juteMaxBuffer, this.#reader);
    const cnxn = new ClientCnxn(stream, context, address, cutter, now.elapsedMs);
    this.#cnxns.set(stream, cnxn);
    this.#halfOpen.add(cnxn);
  }

  /** Takes the connections of this port out of the batch and ignores the others. */
  received(batch: ReceivedBatch, now: Now): void {
    this.#now = now;
    for (let index = 0; index < batch.count; index++) {
      const cnxn = this.#cnxns.get(batch.streams[index]!);
      if (cnxn !== undefined) this.#receive(cnxn, batch.buffers[index]!, batch.starts[index]!, batch.ends[index]!);
    }
  }

  drained(stream: StreamId, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined || !cnxn.writePending) return;
    cnxn.writePending = false;
    cnxn.sendAt = cnxn.sliceEnd;
    cnxn.shrinkOutput();
    cnxn.progressMs = now.elapsedMs;
    this.#awaitingDrain.delete(cnxn);
    this.#awaitingDrain.add(cnxn);
    this.#markDirty(cnxn);
  }

  ended(stream: StreamId, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    // `echo ruok | nc` ends its side right after the word and still waits for the answer.
    if (cnxn.stage === 'word' || cnxn.stage === 'closing') return;
    // Frames before the end are processed before the end.
    if (cnxn.takesFrames && cnxn.isStalled) cnxn.hasPeerEnded = true;
    else this.#end(cnxn);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    this.#now = now;
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    if (cnxn.stage === 'open') this.#observer.cnxnDropped();
    if (cnxn.stage === 'open' && cnxn.isStalled) this.#feedLastFrames(cnxn);
    if (cnxn.stage === 'closing') this.#observer.socketClosed(now.elapsedMs - cnxn.closingMs);
    else this.#close(cnxn);
    // At once and not at the end of the turn: from here on its number may be used again.
    this.#reportDisconnects();
    this.#closingCount--;
    this.#cnxns.delete(stream);
    cnxn.isDropped = true;
    this.#awaitingDrain.delete(cnxn);
    this.#lingering.delete(cnxn);
    this.#paused.delete(cnxn);
    cnxn.decoder.close();
    this.#countRetained(cnxn);
    this.#countWaiting(cnxn, 0);
    cnxn.writer = cnxn.sending = undefined;
    if (--cnxn.address.cnxnCount === 0) this.#addresses.delete(cnxn.address.name);
    if (error !== undefined && error !== 'ECONNRESET' && error !== 'EPIPE') {
      this.#log.warn(now.elapsedMs, `The connection of ${nameOf(cnxn)} was lost (${error}).`, {
        event: 'cnxn.lost',
        address: nameOf(cnxn),
        reason: error,
      });
    }
  }

  // --- What the core asks for

  /** As `Out.reply`. */
  reply(id: CnxnId): Writer {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.stage !== 'open') {
      this.#observer.staleReply();
      return this.#discardSink.writer();
    }
    if (!cnxn.isDirty) this.#markDirty(cnxn);
    return (cnxn.writer ??= this.#pool.take());
  }

  /** As `Out.isFull`. */
  isFull(id: CnxnId): boolean {
    const cnxn = this.#cnxns.get(id);
    if (cnxn === undefined || cnxn.waitingBytes <= this.#options.outputHighWaterBytes) return false;
    this.#limitObserver.limitReached('readingStopsBytes');
    cnxn.backpressureSignalled = true;
    return true;
  }

  /** As `Out.close`. The core gets `disconnected` at the end of the turn. */
  close(id: CnxnId): void {
    const cnxn = this.#cnxns.get(id);
    if (cnxn !== undefined && cnxn.stage === 'open') this.#close(cnxn);
  }

  // --- Time

  /** When to call `wake` if nothing else happens. */
  deadline(): Millis | undefined {
    const due = this.#due();
    const graced = due === undefined ? Infinity : Math.max(due, this.#graceUntilMs);
    const next = this.#paused.size === 0 ? graced : Math.min(graced, this.#nextProbeMs);
    return next === Infinity ? undefined : next;
  }

  /** There is more work that can be done at once: the runtime should run another turn soon. */
  get needsTurn(): boolean {
    return this.#needsTurn;
  }

  /**
   * A connection that is not read may have sent bytes nevertheless: it waits for its turn, or does
   * not read its replies. Those not heard from for a while are read until `endProbes`, a chunk
   * each, so that no active client counts as silent.
   */
  beginProbes(now: Now): void {
    if (this.#paused.size === 0) return;
    const { probeIntervalMs } = this.#options;
    this.#nextProbeMs = now.elapsedMs + probeIntervalMs;
    for (const cnxn of this.#paused) {
      if (cnxn.isProbed || now.elapsedMs - Math.max(cnxn.receivedMs, cnxn.probedMs) < probeIntervalMs) continue;
      cnxn.isProbed = true;
      cnxn.probedMs = now.elapsedMs;
      this.#probed.push(cnxn);
      this.#network.resume(cnxn.stream);
    }
  }

  endProbes(): void {
    const probed = this.#probed;
    if (probed.length === 0) return;
    this.#probed = [];
    for (const cnxn of probed) this.#endProbe(cnxn);
  }

  #endProbe(cnxn: ClientCnxn): void {
    if (!cnxn.isProbed) return;
    cnxn.isProbed = false;
    if (cnxn.isPaused && !cnxn.isDropped) this.#network.pause(cnxn.stream);
  }

  /** Closes connections whose time is over. */
  wake(now: Now): void {
    this.#now = now;
    const due = this.#due();
    if (due === undefined || due > now.elapsedMs) return;
    // Clients are silent only if the server has listened. After a suspension of this process (a
    // stop, a long collection) their bytes may wait in the kernel, and the loop calls timers before
    // it reads.
    if (now.elapsedMs - Math.max(due, this.#graceUntilMs) > latenessMs) this.#graceUntilMs = now.elapsedMs + latenessGraceMs;
    if (now.elapsedMs < this.#graceUntilMs) return;
    this.#closeHalfOpen();
    this.#closeIdle();
    this.#closeSlow();
    this.#resetLingering();
  }

  /**
   * `wake` must find every connection due that is due by this sum, to the last bit: it uses the
   * same sum.
   */
  #due(): Millis | undefined {
    let due = this.#idle.deadline() ?? Infinity;
    for (const oldest of this.#halfOpen) {
      const { halfOpenMax, halfOpenGraceMs, sessionlessTimeoutMs } = this.#options;
      due = Math.min(due, oldest.acceptedMs + (this.#halfOpen.size > halfOpenMax ? halfOpenGraceMs : sessionlessTimeoutMs));
      break;
    }
    for (const first of this.#awaitingDrain) {
      due = Math.min(due, first.progressMs + this.#options.drainTimeoutMs);
      break;
    }
    for (const first of this.#lingering) {
      due = Math.min(due, first.closingMs + lingerMs);
      break;
    }
    return due === Infinity ? undefined : due;
  }

  #closeHalfOpen(): void {
    const { halfOpenMax, halfOpenGraceMs, sessionlessTimeoutMs } = this.#options;
    let left = closingsPerTurn;
    for (const cnxn of this.#halfOpen) {
      const dueMs = cnxn.acceptedMs + (this.#halfOpen.size > halfOpenMax ? halfOpenGraceMs : sessionlessTimeoutMs);
      if (this.#now.elapsedMs < dueMs || left-- === 0) return;
      const age = this.#now.elapsedMs - cnxn.acceptedMs;
      this.#observer.cnxnExpired();
      this.#log.warn(this.#now.elapsedMs, `${nameOf(cnxn)} sent no complete handshake in ${age} ms and was closed.`, {
        event: 'cnxn.half-open',
        address: nameOf(cnxn),
        durationMs: age,
      });
      // FIN, as ZooKeeper closes it: a monitor that probes the port sees an orderly end. In a flood
      // its place is needed at once.
      if (this.#halfOpen.size > halfOpenMax) this.#drop(cnxn);
      else this.#close(cnxn);
    }
  }

  #closeIdle(): void {
    const { elapsedMs } = this.#now;
    this.#idle.takeDue(elapsedMs, closingsPerTurn, (stream) => {
      const cnxn = this.#cnxns.get(stream);
      if (cnxn === undefined || cnxn.stage !== 'open') return;
      const timeoutMs = this.#timeoutOf(this.#core.inspect.cnxn(stream));
      if (elapsedMs < cnxn.receivedMs + timeoutMs) {
        this.#idle.touch(stream, cnxn.receivedMs, timeoutMs);
        return;
      }
      this.#observer.cnxnExpired();
      const durationMs = elapsedMs - cnxn.receivedMs;
      this.#log.warn(elapsedMs, `${nameOf(cnxn)} sent nothing for ${durationMs} ms, and was closed.`, {
        event: 'cnxn.idle',
        address: nameOf(cnxn),
        durationMs,
      });
      this.#close(cnxn);
    });
  }

  #closeSlow(): void {
    const { elapsedMs } = this.#now;
    const { drainTimeoutMs, queuedOutputBytesMax } = this.#options;
    let left = closingsPerTurn;
    for (const cnxn of this.#awaitingDrain) {
      if (elapsedMs < cnxn.progressMs + drainTimeoutMs || left-- === 0) return;
      if (cnxn.stage === 'open' && (cnxn.writer?.offset ?? 0) <= queuedOutputBytesMax) {
        // Slow, but within its limits. The time-out of its session decides how long to wait.
        cnxn.progressMs = elapsedMs;
        this.#awaitingDrain.delete(cnxn);
        this.#awaitingDrain.add(cnxn);
        continue;
      }
      if (cnxn.stage !== 'closing') {
        this.#log.warn(
          elapsedMs,
          `${nameOf(cnxn)} has taken none of ${cnxn.waitingBytes} waiting bytes for ${drainTimeoutMs} ms and was closed.`,
          { event: 'cnxn.slow', address: nameOf(cnxn), bytes: cnxn.waitingBytes, durationMs: drainTimeoutMs },
        );
      }
      this.#drop(cnxn);
    }
  }

  #resetLingering(): void {
    let left = closingsPerTurn;
    for (const cnxn of this.#lingering) {
      if (this.#now.elapsedMs < cnxn.closingMs + lingerMs || left-- === 0) return;
      this.#drop(cnxn);
    }
  }

  // --- The end of a turn

  /** Feeds connections that had to wait, answers words, and sends all output at once. */
  endTurn(now: Now): void {
    this.#now = now;
    this.#needsTurn = false;
    this.#chargeJob();
    this.#feedStalled();
    this.#answerWords();
    this.#reportDisconnects();
    this.#flush();
    this.#forgetLargeRequests();
    this.#shed();
    // Connections that were shed have left the core as well.
    this.#reportDisconnects();
    this.#turnFramesLeft = this.#options.framesPerTurn;
    this.#turnUnits = 0;
    this.#rememberJob();
  }

  /** Long jobs are charged to the connection that asked for them. */
  #chargeJob(): void {
    if (this.#jobCnxn === undefined) return;
    this.#turnQueue.charge(this.#jobCnxn, Math.max(0, this.#core.workUnits - this.#chargedUnits));
    this.#jobCnxn = undefined;
  }

  #rememberJob(): void {
    if (!this.#core.isBusy) return;
    const id = this.#core.busyCnxn;
    this.#jobCnxn = id === undefined ? undefined : this.#cnxns.get(id);
    this.#chargedUnits = this.#core.workUnits;
  }

  #feedStalled(): void {
    if (this.#turnQueue.length === 0 && this.#blocked.length === 0) return;
    if (!this.#core.isBusy) this.#unblock();
    while (this.#hasTurnBudget() && !this.#core.isBusy) {
      const cnxn = this.#turnQueue.take();
      if (cnxn === undefined) break;
      if (this.#canFeed(cnxn)) {
        cnxn.isStalled = false;
        // If it has more after its go, it waits for another one, in this turn if there is room.
        this.#feed(cnxn, undefined, 0, 0);
      } else {
        this.#blocked.push(cnxn);
      }
      this.#updateReading(cnxn);
    }
    // Connections that wait for the core or for their client to read are checked when something
    // happens to them; those that wait for a go need another turn.
    const waiting = this.#turnQueue.length + this.#blocked.length;
    if (waiting > 0 && (!this.#hasTurnBudget() || this.#core.isBusy)) this.#needsTurn = true;
  }

  /** Connections whose requests the core accepts again wait for a go. */
  #unblock(): void {
    const blocked = this.#blocked;
    this.#blocked = [];
    for (const cnxn of blocked) {
      if (!cnxn.isStalled || cnxn.stage === 'closing') continue;
      if (this.#canTakeInput(cnxn)) this.#turnQueue.push(cnxn);
      else this.#blocked.push(cnxn);
    }
  }

  #hasTurnBudget(): boolean {
    return this.#turnFramesLeft > 0 && this.#turnUnits < stepsPerTurn * this.#options.stepUnits;
  }

  #reportDisconnects(): void {
    // Their requests no longer count, so the core may accept others again.
    if (this.#disconnectsToReport.length > 0 && this.#turnQueue.length + this.#blocked.length > 0) this.#needsTurn = true;
    for (let index = 0; index < this.#disconnectsToReport.length; index++)
      this.#core.disconnected(this.#disconnectsToReport[index]!.stream, this.#now);
    this.#disconnectsToReport.length = 0;
  }

  #flush(): void {
    const dirty = this.#dirty;
    this.#dirty = [];
    let pending = dirty;
    // One pass, unless a connection has more than one slice to send.
    do {
      for (const cnxn of pending) this.#addSlice(cnxn);
      pending = this.#send();
    } while (pending.length > 0);
    for (const cnxn of dirty) {
      cnxn.isDirty = false;
      this.#finishFlush(cnxn);
    }
  }

  #addSlice(cnxn: ClientCnxn): void {
    if (cnxn.writePending || cnxn.isDropped) return;
    if (cnxn.sending !== undefined && cnxn.sendAt === cnxn.sending.offset) {
      if (!cnxn.bufferDonated) this.#pool.put(cnxn.sending);
      cnxn.sending = undefined;
    }
    if (cnxn.sending === undefined) {
      const { writer } = cnxn;
      if (writer === undefined || writer.offset === 0) return;
      cnxn.sending = writer;
      cnxn.writer = undefined;
      cnxn.sendAt = 0;
      cnxn.bufferDonated = false;
    }
    cnxn.sliceEnd = Math.min(cnxn.sending.offset, cnxn.sendAt + this.#options.sliceBytes);
    if (cnxn.sliceEnd < cnxn.sending.offset) this.#limitObserver.limitReached('sliceBytes');
    this.#batch.add(cnxn, cnxn.sending.bytes, cnxn.sendAt, cnxn.sliceEnd);
  }

  /** Returns the connections that can send another slice at once. */
  #send(): ClientCnxn[] {
    const batch = this.#batch;
    if (batch.count === 0) return noCnxns;
    this.#network.send(batch);
    let more = noCnxns;
    for (let index = 0; index < batch.count; index++) {
      const cnxn = batch.cnxns[index]!;
      batch.cnxns[index] = undefined;
      batch.buffers[index] = noBytes;
      const { sending } = cnxn;
      if (sending === undefined) continue;
      if (batch.kept[index]!) {
        cnxn.writePending = true;
        cnxn.bufferDonated = true;
        continue;
      }
      cnxn.sendAt = cnxn.sliceEnd;
      const isWhole = cnxn.sendAt === sending.offset;
      if (isWhole) {
        if (!cnxn.bufferDonated) this.#pool.put(sending);
        cnxn.sending = undefined;
      }
      if (!isWhole || cnxn.writer !== undefined) {
        if (more === noCnxns) more = [];
        more.push(cnxn);
      }
    }
    batch.count = 0;
    return more;
  }

  #finishFlush(cnxn: ClientCnxn): void {
    if (cnxn.isDropped) return;
    if (cnxn.writer?.offset === 0) {
      this.#pool.put(cnxn.writer);
      cnxn.writer = undefined;
    }
    this.#countWaiting(cnxn, cnxn.waitingBytes);
    const { outputHighWaterBytes } = this.#options;
    // Its own output may have held its requests back; nothing else will cause a turn now that the
    // output is sent.
    if (cnxn.isStalled && cnxn.countedOutputBytes <= outputHighWaterBytes) this.#needsTurn = true;
    if (cnxn.backpressureSignalled && cnxn.countedOutputBytes <= outputHighWaterBytes) {
      cnxn.backpressureSignalled = false;
      this.#core.drained(cnxn.stream, this.#now);
      // What it has written now is sent in the next turn.
      this.#needsTurn = true;
    }
    if (cnxn.countedOutputBytes === 0) {
      this.#awaitingDrain.delete(cnxn);
      if (cnxn.stage === 'closing') this.#sendEnd(cnxn);
    } else if (!this.#awaitingDrain.has(cnxn)) {
      cnxn.progressMs = this.#now.elapsedMs;
      this.#awaitingDrain.add(cnxn);
    }
    this.#updateReading(cnxn);
  }

  #sendEnd(cnxn: ClientCnxn): void {
    if (cnxn.endSent) return;
    cnxn.endSent = true;
    cnxn.closingMs = this.#now.elapsedMs;
    this.#lingering.add(cnxn);
    this.#network.end(cnxn.stream);
  }

  // --- Coming in

  #canAccept(remote: Endpoint): boolean {
    const { maxClientCnxns, maxCnxns, maxCnxnsRemedy, halfOpenMax } = this.#options;
    const { elapsedMs } = this.#now;
    if (maxClientCnxns > 0 && (this.#addresses.get(remote.address)?.cnxnCount ?? 0) >= maxClientCnxns) {
      this.#log.warn(
        elapsedMs,
        `${remote.address} has ${maxClientCnxns} connections already; another one was refused. Raise maxClientCnxns to allow more.`,
        { event: 'cnxn.address-limit', address: remote.address, limit: maxClientCnxns },
      );
      return false;
    }
    const tooManyHalfOpen = this.#halfOpen.size >= halfOpenMax && !this.#closeOldestHalfOpen();
    // The session is known only after the handshake. Live sessions must be able to connect, but not
    // at the price of a flood.
    if (tooManyHalfOpen && this.#memoryState !== 'ample') {
      this.#log.warn(elapsedMs, `A connection of ${remote.address} was refused because memory is ${this.#memoryState}.`, {
        event: 'cnxn.memory',
        address: remote.address,
        reason: `memory is ${this.#memoryState}`,
      });
      return false;
    }
    if (this.#hasEqualShare(remote.address)) {
      const count = this.#addresses.get(remote.address)!.cnxnCount;
      this.#log.warn(
        elapsedMs,
        `${remote.address} has ${count} of ${maxCnxns} connections; another one was refused, because the last places are for addresses that have fewer. Raise ${maxCnxnsRemedy}.`,
        { event: 'cnxn.limit', address: remote.address, limit: maxCnxns },
      );
      return false;
    }
    if (maxCnxns > 0 && this.#cnxns.size >= maxCnxns && !this.#dropOldestLingering() && !this.#closeOldestHalfOpen()) {
      this.#log.warn(
        elapsedMs,
        `There are ${maxCnxns} connections already; one of ${remote.address} was refused. Raise ${maxCnxnsRemedy}.`,
        { event: 'cnxn.limit', address: remote.address, limit: maxCnxns },
      );
      return false;
    }
    return true;
  }

  /**
   * Makes room for a newcomer by dropping a client that has been sent the end of the stream and
   * keeps its side open.
   */
  #dropOldestLingering(): boolean {
    for (const ended of this.#lingering) {
      this.#drop(ended);
      return true;
    }
    return false;
  }

  /** Makes room for a newcomer by dropping a connection that has had its chance. */
  #closeOldestHalfOpen(): boolean {
    const oldest = this.#halfOpen.oldestOfHeaviest(this.#now.elapsedMs - this.#options.halfOpenGraceMs);
    if (oldest === undefined) return false;
    this.#limitObserver.limitReached('halfOpenMax');
    this.#observer.cnxnExpired();
    this.#drop(oldest);
    return true;
  }

  /**
   * Whether the few places left are not for this address, because it already has an equal share of
   * connections.
   */
  #hasEqualShare(name: string): boolean {
    const { maxCnxns, reservedCnxnsMax, reservedCnxnsOneIn } = this.#options;
    const left = maxCnxns - this.#cnxns.size;
    // When none is left, a connection is dropped or the newcomer is refused, whatever its address.
    if (left <= 0 || left > Math.min(reservedCnxnsMax, Math.floor(maxCnxns / reservedCnxnsOneIn))) return false;
    const count = this.#addresses.get(name)?.cnxnCount ?? 0;
    // Counts one more address: the places are kept for one that is not connected yet.
    return count * (this.#addresses.size + 1) >= maxCnxns;
  }

  #receive(cnxn: ClientCnxn, bytes: Buffer, start: number, end: number): void {
    cnxn.receivedMs = this.#now.elapsedMs;
    switch (cnxn.stage) {
      case 'preamble':
        this.#receiveFirst(cnxn, bytes, start, end);
        return;
      case 'handshake':
      case 'open':
        this.#endProbe(cnxn);
        // No frame may overtake those that wait.
        if (!cnxn.isStalled && (this.#turnQueue.length > 0 || !this.#canFeed(cnxn))) this.#stall(cnxn);
        this.#feed(cnxn, bytes, start, end);
        // The core learns this way of bytes that are not frames yet.
        if (cnxn.stage === 'open' && cnxn.countedInputBytes > 0) this.#core.bytesReceived(cnxn.stream, this.#now);
        if (cnxn.stage === 'handshake' && cnxn.isStalled) this.#reportHandshake(cnxn);
        return;
      case 'word':
      case 'closing':
        // Reading continues, because closing a socket with unread input makes the kernel reset it,
        // and the client might lose the end of the answer. But there is a limit.
        cnxn.discardedBytes += end - start;
        if (cnxn.discardedBytes > this.#options.discardedBytesMax) this.#drop(cnxn);
        return;
      default:
        cnxn.stage satisfies never;
    }
  }

  #receiveFirst(cnxn: ClientCnxn, bytes: Buffer, start: number, end: number): void {
    const first = (cnxn.firstBytes ??= Buffer.alloc(this.#words.bytesMax));
    const before = cnxn.firstByteCount;
    const taken = Math.min(first.length - before, end - start);
    bytes.copy(first, before, start, start + taken);
    cnxn.firstByteCount += taken;
    const kind = this.#words.classify(first, cnxn.firstByteCount);
    switch (kind) {
      case 'more':
        return;
      case 'word':
        this.#startWord(cnxn, first);
        return;
      case 'frames':
        cnxn.firstBytes = undefined;
        cnxn.stage = 'handshake';
        if (this.#turnQueue.length > 0 || !this.#canFeed(cnxn)) this.#stall(cnxn);
        if (before > 0) this.#feed(cnxn, first, 0, before);
        if (cnxn.takesFrames) this.#feed(cnxn, bytes, start, end);
        if (cnxn.stage === 'handshake' && cnxn.isStalled) this.#reportHandshake(cnxn);
        return;
      default:
        kind satisfies never;
    }
  }

  #reportHandshake(cnxn: ClientCnxn): void {
    const reader = cnxn.decoder.peek();
    if (reader !== undefined) this.#core.handshakeDelayed(reader, this.#now);
  }

  #canFeed(cnxn: ClientCnxn): boolean {
    return this.#hasTurnBudget() && !this.#core.isBusy && this.#canTakeInput(cnxn);
  }

  #canTakeInput(cnxn: ClientCnxn): boolean {
    return cnxn.waitingBytes <= this.#options.outputHighWaterBytes && (cnxn.stage !== 'open' || this.#core.wantsInput(cnxn.stream));
  }

  /** Feeds new bytes, or the retained ones when there are none. */
  #feed(cnxn: ClientCnxn, bytes: Buffer | undefined, start: number, end: number): void {
    this.#feeding = cnxn;
    const { framesPerQuantum } = this.#options;
    this.#quantumFramesLeft = framesPerQuantum;
    const workBefore = this.#core.workUnits;
    this.#quantumEndUnits = workBefore + stepsPerQuantum * this.#options.stepUnits;
    let wantsMore = true;
    try {
      if (bytes === undefined) wantsMore = cnxn.decoder.resume(this.#onFrame);
      else wantsMore = cnxn.decoder.feed(bytes, start, end, this.#onFrame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#log.warn(this.#now.elapsedMs, `${nameOf(cnxn)} was closed: ${error.message}. ${this.#juteHint(cnxn)}`, {
        event: 'cnxn.malformed',
        address: nameOf(cnxn),
        reason: error.message,
      });
      this.#close(cnxn);
    } finally {
      this.#feeding = undefined;
    }
    const frames = framesPerQuantum - this.#quantumFramesLeft;
    if (frames > 0) this.#chargeQuantum(cnxn, frames, this.#core.workUnits - workBefore);
    if (cnxn.stage === 'closing') return;
    if (!wantsMore) this.#stall(cnxn);
    else if (cnxn.hasPeerEnded) this.#end(cnxn);
    this.#countRetained(cnxn);
    this.#checkLargeFrame(cnxn);
  }

  #chargeQuantum(cnxn: ClientCnxn, frames: number, work: number): void {
    // A server that has begun to lead or follow counts from 0.
    const units = Math.max(0, work);
    this.#turnUnits += units;
    this.#turnQueue.charge(cnxn, units + frames * unitsPerFrame);
  }

  /** All at once: there is no later turn, and none of it has to be answered. */
  #feedLastFrames(cnxn: ClientCnxn): void {
    try {
      cnxn.decoder.resume((reader) => {
        this.#observer.packetReceived(reader.remaining + 4);
        this.#core.lastFrame(cnxn.stream, reader, this.#now, cnxn.receivedMs);
        return true;
      });
    } catch (error) {
      // Garbage, and its sender is gone.
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  /** The frame cutter's consumer. Returns whether the connection may pass another frame. */
  #frame(reader: Reader): boolean {
    const cnxn = this.#feeding!;
    const bytes = reader.remaining + 4;
    this.#observer.packetReceived(bytes);
    if (cnxn.stage === 'handshake' && !this.#open(cnxn, reader)) return false;
    cnxn.framesFed++;
    if (this.#options.largeRequestThreshold >= 0 && reader.remaining > this.#options.largeRequestThreshold) {
      if (!this.#admitLargeRequest(cnxn, reader.remaining)) return false;
    }
    this.#core.frame(cnxn.stream, reader, this.#now, cnxn.receivedMs);
    if (--this.#turnFramesLeft === 0) this.#limitObserver.limitReached('framesPerTurn');
    if (this.#quantumFramesLeft === 1) this.#limitObserver.limitReached('framesPerGo');
    return --this.#quantumFramesLeft > 0 && cnxn.stage === 'open' && this.#core.workUnits < this.#quantumEndUnits && this.#canFeed(cnxn);
  }

  /** The first frame: from here on the core knows the connection. */
  #open(cnxn: ClientCnxn, reader: Reader): boolean {
    const { elapsedMs } = this.#now;
    this.#observer.handshakeReceived(this.#throttle?.deficit ?? 0);
    if (this.#throttle !== undefined && !this.#throttle.admit(sessionKindOf(reader), elapsedMs)) {
      this.#observer.cnxnRejected();
      this.#log.warn(elapsedMs, `${nameOf(cnxn)} was refused by the connection throttle.`, {
        event: 'cnxn.throttled',
        address: nameOf(cnxn),
      });
      this.#close(cnxn);
      return false;
    }
    if (this.#memoryState !== 'ample' && sessionKindOf(reader) === 'global') {
      this.#observer.cnxnRejected();
      this.#log.warn(elapsedMs, `${nameOf(cnxn)} was refused a new session because memory is ${this.#memoryState}.`, {
        event: 'cnxn.memory',
        address: nameOf(cnxn),
        reason: `memory is ${this.#memoryState}`,
      });
      this.#close(cnxn);
      return false;
    }
    this.#halfOpen.delete(cnxn);
    cnxn.stage = 'open';
    this.#idle.touch(cnxn.stream, elapsedMs, this.#options.sessionlessTimeoutMs);
    this.#core.connect(cnxn.stream, cnxn.context, this.#now);
    return true;
  }

  #stall(cnxn: ClientCnxn): void {
    if (cnxn.isStalled) return;
    cnxn.isStalled = true;
    cnxn.decoder.pause();
    this.#turnQueue.push(cnxn);
    this.#newlyStalled.push(cnxn);
  }

  #juteHint(cnxn: ClientCnxn): string {
    if (cnxn.stage === 'handshake') return 'This does not look like a ZooKeeper client.';
    return `jute.maxbuffer is ${this.#options.juteMaxBuffer}; to allow larger frames, raise it on clients and servers.`;
  }

  // --- Four letter words

  #startWord(cnxn: ClientCnxn, first: Buffer): void {
    cnxn.stage = 'word';
    cnxn.packetsReceived++;
    this.#observer.packetReceived(4);
    this.#halfOpen.delete(cnxn);
    const { long, pieces } = this.#words.answer(first, cnxn.firstByteCount, this, this.#now);
    if (long) {
      this.#wordAnswers.push({ cnxn, pieces });
      return;
    }
    for (let piece = pieces.next(); piece.done !== true; piece = pieces.next()) this.#writeText(cnxn, piece.value);
    this.#close(cnxn);
  }

  /**
   * One piece of one long answer: a turn has other work, and two answers at a time would only take
   * twice the memory.
   */
  #answerWords(): void {
    const current = this.#wordAnswers[0];
    if (current === undefined) return;
    const { cnxn, pieces } = current;
    if (cnxn.stage !== 'word') {
      this.#wordAnswers.shift();
      pieces.return?.();
    } else if (cnxn.waitingBytes < wordOutputBytesMax) {
      const piece = pieces.next();
      if (piece.done === true) {
        this.#wordAnswers.shift();
        this.#close(cnxn);
      } else {
        this.#writeText(cnxn, piece.value);
      }
    } else {
      return;
    }
    if (this.#wordAnswers.length > 0) this.#needsTurn = true;
  }

  #writeText(cnxn: ClientCnxn, text: string): void {
    if (text.length === 0) return;
    const writer = (cnxn.writer ??= this.#pool.take());
    writer.reserve(text.length * 3);
    writer.offset += writer.bytes.write(text, writer.offset, 'utf8');
    this.#markDirty(cnxn);
  }

  // --- Going away

  /** The client has sent its end, and none of its input waits. */
  #end(cnxn: ClientCnxn): void {
    if (cnxn.stage === 'open') this.#observer.cnxnDropped();
    this.#close(cnxn);
  }

  /** Accepts no more input; sends waiting output, then the end. */
  #close(cnxn: ClientCnxn): void {
    if (cnxn.stage === 'closing') return;
    this.#unregister(cnxn);
    cnxn.stage = 'closing';
    this.#closingCount++;
    cnxn.closingMs = this.#now.elapsedMs;
    cnxn.firstBytes = undefined;
    cnxn.isStalled = false;
    this.#turnQueue.remove(cnxn);
    cnxn.decoder.close();
    this.#countRetained(cnxn);
    this.#markDirty(cnxn);
  }

  /** Closes at once, without waiting output. `closed` follows. */
  #drop(cnxn: ClientCnxn): void {
    this.#close(cnxn);
    this.#awaitingDrain.delete(cnxn);
    this.#lingering.delete(cnxn);
    this.#countWaiting(cnxn, 0);
    cnxn.writer = cnxn.sending = undefined;
    cnxn.writePending = false;
    cnxn.isDropped = true;
    this.#network.reset(cnxn.stream);
  }

  /** Removes a connection from all lists of live connections. */
  #unregister(cnxn: ClientCnxn): void {
    this.#halfOpen.delete(cnxn);
    this.#idle.remove(cnxn.stream);
    if (cnxn.stage === 'open') this.#disconnectsToReport.push(cnxn);
    if (cnxn.largeRequests !== undefined) {
      for (const { bytes } of cnxn.largeRequests) this.#largeRequestBytes -= bytes;
      cnxn.largeRequests = undefined;
      this.#withLargeRequests.delete(cnxn);
    }
  }

  // --- Memory

  /**
   * The state of the memory of the process. Unless it is ample, no new sessions are accepted; live
   * ones may be resumed.
   */
  set memoryState(state: MemoryState) {
    this.#memoryState = state;
  }

  /** Input and output held for clients. */
  get inFlightBytes(): number {
    return this.#retainedBytes + this.#waitingBytes;
  }

  get retainedInputBytes(): number {
    return this.#retainedBytes;
  }

  get waitingOutputBytes(): number {
    return this.#waitingBytes;
  }

  #countRetained(cnxn: ClientCnxn): void {
    const more = cnxn.decoder.retainedBytes - cnxn.countedInputBytes;
    this.#retainedBytes += more;
    cnxn.countedInputBytes += more;
    this.#loadShedder.count(cnxn.address, more);
  }

  #countWaiting(cnxn: ClientCnxn, waiting: number): void {
    const more = waiting - cnxn.countedOutputBytes;
    this.#waitingBytes += more;
    cnxn.countedOutputBytes = waiting;
    this.#loadShedder.count(cnxn.address, more);
  }

  #markDirty(cnxn: ClientCnxn): void {
    if (cnxn.isDirty) return;
    cnxn.isDirty = true;
    this.#dirty.push(cnxn);
  }

  #updateReading(cnxn: ClientCnxn): void {
    const pause =
      cnxn.stage !== 'closing' &&
      (cnxn.isStalled ||
        cnxn.countedOutputBytes > this.#options.outputHighWaterBytes ||
        (cnxn.address.isOverShare && cnxn.countedOutputBytes > 0 && cnxn.stage === 'open'));
    if (pause === cnxn.isPaused) return;
    cnxn.isPaused = pause;
    if (pause) {
      if (this.#paused.size === 0) this.#nextProbeMs = this.#now.elapsedMs + this.#options.probeIntervalMs;
      this.#paused.add(cnxn);
      this.#network.pause(cnxn.stream);
    } else {
      this.#paused.delete(cnxn);
      this.#network.resume(cnxn.stream);
    }
  }

  /** Keeps what is held for clients below its limit. */
  #shed(): void {
    if (this.#loadShedder.updateShares()) {
      this.#limitObserver.limitReached('heldBytesMax');
      for (const cnxn of this.#awaitingDrain) this.#updateReading(cnxn);
    }
    for (const cnxn of this.#newlyStalled) this.#updateReading(cnxn);
    this.#newlyStalled.length = 0;
    const isShared = this.#addresses.size > 1;
    if (!this.#loadShedder.isExceeded(isShared)) return;
    for (const cnxn of this.#loadShedder.cnxnsToClose(this.#cnxns.values(), isShared)) {
      const { address, heldBytes } = cnxn;
      this.#log.warn(
        this.#now.elapsedMs,
        `${nameOf(cnxn)} was closed: it held ${heldBytes} of the ${address.heldBytes} bytes that are held for ${address.name}, and of ${this.inFlightBytes} that are held for clients; the limit is ${this.#options.inFlightBytesMax}. A client must read its replies and events.`,
        { event: 'cnxn.shed', address: nameOf(cnxn), bytes: heldBytes, limitBytes: this.#options.inFlightBytesMax },
      );
      this.#observer.cnxnRejected();
      this.#drop(cnxn);
    }
  }

  // --- Large requests

  /** A large frame that is still arriving counts as soon as its length is known. */
  #checkLargeFrame(cnxn: ClientCnxn): void {
    const { largeRequestThreshold, largeRequestMaxBytes } = this.#options;
    if (largeRequestThreshold < 0) return;
    const announced = cnxn.decoder.announcedLength;
    if (announced > largeRequestThreshold && this.#largeRequestBytes + announced > largeRequestMaxBytes) {
      this.#rejectLarge(cnxn, announced);
    }
  }

  #admitLargeRequest(cnxn: ClientCnxn, bytes: number): boolean {
    if (this.#largeRequestBytes + bytes > this.#options.largeRequestMaxBytes) {
      this.#rejectLarge(cnxn, bytes);
      return false;
    }
    this.#largeRequestBytes += bytes;
    (cnxn.largeRequests ??= []).push({ frame: cnxn.framesFed, bytes });
    this.#withLargeRequests.add(cnxn);
    return true;
  }

  #rejectLarge(cnxn: ClientCnxn, bytes: number): void {
    this.#observer.largeRequestRejected();
    this.#log.warn(
      this.#now.elapsedMs,
      `${nameOf(cnxn)} was closed: its request of ${bytes} bytes would take large requests in flight above largeRequestMaxBytes (${this.#options.largeRequestMaxBytes}).`,
      { event: 'cnxn.large-request', address: nameOf(cnxn), bytes, limitBytes: this.#options.largeRequestMaxBytes },
    );
    // A frame that waited for its turn was reported when it arrived.
    if (cnxn.stage === 'open' && cnxn.receivedMs === this.#now.elapsedMs) this.#core.bytesReceived(cnxn.stream, this.#now);
    this.#close(cnxn);
  }

  /**
   * Replies are in the order of requests, so the number of outstanding ones says which are done.
   */
  #forgetLargeRequests(): void {
    for (const cnxn of this.#withLargeRequests) {
      const requests = cnxn.largeRequests!;
      const answered = cnxn.framesFed - (this.#core.inspect.cnxn(cnxn.stream)?.outstandingRequests ?? 0);
      let done = 0;
      while (done < requests.length && requests[done]!.frame <= answered) this.#largeRequestBytes -= requests[done++]!.bytes;
      requests.splice(0, done);
      if (requests.length === 0) {
        cnxn.largeRequests = undefined;
        this.#withLargeRequests.delete(cnxn);
      }
    }
  }

  // --- For operators

  /** Number of connections that are not closing. */
  get cnxnCount(): number {
    return this.#cnxns.size - this.#closingCount;
  }

  get halfOpenCount(): number {
    return this.#halfOpen.size;
  }

  *cnxns(): Generator<CnxnView, void, undefined> {
    for (const cnxn of this.#cnxns.values()) {
      if (cnxn.stage === 'closing') continue;
      yield {
        context: cnxn.context,
        interest: cnxn.stage === 'word' ? 0 : (cnxn.isPaused ? 0 : 1) + (cnxn.countedOutputBytes > 0 ? 4 : 0),
        packetsReceived: cnxn.packetsReceived,
        info: cnxn.stage === 'open' ? this.#core.inspect.cnxn(cnxn.stream) : undefined,
      };
    }
  }

  expiry(): { dueMs: Millis; cnxns: { context: CnxnContext; session: SessionId }[] }[] {
    const tickMs = this.#options.sessionlessTimeoutMs;
    const buckets = new Map<Millis, { dueMs: Millis; cnxns: { context: CnxnContext; session: SessionId }[] }>();
    for (const cnxn of this.#cnxns.values()) {
      if (cnxn.stage === 'closing') continue;
      const info = cnxn.stage === 'open' ? this.#core.inspect.cnxn(cnxn.stream) : undefined;
      const from = info === undefined ? cnxn.acceptedMs : cnxn.receivedMs;
      const dueMs = (Math.floor((from + this.#timeoutOf(info)) / tickMs) + 1) * tickMs;
      let bucket = buckets.get(dueMs);
      if (bucket === undefined) buckets.set(dueMs, (bucket = { dueMs, cnxns: [] }));
      bucket.cnxns.push({ context: cnxn.context, session: info?.session ?? 0n });
    }
    return [...buckets.values()].sort((a, b) => a.dueMs - b.dueMs);
  }

  #timeoutOf(info: CnxnInfo | undefined): Millis {
    return info === undefined || info.session === 0n ? this.#options.sessionlessTimeoutMs : info.sessionTimeoutMs;
  }
}

const noCnxns: ClientCnxn[] = [];
const noBytes = Buffer.alloc(0);

/** The decoder refuses a ConnectRequest that is too short for a session id. */
function sessionKindOf(reader: Reader): SessionKind {
  if (reader.remaining < sessionIdAt + 8) return 'global';
  for (let at = reader.offset + sessionIdAt, end = at + 8; at < end; at++) {
    if (reader.bytes[at] !== 0) return 'renew';
  }
  return 'global';
}

function nameOf({ context: { remoteAddress, remotePort } }: ClientCnxn): string {
  return remoteAddress.includes(':') ? `[${remoteAddress}]:${remotePort}` : `${remoteAddress}:${remotePort}`;
}
