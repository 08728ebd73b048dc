/**
 * A network in memory. Several nodes' stacks share one wire; a stack is an ordinary `Network`.
 * Nothing happens by itself: every delivery is an entry in the given scheduler, so that one seed,
 * or one test, decides the order of everything.
 *
 * Each connection consists of two pipes, one per direction. A pipe delivers its bytes in order, and
 * can be made late, narrow, slow or broken: that simulates delays, slow readers, senders of single
 * bytes, resets within a frame and partitions.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Endpoint, Listener, ListenOptions, Network, NetworkSink, SendBatch, StreamId } from '../network.ts';
import { ReceivedList } from '../received-list.ts';
import { StreamTable } from '../stream-table.ts';
import type { AcceptingProxy } from './accepting-proxy.ts';

/** The part of a clock that the wire uses. */
export type WireScheduler = Pick<Clock, 'now' | 'after'>;

/** How bytes travel in one direction of a connection. Each value may be changed at any time. */
export interface PipeConditions {
  /** From send to arrival. */
  delayMs: Millis;
  /**
   * Bytes that the receiving side buffers unread; the rest waits at the sender. 0: nothing passes.
   */
  windowBytes: number;
  /** Largest number of bytes in one delivery. 1: byte by byte. */
  pieceBytes: number;
  /** Interval between two pieces. */
  pieceIntervalMs: Millis;
}

const defaultConditions: PipeConditions = { delayMs: 0, windowBytes: 1024 * 1024, pieceBytes: Infinity, pieceIntervalMs: 0 };
/** First of the ports for dialling sides, as in Linux. */
const firstEphemeralPort = 32_768;
/** Interval between two attempts of an early acceptor to reach a machine that does not answer. */
const proxyDialIntervalMs: Millis = 100;

/** One direction of a connection. */
export class Pipe {
  readonly conditions: PipeConditions;
  #from: StreamEnd;
  #to: StreamEnd;
  readonly #scheduler: WireScheduler;
  /**
   * Sent and kept because the window is full: still the sender's memory, read when there is room.
   */
  #pending: { buffer: Buffer; start: number; end: number }[] = [];
  /** The sender knows that its buffer is kept, and has not been notified yet that it is free. */
  #mustReportDrained = false;
  /** Copied out of the sender's memory, in transit or waiting to be read. */
  readonly #inTransit: { bytes: Buffer; arrivesMs: Millis }[] = [];
  #inTransitBytes = 0;
  #lastArrivalMs: Millis = 0;
  /** The earliest time at which the next piece may be read. */
  #nextPieceMs: Millis = 0;
  #isEndRequested = false;
  #endArrivesMs: Millis | undefined;
  /** The receiving side has been notified of the end. */
  #isEndDelivered = false;
  #resetAt = Infinity;
  #isCut = false;
  /**
   * The sending side has reset the connection, and the other side cannot learn of it because
   * nothing passes.
   */
  #isResetPending = false;
  #isDestroyed = false;
  #readScheduledMs: Millis | undefined;
  /** Number of bytes delivered. */
  deliveredBytes = 0;

  constructor(from: StreamEnd, to: StreamEnd, manners: PipeConditions, scheduler: WireScheduler) {
    this.#from = from;
    this.#to = to;
    this.conditions = manners;
    this.#scheduler = scheduler;
  }

  get from(): StreamEnd {
    return this.#from;
  }

  get to(): StreamEnd {
    return this.#to;
  }

