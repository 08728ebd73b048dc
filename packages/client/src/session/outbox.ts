/**
 * What goes out, and in what order answers are due: requests in line, each with a number of its own, and between them what the session has to say
 * itself. Bytes are gathered until they are taken, once a turn.
 *
 *     keep ──sendKept──┐                   unsent until its bytes are taken: certainly not carried out
 *     add ─────────────┴──> under way ──answered──> settled
 */
import { ErrorCode, OpCode, writeRequestHeader, Writer } from '@tskeeper/protocol';
import { type Outcome, Refusal } from '../keeper-error.ts';
import { Fifo } from './fifo.ts';
import type { Request } from './request.ts';

const xidMax = 0x7fffffff;
const frameLengthBytes = 4;
const outputBytesFirst = 1024;
/** More capacity than this is given back once it has been sent. */
const outputBytesKept = 64 * 1024;

export class Outbox<R extends Request> {
  readonly #packetBytesMax: number;
  #output = new Writer(outputBytesFirst);
  #xid = 0;
  #order = 0;
  /** `order` of the last request whose bytes have been taken. What lies behind has certainly not left. */
  #orderTaken = 0;
  /** Sent, or about to be, on this connection: in the order of their answers. */
  readonly #underWay = new Fifo<R>();
  /** For the next connection. */
  readonly #kept = new Fifo<R>();

  constructor(packetBytesMax: number) {
    this.#packetBytesMax = packetBytesMax;
  }

  /** Requests whose answers are still to come, those that nobody waits for included. */
  get underWay(): number {
    return this.#underWay.length;
  }

  get kept(): number {
    return this.#kept.length;
  }

  /** The place of the last request among all that were ever put in line. */
  get order(): number {
    return this.#order;
  }

  // --- Requests

  /** Puts a request in line. Throws a Refusal when it is too long, or what writing it throws; then it is as if it had never been made. */
  add(request: R): void {
    const start = this.#write(this.#output, request);
    this.#enlist(request, start);
  }

  /** The same for a request that is to wait for the next connection. */
  keep(request: R): void {
    const writer = new Writer();
    this.#write(writer, request);
    request.frame = writer.written();
    this.#kept.push(request);
  }

  /** Puts those in line that were kept, but for those that nobody waits for any more. */
  sendKept(): void {
    for (let request = this.#kept.shift(); request !== undefined; request = this.#kept.shift()) {
      if (request.withdrawn) continue;
      const start = this.#output.offset;
      this.#output.raw(request.frame!);
      request.frame = undefined;
      this.#enlist(request, start);
    }
  }

  /** Whose answer is due next. */
  get next(): R | undefined {
    return this.#underWay.peek();
  }

  answered(): void {
    this.#underWay.shift();
  }

  /** Takes all out of the line, with what is known of each. */
  *dropUnderWay(): Iterable<{ readonly request: R; readonly outcome: Outcome }> {
    for (let request = this.#underWay.shift(); request !== undefined; request = this.#underWay.shift()) {
      yield { request, outcome: request.order <= this.#orderTaken ? 'unknown' : 'notSent' };
    }
  }

  *dropKept(): Iterable<R> {
    for (let request = this.#kept.shift(); request !== undefined; request = this.#kept.shift()) yield request;
  }

  /** Appends the frame of a request, with an xid still to be filled in; returns where it begins. Leaves nothing behind when it fails. */
  #write(writer: Writer, request: R): number {
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
    const reason = `the request takes ${length} bytes, above maxPacketBytes ${this.#packetBytesMax}; servers close the connection of whoever sends more than their jute.maxbuffer`;
    throw new Refusal(ErrorCode.BadArguments, 'notSent', reason);
  }

  /** Gives the request whose frame begins at `start` its number and its place in line. */
  #enlist(request: R, start: number): void {
    request.xid = this.nextXid();
    request.order = ++this.#order;
    this.#output.patchInt32(start + frameLengthBytes, request.xid);
    this.#underWay.push(request);
  }

  // --- What the session says itself

  nextXid(): number {
    this.#xid = this.#xid === xidMax ? 1 : this.#xid + 1;
    return this.#xid;
  }

  /** A frame without a header: the handshake. */
  frame(write: (writer: Writer) => void): void {
    const start = this.#output.beginFrame();
    write(this.#output);
    this.#output.endFrame(start);
  }

  /** A frame with a header, and what `write` puts behind it. */
  say(xid: number, type: OpCode, write?: (writer: Writer) => void): void {
    const start = this.#output.beginFrame();
    writeRequestHeader(this.#output, { xid, type });
    write?.(this.#output);
    this.#output.endFrame(start);
  }

  // --- Bytes

  /** What has been written since; they are the taker's. undefined when there is nothing. */
  take(): Buffer | undefined {
    if (this.#output.offset === 0) return undefined;
    const bytes = Buffer.from(this.#output.written());
    if (this.#output.bytes.length > outputBytesKept) this.#output = new Writer(outputBytesFirst);
    else this.#output.clear();
    this.#orderTaken = this.#order;
    return bytes;
  }

  /** Throws away what was not taken. */
  clear(): void {
    this.#output.clear();
  }
}
