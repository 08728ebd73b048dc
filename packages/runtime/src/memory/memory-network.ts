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
import type { EarlyAccept } from './early-accept.ts';

/** The part of a clock that the wire uses. */
export type WireScheduler = Pick<Clock, 'now' | 'after'>;

/** How bytes travel in one direction of a connection. Each value may be changed at any time. */
export interface PipeManners {
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

const defaultManners: PipeManners = { delayMs: 0, windowBytes: 1024 * 1024, pieceBytes: Infinity, pieceIntervalMs: 0 };
/** First of the ports for dialling sides, as in Linux. */
const firstEphemeralPort = 32_768;
/** Interval between two attempts of an early acceptor to reach a machine that does not answer. */
const knockIntervalMs: Millis = 100;

/** One direction of a connection. */
export class Pipe {
  readonly manners: PipeManners;
  #from: Side;
  #to: Side;
  readonly #scheduler: WireScheduler;
  /**
   * Sent and kept because the window is full: still the sender's memory, read when there is room.
   */
  #pending: { buffer: Buffer; start: number; end: number }[] = [];
  /** The sender knows that its buffer is kept, and has not been notified yet that it is free. */
  #owesDrained = false;
  /** Copied out of the sender's memory, in transit or waiting to be read. */
  readonly #travelling: { bytes: Buffer; arrivesMs: Millis }[] = [];
  #travellingBytes = 0;
  #lastArrivalMs: Millis = 0;
  /** The earliest time at which the next piece may be read. */
  #nextPieceMs: Millis = 0;
  #endAsked = false;
  #endArrivesMs: Millis | undefined;
  /** The receiving side has been notified of the end. */
  #endTold = false;
  #resetAt = Infinity;
  #held = false;
  /**
   * The sending side has reset the connection, and the other side cannot learn of it because
   * nothing passes.
   */
  #resetHeld = false;
  #dead = false;
  #armedForMs: Millis | undefined;
  /** Number of bytes delivered. */
  deliveredBytes = 0;

  constructor(from: Side, to: Side, manners: PipeManners, scheduler: WireScheduler) {
    this.#from = from;
    this.#to = to;
    this.manners = manners;
    this.#scheduler = scheduler;
  }

  get from(): Side {
    return this.#from;
  }

  get to(): Side {
    return this.#to;
  }

