/**
 * A client of an ensemble in a test: it is connected to one server at a time, keeps its replies,
 * and never reconnects by itself.
 */
import {
  operations,
  type OperationName,
  Reader,
  readConnectResponse,
  readReplyBody,
  readReplyHeader,
  readWatcherEvent,
  type RequestOf,
  type SessionId,
  writeConnectRequest,
  Writer,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import type { CnxnId } from '../../src/index.ts';
import type { Listener, Node } from './ensemble.ts';

export interface Answer {
  readonly zxid: Zxid;
  readonly err: number;
  readonly body: unknown;
}

export interface Asked {
  readonly name: OperationName;
  readonly xid: number;
  answer: Answer | undefined;
}

const replyHeaderBytes = 16;

export class EnsembleClient implements Listener {
  node: Node | undefined;
  cnxn: CnxnId = -1;
  session: SessionId = 0n;
  password: Uint8Array = Buffer.alloc(16);
  timeoutMs = 0;
  /** The handshake has been answered, accepted or refused. */
  isAnswered = false;
  isClosed = false;
  lastZxid: Zxid = 0;
  /** Whether it accepts a read-only server; undefined for a client that does not know these. */
  readOnly: boolean | undefined = false;
  /** The answer to the last handshake, as received. */
  handshake: Buffer = Buffer.alloc(0);
  /** What the server said of itself in the handshake. */
  isServerReadOnly: boolean | undefined;
  readonly asked: Asked[] = [];
  readonly events: { readonly type: number; readonly path: string | null; readonly zxid: Zxid }[] = [];
  #nextXid = 1;

  /** Opens a session, or resumes its own. */
  connect(node: Node, timeOut = 2000): this {
    this.node = node;
    this.isAnswered = this.isClosed = false;
    this.cnxn = node.open(this);
    const writer = new Writer(64);
    const { session: sessionId, password: passwd, lastZxid: lastZxidSeen, readOnly } = this;
    writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen, timeOut, sessionId, passwd, readOnly });
    node.send(this.cnxn, writer);
    return this;
  }

  /** The connection breaks; the session is left alone. */
  break(): void {
    this.node!.hangUp(this.cnxn);
  }

  ask<Name extends OperationName>(name: Name, record: RequestOf<Name>): Asked {
    const operation = operations[name];
    const xid = name === 'ping' ? Xid.ping : this.#nextXid++;
    const writer = new Writer(64);
    writer.int32(xid);
    writer.int32(operation.opCode);
    operation.request.write(writer, record as never);
    const asked: Asked = { name, xid, answer: undefined };
    this.asked.push(asked);
    this.node!.send(this.cnxn, writer);
    return asked;
  }

  heard(reader: Reader): void {
    if (!this.isAnswered) {
      this.handshake = Buffer.from(reader.bytes.subarray(reader.offset, reader.limit));
      this.isAnswered = true;
      // Not a ConnectResponse: see `Handshakes`.
      if (reader.remaining === replyHeaderBytes) return;
      const { timeOut, sessionId, passwd, readOnly } = readConnectResponse(reader);
      this.isServerReadOnly = readOnly;
      this.timeoutMs = timeOut;
      if (timeOut > 0) {
        this.session = sessionId;
        this.password = Buffer.from(passwd ?? []);
      }
      return;
    }
    const { xid, zxid, err } = readReplyHeader(reader);
    if (zxid > 0) this.lastZxid = zxid;
    if (xid === Xid.notification) {
      this.events.push({ ...readWatcherEvent(reader), zxid });
      return;
    }
    const asked = this.asked.find((each) => each.xid === xid && each.answer === undefined);
    if (asked === undefined) throw new Error(`a reply to ${xid}, which was not sent`);
    const first = this.asked.find((each) => each.answer === undefined && each.name !== 'ping');
    if (asked.name !== 'ping' && first !== asked) throw new Error(`${asked.name} was answered before ${first?.name}`);
    asked.answer = { zxid, err, body: readReplyBody(reader, operations[asked.name], err) };
  }

  closed(): void {
    this.isClosed = true;
  }
}
