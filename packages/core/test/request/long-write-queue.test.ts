/**
 * How long writes wait: in the order of all writes, only a limited amount of work may precede a
 * short one.
 */
import {
  ErrorCode,
  type TxnLogEntry,
  makeZxid,
  type MultiOp,
  OpCode,
  openAcl,
  operations,
  Reader,
  sessionHigh,
  type SessionId,
  sessionLow,
  writeConnectRequest,
  writeMultiRequest,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Identities } from '../../src/auth/identities.ts';
import { Cnxn } from '../../src/cnxn/cnxn.ts';
import { type CoreOptions, type ClientOutput, type TxnLog, Server, silentObserver } from '../../src/index.ts';
import type { SequencerDependencies } from '../../src/request/local-sequencer.ts';
import { LeaderForwarder, type LeaderLink } from '../../src/request/leader-forwarder.ts';
import { AddressLoad } from '../../src/pending/load.ts';
import { LongWriteQueue } from '../../src/request/long-write-queue.ts';
import type { ForwardedRequest } from '../../src/pending/proposal.ts';
import type { Replica } from '../../src/request/replica.ts';
import { bytesOf, checksOf, multiOf, shortWrite } from '../support/records.ts';
import { testOptions } from '../support/script.ts';
import { Stepper } from '../support/stepper.ts';
import { LoneLeader } from '../zab/lone-leader.ts';

/**
 * Units of a step. Before a long write starts, at most 133 parts of multis may be proposed and not
 * applied.
 */
const stepUnits = 100;
const partsOfLong = 200;
const channel = 2;

const checks = checksOf(partsOfLong);
const long = multiOf(checks);

