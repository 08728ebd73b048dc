/**
 * Records one connection at its client's end: what was sent and what came back. It sits between
 * client and network and changes nothing, so the evidence does not depend on the client.
 */
import {
  type ConnectRequest,
  ErrorCode,
  FrameDecoder,
  type Millis,
  operationOf,
  ProtocolError,
  Reader,
  readConnectRequest,
  readConnectResponse,
  readReplyBody,
  readReplyHeader,
  readWatcherEvent,
  Xid,
} from '@tskeeper/protocol';
import { type CnxnRecord, newCnxnRecord, type Recording, type Request } from './recording.ts';

/** xid, zxid and error, without a body. */
const replyHeaderBytes = 16;
const frameBytesMax = 0x7fffffff;
/** xids that many requests share; their replies may overtake others, or be overtaken. */
const sharedXids: ReadonlySet<number> = new Set([Xid.ping, Xid.auth, Xid.setWatches]);

export class CnxnTap {
  readonly record: CnxnRecord;
  readonly #outgoing = new FrameDecoder(frameBytesMax);
  readonly #incoming = new FrameDecoder(frameBytesMax);
  readonly #outstanding: Request[] = [];
  readonly #recording: Recording;

  /** A client has begun to connect. */
  constructor(recording: Recording, cnxn: Parameters<typeof newCnxnRecord>[0]) {
    this.#recording = recording;
    this.record = newCnxnRecord(cnxn);
  }

  /** The connection is established. One that never is leaves no record. */
  connected(key: string): void {
    this.record.key = key;
    this.#recording.cnxns.push(this.record);
  }

  closed(atMs: Millis): void {
    this.record.closedMs = atMs;
  }

  sent(bytes: Uint8Array, atMs: Millis): void {
    const { record } = this;
    if (record.malformedMs !== undefined) return;
    try {
      const copy = Buffer.from(bytes);
      this.#outgoing.feed(copy, 0, copy.length, (frame) => {
        this.#sentFrame(copyOf(frame), atMs);
        return true;
      });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      record.malformedMs = atMs;
    }
  }

  received(bytes: Uint8Array, atMs: Millis): void {
    try {
      const copy = Buffer.from(bytes);
      this.#incoming.feed(copy, 0, copy.length, (frame) => {
        this.#receivedFrame(copyOf(frame), atMs);
        return true;
      });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#recording.violations.push(`${this.record.client} received an unreadable frame: ${error.message}`);
    }
  }

  #sentFrame(reader: Reader, atMs: Millis): void {
    const { record } = this;
    if (record.handshake === undefined) {
      const handshake = readConnectRequest(reader);
      record.handshake = {
        ...handshake,
        passwd: handshake.passwd === null ? null : Buffer.from(handshake.passwd),
      } satisfies ConnectRequest;
      return;
    }
    const xid = reader.int32();
    const opCode = reader.int32();
    const operation = operationOf(opCode);
    const session = record.session ?? record.handshake.sessionId;
    const body = operation?.request.read(reader);
    const request: Request = { session, xid, opCode, name: operation?.name, record: body, sentMs: atMs, reply: undefined };
    this.#outstanding.push(request);
    record.requests.push(request);
  }

  /** The connection belongs to the others of its kind. */
  #isReadOnly(): void {
    const { cnxns, readOnlyCnxns } = this.#recording;
    cnxns.splice(cnxns.indexOf(this.record), 1);
    readOnlyCnxns.push(this.record);
  }

  #receivedFrame(reader: Reader, atMs: Millis): void {
    const { record } = this;
    if (record.session === undefined) {
      if (reader.remaining === replyHeaderBytes) {
        // A server in read-only mode that opens no sessions.
        record.session = 0n;
        record.handshakeMs = atMs;
        this.#isReadOnly();
        return;
      }
      const response = readConnectResponse(reader);
      if (response.readOnly === true) this.#isReadOnly();
      record.session = response.timeOut <= 0 ? 0n : response.sessionId;
      record.timeoutMs = response.timeOut;
      record.passwd = Buffer.from(response.passwd ?? []);
      record.handshakeMs = atMs;
      return;
    }
    const { xid, zxid, err } = readReplyHeader(reader);
    if (xid === Xid.notification) {
      const { type, path } = readWatcherEvent(reader);
      record.items.push({ kind: 'event', atMs, zxid, type, path });
      return;
    }
    const index = this.#outstanding.findIndex((request) => request.xid === xid && (sharedXids.has(xid) || request.reply === undefined));
    const [request] = index === -1 ? [] : this.#outstanding.splice(index, 1);
    if (request === undefined) {
      // A client that sent garbage may get a reply without a request.
      if (record.malformedMs === undefined)
        this.#recording.violations.push(`${record.client} received a reply without a request, with xid ${xid}`);
      return;
    }
    const operation = operationOf(request.opCode);
    const body = operation === undefined || err === ErrorCode.Unimplemented ? undefined : readReplyBody(reader, operation, err);
    request.reply = { atMs, zxid, err, body };
    record.items.push({ kind: 'reply', atMs, xid, zxid, request });
  }
}

/** Copies a frame: the records that are read from it are views, and they are kept. */
function copyOf(frame: Reader): Reader {
  return new Reader(Buffer.from(frame.bytes.subarray(frame.offset, frame.limit)));
}
