/**
 * One connection of the virtual network: two ends, and two pipes between them, one per direction. A
 * pipe delivers its bytes in order, and can be made late, narrow, slow or broken: that simulates
 * delays, slow readers, senders of single bytes, resets within a frame and partitions.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Endpoint, StreamId } from '../network.ts';

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

/** The stack of the machine at one end of a connection, as the wire and its pipes see it. */
export interface StreamStack {
  readonly address: string;
  /** Bytes that its streams have sent. */
  sentBytes: number;
  reportAccepted(side: StreamEnd, remote: Endpoint): void;
  reportConnected(side: StreamEnd): void;
  reportDrained(side: StreamEnd): void;
  scheduleRead(side: StreamEnd, delayMs: Millis): void;
  /** As `Network.reset`. */
  reset(stream: StreamId): void;
  /** `error`: a code of Node; undefined if the connection ended in order. */
  breakStream(side: StreamEnd, error: string | undefined): void;
}

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

  constructor(from: StreamEnd, to: StreamEnd, conditions: PipeConditions, scheduler: WireScheduler) {
    this.#from = from;
    this.#to = to;
    this.conditions = conditions;
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

  /** Nothing arrives until `heal`, and neither side is notified: an unplugged cable. */
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

  /** Call this after a change of `conditions`. */
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

  /** Delivers the bytes that have arrived; the receiving stack calls it when it reads. */
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
  readonly stack: StreamStack;
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

  constructor(stack: StreamStack, stream: StreamId, endpoint: Endpoint) {
    this.stack = stack;
    this.stream = stream;
    this.endpoint = endpoint;
  }
}