describe('on a leader', () => {
  const [heavy, other, third] = [7, 8, 9];

  class Scene {
    readonly leader = new LoneLeader({ core: { stepUnits } });
    #created = 0;
    #last: Zxid = 0;

    constructor() {
      this.leader.serveWithFollower();
      for (const session of [heavy, other, third]) this.#open(session);
      this.proposed();
    }

    #open(session: number): void {
      const timeOut = Buffer.alloc(4);
      timeOut.writeInt32BE(40_000);
      this.leader.request(channel, session, 0, OpCode.createSession, timeOut);
      this.leader.settle();
      this.leader.ack(channel, makeZxid(4, ++this.#created));
      this.leader.settle();
    }

    long(session: number, cxid: number): void {
      this.leader.request(channel, session, cxid, OpCode.multi, long);
    }

    short(session: number, cxid: number): void {
      this.leader.request(channel, session, cxid, OpCode.setData, shortWrite);
    }

    /** Proposals since the last call: session and cxid. */
    proposed(): string[] {
      return this.txns().map(({ header }) => `${header.clientLow}-${header.cxid}`);
    }

    txns(): TxnLogEntry[] {
      this.leader.settle();
      const txns = LoneLeader.txns(this.leader.take(channel));
      this.#last = txns.at(-1)?.header.zxid ?? this.#last;
      return txns;
    }

    /** Commits and applies all proposals. */
    commit(): void {
      this.leader.ack(channel, this.#last);
    }
  }

  it('long writes wait while much is proposed and not applied, and short ones of other sessions do not wait for them', () => {
    const scene = new Scene();
    for (const cxid of [1, 2, 3]) scene.long(heavy, cxid);
    scene.long(third, 1);
    scene.short(other, 1);
    expect(scene.proposed()).toEqual(['7-1', '8-1']);
    scene.short(other, 2);
    expect(scene.proposed()).toEqual(['8-2']);
    scene.commit();
    // The session with the least usage is first.
    expect(scene.proposed()).toEqual(['9-1']);
    scene.commit();
    expect(scene.proposed()).toEqual(['7-2']);
    scene.commit();
    expect(scene.proposed()).toEqual(['7-3']);
  });

  it('requests that a session sends after a long write are processed after it, and before its next one', () => {
    const scene = new Scene();
    scene.long(other, 1);
    scene.long(heavy, 1);
    scene.short(heavy, 2);
    scene.short(heavy, 3);
    scene.long(heavy, 4);
    scene.short(heavy, 5);
    expect(scene.proposed()).toEqual(['8-1']);
    scene.short(heavy, 6);
    scene.commit();
    expect(scene.proposed()).toEqual(['7-1', '7-2', '7-3']);
    scene.short(heavy, 7);
    expect(scene.proposed()).toEqual([]);
    scene.commit();
    expect(scene.proposed()).toEqual(['7-4', '7-5', '7-6', '7-7']);
  });

  it('a long write whose session has moved meanwhile changes nothing when its turn comes', () => {
    const scene = new Scene();
    scene.long(other, 1);
    scene.long(heavy, 1);
    expect(scene.proposed()).toEqual(['8-1']);
    // It moves to another server.
    scene.leader.peer.server!.validateSession({ sessionHigh: 0, sessionLow: heavy }, 40_000, 77, scene.leader.now);
    scene.commit();
    expect(scene.txns()[0]?.txn).toEqual({ kind: 'error', err: -118 });
  });
});

describe('on a learner', () => {
  const now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };
  const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };

  class Follower implements ClientOutput, TxnLog {
    readonly core: Server;
    /** The cxids of forwarded requests. */
    readonly passedOn: number[] = [];
    #forwarding!: LeaderForwarder;
    #zxid = 0;

    constructor(cnxns: number) {
      const link: LeaderLink = {
        request: (_session, cxid) => void this.passedOn.push(cxid),
        revalidate: () => undefined,
        queuedBytes: 0,
        leader: 1,
        leaderAcceptsTransfers: true,
        leaderAcceptsKeeperWrites: false,
      };
      const options = { ...testOptions, stepUnits };
      const orderOf = (parts: SequencerDependencies) => (this.#forwarding = new LeaderForwarder('follower', link, parts));
      this.core = new Server(options, this, { uint32: () => 7 }, silentObserver, now, orderOf);
      for (let cnxn = 1; cnxn <= cnxns; cnxn++) {
        this.core.connect(cnxn, context, now);
        const hello = { protocolVersion: 0, lastZxidSeen: 0, timeOut: 10_000, sessionId: 0n, passwd: Buffer.alloc(16), readOnly: false };
        this.#frame(cnxn, (writer) => writeConnectRequest(writer, hello));
        this.commit(cnxn, 0, OpCode.createSession);
      }
      this.passedOn.length = 0;
    }

    reply(): Writer {
      return new Writer();
    }
    isFull(): boolean {
      return false;
    }
    close(): void {}
    append(): void {}

    ask(cnxn: number, xid: number, opCode: number, record: Buffer): void {
      this.#frame(cnxn, (writer) => {
        writer.int32(xid);
        writer.int32(opCode);
        writer.raw(record);
      });
    }

    commit(cnxn: number, cxid: number, type: number = OpCode.error): void {
      const { session } = [...this.core.inspect.cnxns()].find(({ id }) => id === cnxn)!;
      const zxid = ++this.#zxid;
      const header = { clientHigh: sessionHigh(session), clientLow: sessionLow(session), cxid, zxid, time: 1, type };
      const txn = type === OpCode.error ? ({ kind: 'error', err: -101 } as const) : ({ kind: 'createSession', timeOut: 10_000 } as const);
      this.#forwarding.commit({ zxid, header, txn, digest: undefined, bytes: 40, mayBeLocal: true });
      this.core.appended(zxid, now);
    }

    #frame(cnxn: number, write: (writer: Writer) => void): void {
      this.core.frame(cnxn, new Reader(bytesOf(write)), now);
    }
  }

  it('a limited number of bytes of multis is forwarded at once, and short writes of others besides', () => {
    const learner = new Follower(4);
    for (const cnxn of [1, 2, 3]) learner.ask(cnxn, cnxn, OpCode.multi, long);
    learner.ask(4, 4, OpCode.setData, shortWrite);
    expect(learner.passedOn).toEqual([1, 2, 4]);
    learner.commit(1, 1);
    expect(learner.passedOn).toEqual([1, 2, 4, 3]);
  });

  it('multis of a closed connection no longer count', () => {
    const learner = new Follower(3);
    for (const cnxn of [1, 2, 3]) learner.ask(cnxn, cnxn, OpCode.multi, long);
    learner.core.disconnected(2, now);
    expect(learner.passedOn).toEqual([1, 2, 3]);
  });
});

