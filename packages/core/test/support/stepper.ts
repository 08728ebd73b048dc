/**
 * Drives a standalone core one call at a time and counts: how many calls a piece of work took, the
 * most work in one call, and the bytes written. The state is filled directly, so that a test with a
 * hundred thousand znodes starts at once.
 */
import {
  OpCode,
  Reader,
  type ReplyHeader,
  readReplyHeader,
  readTxn,
  type SessionId,
  sessionHigh,
  sessionLow,
  sessionPassword,
  type TxnLogEntry,
  writeConnectRequest,
  Writer,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import {
  type CnxnId,
  type CoreOptions,
  type Now,
  type Observer,
  type ClientOutput,
  type TxnLog,
  silentObserver,
  Server,
} from '../../src/index.ts';
import { Replica, replicaOptions } from '../../src/request/replica.ts';
import { testOptions } from './script.ts';
import { workSoFar } from './work.ts';
import { standaloneSequencer } from '../../src/request/local-sequencer.ts';

export interface Received {
  readonly cnxn: CnxnId;
  readonly header: ReplyHeader;
  /** After the header. */
  readonly body: Reader;
}

export class Stepper implements ClientOutput, TxnLog {
  readonly core: Server;
  readonly replica: Replica;
  readonly #log: Buffer[] = [];
  #lastLogged: Zxid = 0;
  readonly closed: CnxnId[] = [];
  /** Frames received by clients, in order; assembled as a client would. */
  readonly received: Received[] = [];
  readonly #input = new Map<CnxnId, Buffer[]>();
  readonly #outputs = new Map<CnxnId, Writer>();
  readonly #greeted = new Set<CnxnId>();
  #acknowledged: Zxid = 0;
  now: Now = { elapsedMs: 1_000_000, wallMs: 1_700_000_000_000 };

  /** Calls since `reset`. */
  calls = 0;
  /** In one of them, if work is counted (work.ts). */
  mostWork = 0;
  /** Bytes written in one of them. */
  longestBytes = 0;

  constructor(fill: (replica: Replica) => void, changed: Partial<CoreOptions> = {}, observer: Observer = silentObserver) {
    const options = { ...testOptions, ...changed };
    const random = { uint32: () => 7 };
    this.replica = new Replica(replicaOptions(options, random));
    fill(this.replica);
    this.core = new Server(options, this, random, observer, this.now, standaloneSequencer(this), this.replica);
  }

  // ---- outputs

  reply(cnxn: CnxnId): Writer {
    let writer = this.#outputs.get(cnxn);
    if (writer === undefined) this.#outputs.set(cnxn, (writer = new Writer()));
    return writer;
  }

  /** Output above which a connection counts as full; it is sent at the end of a call. */
  fullBytes = Infinity;

  isFull(cnxn: CnxnId): boolean {
    return (this.#outputs.get(cnxn)?.offset ?? 0) > this.fullBytes;
  }

  close(cnxn: CnxnId): void {
    this.closed.push(cnxn);
  }

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#lastLogged = zxid;
    this.#log.push(Buffer.from(bytes.subarray(start, end)));
  }

  /** The txns appended to the log. */
  get logged(): TxnLogEntry[] {
    return this.#log.map((bytes) => readTxn(new Reader(bytes)));
  }

  // ---- calls

  reset(): void {
    this.calls = 0;
    this.mostWork = 0;
    this.longestBytes = 0;
    this.received.length = 0;
  }

  call(input: () => void): void {
    const before = workSoFar();
    input();
    this.mostWork = Math.max(this.mostWork, workSoFar() - before);
    this.calls++;
    let bytes = 0;
    for (const [cnxn, writer] of this.#outputs) {
      bytes += writer.offset;
      this.#take(cnxn, Buffer.from(writer.written()));
    }
    this.#outputs.clear();
    this.longestBytes = Math.max(this.longestBytes, bytes);
  }

  /** A client resumes a session of the state. */
  attach(cnxn: CnxnId, session: SessionId, timeOut = 10_000): void {
    const passwd = sessionPassword(sessionHigh(session), sessionLow(session));
    this.#connect(cnxn, session, passwd, timeOut);
  }

  /** A client creates a session. */
  connect(cnxn: CnxnId, timeOut = 10_000): void {
    this.#connect(cnxn, 0n, Buffer.alloc(16), timeOut);
    this.finish();
  }

  #connect(cnxn: CnxnId, sessionId: SessionId, passwd: Uint8Array, timeOut: number): void {
    const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
    const writer = new Writer();
    writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut, sessionId, passwd, readOnly: false });
    this.core.connect(cnxn, context, this.now);
    this.call(() => this.core.frame(cnxn, new Reader(Buffer.from(writer.written())), this.now));
  }

  disconnect(cnxn: CnxnId): void {
    this.#greeted.delete(cnxn);
    this.#input.delete(cnxn);
    this.call(() => this.core.disconnected(cnxn, this.now));
  }

  ask(cnxn: CnxnId, xid: number, opCode: number, write: (writer: Writer) => void): void {
    const writer = new Writer();
    writer.int32(xid);
    writer.int32(opCode);
    write(writer);
    // As in the port, the bytes are reused after the call.
    const bytes = Buffer.from(writer.written());
    this.call(() => this.core.frame(cnxn, new Reader(bytes), this.now));
    bytes.fill(0xee);
  }

  ping(cnxn: CnxnId): void {
    this.ask(cnxn, Xid.ping, OpCode.ping, () => {});
  }

  /** One more call, if work is due now; returns whether there was. */
  step(): boolean {
    if (this.#lastLogged > this.#acknowledged) {
      this.#acknowledged = this.#lastLogged;
      this.call(() => this.core.appended(this.#acknowledged, this.now));
      return true;
    }
    if ((this.core.deadline() ?? Infinity) > this.now.elapsedMs) return false;
    this.call(() => this.core.wake(this.now));
    return true;
  }

  /** Steps until no work is due. */
  finish(): void {
    while (this.step());
  }

  pass(ms: number): void {
    this.now = { elapsedMs: this.now.elapsedMs + ms, wallMs: this.now.wallMs + ms };
  }

  #take(cnxn: CnxnId, bytes: Buffer): void {
    const input = this.#input.get(cnxn) ?? [];
    this.#input.set(cnxn, input);
    if (bytes.length > 0) input.push(bytes);
    let have = input.reduce((sum, part) => sum + part.length, 0);
    while (have >= 4) {
      if (input[0]!.length < 4) input.splice(0, input.length, Buffer.concat(input));
      const length = input[0]!.readInt32BE(0);
      if (have < length + 4) return;
      const all = input.length === 1 ? input[0]! : Buffer.concat(input);
      const frame = new Reader(all, 4, length + 4);
      input.splice(0, input.length, all.subarray(length + 4));
      have -= length + 4;
      if (this.#greeted.has(cnxn)) this.received.push({ cnxn, header: readReplyHeader(frame), body: frame });
      else this.#greeted.add(cnxn);
    }
  }
}
