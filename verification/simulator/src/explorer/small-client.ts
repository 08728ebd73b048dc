/**
 * The persistent client of a small world: it keeps its session from server to server, writes the
 * data of the root, and reads it with or without a sync before. What it sees is checked against the
 * history: see `Invariants`.
 */
import {
  type ConnectResponse,
  type Millis,
  operations,
  type OperationName,
  Reader,
  readConnectResponse,
  readReplyHeader,
  type SessionId,
  sessionHigh,
  sessionLow,
  type Sid,
  writeConnectRequest,
  writeRequestHeader,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { type Invariants, Violation } from './invariants.ts';
import type { MarkName } from './marks.ts';
import { putName, sessionName } from './txn-names.ts';

/** What it can request, by the second number of the choice `request`. */
export const clientRequests = ['put', 'sync and read', 'read'] as const;

interface Pending {
  readonly kind: 'put' | 'sync' | 'read';
  readonly xid: number;
  /** Of a put. */
  readonly name: string;
  /** For a read after a sync: the latest txn acknowledged to any client when the sync was sent. */
  readonly zxidMin: Zxid;
}

export class SmallClient {
  readonly #invariants: () => Invariants;
  readonly #hit: (mark: MarkName) => void;
  #session: SessionId = 0n;
  #passwd = Buffer.alloc(16);
  #lastZxid: Zxid = 0;
  /** The zxid of the latest put whose effect it has seen. */
  #seenPutZxid: Zxid = 0;
  #xid = 0;
  /** The server that it is connected to. */
  connectedTo: Sid | undefined;
  #isOpen = false;
  readonly #pending: Pending[] = [];

  constructor(invariants: () => Invariants, hit: (mark: MarkName) => void) {
    this.#invariants = invariants;
    this.#hit = hit;
  }

  get hasSession(): boolean {
    return this.#session !== 0n;
  }

  /** Whether it waits for nothing, and may send a request. */
  get isIdle(): boolean {
    return this.#isOpen && this.#pending.length === 0;
  }

  /** The frame with which it connects to a server. */
  connect(sid: Sid, timeOut: Millis): Buffer {
    this.disconnected();
    this.connectedTo = sid;
    const { hasSession } = this;
    if (hasSession) this.#hit('session reconnects');
    const request = { protocolVersion: 0, lastZxidSeen: this.#lastZxid, timeOut, sessionId: this.#session, passwd: this.#passwd };
    return written((writer) => writeConnectRequest(writer, { ...request, readOnly: false }));
  }

  /** The frames of a request. `write` numbers a put. */
  request(what: (typeof clientRequests)[number], write: number): Buffer[] {
    const atLeast = this.#invariants().acknowledgedZxid;
    if (what === 'put')
      return [this.#frame('put', 'setData', { path: '/', data: Buffer.from(putName(write)), version: -1 }, 0, putName(write))];
    const read = (from: Zxid) => this.#frame('read', 'getData', { path: '/', watch: false }, from);
    return what === 'read' ? [read(0)] : [this.#frame('sync', 'sync', { path: '/' }, 0), read(atLeast)];
  }

  #frame(kind: Pending['kind'], operation: OperationName, record: unknown, zxidMin: Zxid, name = ''): Buffer {
    const xid = ++this.#xid;
    this.#pending.push({ kind, xid, name, zxidMin });
    const { opCode, request } = operations[operation];
    return written((writer) => {
      writeRequestHeader(writer, { xid, type: opCode });
      (request.write as (to: Writer, value: unknown) => void)(writer, record);
    });
  }

  /** Processes what a server has sent. */
  received(bytes: Buffer): void {
    const reader = new Reader(bytes);
    while (reader.remaining > 0) {
      const length = reader.int32();
      const frame = new Reader(bytes, reader.offset, reader.offset + length);
      reader.offset += length;
      if (this.#isOpen) this.#onReply(frame);
      else this.#onConnectResponse(readConnectResponse(frame));
    }
  }

  #onConnectResponse({ timeOut, sessionId, passwd }: ConnectResponse): void {
    if (timeOut === 0 || (this.hasSession && sessionId !== this.#session)) {
      throw new Violation(
        'AcknowledgedIsCommitted',
        `${this.connectedTo} reports that the session of a client has expired, but nothing has ended it`,
      );
    }
    if (!this.hasSession) this.#invariants().clientAcknowledged(sessionName(sessionHigh(sessionId), sessionLow(sessionId)));
    this.#isOpen = true;
    this.#session = sessionId;
    this.#passwd = Buffer.from(passwd ?? []);
  }

  #onReply(frame: Reader): void {
    const { zxid, xid, err } = readReplyHeader(frame);
    const pending = this.#pending.shift();
    if (pending?.xid !== xid)
      throw new Violation('ReadsMatchHistory', `a client expected the reply to xid ${pending?.xid}, and received that to ${xid}`);
    if (err !== 0) throw new Violation('ReadsMatchHistory', `a client's ${pending.kind} fails with ${err}`);
    const invariants = this.#invariants();
    if (zxid < this.#lastZxid)
      throw new Violation('NothingRolledBack', `a client saw ${this.#lastZxid.toString(16)}, and then ${zxid.toString(16)}`);
    this.#lastZxid = zxid;
    if (pending.kind === 'put') {
      invariants.clientAcknowledged(pending.name);
      this.#seenPutZxid = zxid;
    } else if (pending.kind === 'read') {
      const { data } = operations.getData.reply.read(frame);
      const name = Buffer.from(data ?? []).toString();
      if (zxid < pending.zxidMin) {
        throw new Violation(
          'SyncThenRead',
          `a read after a sync shows ${zxid.toString(16)}, but ${pending.zxidMin.toString(16)} was acknowledged before`,
        );
      }
      this.#hit(pending.zxidMin > 0 ? 'read after sync' : 'read without sync');
      const shown = invariants.clientRead(name, zxid);
      if (shown < this.#seenPutZxid) throw new Violation('NothingRolledBack', `a client reads "${name}", but has seen a later put`);
      this.#seenPutZxid = shown;
    }
  }

  /** The connection is lost; its requests may have been carried out or not. */
  disconnected(): void {
    this.connectedTo = undefined;
    this.#isOpen = false;
    this.#pending.length = 0;
  }

  fingerprint(to: Fingerprint): void {
    to.text(`${this.connectedTo} ${this.#isOpen} ${this.#session}`);
    for (const number of [this.#lastZxid, this.#seenPutZxid, this.#xid, this.#pending.length]) to.number(number);
    for (const { kind, xid, zxidMin } of this.#pending) {
      to.text(kind);
      to.number(xid);
      to.number(zxidMin);
    }
  }
}

function written(write: (writer: Writer) => void): Buffer {
  const writer = new Writer(64);
  write(writer);
  return Buffer.from(writer.written());
}