describe('on a standalone server', () => {
  const sessions = [0x0100_0000_0000_0001n, 0x0100_0000_0000_0002n, 0x0100_0000_0000_0003n] as const;
  const [one, two, three] = [1, 2, 3];

  function stepper(changed: Partial<CoreOptions> = {}, more: readonly SessionId[] = []): Stepper {
    const all = [...sessions, ...more];
    const scene = new Stepper(
      (replica: Replica) => {
        for (const session of all) replica.sessions.open(sessionHigh(session), sessionLow(session), 10_000);
      },
      { stepUnits, ...changed },
    );
    for (const [at, session] of all.entries()) scene.attach(at + 1, session);
    scene.finish();
    scene.reset();
    return scene;
  }

  const multi = (scene: Stepper, cnxn: number, xid: number): void => {
    scene.ask(cnxn, xid, OpCode.multi, (writer) => writeMultiRequest(writer, { ops: checks }));
  };
  const create = (scene: Stepper, cnxn: number, xid: number): void => {
    scene.ask(cnxn, xid, OpCode.create, (writer) =>
      operations.create.request.write(writer, { path: `/n${cnxn}-${xid}`, data: null, acl: openAcl, flags: 0 }),
    );
  };
  /** Validates everything that can be validated: nothing is logged meanwhile. */
  const judge = (scene: Stepper): void => {
    while ((scene.core.deadline() ?? Infinity) <= scene.now.elapsedMs) scene.call(() => scene.core.wake(scene.now));
  };
  const logged = (scene: Stepper): string[] => scene.logged.map(({ header }) => `${header.clientLow}-${header.cxid}`);

  it('a long write waits for its turn, and delays its connection; others are served', () => {
    const scene = stepper();
    multi(scene, one, 1);
    judge(scene);
    multi(scene, two, 1);
    create(scene, two, 2);
    create(scene, three, 1);
    judge(scene);
    expect(logged(scene)).toEqual(['1-1', '3-1']);
    expect([scene.core.wantsInput(two), scene.core.wantsInput(three)]).toEqual([false, true]);
    scene.finish();
    expect(logged(scene)).toEqual(['1-1', '3-1', '2-1', '2-2']);
    expect(scene.received.map(({ cnxn, header }) => [cnxn, header.xid, header.err])).toEqual([
      [one, 1, 0],
      [three, 1, 0],
      [two, 1, 0],
      [two, 2, 0],
    ]);
    expect(scene.core.inspect.outstandingRequests()).toBe(0);
  });

  it('waiting requests of a closed connection are performed in order, including a closeSession after them', () => {
    const scene = stepper({ requestThrottleDropStale: false });
    multi(scene, one, 1);
    judge(scene);
    multi(scene, two, 1);
    create(scene, two, 2);
    scene.ask(two, 3, OpCode.closeSession, () => undefined);
    scene.disconnect(two);
    multi(scene, three, 1);
    judge(scene);
    expect(logged(scene)).toEqual(['1-1']);
    scene.finish();
    expect(logged(scene)).toEqual(['1-1', '2-1', '2-2', '2-3', '3-1']);
    expect(scene.received.map(({ cnxn }) => cnxn)).toEqual([one, three]);
    expect(scene.core.inspect.outstandingRequests()).toBe(0);
  });

  it('held requests of a connection are processed after its long write, whichever step it ends in', () => {
    const [creates, steps] = [20, 150];
    for (let goesAfter = 0; goesAfter < steps; goesAfter++) {
      const scene = stepper({ requestThrottleDropStale: false });
      multi(scene, one, 1);
      multi(scene, two, 1);
      for (let xid = 2; xid < 2 + creates; xid++) create(scene, two, xid);
      for (let step = 0; step < goesAfter; step++) scene.call(() => scene.core.wake(scene.now));
      scene.disconnect(two);
      scene.finish();
      const cxids = scene.logged.filter(({ header }) => header.clientLow === 2).map(({ header }) => header.cxid);
      expect([goesAfter, cxids]).toEqual([goesAfter, Array.from({ length: 1 + creates }, (_, at) => 1 + at)]);
      expect(scene.core.inspect.outstandingRequests()).toBe(0);
    }
  });

  it('waiting requests have no effect after the session has moved to another connection', () => {
    const scene = stepper({ requestThrottleDropStale: false });
    multi(scene, one, 1);
    judge(scene);
    multi(scene, two, 1);
    create(scene, two, 2);
    scene.disconnect(two);
    scene.attach(4, sessions[1]);
    scene.finish();
    expect(logged(scene)).toEqual(['1-1']);
    expect(scene.core.inspect.outstandingRequests()).toBe(0);
  });

  it('a limited number of closed connections of an address keep their turn', () => {
    const many = Array.from({ length: 12 }, (_, at) => 0x0100_0000_0000_0010n + BigInt(at));
    const scene = stepper({ requestThrottleDropStale: false }, many);
    multi(scene, one, 1);
    judge(scene);
    for (const at of many.keys()) {
      multi(scene, at + 4, 1);
      scene.disconnect(at + 4);
    }
    scene.finish();
    expect(logged(scene)).toHaveLength(1 + 8);
    expect(scene.core.inspect.outstandingRequests()).toBe(0);
  });

  it('waiting requests of a closed connection are dropped if stale requests are dropped', () => {
    const scene = stepper();
    multi(scene, one, 1);
    judge(scene);
    multi(scene, two, 1);
    create(scene, two, 2);
    scene.disconnect(two);
    multi(scene, three, 1);
    scene.finish();
    expect(logged(scene)).toEqual(['1-1', '3-1']);
    expect(scene.core.inspect.outstandingRequests()).toBe(0);
  });

  it('a long write that exceeds the limits of held bytes is refused at once', () => {
    const scene = stepper({ inFlightBytesMax: 20_000 });
    multi(scene, one, 1);
    judge(scene);
    const creates: MultiOp[] = Array.from({ length: partsOfLong }, (_, at) => ({
      kind: 'create',
      path: `/c${at}`,
      data: null,
      acl: openAcl,
      flags: 0,
    }));
    scene.ask(two, 1, OpCode.multi, (writer) => writeMultiRequest(writer, { ops: creates }));
    scene.finish();
    expect(logged(scene)).toEqual(['1-1']);
    expect(scene.received.map(({ cnxn, header }) => [cnxn, header.err])).toEqual([
      [two, ErrorCode.ThrottledOp],
      [one, 0],
    ]);
  });
});

