/**
 * The streams of a port between servers, whichever side has dialled: who is let in, who has yet to say who it is, who waits for another go, who
 * is on the way out. What is said over them is the business of the port that owns them.
 *
 * A stream is closed in three steps. Nothing of what still arrives is heard; when everything that was written has been sent, an end follows;
 * and the stream is gone when the other side has ended as well, or has not done so in time. Until then it is read on, since closing a socket
 * with unread input makes the kernel reset it, and what was said last could be lost.
 */
import type { Now } from '@tskeeper/core';
import { formatHostPort, type HostPort, type Millis } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Endpoint, Listener, Network, ReceivedBatch, StreamId } from '../network.ts';
import { bindListener } from './bind-listener.ts';
import { HalfOpen } from './half-open.ts';
import type { LimitedLog } from './limited-log.ts';

/** A stream between two servers, at either end. Ports keep more of it. */
export class PeerStream {
  readonly stream: StreamId;
  readonly remote: Endpoint;
  readonly sinceMs: Millis;
  /** `half-open`: it was accepted, and has not said who it is. `closing`: what is still to be sent is sent, nothing is heard. */
  stage: 'half-open' | 'open' | 'closing' = 'half-open';
  /** Input waits for the next turn; the stream is not read meanwhile. */
  isStalled = false;
  /** The other side will say nothing more, and has not been heard to the end. */
  hasEnded = false;
  /** When it was closed here, or when something of what it is still to be sent was last taken. */
  closingMs: Millis = 0;
  endSent = false;
  discardedBytes = 0;

  constructor(stream: StreamId, remote: Endpoint, sinceMs: Millis) {
    this.stream = stream;
    this.remote = remote;
    this.sinceMs = sinceMs;
  }

  get name(): string {
    return formatHostPort({ host: this.remote.address, port: this.remote.port });
  }

  /** Nothing of what is still to be sent will be. */
  discardOutput(): void {}
}

export interface PeerStreamsParts {
  readonly network: Network;
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly log: LimitedLog;
  /** What sentences call it: "election port". */
  readonly port: string;
  /** How often it is tried to listen; 0 = until it works. */
  readonly bindTriesMax: number;
  /** Of those that have not said who they are, there are so many... */
  readonly halfOpenMax: number;
  /** ...for so long. */
  readonly halfOpenTimeoutMs: Millis;
}

/** The port. */
export interface PeerStreamOwner<S extends PeerStream> {
  newStream(stream: StreamId, remote: Endpoint, sinceMs: Millis): S;
  /** Something has arrived over a stream that is not closing. */
  receive(stream: S, bytes: Buffer, start: number, end: number): void;
  /** It has another go: what it has kept is to be heard. */
  resume(stream: S): void;
  /** It is about to be closed, and its stage is what it was. No more of its input is to be heard. */
  closing(stream: S): void;
}

/** How long a closed stream may take nothing of what it is still to be sent, and how long its other side may take to notice. */
const lingerMs: Millis = 2000;
/** What may still arrive meanwhile. */
const discardedBytesMax = 1024 * 1024;

export class PeerStreams<S extends PeerStream> {
  readonly #parts: PeerStreamsParts;
  readonly #owner: PeerStreamOwner<S>;
  readonly #listeners = new Set<Listener>();
  /** Raised by `stopListening`: whoever still waits for the port is too late. */
  #listeningSince = 0;
  #isShut = false;
  readonly #streams = new Map<StreamId, S>();
  readonly #halfOpen: HalfOpen<S>;
  /** Closed here, and something is still to be sent or the other side has not noticed. */
  readonly #closing = new Set<S>();
  #stalled: S[] = [];

  constructor(parts: PeerStreamsParts, owner: PeerStreamOwner<S>) {
    this.#parts = parts;
    this.#owner = owner;
    this.#halfOpen = new HalfOpen(parts.halfOpenMax, parts.halfOpenTimeoutMs);
  }

  // --- Listening

  /**
   * Listens on one of the own addresses; a wildcard host stands for all addresses of the machine. Tries again as `bindTriesMax` says, a second
   * apart, and for as long as a name does not resolve. Rejects with a sentence for the operator.
   */
  async listen(address: HostPort): Promise<Listener | undefined> {
    const since = this.#listeningSince;
    const { network, clock, log, port, bindTriesMax } = this.#parts;
    const listener = await bindListener(network, clock, log, {
      what: port,
      address,
      triesMax: bindTriesMax,
      isOver: () => this.#isShut || since !== this.#listeningSince,
    });
    if (listener !== undefined) this.#listeners.add(listener);
    return listener;
  }

