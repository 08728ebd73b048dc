/**
 * Writes the messages to clients: reply headers, errors, watch events. Each is written straight
 * into the output of its connection, so the order of calls is the order on the wire.
 */
import { ErrorCode, type Millis, type Writer, Xid, Writer as ProtocolWriter, type Zxid } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { Observer } from '../observer.ts';
import type { ClientOutput } from '../client-output.ts';
import { bytesPerUnit } from '../step-budget.ts';

const lengthBytes = 4;
/** Finding the output, writing a header and counting the reply. */
const unitsPerFrame = 4;
/** xid, zxid, error. */
const replyHeaderBytes = 16;

export class ReplyWriter {
  readonly #out: ClientOutput;
  readonly #observer: Observer;
  /** Units spent on writing so far. A step measures its own length by the difference. */
  workUnits = 0;
  /** Offset of the open frame. One reply is written at a time. */
  #frame = 0;
  /** An event is the same for all watchers; it is encoded once. */
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

  /** Ends the reply opened last and counts it. */
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
    this.workUnits += unitsPerFrame + (writer.offset - this.#frame) / bytesPerUnit;
    cnxn.packetsSent++;
    cnxn.recordReply(opCode, xid, zxid, arrivedMs, nowMs);
    this.#observer.replied(cnxn.id, opCode, error, nowMs - arrivedMs, writer.offset - this.#frame, write);
  }

  /** Undoes `begin` and everything written since. */
  discard(writer: Writer): void {
    writer.offset = this.#frame;
  }

  /**
   * Writes the header of a reply whose body of `bodyBytes` follows in pieces, by `writePiece`, over
   * several steps.
   */
  beginLong(cnxn: Cnxn, xid: number, zxid: Zxid, error: number, bodyBytes: number): void {
    const writer = this.#out.reply(cnxn.id);
    writer.int32(replyHeaderBytes + bodyBytes);
    writer.int32(xid);
    writer.int64(zxid);
    writer.int32(error);
  }

  writePiece(cnxn: Cnxn, bytes: Buffer, length: number): void {
    this.#out.reply(cnxn.id).raw(bytes, 0, length);
    this.workUnits += length / bytesPerUnit;
  }

  /** Counts the reply after its last piece. */
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
    cnxn.recordReply(opCode, xid, zxid, arrivedMs, nowMs);
    this.#observer.replied(cnxn.id, opCode, error, nowMs - arrivedMs, lengthBytes + replyHeaderBytes + bodyBytes, write);
  }

  /** A reply without a body: an error, or an operation that returns nothing. */
  replyWithoutBody(
    cnxn: Cnxn,
    opCode: number,
    xid: number,
    zxid: Zxid,
    error: number,
    arrivedMs: Millis,
    nowMs: Millis,
    write: boolean,
  ): void {
    const writer = this.begin(cnxn, xid, zxid, error);
    this.end(cnxn, writer, opCode, xid, zxid, error, arrivedMs, nowMs, write);
  }

  /**
   * Writes the reply to a handshake and returns its size. A refusal has timeout 0, session 0 and a
   * password of zeros.
   */
  connectResponse(
    cnxn: Cnxn,
    timeoutMs: Millis,
    sessionHigh: number,
    sessionLow: number,
    password: Uint8Array,
    isServerReadOnly: boolean,
  ): number {
    const writer = this.#out.reply(cnxn.id);
    const frame = writer.beginFrame();
    writer.int32(0);
    writer.int32(timeoutMs);
    writer.int64Halves(sessionHigh, sessionLow);
    writer.buffer(password);
    // A client whose request lacks this byte would take it for the start of the next frame.
    if (cnxn.sentReadOnlyFlag) writer.boolean(isServerReadOnly);
    writer.endFrame(frame);
    cnxn.packetsSent++;
    return writer.offset - frame;
  }

  /**
   * Encodes an event; `event` then sends it to one connection at a time. `zxid` is -1 for events
   * that a client missed while it was disconnected.
   */
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

  sendEvent(cnxn: Cnxn): void {
    this.#out.reply(cnxn.id).raw(this.#event.bytes, 0, this.#event.offset);
    this.workUnits += unitsPerFrame + this.#event.offset / bytesPerUnit;
    cnxn.packetsSent++;
    this.#observer.eventSent(cnxn.id, this.#event.offset);
  }
}

/** The only state that a server sends in an event; clients create the others. */
const stateSyncConnected = 3;
