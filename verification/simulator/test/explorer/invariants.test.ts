/**
 * An invariant that cannot fail checks nothing: each gets an ensemble of plain values that breaks
 * this invariant and no other.
 */
import { makeZxid, operations, writeConnectResponse, Writer, writeReplyHeader, type Zxid } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { type InvariantName, Invariants, invariants, type NamedTxn, type ServerView, Violation } from '../../src/internal.ts';
import { SmallClient } from '../../src/explorer/small-client.ts';

const txn = (epoch: number, counter: number, name = `${epoch}.${counter}`): NamedTxn => ({ zxid: makeZxid(epoch, counter), name });

function server(sid: number, history: readonly NamedTxn[], more: Partial<ServerView> = {}): ServerView {
  const appliedZxid: Zxid = history.at(-1)?.zxid ?? 0;
  const epochs = { acceptedEpoch: 1, currentEpoch: 1 };
  return {
    sid,
    role: 'learning',
    serves: true,
    epoch: 1,
    durable: history,
    logged: history,
    appliedZxid,
    state: undefined,
    committedLogZxids: undefined,
    configVersion: 0,
    ...epochs,
    ...more,
  };
}

const leads: Partial<ServerView> = { role: 'leading' };
const is = (epoch: number): Partial<ServerView> => ({ epoch, acceptedEpoch: epoch, currentEpoch: epoch });
const down: Partial<ServerView> = { role: undefined, serves: false };

/** Txns in the order of their proposal, by one leader per epoch that had every txn before it. */
function propose(to: Invariants, ...txns: readonly NamedTxn[]): void {
  for (const [at, each] of txns.entries()) to.proposed(Math.floor(each.zxid / 2 ** 32), each, txns.slice(0, at));
}