  owns(listener: Listener): boolean {
    return this.#listeners.has(listener);
  }

  /** Accepts nobody until the next `listen`; the streams there are stay. */
  async stopListening(): Promise<void> {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#listeningSince++;
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  /** Accepts nobody from now on, and closes the streams there are. */
  shutDown(now: Now): Promise<void> {
    this.#isShut = true;
    for (const stream of this.#streams.values()) this.close(stream, now);
    return this.stopListening();
  }

  // --- What the network reports

  accepted(id: StreamId, listener: Listener, remote: Endpoint, now: Now): void {
    const { network, log, port } = this.#parts;
    if (!this.#listeners.has(listener)) {
      network.reset(id);
      return;
    }
    const leaving = this.#halfOpen.add(this.add(id, remote, now));
    if (leaving === undefined) return;
    log.warn(now.elapsedMs, `${leaving.name} was closed: too many connections to the ${port} have not introduced themselves.`, {
      event: 'peer.flood',
      address: leaving.name,
    });
    this.drop(leaving, now);
  }

  /** Takes what belongs to these streams out of the batch and leaves the rest alone. */
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
    // What it said before its end is heard before its end.
    if (stream.isStalled) stream.hasEnded = true;
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

  /** One that was dialled here. */
  add(id: StreamId, remote: Endpoint, now: Now): S {
    const stream = this.#owner.newStream(id, remote, now.elapsedMs);
    this.#streams.set(id, stream);
    return stream;
  }

  /** It is known whose it is. */
  opened(stream: S): void {
    this.#halfOpen.delete(stream);
    stream.stage = 'open';
  }

  /** It has more to say than it may in one go. */
  stall(stream: S): void {
    if (stream.isStalled) return;
    stream.isStalled = true;
    this.#stalled.push(stream);
    this.#parts.network.pause(stream.stream);
  }

  /** Gives another go to those that have more to say. Returns whether they still have. */
  resumeStalled(): boolean {
    const stalled = this.#stalled;
    if (stalled.length === 0) return false;
    this.#stalled = [];
    for (const stream of stalled) {
      if (!stream.isStalled) continue;
      stream.isStalled = false;
      this.#owner.resume(stream);
      if (!stream.isStalled) this.#parts.network.resume(stream.stream);
    }
    return this.#stalled.length > 0;
  }

  // --- Going away

  /** No more input; what was written goes out, then the end. */
  close(stream: S, now: Now): void {
    if (stream.stage === 'closing') return;
    this.#halfOpen.delete(stream);
    this.#owner.closing(stream);
    stream.stage = 'closing';
    stream.closingMs = now.elapsedMs;
    this.#closing.add(stream);
    if (!stream.isStalled) return;
    stream.isStalled = false;
    this.#parts.network.resume(stream.stream);
  }

  /** At once, with what waits. `closed` follows. */
  drop(stream: S, now: Now): void {
    this.close(stream, now);
    this.#closing.delete(stream);
    stream.discardOutput();
    this.#parts.network.reset(stream.stream);
  }

  /** Something has arrived over a stream that is closing. Not without end. */
  discard(stream: S, bytes: number, now: Now): void {
    stream.discardedBytes += bytes;
    if (stream.discardedBytes > discardedBytesMax) this.drop(stream, now);
  }

  /** Everything has been sent over a stream that is closing. */
  sendEnd(stream: S, now: Now): void {
    if (stream.endSent || !this.#closing.has(stream)) return;
    stream.endSent = true;
    stream.closingMs = now.elapsedMs;
    this.#parts.network.end(stream.stream);
  }

  // --- Time

  deadline(): Millis | undefined {
    let due = this.#halfOpen.deadline() ?? Infinity;
    for (const { closingMs } of this.#closing) due = Math.min(due, closingMs + lingerMs);
    return due === Infinity ? undefined : due;
  }

  /** Gives up on those whose time is over. */
  wake(now: Now): void {
    const { log, port, halfOpenTimeoutMs } = this.#parts;
    for (const stream of this.#halfOpen.takeDue(now.elapsedMs)) {
      log.warn(now.elapsedMs, `${stream.name} did not introduce itself within ${halfOpenTimeoutMs} ms to the ${port}, and was closed.`, {
        event: 'peer.half-open',
        address: stream.name,
        durationMs: halfOpenTimeoutMs,
      });
      this.drop(stream, now);
    }
    for (const stream of this.#closing) if (now.elapsedMs - stream.closingMs >= lingerMs) this.drop(stream, now);
  }
}