  /** An early acceptor had stood in for the far end, which has now been reached. */
  reachedFarEnd(place: Side, farEnd: Side): void {
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
  hold(): void {
    this.#held = true;
  }

  release(): void {
    this.#held = false;
    if (this.#resetHeld) this.tellReset();
    else this.#arm();
  }

  /**
   * The sending side has reset the connection: the other side learns of it as soon as anything
   * passes.
   */
  tellReset(): void {
    this.#resetHeld = this.#held;
    if (!this.#held) this.#scheduler.after(this.manners.delayMs, () => this.to.stack.lose(this.to, 'ECONNRESET'));
  }

  /** Whether sent bytes wait for room. */
  get isBlocked(): boolean {
    return this.#pending.length > 0;
  }

  /** Call this after a change of `manners`. */
  changed(): void {
    this.#fill();
    this.#arm();
  }

  /** Sends bytes; returns whether the sender's buffer is still needed. */
  send(buffer: Buffer, start: number, end: number): boolean {
    if (this.#dead || this.#endAsked || start === end) return false;
    this.#pending.push({ buffer, start, end });
    this.#fill();
    this.#owesDrained = this.#pending.length > 0;
    return this.#owesDrained;
  }

  end(): void {
    if (this.#dead || this.#endAsked) return;
    this.#endAsked = true;
    this.#fill();
  }

  die(): void {
    this.#dead = true;
    this.#pending = [];
    this.#travelling.length = 0;
    this.#travellingBytes = 0;
  }

  /** Delivers what has arrived; the receiving stack calls it in its turn. */
  take(add: (bytes: Buffer) => void): { readonly ended: boolean } {
    const { elapsedMs } = this.#scheduler.now();
    this.#armedForMs = undefined;
    let room = elapsedMs < this.#nextPieceMs ? 0 : this.manners.pieceBytes;
    while (!this.#dead && !this.#held && room > 0) {
      const head = this.#travelling[0];
      if (head === undefined || head.arrivesMs > elapsedMs) break;
      const count = Math.min(head.bytes.length, room, this.#resetAt - this.deliveredBytes);
      add(head.bytes.subarray(0, count));
      this.deliveredBytes += count;
      this.#travellingBytes -= count;
      room -= count;
      if (count === head.bytes.length) this.#travelling.shift();
      else head.bytes = head.bytes.subarray(count);
      if (room <= 0) this.#nextPieceMs = elapsedMs + this.manners.pieceIntervalMs;
      if (this.deliveredBytes >= this.#resetAt) {
        this.#break();
        break;
      }
    }
    this.#fill();
    const ended = !this.#dead && !this.#held && this.#travelling.length === 0 && (this.#endArrivesMs ?? Infinity) <= elapsedMs;
    if (ended) this.#endTold = true;
    else this.#arm();
    return { ended };
  }

  /** Moves bytes from the sender onto the wire, as far as the window allows. */
  #fill(): void {
    while (this.#pending.length > 0) {
      const head = this.#pending[0]!;
      const count = Math.min(head.end - head.start, this.manners.windowBytes - this.#travellingBytes);
      if (count <= 0) break;
      const bytes = Buffer.from(head.buffer.subarray(head.start, head.start + count));
      this.#travelling.push({ bytes, arrivesMs: this.#arrival() });
      this.#travellingBytes += count;
      this.from.stack.sentBytes += count;
      head.start += count;
      if (head.start === head.end) this.#pending.shift();
    }
    if (this.#owesDrained && this.#pending.length === 0) {
      this.#owesDrained = false;
      this.from.stack.noteDrained(this.from);
    }
    if (this.#endAsked && this.#pending.length === 0) this.#endArrivesMs ??= this.#arrival();
    this.#arm();
  }

  /** Never before bytes that were sent earlier. */
  #arrival(): Millis {
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#scheduler.now().elapsedMs + this.manners.delayMs);
    return this.#lastArrivalMs;
  }

  #arm(): void {
    if (this.#dead || this.#held || this.to.paused || this.to.gone) return;
    const next = this.#travelling[0]?.arrivesMs ?? (this.#endTold ? undefined : this.#endArrivesMs);
    if (next === undefined) return;
    const dueMs = this.#travelling.length > 0 ? Math.max(next, this.#nextPieceMs) : next;
    if (this.#armedForMs !== undefined && this.#armedForMs <= dueMs) return;
    this.#armedForMs = dueMs;
    this.to.stack.expect(this.to, dueMs - this.#scheduler.now().elapsedMs);
  }

  /** The receiving side resumes reading. */
  resume(): void {
    this.#armedForMs = undefined;
    this.#arm();
  }

  #break(): void {
    const { from, to } = this;
    from.stack.lose(from, 'ECONNRESET');
    to.stack.lose(to, 'ECONNRESET');
  }
}

/** One end of a connection. */
export class Side {
  readonly stack: MemoryNetwork;
  readonly stream: StreamId;
  readonly endpoint: Endpoint;
  out!: Pipe;
  in!: Pipe;
  /** False until the peer has been reached: before that nothing can be sent. */
  open = false;
  paused = false;
  /** This side has sent its end. */
  endSent = false;
  /** This side has been notified of the peer's end. */
  endSeen = false;
  /** `closed` is scheduled or has been delivered. */
  gone = false;

  constructor(stack: MemoryNetwork, stream: StreamId, endpoint: Endpoint) {
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
  readonly #stacks = new Map<string, MemoryNetwork>();
  readonly #names = new Map<string, readonly string[]>();
  readonly #cnxns = new Set<VirtualCnxn>();
  readonly #cuts = new Set<string>();
  /** The behaviour of new connections; called once per direction. */
  mannersOf: (from: string, to: string) => Partial<PipeManners> = () => ({});
  /** Whether an intermediary accepts in place of the dialled machine; called at each dial. */
  acceptsEarly: (from: string, to: string) => EarlyAccept | undefined = () => undefined;
  /**
   * Called for each dial that was accepted early and closed because the machine at the far end
   * refused or did not answer.
   */
  onEarlyClose: ((from: string, to: string, why: 'refused' | 'unanswered') => void) | undefined;

  constructor(scheduler: WireScheduler) {
    this.#scheduler = scheduler;
  }

  /** The stack of the node at this address; made at the first call. */
  stack(address: string): MemoryNetwork {
    let stack = this.#stacks.get(address);
    if (stack === undefined) this.#stacks.set(address, (stack = new MemoryNetwork(this, address, this.#scheduler)));
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
    this.forEachPipe(from, to, (pipe) => pipe.hold());
  }

  healOneWay(from: string, to: string): void {
    this.#cuts.delete(cutKey(from, to));
    this.forEachPipe(from, to, (pipe) => pipe.release());
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

  #manners(from: string, to: string): PipeManners {
    return { ...defaultManners, ...this.mannersOf(from, to) };
  }

  /** Connects a dialling side to the listener. */
  dial(side: Side, to: Endpoint): void {
    const { address } = side.endpoint;
    const early = this.acceptsEarly(address, to.address);
    if (early !== undefined) {
      this.#dialEarly(side, to, early);
      return;
    }
    const manners = (from: string, at: string): PipeManners => this.#manners(from, at);
    this.#scheduler.after(manners(address, to.address).delayMs, () => {
      // Read the manners now: they may have changed while the dial travelled.
      const [forward, backward] = [manners(address, to.address), manners(to.address, address)];
      if (side.gone || this.#isCut(address, to.address)) return;
      const stack = this.#stacks.get(to.address);
      if (stack?.isDark === true) return;
      const peer = stack?.accept(to, side.endpoint);
      if (peer === undefined) {
        this.#scheduler.after(backward.delayMs, () => side.stack.lose(side, stack === undefined ? 'EHOSTUNREACH' : 'ECONNREFUSED'));
        return;
      }
      const there = new Pipe(side, peer, forward, this.#scheduler);
      const back = new Pipe(peer, side, backward, this.#scheduler);
      side.out = peer.in = there;
      side.in = peer.out = back;
      peer.open = true;
      this.#cnxns.add({ dialer: side.endpoint, listener: peer.endpoint, forward: there, backward: back });
      peer.stack.announce(peer, side.endpoint);
      this.#scheduler.after(backward.delayMs, () => side.stack.reached(side));
    });
  }

  /**
   * Connects the dialling side to an intermediary at the near or the far end of the link, which
   * then dials for it.
   */
  #dialEarly(side: Side, to: Endpoint, early: EarlyAccept): void {
    const { address } = side.endpoint;
    const isNear = early.at === 'near end';
    const roundTripMs = this.#manners(address, to.address).delayMs + this.#manners(to.address, address).delayMs;
    this.#scheduler.after(isNear ? 0 : roundTripMs, () => {
      if (side.gone || (!isNear && !this.#isThere(address, to.address))) return;
      // Represents the far end until that has been reached. Nothing can be done to it.
      const place = new Side(this.stack(to.address), -1, to);
      place.gone = true;
      const forward = new Pipe(side, place, this.#manners(address, to.address), this.#scheduler);
      const backward = new Pipe(place, side, this.#manners(to.address, address), this.#scheduler);
      if (this.#cuts.has(cutKey(address, to.address))) forward.hold();
      if (this.#cuts.has(cutKey(to.address, address))) backward.hold();
      side.out = forward;
      side.in = backward;
      this.#cnxns.add({ dialer: side.endpoint, listener: to, forward, backward });
      side.stack.reached(side);
      const untilMs = this.#scheduler.now().elapsedMs + early.patienceMs;
      this.#scheduler.after(isNear ? forward.manners.delayMs : 0, () => this.#knock(side, place, early, untilMs));
    });
  }

  #knock(side: Side, place: Side, early: EarlyAccept, untilMs: Millis): void {
    if (side.gone) return;
    const { endpoint: to } = place;
    if (!this.#isThere(side.endpoint.address, to.address)) {
      if (this.#scheduler.now().elapsedMs >= untilMs) this.#closeEarly(side, place, early, 'unanswered');
      else this.#scheduler.after(knockIntervalMs, () => this.#knock(side, place, early, untilMs));
      return;
    }
    const farEnd = this.stack(to.address).accept(to, side.endpoint);
    if (farEnd === undefined) {
      const backMs = early.at === 'near end' ? side.in.manners.delayMs : 0;
      this.#scheduler.after(backMs + early.refusalMs, () => this.#closeEarly(side, place, early, 'refused'));
      return;
    }
    farEnd.in = side.out;
    farEnd.out = side.in;
    farEnd.open = true;
    farEnd.stack.announce(farEnd, side.endpoint);
    for (const pipe of [side.out, side.in]) pipe.reachedFarEnd(place, farEnd);
  }

  #closeEarly(side: Side, { endpoint }: Side, early: EarlyAccept, why: 'refused' | 'unanswered'): void {
    if (side.gone) return;
    this.onEarlyClose?.(side.endpoint.address, endpoint.address, why);
    // No cut lies between the dialling side and an intermediary at its own end.
    if (early.at === 'near end') side.in.release();
    if (early.refusal === 'reset') side.stack.lose(side, 'ECONNRESET');
    else side.in.end();
  }

  /** The machine at `to` answers a dial, by acceptance or refusal. */
  #isThere(from: string, to: string): boolean {
    return !this.#isCut(from, to) && this.#stacks.get(to)?.isDark !== true;
  }

  forget(side: Side): void {
    for (const cnxn of this.#cnxns) {
      if (cnxn.forward !== side.out && cnxn.backward !== side.out) continue;
      if (cnxn.forward.from.gone && cnxn.forward.to.gone) this.#cnxns.delete(cnxn);
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
export class MemoryNetwork implements Network {
  readonly address: string;
  readonly #wire: VirtualWire;
  readonly #scheduler: WireScheduler;
  #sink: NetworkSink | undefined;
  readonly #listeners = new Set<MemoryListener>();
  readonly #sides = new StreamTable<Side>();
  #nextPort = firstEphemeralPort;
  /** The machine is off: dials are not answered. */
  isDark = false;
  #ready = new Set<Side>();
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
    const side = this.#number({ address: this.address, port: this.#nextPort++ });
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
        side !== undefined && side.open && !side.gone
          ? side.out.send(batch.buffers[index]!, batch.starts[index]!, batch.ends[index]!)
          : false;
    }
  }

  end(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side === undefined || side.gone || side.endSent) return;
    if (!side.open) {
      this.reset(stream);
      return;
    }
    side.endSent = true;
    side.out.end();
    this.#closeIfBothEnded(side);
  }

  reset(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side === undefined || side.gone) return;
    // The other side may have accepted a connection that this side does not know to be open yet.
    side.out?.tellReset();
    this.lose(side, undefined);
  }

  pause(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side !== undefined) side.paused = true;
  }

  resume(stream: StreamId): void {
    const side = this.#sides.get(stream);
    if (side === undefined || !side.paused) return;
    side.paused = false;
    if (side.open && !side.gone) side.in.resume();
  }

  // --- For the wire

  accept(to: Endpoint, from: Endpoint): Side | undefined {
    for (const listener of this.#listeners) {
      if (listener.endpoint.port !== to.port || this.#sink === undefined) continue;
      const side = this.#number(listener.endpoint);
      this.#accepting.set(side, { listener, from });
      return side;
    }
    return undefined;
  }

  readonly #accepting = new Map<Side, { readonly listener: Listener; readonly from: Endpoint }>();

  announce(side: Side, from: Endpoint): void {
    const { listener } = this.#accepting.get(side)!;
    this.#accepting.delete(side);
    this.acceptedCount++;
    this.#started.accepted(side.stream, listener, from);
  }

  reached(side: Side): void {
    if (side.gone) return;
    side.open = true;
    this.#started.connected(side.stream);
    side.in.resume();
  }

  /** There will be something to read after this time. */
  expect(side: Side, delayMs: Millis): void {
    this.#scheduler.after(Math.max(0, delayMs), () => {
      this.#ready.add(side);
      if (this.#deliveryArmed) return;
      this.#deliveryArmed = true;
      // After everything that becomes ready at the same instant, so that it travels in one batch.
      this.#scheduler.after(0, () => this.#deliver());
    });
  }

  noteDrained(side: Side): void {
    this.#scheduler.after(0, () => {
      if (side.gone || side.out.isBlocked) return;
      this.#started.drained(side.stream);
      this.#closeIfBothEnded(side);
    });
  }

  lose(side: Side, error: string | undefined): void {
    if (side.gone) return;
    side.gone = true;
    if (side.in !== undefined) side.in.die();
    if (side.out !== undefined) side.out.die();
    this.#sayClosed(side, error);
  }

  /** Number of existing streams. */
  get streamCount(): number {
    return this.#sides.count;
  }

  get #started(): NetworkSink {
    if (this.#sink === undefined) throw new Error('the network was used before it was started');
    return this.#sink;
  }

  #number(endpoint: Endpoint): Side {
    return this.#sides.add((stream) => new Side(this, stream, endpoint));
  }

  #deliver(): void {
    this.#deliveryArmed = false;
    const ready = this.#ready;
    this.#ready = new Set();
    const batch = new ReceivedList();
    const ended: Side[] = [];
    for (const side of ready) {
      if (side.gone || side.paused || !side.open) continue;
      const taken = side.in.take((bytes) => {
        this.receivedBytes += bytes.length;
        batch.add(side.stream, bytes);
      });
      if (taken.ended && !side.endSeen) ended.push(side);
    }
    if (batch.count > 0) this.#started.received(batch);
    for (const side of ended) {
      if (side.gone || side.endSeen) continue;
      side.endSeen = true;
      this.#started.ended(side.stream);
      this.#closeIfBothEnded(side);
    }
  }

  #closeIfBothEnded(side: Side): void {
    if (!side.endSent || !side.endSeen || side.gone) return;
    // Bytes that this side has sent must still arrive, so its pipe lives until the peer has read to
    // the end.
    if (side.out.isBlocked) return;
    side.gone = true;
    this.#sayClosed(side, undefined);
  }

  #sayClosed(side: Side, error: string | undefined): void {
    this.#scheduler.after(0, () => {
      this.#started.closed(side.stream, error);
      this.#sides.delete(side.stream);
      this.#wire.forget(side);
    });
  }
}
