/**
 * The streams of a port between servers, dialled by either side: accepting them, their
 * introductions, their turns, and closing them. The port that owns them handles their content.
 *
 * A stream is closed in three steps. Input that still arrives is discarded; when all output has
 * been sent, an end follows; and the stream is gone when the other side has ended as well, or has
 * not done so in time. Until then it is still read, because closing a socket with unread input
 * makes the kernel reset it, and the last output could be lost.
 */
import type { Now } from '@tskeeper/core';
import { formatHostPort, type HostPort, isWildcardHost, type Millis } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Endpoint, Listener, ListenOptions, Network, ReceivedBatch, StreamId } from '../network.ts';
import { bindListener, waitForOwnName } from './bind-listener.ts';
import { HalfOpenStreams } from './half-open-streams.ts';
import type { RateLimitedLog } from './rate-limited-log.ts';
import { type Replacement, replaceListeners } from './replace-listeners.ts';

/** A stream between two servers, at either end. Ports extend it. */
export class PeerStream {
  readonly stream: StreamId;
  readonly remote: Endpoint;
  readonly openedMs: Millis;
  /**
   * `half-open`: it was accepted, and has not introduced itself. `closing`: waiting output is sent,
   * input is discarded.
   */
  stage: 'half-open' | 'open' | 'closing' = 'half-open';
  /** Input waits for the next turn; the stream is not read meanwhile. */
  isStalled = false;
  /** The other side has sent its end, after input that waits. */
  hasPeerEnded = false;
  /** When it was closed here, or when the other side last accepted some of its waiting output. */
  closingMs: Millis = 0;
  endSent = false;
  discardedBytes = 0;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis) {
    this.stream = stream;
    this.remote = remote;
    this.openedMs = sinceMs;
  }

  get name(): string {
    return formatHostPort({ host: this.remote.address, port: this.remote.port });
  }

  /** The waiting output will not be sent. */
  discardOutput(): void {}
}

export interface PeerStreamsDependencies {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly log: RateLimitedLog;
  /** Its name for sentences: "election port". */
  readonly portName: string;
  /** Number of tries to listen; 0 = no limit. */
  readonly bindTriesMax: number;
  /** Limit of connections without an introduction... */
  readonly halfOpenMax: number;
  /** ...and how long each may last. */
  readonly halfOpenTimeoutMs: Millis;
}

/** The port. */
export interface PeerStreamOwner<S extends PeerStream> {
  createStream(stream: StreamId, remote: Endpoint, sinceMs: Millis): S;
  /** Bytes have arrived over a stream that is not closing. */
  receive(stream: S, bytes: Buffer, start: number, end: number): void;
  /** The stream has another go: process its retained input. */
  resume(stream: S): void;
  /** The stream is about to close, and still has its old stage. Process no more of its input. */
  onClosing(stream: S): void;
}

/**
 * How long a closed stream may go without accepting any of its waiting output, and how long its
 * other side may take to notice.
 */
const lingerMs: Millis = 2000;
/** Limit of the input that may still arrive meanwhile. */
const discardedBytesMax = 1024 * 1024;

export class PeerStreams<S extends PeerStream> {
  readonly #dependencies: PeerStreamsDependencies;
  readonly #owner: PeerStreamOwner<S>;
  readonly #listeners = new Set<Listener>();
  /** Incremented by `stopListening`: a `listen` that still waits for the port is too late then. */
  #listenGeneration = 0;
  #isShutDown = false;
  readonly #streams = new Map<StreamId, S>();
  readonly #halfOpen: HalfOpenStreams<S>;
  /** Closed here, and output is still to be sent or the other side has not noticed. */
  readonly #closing = new Set<S>();
  #stalled: S[] = [];

  constructor(parts: PeerStreamsDependencies, owner: PeerStreamOwner<S>) {
    this.#dependencies = parts;
    this.#owner = owner;
    this.#halfOpen = new HalfOpenStreams(parts.halfOpenMax, parts.halfOpenTimeoutMs);
  }