  /** An early acceptor had stood in for the far end, which has now been reached. */
  reachedFarEnd(place: StreamEnd, farEnd: StreamEnd): void {
    if (this.#to === place) this.#to = farEnd;
    else this.#from = farEnd;
    this.resume();
  }

  /**
   * Resets the connection once `count` bytes have been delivered in this direction, possibly within
   * a frame.
   */
  resetAfter(count: number): void {
    this.#resetAt = count;
    if (this.deliveredBytes >= count) this.#break();
  }

  /** Nothing arrives until `release`, and neither side is notified: an unplugged cable. */
  cut(): void {
    this.#isCut = true;
  }

  heal(): void {
    this.#isCut = false;
    if (this.#isResetPending) this.sendReset();
    else this.#scheduleRead();
  }

  /**
   * The sending side has reset the connection: the other side learns of it as soon as anything
   * passes.
   */
  sendReset(): void {
    this.#isResetPending = this.#isCut;
    if (!this.#isCut) this.#scheduler.after(this.conditions.delayMs, () => this.to.stack.breakStream(this.to, 'ECONNRESET'));
  }

  /** Whether sent bytes wait for room. */
  get isBlocked(): boolean {
    return this.#pending.length > 0;
  }

  /** Call this after a change of `manners`. */
  conditionsChanged(): void {
    this.#fill();
    this.#scheduleRead();
  }

  /** Sends bytes; returns whether the sender's buffer is still needed. */
  send(buffer: Buffer, start: number, end: number): boolean {
    if (this.#isDestroyed || this.#isEndRequested || start === end) return false;
    this.#pending.push({ buffer, start, end });
    this.#fill();
    this.#mustReportDrained = this.#pending.length > 0;
    return this.#mustReportDrained;
  }

  end(): void {
    if (this.#isDestroyed || this.#isEndRequested) return;
    this.#isEndRequested = true;
    this.#fill();
  }

  destroy(): void {
    this.#isDestroyed = true;
    this.#pending = [];
    this.#inTransit.length = 0;
    this.#inTransitBytes = 0;
  }

  /** Delivers what has arrived; the receiving stack calls it in its turn. */
  read(add: (bytes: Buffer) => void): { readonly ended: boolean } {
    const { elapsedMs } = this.#scheduler.now();
    this.#readScheduledMs = undefined;
    let room = elapsedMs < this.#nextPieceMs ? 0 : this.conditions.pieceBytes;
    while (!this.#isDestroyed && !this.#isCut && room > 0) {
      const head = this.#inTransit[0];
      if (head === undefined || head.arrivesMs > elapsedMs) break;
      const count = Math.min(head.bytes.length, room, this.#resetAt - this.deliveredBytes);
      add(head.bytes.subarray(0, count));
      this.deliveredBytes += count;
      this.#inTransitBytes -= count;
      room -= count;
      if (count === head.bytes.length) this.#inTransit.shift();
      else head.bytes = head.bytes.subarray(count);
      if (room <= 0) this.#nextPieceMs = elapsedMs + this.conditions.pieceIntervalMs;
      if (this.deliveredBytes >= this.#resetAt) {
        this.#break();
        break;
      }
    }
    this.#fill();
    const ended = !this.#isDestroyed && !this.#isCut && this.#inTransit.length === 0 && (this.#endArrivesMs ?? Infinity) <= elapsedMs;
    if (ended) this.#isEndDelivered = true;
    else this.#scheduleRead();
    return { ended };
  }

  /** Moves bytes from the sender onto the wire, as far as the window allows. */
  #fill(): void {
    while (this.#pending.length > 0) {
      const head = this.#pending[0]!;
      const count = Math.min(head.end - head.start, this.conditions.windowBytes - this.#inTransitBytes);
      if (count <= 0) break;
      const bytes = Buffer.from(head.buffer.subarray(head.start, head.start + count));
      this.#inTransit.push({ bytes, arrivesMs: this.#arrival() });
      this.#inTransitBytes += count;
      this.from.stack.sentBytes += count;
      head.start += count;
      if (head.start === head.end) this.#pending.shift();
    }
    if (this.#mustReportDrained && this.#pending.length === 0) {
      this.#mustReportDrained = false;
      this.from.stack.reportDrained(this.from);
    }
    if (this.#isEndRequested && this.#pending.length === 0) this.#endArrivesMs ??= this.#arrival();
    this.#scheduleRead();
  }

  /** Never before bytes that were sent earlier. */
  #arrival(): Millis {
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#scheduler.now().elapsedMs + this.conditions.delayMs);
    return this.#lastArrivalMs;
  }

  #scheduleRead(): void {
    if (this.#isDestroyed || this.#isCut || this.to.isPaused || this.to.isClosed) return;
    const next = this.#inTransit[0]?.arrivesMs ?? (this.#isEndDelivered ? undefined : this.#endArrivesMs);
    if (next === undefined) return;
    const dueMs = this.#inTransit.length > 0 ? Math.max(next, this.#nextPieceMs) : next;
    if (this.#readScheduledMs !== undefined && this.#readScheduledMs <= dueMs) return;
    this.#readScheduledMs = dueMs;
    this.to.stack.scheduleRead(this.to, dueMs - this.#scheduler.now().elapsedMs);
  }

  /** The receiving side resumes reading. */
  resume(): void {
    this.#readScheduledMs = undefined;
    this.#scheduleRead();
  }

  #break(): void {
    const { from, to } = this;
    from.stack.breakStream(from, 'ECONNRESET');
    to.stack.breakStream(to, 'ECONNRESET');
  }
}

/** One end of a connection. */
export class StreamEnd {
  readonly stack: VirtualNetwork;
  readonly stream: StreamId;
  readonly endpoint: Endpoint;
  out!: Pipe;
  in!: Pipe;
  /** False until the peer has been reached: before that nothing can be sent. */
  isOpen = false;
  isPaused = false;
  /** This side has sent its end. */
  endSent = false;
  /** This side has been notified of the peer's end. */
  endSeen = false;
  /** `closed` is scheduled or has been delivered. */
  isClosed = false;

  constructor(stack: VirtualNetwork, stream: StreamId, endpoint: Endpoint) {
    this.stack = stack;
    this.stream = stream;
    this.endpoint = endpoint;
  }
}

/** A connection, for tests that disturb it. */
export interface VirtualCnxn {
  readonly dialer: Endpoint;
  readonly listener: Endpoint;
  /** From the dialling side to the listening side. */
  readonly forward: Pipe;
  readonly backward: Pipe;
}

export class VirtualWire {
  readonly #scheduler: WireScheduler;
  readonly #stacks = new Map<string, VirtualNetwork>();
  readonly #names = new Map<string, readonly string[]>();
  readonly #cnxns = new Set<VirtualCnxn>();
  readonly #cuts = new Set<string>();
  /** The behaviour of new connections; called once per direction. */
  conditionsOf: (from: string, to: string) => Partial<PipeConditions> = () => ({});
  /** Whether an intermediary accepts in place of the dialled machine; called at each dial. */
  proxyFor: (from: string, to: string) => AcceptingProxy | undefined = () => undefined;
  /**
   * Called for each dial that was accepted early and closed because the machine at the far end
   * refused or did not answer.
   */
  onProxyClose: ((from: string, to: string, why: 'refused' | 'unanswered') => void) | undefined;

  constructor(scheduler: WireScheduler) {
    this.#scheduler = scheduler;
  }

  /** The stack of the node at this address; made at the first call. */
  stack(address: string): VirtualNetwork {
    let stack = this.#stacks.get(address);
    if (stack === undefined) this.#stacks.set(address, (stack = new VirtualNetwork(this, address, this.#scheduler)));
    return stack;
  }

  /** What a name resolves to; with an empty list it does not resolve. */
  name(host: string, addresses: readonly string[]): void {
    this.#names.set(host, addresses);
  }

  addressesOf(host: string): readonly string[] {
    return this.#names.get(host) ?? (this.#stacks.has(host) ? [host] : []);
  }

  /** Open and half-open connections, oldest first. */
  get cnxns(): ReadonlySet<VirtualCnxn> {
    return this.#cnxns;
  }

  /**
   * Cuts the link between two nodes: bytes in transit stay in transit, and dials are not answered.
   */
  cut(a: string, b: string): void {
    this.cutOneWay(a, b);
    this.cutOneWay(b, a);
  }

  heal(a: string, b: string): void {
    this.healOneWay(a, b);
    this.healOneWay(b, a);
  }

  /**
   * Nothing that `from` sends arrives at `to` any more. The other direction still works, but new
   * connections fail, because they need both.
   */
  cutOneWay(from: string, to: string): void {
    this.#cuts.add(cutKey(from, to));
    this.forEachPipe(from, to, (pipe) => pipe.cut());
  }

  healOneWay(from: string, to: string): void {
    this.#cuts.delete(cutKey(from, to));
    this.forEachPipe(from, to, (pipe) => pipe.heal());
  }

  /** Visits the pipes from one node to the other. */
  forEachPipe(from: string, to: string, visit: (pipe: Pipe) => void): void {
    for (const { dialer, listener, forward, backward } of this.#cnxns) {
      if (dialer.address === from && listener.address === to) visit(forward);
      if (listener.address === from && dialer.address === to) visit(backward);
    }
  }

  #isCut(a: string, b: string): boolean {
    return this.#cuts.has(cutKey(a, b)) || this.#cuts.has(cutKey(b, a));
  }

  #conditions(from: string, to: string): PipeConditions {
    return { ...defaultConditions, ...this.conditionsOf(from, to) };
  }

  /** Connects a dialling side to the listener. */
  dial(side: StreamEnd, to: Endpoint): void {
    const { address } = side.endpoint;
    const early = this.proxyFor(address, to.address);
    if (early !== undefined) {
      this.#dialThroughProxy(side, to, early);
      return;
    }
    const manners = (from: string, at: string): PipeConditions => this.#conditions(from, at);
    this.#scheduler.after(manners(address, to.address).delayMs, () => {
      // Read the manners now: they may have changed while the dial travelled.
      const [forward, backward] = [manners(address, to.address), manners(to.address, address)];
      if (side.isClosed || this.#isCut(address, to.address)) return;
      const stack = this.#stacks.get(to.address);
      if (stack?.isPoweredOff === true) return;
      const peer = stack?.accept(to, side.endpoint);
      if (peer === undefined) {
        this.#scheduler.after(backward.delayMs, () => side.stack.breakStream(side, stack === undefined ? 'EHOSTUNREACH' : 'ECONNREFUSED'));
        return;
      }
      const there = new Pipe(side, peer, forward, this.#scheduler);
      const back = new Pipe(peer, side, backward, this.#scheduler);
      side.out = peer.in = there;
      side.in = peer.out = back;
      peer.isOpen = true;
      this.#cnxns.add({ dialer: side.endpoint, listener: peer.endpoint, forward: there, backward: back });
      peer.stack.reportAccepted(peer, side.endpoint);
      this.#scheduler.after(backward.delayMs, () => side.stack.reportConnected(side));
    });
  }

  /**
   * Connects the dialling side to an intermediary at the near or the far end of the link, which
   * then dials for it.
   */
  #dialThroughProxy(side: StreamEnd, to: Endpoint, early: AcceptingProxy): void {
    const { address } = side.endpoint;
    const isNear = early.location === 'near end';
    const roundTripMs = this.#conditions(address, to.address).delayMs + this.#conditions(to.address, address).delayMs;
    this.#scheduler.after(isNear ? 0 : roundTripMs, () => {
      if (side.isClosed || (!isNear && !this.#isReachable(address, to.address))) return;
      // Represents the far end until that has been reached. Nothing can be done to it.
      const proxyEnd = new StreamEnd(this.stack(to.address), -1, to);
      proxyEnd.isClosed = true;
      const forward = new Pipe(side, proxyEnd, this.#conditions(address, to.address), this.#scheduler);
      const backward = new Pipe(proxyEnd, side, this.#conditions(to.address, address), this.#scheduler);
      if (this.#cuts.has(cutKey(address, to.address))) forward.cut();
      if (this.#cuts.has(cutKey(to.address, address))) backward.cut();
      side.out = forward;
      side.in = backward;
      this.#cnxns.add({ dialer: side.endpoint, listener: to, forward, backward });
      side.stack.reportConnected(side);
      const untilMs = this.#scheduler.now().elapsedMs + early.dialTimeoutMs;
      this.#scheduler.after(isNear ? forward.conditions.delayMs : 0, () => this.#dialFarEnd(side, proxyEnd, early, untilMs));
    });
  }

  #dialFarEnd(side: StreamEnd, proxyEnd: StreamEnd, early: AcceptingProxy, untilMs: Millis): void {
    if (side.isClosed) return;
    const { endpoint: to } = proxyEnd;
    if (!this.#isReachable(side.endpoint.address, to.address)) {
      if (this.#scheduler.now().elapsedMs >= untilMs) this.#closeProxied(side, proxyEnd, early, 'unanswered');
      else this.#scheduler.after(proxyDialIntervalMs, () => this.#dialFarEnd(side, proxyEnd, early, untilMs));
      return;
    }
    const farEnd = this.stack(to.address).accept(to, side.endpoint);
    if (farEnd === undefined) {
      const backMs = early.location === 'near end' ? side.in.conditions.delayMs : 0;
      this.#scheduler.after(backMs + early.refusalMs, () => this.#closeProxied(side, proxyEnd, early, 'refused'));
      return;
    }
    farEnd.in = side.out;
    farEnd.out = side.in;
    farEnd.isOpen = true;
    farEnd.stack.reportAccepted(farEnd, side.endpoint);
    for (const pipe of [side.out, side.in]) pipe.reachedFarEnd(proxyEnd, farEnd);
  }

  #closeProxied(side: StreamEnd, { endpoint }: StreamEnd, early: AcceptingProxy, why: 'refused' | 'unanswered'): void {
    if (side.isClosed) return;
    this.onProxyClose?.(side.endpoint.address, endpoint.address, why);
    // No cut lies between the dialling side and an intermediary at its own end.
    if (early.location === 'near end') side.in.heal();
    if (early.refusal === 'reset') side.stack.breakStream(side, 'ECONNRESET');
    else side.in.end();
  }

  /** The machine at `to` answers a dial, by acceptance or refusal. */
  #isReachable(from: string, to: string): boolean {
    return !this.#isCut(from, to) && this.#stacks.get(to)?.isPoweredOff !== true;
  }

  forget(side: StreamEnd): void {
    for (const cnxn of this.#cnxns) {
      if (cnxn.forward !== side.out && cnxn.backward !== side.out) continue;
      if (cnxn.forward.from.isClosed && cnxn.forward.to.isClosed) this.#cnxns.delete(cnxn);
      return;
    }
  }
}

function cutKey(from: string, to: string): string {
  return `${from} ${to}`;
}

interface MemoryListener extends Listener {
  readonly address: string | undefined;
}

/** One node's stack. */
export class VirtualNetwork implements Network {
  readonly address: string;
  readonly #wire: VirtualWire;
  readonly #scheduler: WireScheduler;
  #sink: NetworkSink | undefined;
  readonly #listeners = new Set<MemoryListener>();
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

  constructor(wire: VirtualWire, address: string, scheduler: WireScheduler) {
    this.#wire = wire;
    this.address = address;
    this.#scheduler = scheduler;
  }

  // --- Network

  start(sink: NetworkSink): void {
    this.#sink = sink;
  }

  listen(options: ListenOptions): Promise<Listener> {
    for (const { endpoint } of this.#listeners) {
      if (options.port !== 0 && endpoint.port === options.port) {
        return Promise.reject(new Error(`port ${options.port} is already in use by this process. Choose another port.`));
      }
    }
    const endpoint: Endpoint = { address: this.address, port: options.port === 0 ? this.#nextPort++ : options.port };
    const listener: MemoryListener = {
      address: options.address,
      endpoint,
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
      const side = this.#newStream(listener.endpoint);
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
