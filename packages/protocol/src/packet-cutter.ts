/**
 * Cuts the stream between a leader and a learner into packets, which bear no length of their own: where one ends is found out field by
 * field. In between the stream may be raw, since a snapshot follows the packet SNAP, and packets follow the snapshot.
 *
 * A packet that lies whole in the bytes that arrived is handed over where it lies. Only one that arrives in pieces is put together in
 * memory of our own (kept-bytes.ts), and what has been found out about it is not found out again.
 *
 * A consumer that cannot take more says so. What is left then waits here, and is counted, until `resume`.
 */
import { KeptBytes } from './kept-bytes.ts';
import { ProtocolError } from './protocol-error.ts';
import { authinfoIdBytesMin, packetHeadBytes, PacketView } from './quorum-packet.ts';

export interface PacketConsumer {
  /** Takes one packet. The view and its bytes are valid during the call only. False means: no more for now. */
  packet(packet: PacketView): boolean;
  /**
   * Takes bytes of a raw part, and returns where those begin that it did not take. To go back to packets it calls `endRaw` and returns
   * the end of the raw part. Otherwise leaving bytes means: no more for now.
   */
  raw(bytes: Buffer, start: number, end: number): number;
}

const dataLengthAt = 12;
const intBytes = 4;

export class PacketCutter {
  readonly #lengthMax: number;
  readonly #view: PacketView;
  readonly #kept = new KeptBytes();
  #stopped = false;
  #closed = false;
  #raw = false;

  // What is known of the packet that has begun to arrive. Positions count from its first byte.
  /** The packet has at least this many bytes; once `#isKnown`, just this many. */
  #needed = packetHeadBytes;
  #isKnown = false;
  /** Where authinfo begins; 0 while the length of the data is not known. */
  #authinfoAt = 0;
  /** Texts of authinfo whose length is not known yet; -1 while their number is not. */
  #textsLeft = -1;

  /**
   * `lengthMax` is jute.maxbuffer and its extra: the most bytes that the data of a packet may have, and its authinfo as a whole. Many
   * cutters may share one view, since it is only used while a packet is handed over.
   */
  constructor(lengthMax: number, view: PacketView = new PacketView(lengthMax)) {
    this.#lengthMax = lengthMax;
    this.#view = view;
  }

  /** Memory held for bytes that have arrived and are not handed over. */
  get retainedBytes(): number {
    return this.#kept.retainedBytes;
  }

  /** Whether the consumer has said no; until `resume`, whatever arrives is kept. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Whether what comes next is raw. */
  get isRaw(): boolean {
    return this.#raw;
  }

