/**
 * Writes what clients hear: reply headers, errors, watch events. Everything goes straight into the connection's output, so the order of
 * calls is the order on the wire.
 */
import { ErrorCode, type Millis, type Writer, Xid, Writer as ProtocolWriter, type Zxid } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { Observer } from '../observer.ts';
import type { ClientOutput } from '../client-output.ts';
import { bytesPerUnit } from './budget.ts';

const lengthBytes = 4;
/** An output found, a header written, the books kept. */
const unitsPerFrame = 4;
/** xid, zxid, error. */
const replyHeaderBytes = 16;

export class Answers {
  readonly #out: ClientOutput;
  readonly #observer: Observer;
  /** Units spent on writing so far; by how much it grows tells how long a step has become. */
  work = 0;
  /** Start of the frame that is open. One reply is written at a time. */
  #frame = 0;
  /** An event is the same for all who hear it; it is encoded once. */
  readonly #event = new ProtocolWriter(128);

  constructor(out: ClientOutput, observer: Observer) {
    this.#out = out;
    this.#observer = observer;
  }

  /** Opens a reply: the caller writes the record, then calls `end`. */
  begin(cnxn: Cnxn, xid: number, zxid: Zxid, error: number): Writer {
    const writer = this.#out.reply(cnxn.id);
    this.#frame = writer.beginFrame();
    writer.int32(xid);
    writer.int64(zxid);
    writer.int32(error);
    return writer;
  }

  /** Ends the reply opened last, and counts it. */
  end(
    cnxn: Cnxn,
    writer: Writer,
    opCode: number,
    xid: number,
    zxid: Zxid,
    error: number,
    arrivedMs: Millis,
    nowMs: Millis,
    write: boolean,
  ): void {
    writer.endFrame(this.#frame);
    this.work += unitsPerFrame + (writer.offset - this.#frame) / bytesPerUnit;
    cnxn.packetsSent++;
    cnxn.answered(opCode, xid, zxid, arrivedMs, nowMs);
    this.#observer.replied(cnxn.id, opCode, error, nowMs - arrivedMs, writer.offset - this.#frame, write);
  }

  /** Undoes `begin` and all that was written since. */
  takeBack(writer: Writer): void {
    writer.offset = this.#frame;
  }

  /** The head of a reply whose body of so many bytes comes in pieces, by `piece`, over several steps. */
  beginLong(cnxn: Cnxn, xid: number, zxid: Zxid, error: number, bodyBytes: number): void {
    const writer = this.#out.reply(cnxn.id);
    writer.int32(replyHeaderBytes + bodyBytes);
    writer.int32(xid);
    writer.int64(zxid);
    writer.int32(error);
  }

  piece(cnxn: Cnxn, bytes: Buffer, length: number): void {
    this.#out.reply(cnxn.id).raw(bytes, 0, length);
    this.work += length / bytesPerUnit;
  }

  /** The last piece has been written: counts the reply. */
  endLong(
    cnxn: Cnxn,
    opCode: number,
    xid: number,
    zxid: Zxid,
    error: number,
    arrivedMs: Millis,
    nowMs: Millis,
    bodyBytes: number,
    write: boolean,
  ): void {
    cnxn.packetsSent++;
    cnxn.answered(opCode, xid, zxid, arrivedMs, nowMs);
    this.#observer.replied(cnxn.id, opCode, error, nowMs - arrivedMs, lengthBytes + replyHeaderBytes + bodyBytes, write);
  }

  /** A reply without a body: an error, or an operation that returns nothing. */
  header(cnxn: Cnxn, opCode: number, xid: number, zxid: Zxid, error: number, arrivedMs: Millis, nowMs: Millis, write: boolean): void {
    const writer = this.begin(cnxn, xid, zxid, error);
    this.end(cnxn, writer, opCode, xid, zxid, error, arrivedMs, nowMs, write);
  }

  /** The answer to a handshake; returns its size. A refusal has timeout 0, session 0 and a password of zeros. */
  handshake(cnxn: Cnxn, timeoutMs: Millis, sessionHigh: number, sessionLow: number, password: Uint8Array): number {
    const writer = this.#out.reply(cnxn.id);
    const frame = writer.beginFrame();
    writer.int32(0);
    writer.int32(timeoutMs);
    writer.halves(sessionHigh, sessionLow);
    writer.buffer(password);
    // A client that left the byte out of its request would take it for the beginning of the next frame.
    if (cnxn.speaksReadOnly) writer.boolean(false);
    writer.endFrame(frame);
    cnxn.packetsSent++;
    return writer.offset - frame;
  }

  /** Prepares an event; `event` then sends it to one connection after the other. `zxid` is -1 for catch-up events. */
  prepareEvent(eventType: number, path: string, zxid: Zxid): void {
    const event = this.#event;
    event.clear();
    const frame = event.beginFrame();
    event.int32(Xid.notification);
    event.int64(zxid);
    event.int32(ErrorCode.Ok);
    event.int32(eventType);
    event.int32(stateSyncConnected);
    event.ustring(path);
    event.endFrame(frame);
  }

  event(cnxn: Cnxn): void {
    this.#out.reply(cnxn.id).raw(this.#event.bytes, 0, this.#event.offset);
    this.work += unitsPerFrame + this.#event.offset / bytesPerUnit;
    cnxn.packetsSent++;
    this.#observer.eventSent(cnxn.id, this.#event.offset);
  }
}

/** The only state a server ever puts into an event; the others are made by clients. */
const stateSyncConnected = 3;
