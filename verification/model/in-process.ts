/**
 * A server core without a server: frames go in by a call, its output is split into messages, and
 * the log answers when the test says so. The core is described by its interface alone, so that
 * these harnesses can test any build of it.
 */
import { OpCode, Reader, Writer } from '@tskeeper/protocol';
import type { Message, OperationKind } from '@tskeeper/simulator';
import { decodeConnectResponse, decodeMessage, FrameCutter } from '@tskeeper/harness';

export interface Now {
  readonly elapsedMs: number;
  readonly wallMs: number;
}

export interface CnxnContext {
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localPort: number;
  readonly secure: boolean;
  readonly peerCertificate: Buffer | undefined;
}

/** The inputs of packages/core's Server. */
export interface CoreUnderTest {
  connect(cnxn: number, context: CnxnContext, now: Now): void;
  frame(cnxn: number, reader: Reader, now: Now): void;
  appended(zxid: number, now: Now): void;
  disconnected(cnxn: number, now: Now): void;
  wake(now: Now): void;
  deadline(): number | undefined;
}

/** Its outputs. */
export interface CoreOut {
  reply(cnxn: number): Writer;
  isFull(cnxn: number): boolean;
  close(cnxn: number, reason: string): void;
  append(zxid: number, bytes: Buffer, start: number, end: number): void;
}

export interface CoreSettings {
  readonly extendedTypesEnabled: boolean;
  readonly enforceQuota: boolean;
  readonly keeperExtensions: boolean;
  readonly superDigest: string | undefined;
  readonly tickTimeMs: number;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  readonly containerCheckIntervalMs: number;
}

export type MakeCore = (settings: CoreSettings, out: CoreOut, random: { uint32(): number }, now: Now) => CoreUnderTest;

export const coreSettings: CoreSettings = {
  extendedTypesEnabled: true,
  enforceQuota: false,
  keeperExtensions: true,
  superDigest: undefined,
  tickTimeMs: 2000,
  minSessionTimeoutMs: 4000,
  maxSessionTimeoutMs: 40_000,
  containerCheckIntervalMs: 60_000,
};

/** An entry of the log that is not acknowledged yet. */
export interface Append {
  readonly zxid: number;
  readonly session: bigint;
  readonly type: number;
  /** For a deleteContainer: the path. */
  readonly path: string | undefined;
  /** The tree digest after the record, if there is one of version 2. */
  readonly digest: bigint | undefined;
}

interface CnxnState {
  readonly cutter: FrameCutter;
  readonly kinds: Map<number, OperationKind>;
  readonly received: Message[];
  writer: Writer;
  handshakeDone: boolean;
  /** Replies to garbage belong to no request, so they are not read. */
  ignored: boolean;
}

const digestBytes = 12;

export class InProcessCore {
  readonly core: CoreUnderTest;
  readonly appends: Append[] = [];
  /** Closed by the core; `disconnected` has not been called yet. */
  readonly closing = new Set<number>();
  readonly #cnxns = new Map<number, CnxnState>();
  /** Connections with new output. */
  readonly #dirty = new Set<number>();
  /** Positioned on each frame in turn, as a port does: the core may not keep what it reads. */
  readonly #reader = new Reader();
  #lastZxid = 0;
  #lastCnxn = 0;
  elapsedMs = 5_000_000;
  wallMs = 1_700_000_000_000;

  constructor(makeCore: MakeCore, settings: CoreSettings, random: { uint32(): number }) {
    const out: CoreOut = {
      reply: (cnxn) => {
        this.#dirty.add(cnxn);
        return this.#cnxns.get(cnxn)?.writer ?? new Writer();
      },
      isFull: () => false,
      close: (cnxn) => {
        this.closing.add(cnxn);
        this.#dirty.add(cnxn);
      },
      // Everything is read at once here, so no output is ever full.
      append: (zxid, bytes, start, end) => this.#append(zxid, bytes.subarray(start, end)),
    };
    this.core = makeCore(settings, out, random, this.now());
  }

  now(): Now {
    return { elapsedMs: this.elapsedMs, wallMs: this.wallMs };
  }

