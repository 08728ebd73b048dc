/**
 * A client that changes the configuration. It uses the first session that any client has created,
 * connects to a server with it, asks for a configuration at once, and disconnects with the reply.
 */
import {
  ErrorCode,
  type Millis,
  operations,
  Reader,
  readConnectResponse,
  readReplyHeader,
  type SessionId,
  sessionHigh,
  sessionLow,
  writeConnectRequest,
  writeRequestHeader,
  Writer,
} from '@tskeeper/protocol';
import type { Fingerprint } from '@tskeeper/core/internal';
import { type Invariants, Violation } from './invariants.ts';
import type { MarkName } from './marks.ts';
import { reconfigName, sessionName } from './txn-names.ts';

export interface OperatorSession {
  readonly id: SessionId;
  readonly passwd: Buffer;
}

/** One connection of the operator. */
export interface OperatorCnxn {
  /** The name of the txn that it asks for. */
  readonly name: string;
  readonly xid: number;
  isOpen: boolean;
  /** Whether it is connected to a follower; only for marks. */
  isForwarded: boolean;
}

/** Why a configuration may be refused: another change is under way, or its voters are not in step. */
const refusals: ReadonlySet<number> = new Set([ErrorCode.ReconfigInProgress, ErrorCode.NewConfigNoQuorum]);

export class SmallOperator {
  readonly #invariants: () => Invariants;
  readonly #hit: (mark: MarkName) => void;
  session: OperatorSession | undefined;
  /** Number of requests so far. */
  requests = 0;

  constructor(invariants: () => Invariants, hit: (mark: MarkName) => void, session: OperatorSession | undefined, requests: number) {
    this.#invariants = invariants;
    this.#hit = hit;
    this.session = session;
    this.requests = requests;
  }

  /** A client has created a session. */
  sessionCreated(id: SessionId, passwd: Buffer): void {
    this.session ??= { id, passwd: Buffer.from(passwd) };
  }

  /** The frames with which it connects and asks for these members, and what it then waits for. */
  request(
    members: string,
    text: string,
    timeOut: Millis,
  ): { readonly connect: Buffer; readonly reconfig: Buffer; readonly cnxn: OperatorCnxn } {
    const { id, passwd } = this.session!;
    const xid = ++this.requests;
    const request = { protocolVersion: 0, lastZxidSeen: 0, timeOut, sessionId: id, passwd, readOnly: false };
    const connect = written((writer) => writeConnectRequest(writer, request));
    const reconfig = written((writer) => {
      writeRequestHeader(writer, { xid, type: operations.reconfig.opCode });
      operations.reconfig.request.write(writer, { joiningServers: null, leavingServers: null, newMembers: text, curConfigId: -1 });
    });
    const name = reconfigName(members, sessionName(sessionHigh(id), sessionLow(id)), xid);
    return { connect, reconfig, cnxn: { name, xid, isOpen: false, isForwarded: false } };
  }

  /** Processes what a server has sent. Returns whether it is the reply. */
  received(cnxn: OperatorCnxn, bytes: Buffer): boolean {
    const reader = new Reader(bytes);
    while (reader.remaining > 0) {
      const length = reader.int32();
      const frame = new Reader(bytes, reader.offset, reader.offset + length);
      reader.offset += length;
      if (cnxn.isOpen) {
        this.#onReply(cnxn, frame);
        return true;
      }
      const { timeOut } = readConnectResponse(frame);
      if (timeOut === 0)
        throw new Violation('AcknowledgedIsCommitted', 'the session of the operator has expired, but nothing has ended it');
      cnxn.isOpen = true;
    }
    return false;
  }

  #onReply({ name, xid, isForwarded }: OperatorCnxn, frame: Reader): void {
    const { xid: answered, err } = readReplyHeader(frame);
    if (answered !== xid)
      throw new Violation('ReadsMatchHistory', `the operator expected the reply to xid ${xid}, and received that to ${answered}`);
    if (err === 0) this.#invariants().clientAcknowledged(name);
    if (err === 0 && isForwarded) this.#hit('reconfiguration through a follower');
    if (refusals.has(err)) this.#hit('reconfiguration refused');
    else if (err !== 0) throw new Violation('NoProtocolError', `a reconfig fails with ${err}`);
  }

  fingerprint(to: Fingerprint): void {
    to.text(String(this.session?.id ?? 0));
    to.number(this.requests);
  }
}

function written(write: (writer: Writer) => void): Buffer {
  const writer = new Writer(64);
  write(writer);
  return Buffer.from(writer.written());
}