function framed(write: (writer: Writer) => void): Buffer {
  const writer = new Writer(64);
  const start = writer.beginFrame();
  write(writer);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

/** A client with a session, which reads an empty root at each of these zxids. */
function readAt(to: Invariants, zxids: readonly Zxid[], how: 'read' | 'sync and read' = 'read'): void {
  const reader = new SmallClient(
    () => to,
    () => undefined,
  );
  reader.connect(1, 1000);
  const session = { protocolVersion: 0, timeOut: 1000, sessionId: 5n, passwd: Buffer.alloc(16), readOnly: false };
  reader.received(framed((writer) => writeConnectResponse(writer, session)));
  let xid = 0;
  for (const zxid of zxids) {
    reader.request(how, 0);
    if (how === 'sync and read') reader.received(framed((writer) => writeReplyHeader(writer, { xid: ++xid, zxid, err: 0 })));
    const bytes = framed((writer) => {
      writeReplyHeader(writer, { xid: ++xid, zxid, err: 0 });
      operations.getData.reply.write(writer, { data: null, stat });
    });
    reader.received(bytes);
  }
}

const zero = 0;
const stat = {
  czxid: zero,
  mzxid: zero,
  ctime: zero,
  mtime: zero,
  version: zero,
  cversion: zero,
  aversion: zero,
  ephemeralOwner: 0n,
  dataLength: zero,
  numChildren: zero,
  pzxid: zero,
};

const a = txn(1, 1);
const b = txn(1, 2);
const c = txn(2, 1);

/** The initial configuration is of servers 1 and 2. */
const joins = txn(1, 2, 'config 1 2 3 by 1:2 1');
const leaves = txn(1, 2, 'config 1 2 by 1:2 1');

/**
 * NoProtocolError, ElectionTerminates and Liveness are checked by the world: see
 * small-world.test.ts and elections.test.ts.
 */
const canaries: Readonly<Record<Exclude<InvariantName, 'NoProtocolError' | 'ElectionTerminates' | 'Liveness'>, (to: Invariants) => void>> =
  {
    Leadership1: (to) => to.check([server(1, [], leads), server(2, [], leads), server(3, [])]),
    Leadership2: (to) => {
      to.check([server(1, [], leads), server(2, []), server(3, [])]);
      to.check([server(1, [], down), server(2, [], leads), server(3, [])]);
    },
    PrefixConsistency: (to) => {
      propose(to, a);
      propose(to, c);
      to.check([server(1, [a], leads), server(2, [a]), server(3, [], down)]);
      to.check([server(1, [a]), server(2, [a]), server(3, [c], is(2))]);
    },
    Integrity: (to) => to.check([server(1, [a]), server(2, [a]), server(3, [])]),
    Agreement: (to) => {
      propose(to, a);
      to.check([server(1, [a]), server(2, [{ ...a, name: 'other' }]), server(3, [])]);
    },
    TotalOrder: (to) => {
      propose(to, a, b);
      propose(to, c);
      to.check([server(1, [c, a]), server(2, []), server(3, [])]);
    },
    LocalPrimaryOrder: (to) => {
      propose(to, a, b);
      to.check([server(1, [b]), server(2, []), server(3, [])]);
    },
    GlobalPrimaryOrder: (to) => {
      propose(to, a);
      propose(to, c);
      to.check([server(1, [c]), server(2, [c]), server(3, [], down)]);
      // `check` would report the wrong order of the log first; `checkServed` checks only the state.
      to.checkServed(server(3, [c, a], { appliedZxid: c.zxid }));
    },
    PrimaryIntegrity: (to) => {
      propose(to, a);
      to.check([server(1, [a], leads), server(2, [a]), server(3, [], down)]);
      to.proposed(2, c, []);
    },
    ProcessConsistency: (to) => {
      propose(to, a);
      to.epochBegun(2, server(1, [a], { ...leads, ...is(2) }));
      to.check([server(1, [a], down), server(2, [a], down), server(3, [], is(2))]);
    },
    MonotonicRead: (to) => {
      propose(to, a);
      to.check([server(1, [a], leads), server(2, [a]), server(3, [], down)]);
      to.check([server(1, [a], leads), server(2, [a], { appliedZxid: 0 }), server(3, [], down)]);
    },
    LeaderLogCompleteness: (to) => {
      propose(to, a);
      to.check([server(1, [a], leads), server(2, [a]), server(3, [], down)]);
      to.check([server(1, [a], down), server(2, [a], down), server(3, [], { ...leads, ...is(2) })]);
    },
    CommittedLogDurability: (to) => {
      propose(to, a);
      to.check([server(1, [a], leads), server(2, [a], { durable: [] }), server(3, [], down)]);
    },
    JointQuorum: (to) => {
      propose(to, a, joins);
      // Two of three are a quorum of the new configuration, and both of the old one are needed.
      to.check([server(1, [a, joins], leads), server(2, [a, joins], { durable: [a], appliedZxid: a.zxid }), server(3, [a, joins])]);
    },
    EpochQuorum: (to) => {
      propose(to, a, joins);
      to.epochBegun(2, server(1, [a, joins], { ...leads, ...is(2) }));
      // A leader that completes the reconfiguration has begun its epoch with a quorum of the old configuration only.
      const history = [a, joins];
      to.check([
        server(1, history, { ...leads, ...is(2) }),
        server(2, history, { ...is(2), serves: false, currentEpoch: 1 }),
        server(3, history),
      ]);
    },
    ActiveIsCommitted: (to) => {
      propose(to, a, joins);
      to.check([server(1, [a], leads), server(2, [a], { configVersion: joins.zxid }), server(3, [])]);
    },
    LeaderVotes: (to) => {
      propose(to, a, leaves);
      const both = { configVersion: leaves.zxid };
      to.check([server(1, [a, leaves], both), server(2, [a, leaves], both), server(3, [a, leaves], { ...leads, ...both })]);
    },
    CommittedLogMatchesLog: (to) => {
      propose(to, a, b);
      const all = { committedLogZxids: [a.zxid, b.zxid] };
      to.check([
        server(1, [a, b], all),
        server(2, [a, b], { committedLogZxids: [b.zxid] }),
        server(3, [], { ...down, committedLogZxids: [] }),
      ]);
      to.check([server(1, [a, b], all), server(2, [a, b], { committedLogZxids: [] }), server(3, [], { committedLogZxids: [] })]);
      to.check([server(1, [a, b], all), server(2, [a, b], { committedLogZxids: [a.zxid] }), server(3, [], down)]);
    },
    StateMatchesLog: (to) => {
      propose(to, a);
      to.check([server(1, [a], { state: [] }), server(2, [a]), server(3, [], down)]);
    },
    AcknowledgedIsCommitted: (to) => {
      to.clientAcknowledged(a.name);
      to.check([server(1, []), server(2, []), server(3, [])]);
    },
    EpochFiles: (to) => to.check([server(1, [], { acceptedEpoch: 1, currentEpoch: 2 }), server(2, []), server(3, [])]),
    HistoryBeforeEpoch: (to) => {
      propose(to, a);
      to.epochBegun(2, server(1, [a], { ...leads, ...is(2) }));
      to.epochWritten(server(2, [a], { ...is(2), durable: [] }));
    },
    NothingRolledBack: (to) => readAt(to, [7, 6]),
    SyncThenRead: (to) => {
      propose(to, a);
      to.clientAcknowledged(a.name);
      to.check([server(1, [a], leads), server(2, [a]), server(3, [], down)]);
      readAt(to, [a.zxid - 1], 'sync and read');
    },
    ReadsMatchHistory: (to) => {
      to.clientRead('', a.zxid);
      to.clientRead('put 1', a.zxid);
    },
    VotesFromDisk: (to) => to.voted(a.zxid, server(1, [a], { durable: [] })),
    ElectsLatestHistory: (to) => to.elected(server(1, [a], is(1)), [server(1, [a], is(1)), server(2, [], is(2))]),
    AcceptedEpochDurable: (to) => to.epochAccepted(2, server(1, [])),
    NewLeaderAckFirst: (to) => to.acknowledged(c.zxid, server(1, [c])),
    DurableBeforeAck: (to) => to.acknowledged(a.zxid, server(1, [a], { durable: [] })),
  };

/** Of the initial configuration servers 1 and 2 are needed, or two of three if none changes it. */
const twoOf = (sids: readonly number[]) => sids.length >= 2;
const bothOrTwoOf = (sids: readonly number[], members: string | undefined) =>
  members === '1 2 3' ? sids.length >= 2 : sids.includes(1) && sids.includes(2);
const jointNames = new Set<string>(['JointQuorum', 'EpochQuorum']);

describe('the invariants', () => {
  test.each(Object.entries(canaries))('report a violation of %s by an ensemble that breaks it', (name, forge) => {
    let caught: unknown;
    try {
      forge(new Invariants(jointNames.has(name) ? bothOrTwoOf : twoOf));
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(Violation);
    expect((caught as Violation).invariant).toBe(name);
    expect((caught as Violation).message).toContain(invariants[name as InvariantName]);
  });

  test('accept a correct ensemble', () => {
    const to = new Invariants(twoOf);
    to.epochBegun(1, server(1, [], leads));
    to.check([server(1, [], leads), server(2, []), server(3, [], down)]);
    propose(to, a, b);
    to.acknowledged(a.zxid, server(2, [a]));
    to.check([
      server(1, [a, b], { ...leads, appliedZxid: a.zxid, state: [a.name] }),
      server(2, [a], { appliedZxid: 0 }),
      server(3, [], down),
    ]);
    to.clientAcknowledged(a.name);
    to.check([server(1, [a, b], { ...leads, appliedZxid: a.zxid }), server(2, [a]), server(3, [], down)]);
    to.voted(b.zxid, server(3, [a, b]));
    to.elected(server(3, [a, b]), [server(2, [a]), server(3, [a, b])]);
    to.epochProposed(2, server(3, [a, b], is(2)));
    to.epochBegun(2, server(3, [a, b], { ...leads, ...is(2) }));
    to.epochWritten(server(2, [a, b], is(2)));
    to.check([server(1, [a, b], down), server(2, [a, b], is(2)), server(3, [a, b], { ...leads, ...is(2) })]);
    expect(to.committed).toEqual([a, b]);
  });
});