  /**
   * Takes what arrived and hands over what is complete with it. Returns false when the consumer has said no. Throws a ProtocolError at
   * what no packet may have; the stream has no meaning from there on. The bytes are the caller's again when this returns.
   */
  feed(chunk: Buffer, start: number, end: number, consumer: PacketConsumer): boolean {
    if (this.#closed) return false;
    if (this.#stopped) {
      this.#kept.keep(chunk, start, end);
      return false;
    }
    let at = this.#kept.length === 0 ? start : this.#completeKept(chunk, start, end, consumer);
    while (at < end && !this.#isHalted()) {
      const next = this.#handOver(chunk, at, end, consumer);
      if (next === -1) break;
      at = next;
    }
    if (this.#closed) return false;
    this.#kept.keep(chunk, at, end);
    return !this.#stopped;
  }

  /** From now on the stream is raw. Called while a packet is handed over, it holds from the byte behind that packet. */
  beginRaw(): void {
    this.#raw = true;
  }

  /** Packets again. Called while raw bytes are handed over, it holds from where the consumer says that it has not taken any more. */
  endRaw(): void {
    this.#raw = false;
  }

  /** Says no before the next packet, as a consumer can only do behind one. */
  stop(): void {
    this.#stopped = true;
  }

  /** Goes on with what was kept since the consumer said no. Returns false when it says no again. */
  resume(consumer: PacketConsumer): boolean {
    if (this.#closed) return false;
    this.#stopped = false;
    // Taken hold of before the calls: `close` during one lets go of them.
    const { bytes, end } = this.#kept;
    let at = this.#kept.start;
    while (at < end && !this.#isHalted()) {
      const next = this.#handOver(bytes, at, end, consumer);
      if (next === -1) break;
      at = next;
    }
    if (this.#closed) return false;
    this.#kept.start = at;
    this.#kept.giveBackSpare();
    return !this.#stopped;
  }

  /** Forgets everything; nothing is handed over any more. May be called while something is being handed over. */
  close(): void {
    this.#closed = true;
    this.#kept.release();
  }

  #isHalted(): boolean {
    return this.#stopped || this.#closed;
  }

  /** Hands over what comes next in [at, end), and returns where that ends; -1 when it is a packet that is not there as a whole. */
  #handOver(bytes: Buffer, at: number, end: number, consumer: PacketConsumer): number {
    if (this.#raw) {
      const next = consumer.raw(bytes, at, end);
      if (this.#raw && next < end) this.#stopped = true;
      return next;
    }
    if (!this.#isWhole(bytes, at, end)) return -1;
    const packetEnd = at + this.#needed;
    this.#forgetPacket();
    if (!consumer.packet(this.#view.place(bytes, at, packetEnd))) this.#stopped = true;
    return packetEnd;
  }

  /**
   * Adds to the packet that is kept in part just what it lacks, and hands it over when that was enough. Returns where the bytes begin
   * that are not part of it.
   */
  #completeKept(chunk: Buffer, start: number, end: number, consumer: PacketConsumer): number {
    const kept = this.#kept;
    let at = start;
    while (!this.#isWhole(kept.bytes, kept.start, kept.end)) {
      const taken = Math.min(this.#needed - kept.length, end - at);
      if (taken === 0) return at;
      kept.keep(chunk, at, at + taken);
      at += taken;
    }
    const { bytes, start: packetStart, end: packetEnd } = kept;
    kept.release();
    this.#handOver(bytes, packetStart, packetEnd, consumer);
    return at;
  }

  #forgetPacket(): void {
    this.#needed = packetHeadBytes;
    this.#isKnown = false;
    this.#authinfoAt = 0;
    this.#textsLeft = -1;
  }

  /**
   * Finds out as much as [start, end) tells of the packet that begins at `start`, going on from what was found out before, and says
   * whether the packet is there as a whole.
   */
  #isWhole(bytes: Buffer, start: number, end: number): boolean {
    while (!this.#isKnown) {
      if (end - start < this.#needed) return false;
      this.#learnMore(bytes, start);
    }
    return end - start >= this.#needed;
  }

  /** Reads the one length that is within what is needed and not read yet. */
  #learnMore(bytes: Buffer, start: number): void {
    if (this.#authinfoAt === 0) {
      const length = this.#length(bytes, start + dataLengthAt, 'of data');
      this.#authinfoAt = packetHeadBytes + length;
      this.#needed = this.#authinfoAt + intBytes;
      return;
    }
    const at = start + this.#needed - intBytes;
    if (this.#textsLeft === -1) {
      const count = bytes.readInt32BE(at);
      if (count * authinfoIdBytesMin > this.#lengthMax) throw new ProtocolError(`${this.#lengthMax} bytes of identities at most`, at);
      // A count below 0 acts as none.
      this.#textsLeft = 2 * Math.max(0, count);
    } else {
      this.#needed += this.#length(bytes, at, 'of an identity');
      this.#textsLeft--;
    }
    if (this.#textsLeft === 0) this.#isKnown = true;
    else this.#needed += intBytes;
    if (this.#needed - this.#authinfoAt - intBytes > this.#lengthMax) {
      throw new ProtocolError(`${this.#lengthMax} bytes of identities at most`, at);
    }
  }

  /** A length that is read at `at`; null has none. */
  #length(bytes: Buffer, at: number, of: string): number {
    const length = bytes.readInt32BE(at);
    if (length < -1 || length > this.#lengthMax) throw new ProtocolError(`0 to ${this.#lengthMax} bytes ${of}, not ${length}`, at);
    return Math.max(0, length);
  }
}
