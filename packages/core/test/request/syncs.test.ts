/**
 * A sync is answered when everything committed by then has been applied here, and not before, even
 * if that takes many steps.
 */
import { ErrorCode } from '@tskeeper/protocol';
import {
  OpCode,
  operations,
  Reader,
  readReplyHeader,
  sessionHigh,
  sessionLow,
  writeConnectRequest,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { type ClientOutput, type TxnLog, Server, silentObserver } from '../../src/index.ts';
import { LocalSequencer, type SequencerDependencies } from '../../src/request/local-sequencer.ts';
import { LeaderForwarder } from '../../src/request/leader-forwarder.ts';
import type { PendingSync } from '../../src/pending/pending-request.ts';
import { bytesOf } from '../support/records.ts';
import { testOptions } from '../support/script.ts';

const now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };
const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
const client = 1;
const writer = 2;
const link = {
  request: () => undefined,
  revalidate: () => undefined,
  queuedBytes: 0,
  leader: 1,
  leaderAcceptsTransfers: true,
  leaderAcceptsKeeperWrites: false,
};

/** A server of which one step applies one txn. */
class Host implements ClientOutput, TxnLog {
  readonly core: Server;
  order!: LocalSequencer | LeaderForwarder;
  readonly syncs: PendingSync[] = [];
  readonly #outputs = new Map<number, Writer>();

  constructor(role: 'leader' | 'follower') {
    const lead = {
      sync: (sync: PendingSync) => void this.syncs.push(sync),
      learnersWatermarkMs: Infinity,
      unknownObserversAwaitedUntilMs: () => undefined,
      learnersPolledMs: Infinity,
      pollLearners: () => undefined,
      sid: 1,
      transferLeadership: () => 'not in step' as const,
      prepareReconfig: () => ErrorCode.ReconfigInProgress,
      reconfigProposed: () => undefined,
    };
    const orderOf = (parts: SequencerDependencies) =>
      (this.order = role === 'leader' ? new LocalSequencer(parts, this, now, lead) : new LeaderForwarder(role, link, parts));
    this.core = new Server({ ...testOptions, stepUnits: 4 }, this, { uint32: () => 7 }, silentObserver, now, orderOf);
    for (const cnxn of [client, writer]) {
      this.core.connect(cnxn, context, now);
      const hello = { protocolVersion: 0, lastZxidSeen: 0, timeOut: 10_000, sessionId: 0n, passwd: Buffer.alloc(16), readOnly: false };
      this.core.frame(cnxn, new Reader(bytesOf((to) => writeConnectRequest(to, hello))), now);
    }
  }
  reply(cnxn: number): Writer {
    const output = this.#outputs.get(cnxn) ?? new Writer();
    this.#outputs.set(cnxn, output);
    return output;
  }
  isFull(): boolean {
    return false;
  }
  close(): void {}
  append(): void {}

  ask(cnxn: number, xid: number, opCode: number, body: (to: Writer) => void): void {
    const frame = bytesOf((to) => {
      to.int32(xid);
      to.int32(opCode);
      body(to);
    });
    this.core.frame(cnxn, new Reader(frame), now);
  }

  sync(xid: number): void {
    this.ask(client, xid, OpCode.sync, (to) => to.ustring('/'));
  }

  /** The zxids of the replies to the client since the last call, by xid. */
  answers(): Record<number, Zxid> {
    const output = this.reply(client);
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

  /** Performs all remaining work. */
  settle(): void {
    while (this.core.deadline() === 0) this.core.wake(now);
  }
}

describe('a sync is answered after all committed txns have been applied', () => {
  it('on a learner that has not applied them when its leader answers', () => {
    const host = new Host('follower');
    const forwarding = host.order as LeaderForwarder;
    const [first, second] = [...host.core.inspect.cnxns()];
    const commit = (zxid: Zxid, session: bigint) => {
      const type = zxid <= 2 ? OpCode.createSession : OpCode.error;
      const header = { clientHigh: sessionHigh(session), clientLow: sessionLow(session), cxid: 0, zxid, time: 1, type };
      const txn = zxid <= 2 ? ({ kind: 'createSession', timeOut: 10_000 } as const) : ({ kind: 'error', err: -101 } as const);
      forwarding.commit({ zxid, header, txn, digest: undefined, bytes: 40, mayBeLocal: zxid <= 2 });
    };
    commit(1, first!.session);
    commit(2, second!.session);
    host.core.appended(2, now);
    host.settle();
    host.answers();
    host.sync(1);
    for (let zxid = 3; zxid <= 7; zxid++) commit(zxid, 9n);
    host.core.appended(7, now);
    expect(host.core.inspect.lastZxid()).toBeLessThan(7);
    host.core.synced(forwarding.takeSync() as PendingSync, now);
    host.settle();
    expect(host.answers()).toEqual({ 1: 7 });
  });

  it('on a leader that has not applied them when a quorum has answered', () => {
    const host = new Host('leader');
    host.core.appended(2, now);
    host.settle();
    host.answers();
    for (let xid = 1; xid <= 5; xid++) {
      host.ask(writer, xid, OpCode.setData, (to) => operations.setData.request.write(to, { path: '/', data: null, version: -1 }));
    }
    host.settle();
    host.core.appended(7, now);
    host.sync(1);
    expect(host.core.inspect.lastZxid()).toBeLessThan(7);
    host.core.synced(host.syncs[0]!, now);
    host.settle();
    expect(host.answers()).toEqual({ 1: 7 });
  });
});