  // --- Listening

  /**
   * Listens on one of this server's addresses; a wildcard host means all addresses of the machine.
   * Retries as `bindTriesMax` says, a second apart, and without limit while a name does not
   * resolve. Rejects with a sentence for the operator, in which the port is called `portName`.
   */
  async listen(address: HostPort, portName = this.#dependencies.portName): Promise<Listener | undefined> {
    const since = this.#listenGeneration;
    const { network, clock, log, bindTriesMax } = this.#dependencies;
    const listener = await bindListener(network, clock, log, {
      portName: portName,
      address,
      attemptsMax: bindTriesMax,
      isCancelled: () => this.#isShutDown || since !== this.#listenGeneration,
    });
    if (listener !== undefined) this.#listeners.add(listener);
    return listener;
  }

  /**
   * Listens on another address of this server instead of `old`, which may exclude it. It tries once.
   * Resolves with undefined if the port is shut down before.
   */
  async replace(old: readonly Listener[], address: HostPort): Promise<Replacement | undefined> {
    const { network, clock, log, portName } = this.#dependencies;
    const isCancelled = (): boolean => this.#isShutDown;
    const numeric = isWildcardHost(address.host)
      ? undefined
      : await waitForOwnName(network, clock, log, { portName, address, isCancelled });
    if (isCancelled()) return undefined;
    const wanted: ListenOptions = { address: numeric, port: address.port, backlog: undefined, forServers: true };
    const listen = async (options: ListenOptions): Promise<Listener> => {
      const listener = await network.listen(options);
      if (isCancelled()) await listener.close();
      else this.#listeners.add(listener);
      return listener;
    };
    return replaceListeners({ listen, stopListeningAt: (listener) => this.stopListeningAt(listener) }, old, wanted);
  }

  owns(listener: Listener): boolean {
    return this.#listeners.has(listener);
  }

  /** Stops accepting at one address; existing streams stay. */
  async stopListeningAt(listener: Listener): Promise<void> {
    this.#listeners.delete(listener);
    await listener.close();
  }