describe('waiting long writes', () => {
  const addressOf = (name: string): AddressLoad => new AddressLoad(name);
  const cnxn = (id: number, address: AddressLoad): Cnxn =>
    new Cnxn(id, { remoteAddress: address.name, remotePort: id, localPort: 2181, secure: false, peerCertificate: undefined }, address, 0);
  const request = (session: number, cxid: number): ForwardedRequest => ({
    owner: 1,
    sessionHigh: 0,
    sessionLow: session,
    cxid,
    opCode: OpCode.multi,
    identities: Identities.none,
    record: Buffer.alloc(0),
    arrivedMs: 0,
  });
  const next = (writes: LongWriteQueue): string => {
    const taken = writes.take();
    return taken.kind === 'cnxn' ? `cnxn ${taken.cnxn.id}` : `session ${taken.requests[0]!.request.sessionLow}`;
  };

  it('let addresses take turns, however many connections one has', () => {
    const writes = new LongWriteQueue();
    const [crowd, single] = [addressOf('10.0.0.1'), addressOf('10.0.0.2')];
    for (const id of [1, 2, 3]) writes.push(cnxn(id, crowd), 100_000);
    for (const id of [4, 5]) writes.push(cnxn(id, single), 100_000);
    expect(Array.from({ length: 5 }, () => next(writes))).toEqual(['cnxn 1', 'cnxn 4', 'cnxn 2', 'cnxn 5', 'cnxn 3']);
    expect(writes.isEmpty).toBe(true);
  });

  it('of a new address are performed before those of addresses with much usage', () => {
    const writes = new LongWriteQueue();
    for (let round = 1; round <= 3; round++) {
      for (const session of [1, 2, 3]) writes.pushForwarded({ request: request(session, round), sessionMoves: 0, units: 100_000 });
    }
    for (let taken = 0; taken < 4; taken++) next(writes);
    writes.pushForwarded({ request: request(9, 1), sessionMoves: 0, units: 100_000 });
    expect(next(writes)).toBe('session 9');
  });

  it('keep the usage of a limited number of sessions', () => {
    const writes = new LongWriteQueue();
    for (let session = 1; session <= 5000; session++) {
      writes.pushForwarded({ request: request(session, 1), sessionMoves: 0, units: 100_000 });
      next(writes);
    }
    expect(writes.flowCount).toBeLessThanOrEqual(1025);
  });
});
