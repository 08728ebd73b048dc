/**
 * Outgoing requests, and the order in which their answers are due: each request gets an xid, and
 * frames of the session itself may lie between them. Bytes are collected, and taken once per turn.
 *
 *     keep ──sendWaiting──┐                   unsent until its bytes are taken: certainly not applied
 *     add ─────────────┴──> under way ──answered──> settled
 */
import { ErrorCode, OpCode, writeRequestHeader, Writer } from '@tskeeper/protocol';
import { type Outcome, RequestFailure } from '../keeper-error.ts';
import { Fifo } from '../fifo.ts';
import type { Request } from './request.ts';

const xidMax = 0x7fffffff;
const frameLengthBytes = 4;
const outputBytesFirst = 1024;
/** A larger buffer is freed after it has been sent. */
const outputBytesKept = 64 * 1024;

export class Outbox<R extends Request> {
  readonly #packetBytesMax: number;
  #output = new Writer(outputBytesFirst);
  #xid = 0;
  #ordinal = 0;
  /**
   * Ordinal of the last request whose bytes have been taken. Later requests have certainly not been
   * sent.
   */
  #ordinalTaken = 0;
  /** Requests sent, or about to be, on this connection, in the order of their answers. */
  readonly #pending = new Fifo<R>();
  /** Requests for the next connection. */
  readonly #waiting = new Fifo<R>();

  constructor(packetBytesMax: number) {
    this.#packetBytesMax = packetBytesMax;
  }

  /** Number of requests without an answer, including those whose caller no longer waits. */
  get pendingCount(): number {
    return this.#pending.length;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Position of the last request among all requests ever added. */
  get lastOrdinal(): number {
    return this.#ordinal;
  }

  // --- Requests

  /**
   * Adds a request. Throws a RequestFailure if it is too long, or what writing it throws; then
   * nothing is changed.
   */
  addPending(request: R): void {
    const start = this.#writeRequestFrame(this.#output, request);
    this.#addToPending(request, start);
  }

  /** Keeps a request for the next connection. Throws like `addPending`. */
  addWaiting(request: R): void {
    const writer = new Writer();
    this.#writeRequestFrame(writer, request);
    request.frame = writer.written();
    this.#waiting.push(request);
  }

  /** Adds the kept requests, except those whose caller no longer waits. */
  sendWaiting(): void {
    for (let request = this.#waiting.shift(); request !== undefined; request = this.#waiting.shift()) {
      if (request.isCancelled) continue;
      const start = this.#output.offset;
      this.#output.raw(request.frame!);
      request.frame = undefined;
      this.#addToPending(request, start);
    }
  }

  /** The request whose answer is due next. */
  get nextPending(): R | undefined {
    return this.#pending.peek();
  }

  answered(): void {
    this.#pending.shift();
  }

  /** Removes all requests, and returns what is known of each. */
  *dropPending(): Iterable<{ readonly request: R; readonly outcome: Outcome }> {
    for (let request = this.#pending.shift(); request !== undefined; request = this.#pending.shift()) {
      yield { request, outcome: request.ordinal <= this.#ordinalTaken ? 'unknown' : 'notSent' };
    }
  }

  *dropWaiting(): Iterable<R> {
    for (let request = this.#waiting.shift(); request !== undefined; request = this.#waiting.shift()) yield request;
  }

  /**
   * Appends the frame of a request, without its xid; returns where the frame starts. Changes
   * nothing if it fails.
   */
  #writeRequestFrame(writer: Writer, request: R): number {
    const start = writer.offset;
    try {
      writer.beginFrame();
      writeRequestHeader(writer, { xid: 0, type: request.opCode });
      request.write(writer);
      writer.endFrame(start);
    } catch (error) {
      writer.offset = start;
      throw error;
    }
    const length = writer.offset - start - frameLengthBytes;
    if (length <= this.#packetBytesMax) return start;
    writer.offset = start;
    const reason = `the request takes ${length} bytes, more than maxPacketBytes (${this.#packetBytesMax}); servers close a connection on a request above their jute.maxbuffer`;
    throw new RequestFailure(ErrorCode.BadArguments, 'notSent', reason);
  }

  /** Assigns the xid and the position of the request whose frame starts at `start`. */
  #addToPending(request: R, start: number): void {
    request.xid = this.nextXid();
    request.ordinal = ++this.#ordinal;
    this.#output.patchInt32(start + frameLengthBytes, request.xid);
    this.#pending.push(request);
  }

  // --- Frames of the session itself

  nextXid(): number {
    this.#xid = this.#xid === xidMax ? 1 : this.#xid + 1;
    return this.#xid;
  }

  /** A frame without a header: the handshake. */
  writeFrame(write: (writer: Writer) => void): void {
    const start = this.#output.beginFrame();
    write(this.#output);
    this.#output.endFrame(start);
  }

  /** A frame with a header, followed by what `write` appends. */
  writeRequest(xid: number, type: OpCode, write?: (writer: Writer) => void): void {
    const start = this.#output.beginFrame();
    writeRequestHeader(this.#output, { xid, type });
    write?.(this.#output);
    this.#output.endFrame(start);
  }

  // --- Bytes

  /** The bytes written since the last call, which the caller owns; undefined if there are none. */
  takeBytes(): Buffer | undefined {
    if (this.#output.offset === 0) return undefined;
    const bytes = Buffer.from(this.#output.written());
    if (this.#output.bytes.length > outputBytesKept) this.#output = new Writer(outputBytesFirst);
    else this.#output.clear();
    this.#ordinalTaken = this.#ordinal;
    return bytes;
  }

  /** Discards bytes that were not taken. */
  clearBytes(): void {
    this.#output.clear();
  }
}
