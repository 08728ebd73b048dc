/**
 * A server in one role of an ensemble, without the others: what it sends them goes nowhere, and a test
 * calls it in their place. Its time stands still.
 */
import {
  ErrorCode,
  OpCode,
  Reader,
  readReplyHeader,
  type SessionId,
  sessionHigh,
  sessionLow,
  sessionPassword,
  writeConnectRequest,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { type ClientOutput, type CnxnId, type CoreOptions, type Now, Server, silentObserver, type TxnLog } from '../../src/index.ts';
import type { PendingSync } from '../../src/pending/pending-request.ts';
import { LeaderForwarder, type LeaderLink } from '../../src/request/leader-forwarder.ts';
import { LocalSequencer, type SequencerDependencies, type SequencerLeader } from '../../src/request/local-sequencer.ts';
import { bytesOf } from './records.ts';
import { testOptions } from './script.ts';

const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
const hello = { protocolVersion: 0, lastZxidSeen: 0, timeOut: 10_000, sessionId: 0n, passwd: Buffer.alloc(16), readOnly: false };

/** The way of a learner to its leader. */
export class IdleLink implements LeaderLink {
  queuedBytes = 0;
  readonly leader = 1;
  readonly leaderAcceptsTransfers = true;
  readonly leaderAcceptsKeeperWrites = false;
  request(): void {}
  revalidate(): void {}
}

/** What a leader does with other servers. */
class IdleLeader implements SequencerLeader {
  readonly sid = 1;
  readonly learnersWatermarkMs = Infinity;
  readonly learnersPolledMs = Infinity;
  readonly syncs: PendingSync[] = [];
  sync(sync: PendingSync): void {
    this.syncs.push(sync);
  }
  unknownObserversAwaitedUntilMs(): undefined {}
  pollLearners(): void {}
  transferLeadership(): 'not in step' {
    return 'not in step';
  }
  prepareReconfig(): ErrorCode {
    return ErrorCode.ReconfigInProgress;
  }
  reconfigProposed(): void {}
}

export class LoneServer implements ClientOutput, TxnLog {
  readonly now: Now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };
  readonly link = new IdleLink();
  readonly #leader = new IdleLeader();
  readonly core: Server;
  order!: LocalSequencer | LeaderForwarder;
  readonly #outputs = new Map<CnxnId, Writer>();

  constructor(role: 'leader' | 'follower', changed: Partial<CoreOptions> = {}) {
    const orderOf = (parts: SequencerDependencies) =>
      (this.order =
        role === 'leader' ? new LocalSequencer(parts, this, this.now, this.#leader) : new LeaderForwarder(role, this.link, parts));
    const options = { ...testOptions, ...changed };
    const isLearner = role === 'follower';
    this.core = new Server(options, this, { uint32: () => 7 }, silentObserver, this.now, orderOf, undefined, isLearner);
  }

  /** The syncs of clients of a leader. */
  get syncs(): readonly PendingSync[] {
    return this.#leader.syncs;
  }

  // ---- outputs

  reply(cnxn: CnxnId): Writer {
    const output = this.#outputs.get(cnxn) ?? new Writer();
    this.#outputs.set(cnxn, output);
    return output;
  }
  isFull(): boolean {
    return false;
  }
  close(): void {}
  append(): void {}

  /** The zxids of the replies to a client since the last call, by xid. */
  answers(cnxn: CnxnId): Record<number, Zxid> {
    const output = this.reply(cnxn);
    const reader = new Reader(Buffer.from(output.written()));
    output.clear();
    const found: Record<number, Zxid> = {};
    while (reader.remaining > 0) {
      const end = reader.int32() + reader.offset;
      const { xid, zxid } = readReplyHeader(reader);
      found[xid] = zxid;
      reader.offset = end;
    }
    return found;
  }

  // ---- clients

  /** A client opens a session of ten seconds, or resumes one. */
  connect(cnxn: CnxnId, sessionId: SessionId = 0n): void {
    const passwd = sessionId === 0n ? hello.passwd : sessionPassword(sessionHigh(sessionId), sessionLow(sessionId));
    this.core.connect(cnxn, context, this.now);
    this.#frame(cnxn, (to) => writeConnectRequest(to, { ...hello, sessionId, passwd }));
  }

  ask(cnxn: CnxnId, xid: number, opCode: number, body: (to: Writer) => void): void {
    this.#frame(cnxn, (to) => {
      to.int32(xid);
      to.int32(opCode);
      body(to);
    });
  }

  sessionOf(cnxn: CnxnId): SessionId {
    return [...this.core.inspect.cnxns()].find(({ id }) => id === cnxn)!.session;
  }

  #frame(cnxn: CnxnId, write: (to: Writer) => void): void {
    this.core.frame(cnxn, new Reader(bytesOf(write)), this.now);
  }

  // ---- a leader's txns, for a learner

  /** A createSession or an error txn is committed; `core.appended` follows. */
  commit(zxid: Zxid, type: typeof OpCode.createSession | typeof OpCode.error, session: SessionId, cxid = 0): void {
    const header = { clientHigh: sessionHigh(session), clientLow: sessionLow(session), cxid, zxid, time: 1, type };
    const txn =
      type === OpCode.createSession ? ({ kind: 'createSession', timeOut: 10_000 } as const) : ({ kind: 'error', err: -101 } as const);
    (this.order as LeaderForwarder).commit({ zxid, header, txn, digest: undefined, bytes: 40, mayBeLocal: true });
  }
}
