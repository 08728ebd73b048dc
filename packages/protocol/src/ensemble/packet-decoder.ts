/**
 * Cuts the stream between a leader and a learner into packets, which have no length prefix: the end
 * of one is found field by field. In between the stream may be raw, since a snapshot follows the
 * packet SNAP, and packets follow the snapshot.
 *
 * A packet that is complete in the received bytes is delivered in place. Only a packet that arrives
 * in pieces is assembled in memory of our own (pending-bytes.ts), and fields already decoded are
 * not decoded again.
 *
 * A consumer that cannot take more returns false. The remaining bytes then wait here, and are
 * counted, until `resume`.
 */
import { PendingBytes } from '../jute/pending-bytes.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import { authinfoIdBytesMin, packetHeadBytes, PacketView } from './quorum-packet.ts';

export interface PacketConsumer {
  /**
   * Takes one packet. The view and its bytes are valid during the call only. False means: no more
   * for now.
   */
  packet(packet: PacketView): boolean;
  /**
   * Takes bytes of a raw part, and returns the offset of the first byte not taken. To return to
   * packets it calls `endRaw` and returns the end of the raw part. Otherwise bytes not taken mean:
   * no more for now.
   */
  raw(bytes: Buffer, start: number, end: number): number;
}

const dataLengthAt = 12;
const intBytes = 4;

export class PacketDecoder {
  readonly #lengthMax: number;
  readonly #view: PacketView;
  readonly #pending = new PendingBytes();
  #paused = false;
  #closed = false;
  #raw = false;

  // State of the incomplete packet. Positions count from its first byte.
  /** Minimum length of the packet; its length once `#isLengthKnown`. */
  #lengthMin = packetHeadBytes;
  #isLengthKnown = false;
  /** Position of authinfo; 0 while the length of the data is unknown. */
  #authinfoAt = 0;
  /** Number of texts in authinfo whose length is not known yet; -1 while their count is unknown. */
  #textsLeft = -1;

  /**
   * `lengthMax` is jute.maxbuffer and its extra: the maximum size of the data of a packet, and of
   * its authinfo as a whole. Many cutters may share one view, since it is only used while a packet
   * is delivered.
   */
  constructor(lengthMax: number, view: PacketView = new PacketView(lengthMax)) {
    this.#lengthMax = lengthMax;
    this.#view = view;
  }

  /** Memory held for bytes that have arrived and are not delivered. */
  get retainedBytes(): number {
    return this.#pending.retainedBytes;
  }

  /** Whether the consumer has stopped; until `resume`, all input is kept. */
  get isPaused(): boolean {
    return this.#paused;
  }

  /** Whether the next bytes are raw. */
  get isRaw(): boolean {
    return this.#raw;
  }