  /** Stops accepting until the next `listen`; existing streams stay. */
  async stopListening(): Promise<void> {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#listenGeneration++;
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  /** Stops accepting for good, and closes all streams. */
  shutDown(now: Now): Promise<void> {
    this.#isShutDown = true;
    for (const stream of this.#streams.values()) this.close(stream, now);
    return this.stopListening();
  }

  // --- What the network reports

  accepted(id: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    const { network, log, portName } = this.#dependencies;
    if (!this.#listeners.has(listener)) {
      network.reset(id);
      return;
    }
    const leaving = this.#halfOpen.add(this.add(id, remote, now));
    if (leaving === undefined) return;
    log.warn(now.elapsedMs, `${leaving.name} was closed: too many connections to the ${portName} have not introduced themselves.`, {
      event: 'peer.flood',
      address: leaving.name,
    });
    this.drop(leaving, now);
  }

  /** Takes the entries of these streams out of the batch and ignores the rest. */
  received(batch: ReceivedBatch, now: Now): void {
    for (let index = 0; index < batch.count; index++) {
      const stream = this.#streams.get(batch.streams[index]!);
      if (stream === undefined) continue;
      const [start, end] = [batch.starts[index]!, batch.ends[index]!];
      if (stream.stage === 'closing') this.discard(stream, end - start, now);
      else this.#owner.receive(stream, batch.buffers[index]!, start, end);
    }
  }

  ended(id: StreamId, now: Now): void {
    const stream = this.#streams.get(id);
    if (stream === undefined || stream.stage === 'closing') return;
    // Input before the end is processed before the end.
    if (stream.isStalled) stream.hasPeerEnded = true;
    else this.close(stream, now);
  }

  /** From here on its number may be used again. Returns whether it was one of these. */
  closed(id: StreamId, now: Now): boolean {
    const stream = this.#streams.get(id);
    if (stream === undefined) return false;
    this.close(stream, now);
    this.#closing.delete(stream);
    this.#streams.delete(id);
    stream.discardOutput();
    return true;
  }

  // --- The streams

  get(id: StreamId): S | undefined {
    return this.#streams.get(id);
  }

  has(id: StreamId): boolean {
    return this.#streams.has(id);
  }

  values(): Iterable<S> {
    return this.#streams.values();
  }

  /** Adds a stream that was dialled here. */
  add(id: StreamId, remote: Endpoint, now: Now): S {
    const stream = this.#owner.createStream(id, remote, now.elapsedMs);
    this.#streams.set(id, stream);
    return stream;
  }

  /** The stream has introduced itself. */
  markOpen(stream: S): void {
    this.#halfOpen.delete(stream);
    stream.stage = 'open';
  }

  /** It has more input than one go may process. */
  stall(stream: S): void {
    if (stream.isStalled) return;
    stream.isStalled = true;
    this.#stalled.push(stream);
    this.#dependencies.network.pause(stream.stream);
  }

  /** Gives another go to streams with more input. Returns whether any has still more. */
  resumeStalled(): boolean {
    const stalled = this.#stalled;
    if (stalled.length === 0) return false;
    this.#stalled = [];
    for (const stream of stalled) {
      if (!stream.isStalled) continue;
      stream.isStalled = false;
      this.#owner.resume(stream);
      if (!stream.isStalled) this.#dependencies.network.resume(stream.stream);
    }
    return this.#stalled.length > 0;
  }

  // --- Going away

  /** Accepts no more input; sends what was written, then the end. */
  close(stream: S, now: Now): void {
    if (stream.stage === 'closing') return;
    this.#halfOpen.delete(stream);
    this.#owner.onClosing(stream);
    stream.stage = 'closing';
    stream.closingMs = now.elapsedMs;
    this.#closing.add(stream);
    if (!stream.isStalled) return;
    stream.isStalled = false;
    this.#dependencies.network.resume(stream.stream);
  }

  /** Closes at once, without waiting output. `closed` follows. */
  drop(stream: S, now: Now): void {
    this.close(stream, now);
    this.#closing.delete(stream);
    stream.discardOutput();
    this.#dependencies.network.reset(stream.stream);
  }

  dropAll(now: Now): void {
    for (const stream of this.#streams.values()) this.drop(stream, now);
  }

  /** Discards input of a closing stream, up to a limit. */
  discard(stream: S, bytes: number, now: Now): void {
    stream.discardedBytes += bytes;
    if (stream.discardedBytes > discardedBytesMax) this.drop(stream, now);
  }

  /** All output of a closing stream has been sent. */
  sendEnd(stream: S, now: Now): void {
    if (stream.endSent || !this.#closing.has(stream)) return;
    stream.endSent = true;
    stream.closingMs = now.elapsedMs;
    this.#dependencies.network.end(stream.stream);
  }

  // --- Time

  deadline(): Millis | undefined {
    let due = this.#halfOpen.deadline() ?? Infinity;
    for (const { closingMs } of this.#closing) due = Math.min(due, closingMs + lingerMs);
    return due === Infinity ? undefined : due;
  }

  /** Closes streams that have timed out. */
  wake(now: Now): void {
    const { log, portName, halfOpenTimeoutMs } = this.#dependencies;
    for (const stream of this.#halfOpen.takeDue(now.elapsedMs)) {
      log.warn(
        now.elapsedMs,
        `${stream.name} did not introduce itself within ${halfOpenTimeoutMs} ms to the ${portName}, and was closed.`,
        {
          event: 'peer.half-open',
          address: stream.name,
          durationMs: halfOpenTimeoutMs,
        },
      );
      this.drop(stream, now);
    }
    for (const stream of this.#closing) if (now.elapsedMs - stream.closingMs >= lingerMs) this.drop(stream, now);
  }
}