  advance(ms: number): void {
    this.elapsedMs += ms;
    this.wallMs += ms;
  }

  connect(): number {
    const cnxn = ++this.#lastCnxn;
    const cutter = new FrameCutter();
    this.#cnxns.set(cnxn, { cutter, kinds: new Map(), received: [], writer: new Writer(), handshakeDone: false, ignored: false });
    const context = { remoteAddress: '127.0.0.1', remotePort: 40_000, localPort: 2181, secure: false, peerCertificate: undefined };
    this.core.connect(cnxn, context, this.now());
    return cnxn;
  }

  /** `frame` includes its length, as on the wire. */
  send(cnxn: number, frame: Buffer, answerTo?: { xid: number; kind: OperationKind }): void {
    if (answerTo !== undefined) this.#cnxns.get(cnxn)!.kinds.set(answerTo.xid, answerTo.kind);
    // The bytes are overwritten after the call, as a receive buffer is: anything kept without a
    // copy becomes visible.
    const bytes = Buffer.from(frame.subarray(4));
    this.core.frame(cnxn, this.#reader.wrap(bytes, 0, bytes.length), this.now());
    bytes.fill(0xee);
    this.settle();
  }

  /** Sends a frame whose answers are discarded. */
  sendRaw(cnxn: number, frame: Buffer): void {
    this.#cnxns.get(cnxn)!.ignored = true;
    this.send(cnxn, frame);
  }

  /** Reports to the core that its log is durable up to and including that zxid. */
  acknowledge(zxid: number): void {
    while (this.appends.length > 0 && this.appends[0]!.zxid <= zxid) this.appends.shift();
    this.core.appended(zxid, this.now());
    this.settle();
  }

  disconnect(cnxn: number): void {
    this.closing.delete(cnxn);
    this.core.disconnected(cnxn, this.now());
    this.#cnxns.delete(cnxn);
    this.settle();
  }

  /** Runs the turns that the core requests until it has nothing left to do. */
  settle(): void {
    for (let turns = 0; (this.core.deadline() ?? Infinity) <= this.elapsedMs; turns++) {
      if (turns > 100_000) throw new Error('the core requests turns without end');
      this.core.wake(this.now());
    }
    for (const cnxn of this.#dirty) this.#collect(cnxn);
    this.#dirty.clear();
  }

  /** What the connection has received since the last call. */
  takeReceived(cnxn: number): Message[] {
    return this.#cnxns.get(cnxn)?.received.splice(0) ?? [];
  }

  isOpen(cnxn: number): boolean {
    return this.#cnxns.has(cnxn) && !this.closing.has(cnxn);
  }

  #collect(cnxn: number): void {
    const line = this.#cnxns.get(cnxn);
    if (line === undefined) return;
    if (line.ignored) {
      line.writer = new Writer();
      return;
    }
    const bytes = Buffer.from(line.writer.written());
    line.writer.clear();
    for (const frame of line.cutter.push(bytes)) {
      if (line.handshakeDone) {
        line.received.push(decodeMessage(frame, (xid) => line.kinds.get(xid)!));
      } else {
        line.handshakeDone = true;
        line.received.push(decodeConnectResponse(frame));
      }
    }
    if (this.closing.has(cnxn)) line.received.push({ kind: 'closed' });
  }

  #append(zxid: number, bytes: Buffer): void {
    if (zxid !== this.#lastZxid + 1) throw new Error(`zxid ${zxid} was appended after ${this.#lastZxid}`);
    this.#lastZxid = zxid;
    const r = new Reader(bytes);
    const session = r.bigint64();
    r.int32();
    if (r.int64() !== zxid) throw new Error(`the txn header of zxid ${zxid} names another`);
    r.int64();
    const type = r.int32();
    const path = type === OpCode.deleteContainer ? r.ustring()! : undefined;
    const digestAt = bytes.length - digestBytes;
    const digest = bytes.readInt32BE(digestAt) === 2 ? bytes.readBigInt64BE(digestAt + 4) : undefined;
    this.appends.push({ zxid, session, type, path, digest });
  }
}