  /**
   * Takes received bytes and delivers everything complete. Returns false if the consumer has
   * stopped. Throws a ProtocolError for an invalid packet; the stream cannot be decoded after it.
   * The caller may reuse the bytes after the call.
   */
  feed(chunk: Buffer, start: number, end: number, consumer: PacketConsumer): boolean {
    if (this.#closed) return false;
    if (this.#paused) {
      this.#pending.append(chunk, start, end);
      return false;
    }
    let at = this.#pending.length === 0 ? start : this.#completePending(chunk, start, end, consumer);
    while (at < end && !this.#isHalted()) {
      const next = this.#handOver(chunk, at, end, consumer);
      if (next === -1) break;
      at = next;
    }
    if (this.#closed) return false;
    this.#pending.append(chunk, at, end);
    return !this.#paused;
  }

  /**
   * The stream is raw from now on. If called while a packet is delivered, from the byte after that
   * packet.
   */
  beginRaw(): void {
    this.#raw = true;
  }

  /**
   * The stream has packets from now on. If called while raw bytes are delivered, from the offset
   * that the consumer returns.
   */
  endRaw(): void {
    this.#raw = false;
  }

  /** Stops before the next packet, as a consumer does by returning false. */
  pause(): void {
    this.#paused = true;
  }

  /** Delivers the bytes kept since the consumer stopped. Returns false if it stops again. */
  resume(consumer: PacketConsumer): boolean {
    if (this.#closed) return false;
    this.#paused = false;
    // Read before the calls: `close` during one releases them.
    const { bytes, end } = this.#pending;
    let at = this.#pending.start;
    while (at < end && !this.#isHalted()) {
      const next = this.#handOver(bytes, at, end, consumer);
      if (next === -1) break;
      at = next;
    }
    if (this.#closed) return false;
    this.#pending.start = at;
    this.#pending.shrink();
    return !this.#paused;
  }

  /** Drops everything; no further packet is delivered. May be called during a delivery. */
  close(): void {
    this.#closed = true;
    this.#pending.release();
  }

  #isHalted(): boolean {
    return this.#paused || this.#closed;
  }

  /** Delivers the next part of [at, end), and returns its end; -1 for an incomplete packet. */
  #handOver(bytes: Buffer, at: number, end: number, consumer: PacketConsumer): number {
    if (this.#raw) {
      const next = consumer.raw(bytes, at, end);
      if (this.#raw && next < end) this.#paused = true;
      return next;
    }
    if (!this.#isWhole(bytes, at, end)) return -1;
    const packetEnd = at + this.#lengthMin;
    this.#forgetPacket();
    if (!consumer.packet(this.#view.wrap(bytes, at, packetEnd))) this.#paused = true;
    return packetEnd;
  }

  /**
   * Adds to the incomplete packet only the bytes that it lacks, and delivers it if it is complete.
   * Returns the offset of the first byte that does not belong to it.
   */
  #completePending(chunk: Buffer, start: number, end: number, consumer: PacketConsumer): number {
    const kept = this.#pending;
    let at = start;
    while (!this.#isWhole(kept.bytes, kept.start, kept.end)) {
      const taken = Math.min(this.#lengthMin - kept.length, end - at);
      if (taken === 0) return at;
      kept.append(chunk, at, at + taken);
      at += taken;
    }
    const { bytes, start: packetStart, end: packetEnd } = kept;
    kept.release();
    this.#handOver(bytes, packetStart, packetEnd, consumer);
    return at;
  }

  #forgetPacket(): void {
    this.#lengthMin = packetHeadBytes;
    this.#isLengthKnown = false;
    this.#authinfoAt = 0;
    this.#textsLeft = -1;
  }

  /**
   * Decodes as many lengths of the packet that begins at `start` as [start, end) contains,
   * continuing from earlier calls, and returns whether the packet is complete.
   */
  #isWhole(bytes: Buffer, start: number, end: number): boolean {
    while (!this.#isLengthKnown) {
      if (end - start < this.#lengthMin) return false;
      this.#readNextLength(bytes, start);
    }
    return end - start >= this.#lengthMin;
  }

  /** Decodes the next length, whose bytes are available. */
  #readNextLength(bytes: Buffer, start: number): void {
    if (this.#authinfoAt === 0) {
      const length = this.#length(bytes, start + dataLengthAt, 'of data');
      this.#authinfoAt = packetHeadBytes + length;
      this.#lengthMin = this.#authinfoAt + intBytes;
      return;
    }
    const at = start + this.#lengthMin - intBytes;
    if (this.#textsLeft === -1) {
      const count = bytes.readInt32BE(at);
      if (count * authinfoIdBytesMin > this.#lengthMax) throw new ProtocolError(`${this.#lengthMax} bytes of identities at most`, at);
      // A negative count means none.
      this.#textsLeft = 2 * Math.max(0, count);
    } else {
      this.#lengthMin += this.#length(bytes, at, 'of an identity');
      this.#textsLeft--;
    }
    if (this.#textsLeft === 0) this.#isLengthKnown = true;
    else this.#lengthMin += intBytes;
    if (this.#lengthMin - this.#authinfoAt - intBytes > this.#lengthMax) {
      throw new ProtocolError(`${this.#lengthMax} bytes of identities at most`, at);
    }
  }

  /** The length at `at`; 0 for null. */
  #length(bytes: Buffer, at: number, of: string): number {
    const length = bytes.readInt32BE(at);
    if (length < -1 || length > this.#lengthMax) throw new ProtocolError(`0 to ${this.#lengthMax} bytes ${of}, not ${length}`, at);
    return Math.max(0, length);
  }
}
