/**
 * The decisions of a leader by the packets of its learners: the epoch, when to serve, what is
 * committed, and when it is over.
 */
import { membersOf } from '../support/members.ts';
import { ErrorCode } from '@tskeeper/protocol';
import {
  LeaderFeature,
  makeZxid,
  OpCode,
  PacketType,
  Reader,
  readLeaderInfo,
  type Sid,
  Writer,
  writeLearnerInfo,
  type Zxid,
} from '@tskeeper/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { localOwner } from '../../src/session/session-tracker.ts';
import { OracleQuorum } from '../../src/quorum/oracle-quorum.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';
import type { LeaderStart } from '../../src/zab/leader-host.ts';
import { LeaderPreference } from '../../src/zab/leader-preference.ts';
import { Leader } from '../../src/zab/leader.ts';
import type { SyncTarget } from '../../src/zab/sync-target.ts';
import type { ZabOptions } from '../../src/zab/zab-options.ts';
import { LoneLeader } from './lone-leader.ts';
import { int, Notes, packet } from './packets.ts';

const options = { sid: 1, tickTimeMs: 100, initLimitTicks: 10, syncLimitTicks: 5, forceSnapshotSync: false, counterMax: 0xffff_0000 };
const start: LeaderStart = { acceptedEpoch: 3, currentEpoch: 3, lastZxid: makeZxid(3, 7) };
const at = (ms: number) => ({ elapsedMs: 1000 + ms, wallMs: 0 });
const now = at(0);

let notes: Notes;
beforeEach(() => {
  notes = new Notes();
});

function leading(
  voters: readonly Sid[] = [1, 2, 3],
  changed: Partial<LeaderStart> = {},
  zab: Partial<ZabOptions> = {},
  oracle?: OracleQuorum,
): Leader {
  const server = {
    appended: (zxid: Zxid) => notes.note(`committed 0x${zxid.toString(16)}`),
    forwarded: ({ opCode, owner }: { opCode: number; owner: number }) => notes.note(`request ${opCode} through ${owner}`),
    touched: (_high: number, low: number) => notes.note(`touched ${low}`),
    synced: () => notes.note('synced'),
    stop: () => notes.note('server ends'),
  };
  const host = {
    startServing: (epoch: number) => {
      notes.note(`serve ${epoch}`);
      return server as never;
    },
    syncLearner: (learner: SyncTarget) => {
      notes.note(`synchronise ${learner.channel} from 0x${learner.lastZxid.toString(16)} to 0x${learner.startReplicating().toString(16)}`);
      learner.historySent();
    },
    learnerGone: () => undefined,
    followersChanged: (followers: ReadonlySet<number>) => void oracle?.setFollowers(followers),
    config: {
      members: membersOf(voters),
      text: 'version=0',
      version: 0,
      latestText: 'version=0',
      isMember: (sid: Sid) => sid < 100,
      newLeaderConfig: () => 'version=0',
      prepareReconfig: () => ErrorCode.ReconfigInProgress,
    },
    acceptsKeeperWrites: false,
    leaderPreference: new LeaderPreference(1000),
    holdWrites: () => undefined,
    transferBegan: () => undefined,
    transferEnded: () => undefined,
    configSeen: () => undefined,
    configActivated: () => undefined,
    committed: () => undefined,
  };
  return new Leader({ ...options, ...zab }, oracle ?? new MajorityQuorum(voters), { ...start, ...changed }, notes, notes, host, now);
}

/** Server 12 uses channel 12: the channel identifies the sender. */
function introduce(leader: Leader, sid: Sid, acceptedEpoch: number, type: number = PacketType.FOLLOWERINFO): void {
  leader.learnerConnected(sid, now);
  const info = new Writer(32);
  writeLearnerInfo(info, { serverId: sid, configVersion: 0 });
  leader.packet(sid, packet(type, makeZxid(acceptedEpoch, 0), info.written()), now);
}

function acceptEpoch(leader: Leader, sid: Sid, currentEpoch: number, lastZxid: Zxid): void {
  leader.packet(sid, packet(PacketType.ACKEPOCH, lastZxid, int(currentEpoch)), now);
}

const acknowledge = (leader: Leader, sid: Sid, zxid: Zxid) => leader.packet(sid, packet(PacketType.ACK, zxid), now);

/** With server 2 synchronised, and 3 as well if requested, in epoch 4. */
function serving(others: readonly Sid[] = [2], voters: readonly Sid[] = [1, 2, 3]): Leader {
  const leader = leading(voters);
  for (const sid of others) introduce(leader, sid, 3);
  leader.epochSaved('acceptedEpoch', now);
  for (const sid of others) acceptEpoch(leader, sid, 3, start.lastZxid);
  leader.epochSaved('currentEpoch', now);
  for (const sid of others) acknowledge(leader, sid, makeZxid(4, 0));
  notes.take();
  return leader;
}

function requestOf(opCode: number): Buffer {
  const request = Buffer.alloc(16);
  request.writeInt32BE(opCode, 12);
  return request;
}

function propose(leader: Leader, zxid: Zxid): void {
  const bytes = Buffer.from('a txn');
  leader.append(zxid, bytes, 0, bytes.length, localOwner);
}

describe('a leader waiting for a quorum', () => {
  it('A61: gives up when a voter looks elsewhere, after syncLimit or leader.maxTimeToWaitForEpoch', () => {
    const { tickTimeMs, syncLimitTicks } = options;
    const patient = leading();
    patient.voterLooking(2, at(tickTimeMs * syncLimitTicks));
    expect(patient.endReason).toBeUndefined();
    patient.voterLooking(2, at(tickTimeMs * syncLimitTicks + 1));
    expect(patient.endReason).toBe('disloyal voter');
    const delivered = leading([1, 2, 3], {}, { maxTimeToWaitForEpochMs: 200 });
    delivered.voterLooking(2, at(200));
    delivered.voterLooking(7, at(900));
    expect(delivered.endReason).toBeUndefined();
    delivered.voterLooking(2, at(201));
    expect(delivered.endReason).toBe('disloyal voter');
  });

  it('does not give up once it has a quorum', () => {
    const leader = leading([1, 2, 3], {}, { maxTimeToWaitForEpochMs: 0 });
    introduce(leader, 2, 3);
    leader.voterLooking(3, at(100));
    expect(leader.endReason).toBeUndefined();
  });

  it('gives up after a pause of more than syncLimit, before it processes the ACK that it waits for', () => {
    const limitMs = options.tickTimeMs * options.syncLimitTicks;
    for (const stage of ['discovery', 'synchronisation']) {
      const leader = leading();
      leader.wake(now);
      if (stage === 'synchronisation') {
        introduce(leader, 2, 3);
        leader.epochSaved('acceptedEpoch', now);
        acceptEpoch(leader, 2, 3, start.lastZxid);
        leader.epochSaved('currentEpoch', now);
      }
      leader.resumedAfterPause(at(limitMs));
      expect(leader.endReason, stage).toBeUndefined();
      leader.resumedAfterPause(at(limitMs + 1));
      expect(leader.endText, stage).toContain('longer than syncLimit');
      notes.take();
      acknowledge(leader, 2, makeZxid(4, 0));
      expect(notes.take(), stage).toEqual([]);
    }
  });

  it('stands down on request', () => {
    const leader = leading();
    leader.stepDown('the learner port is unreachable');
    leader.stepDown('another reason');
    expect(leader.endText).toBe('the learner port is unreachable');
  });
});

describe('a new epoch', () => {
  it('is later than any that a quorum has accepted', () => {
    const leader = leading([1, 2, 3, 4, 5]);
    introduce(leader, 2, 6);
    expect(notes.take()).toEqual([]);
    introduce(leader, 3, 1);
    expect(notes.take()).toEqual(['save acceptedEpoch 7']);
    // No learner is sent the epoch before it is on disk.
    leader.epochSaved('acceptedEpoch', now);
    expect(notes.take().toSorted()).toEqual(['2 <- LEADERINFO 0x700000000', '3 <- LEADERINFO 0x700000000']);
    introduce(leader, 4, 2);
    expect(notes.take()).toEqual(['4 <- LEADERINFO 0x700000000']);
  });

  it('is required when a voter joins that has accepted a later epoch and can follow in no earlier one', () => {
    const leader = serving([2]);
    introduce(leader, 3, 5);
    expect(leader.endText).toContain('server 3 has accepted epoch 5');
    const elsewhere = serving([2]);
    introduce(elsewhere, 7, 5, PacketType.OBSERVERINFO);
    introduce(elsewhere, 3, 4);
    expect(elsewhere.endReason).toBeUndefined();
  });

  it('is not required when a server without a vote joins that has accepted a later epoch, which the leader says to it', () => {
    const leader = new LoneLeader();
    leader.introduce(4, 4, 6, PacketType.FOLLOWERINFO, 1);
    leader.introduce(3, 3, 3, PacketType.FOLLOWERINFO, 1);
    leader.introduce(5, 5, 3, PacketType.OBSERVERINFO, 1);
    leader.settle();
    const hasVote = (channel: number) => {
      const [info] = leader.take(channel);
      return [info!.name, (readLeaderInfo(new Reader(info!.data)).features & LeaderFeature.noVote) === 0];
    };
    expect([4, 3, 5].map(hasVote)).toEqual([
      ['LEADERINFO', false],
      ['LEADERINFO', true],
      ['LEADERINFO', false],
    ]);
  });

  it('A54: is not chosen by observers, nor by disconnected learners', () => {
    const leader = leading();
    introduce(leader, 7, 3, PacketType.OBSERVERINFO);
    introduce(leader, 8, 3);
    expect(notes.take()).toEqual([]);
    const five = leading([1, 2, 3, 4, 5]);
    introduce(five, 2, 3);
    five.channelGone(2);
    introduce(five, 3, 3);
    expect(notes.take()).toEqual([]);
    introduce(five, 4, 3);
    expect(notes.take()).toEqual(['save acceptedEpoch 4']);
  });

  it.each([7, 3])('A54: does not depend on epochs accepted by observers or claimed by others: sid %i', (sid) => {
    const leader = leading();
    introduce(leader, sid, 2_097_151, PacketType.OBSERVERINFO);
    introduce(leader, 8, 2_097_151);
    introduce(leader, 2, 3);
    expect(notes.take()).toEqual(['save acceptedEpoch 4']);
  });

  it.each([10_004, 2_097_151])('is not derived from an impossible epoch: epoch %i', (epoch) => {
    const leader = leading();
    introduce(leader, 2, epoch);
    expect(notes.take()).toEqual([
      `close 2: server 2 claims to have accepted epoch ${epoch}, which is impossible: this leader is in epoch 3. If its file acceptedEpoch contains this number, stop it, move its version-2 aside, keep its myid, and restart it`,
    ]);
    introduce(leader, 3, 10_003);
    expect(notes.take()).toEqual(['save acceptedEpoch 10004']);
    const serves = serving([2]);
    introduce(serves, 3, Math.min(epoch + 1, 2_097_151));
    expect(serves.endReason).toBeUndefined();
    expect(notes.take()).toEqual([expect.stringContaining('close 3: server 3 claims to have accepted epoch')]);
  });

  it('is not begun after the last possible epoch', () => {
    const leader = leading([1, 2, 3], { acceptedEpoch: 2_097_151 });
    introduce(leader, 2, 3);
    expect(leader.endText).toBe('epoch 2097151 is the last possible epoch');
    expect(notes.take()).toEqual([]);
  });

  it('does not become current by the acceptance of a server that has lost its data', () => {
    const leader = leading();
    introduce(leader, 2, 3);
    introduce(leader, 3, 3);
    leader.epochSaved('acceptedEpoch', now);
    notes.take();
    // -1 is the last zxid of a server that should have data and has none: what it had acknowledged
    // is lost.
    acceptEpoch(leader, 2, 0, -1);
    expect(notes.take()).toEqual([]);
    acceptEpoch(leader, 3, 3, makeZxid(3, 5));
    expect(notes.take()).toEqual(['save currentEpoch 4']);
  });

  it('becomes current when a quorum has accepted it, and then all learners are synchronised', () => {
    const leader = leading([1, 2, 3, 4, 5]);
    for (const sid of [2, 3, 4]) introduce(leader, sid, 3);
    leader.epochSaved('acceptedEpoch', now);
    notes.take();
    acceptEpoch(leader, 2, 3, makeZxid(3, 5));
    // It had accepted it before, and does not count.
    acceptEpoch(leader, 3, -1, makeZxid(3, 6));
    expect(notes.take()).toEqual([]);
    acceptEpoch(leader, 4, 2, makeZxid(2, 9));
    expect(notes.take()).toEqual(['save currentEpoch 4']);
    leader.epochSaved('currentEpoch', now);
    expect(notes.take().filter((line) => line.startsWith('sync'))).toEqual([
      'synchronise 2 from 0x300000005 to 0x300000007',
      'synchronise 3 from 0x300000006 to 0x300000007',
      'synchronise 4 from 0x200000009 to 0x300000007',
    ]);
  });

  it.each([
    ['a later txn of the same epoch', 3, makeZxid(3, 8)],
    ['a later epoch', 4, makeZxid(2, 1)],
  ])('does not begin with a learner that has %s: a quorum may have it', (_what, currentEpoch, lastZxid) => {
    const leader = leading();
    introduce(leader, 2, 3);
    leader.epochSaved('acceptedEpoch', now);
    notes.take();
    acceptEpoch(leader, 2, currentEpoch, lastZxid);
    expect(notes.take()[0]).toContain('close 2: the learner has a later history than this leader');
  });

  it('truncates the excess txns of a learner once a quorum has accepted it', () => {
    const leader = serving();
    introduce(leader, 3, 3);
    acceptEpoch(leader, 3, 3, makeZxid(3, 9));
    expect(notes.take()).toContain('synchronise 3 from 0x300000009 to 0x400000000');
  });
});

describe('serving', () => {
  it('A52, E21: begins when a quorum has acknowledged NEWLEADER, and not before', () => {
    const leader = leading([1, 2, 3, 4, 5]);
    for (const sid of [2, 3]) introduce(leader, sid, 3);
    leader.epochSaved('acceptedEpoch', now);
    for (const sid of [2, 3]) acceptEpoch(leader, sid, 3, start.lastZxid);
    leader.epochSaved('currentEpoch', now);
    acknowledge(leader, 2, makeZxid(4, 0));
    expect(notes.take().at(-1)).toBe('3 <- NEWLEADER 0x400000000');
    acknowledge(leader, 3, makeZxid(4, 0));
    expect(notes.take()).toEqual(['serve 4', '2 <- UPTODATE 0xffffffffffffffff', '3 <- UPTODATE 0xffffffffffffffff']);
    introduce(leader, 4, 3);
    acceptEpoch(leader, 4, 3, start.lastZxid);
    acknowledge(leader, 4, makeZxid(4, 0));
    expect(notes.take().at(-1)).toBe('4 <- UPTODATE 0xffffffffffffffff');
  });

  it('ends for a learner that reconnects: packets of its older stream are ignored', () => {
    const leader = serving();
    propose(leader, makeZxid(4, 1));
    leader.learnerConnected(20, now);
    const info = new Writer(32);
    writeLearnerInfo(info, { serverId: 2, configVersion: 0 });
    leader.packet(20, packet(PacketType.FOLLOWERINFO, makeZxid(4, 0), info.written()), now);
    leader.wake(at(options.tickTimeMs / 2));
    expect(notes.take()).toContain('close 2: the learner has reconnected, and this connection does not answer');
    acknowledge(leader, 2, makeZxid(4, 1));
    leader.appended(makeZxid(4, 1), now);
    expect(notes.take()).toEqual([]);
  });
});

describe('broadcast', () => {
  it('C4-16: commits txns that a quorum has logged, in order, and sends COMMIT to followers and INFORM to observers', () => {
    const leader = serving([2, 3]);
    introduce(leader, 7, 3, PacketType.OBSERVERINFO);
    acceptEpoch(leader, 7, 3, start.lastZxid);
    acknowledge(leader, 7, makeZxid(4, 0));
    notes.take();
    propose(leader, makeZxid(4, 1));
    propose(leader, makeZxid(4, 2));
    expect(notes.take().toSorted()).toEqual([
      '2 <- PROPOSAL 0x400000001',
      '2 <- PROPOSAL 0x400000002',
      '3 <- PROPOSAL 0x400000001',
      '3 <- PROPOSAL 0x400000002',
      'append 0x400000001',
      'append 0x400000002',
    ]);
    // Two of three, neither of them the leader itself; a later txn has to wait for the earlier one.
    acknowledge(leader, 2, makeZxid(4, 1));
    expect(notes.take()).toEqual([]);
    acknowledge(leader, 3, makeZxid(4, 1));
    expect(notes.take().toSorted()).toEqual([
      '2 <- COMMIT 0x400000001',
      '3 <- COMMIT 0x400000001',
      '7 <- INFORM 0x400000001',
      'committed 0x400000001',
    ]);
    leader.appended(makeZxid(4, 2), now);
    expect(notes.take()).toEqual([]);
    acknowledge(leader, 3, makeZxid(4, 2));
    expect(notes.take()).toContain('committed 0x400000002');
  });

  it('is not disturbed by a server that claims the id of the leader', () => {
    for (const type of [PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO]) {
      const leader = leading();
      introduce(leader, 1, 3, type);
      expect(notes.take()).toEqual([
        'close 1: the learner claims to be server 1, which is this server: correct the myid of one of the two',
      ]);
      // The own vote still counts.
      introduce(leader, 2, 3);
      expect(notes.take()).toEqual(['save acceptedEpoch 4']);
    }
  });

  it('counts a voter that has acknowledged, whatever an observer with its id does', () => {
    const leader = leading([1, 2, 3, 4, 5]);
    for (const sid of [2, 3]) introduce(leader, sid, 3);
    leader.epochSaved('acceptedEpoch', now);
    acceptEpoch(leader, 2, 3, start.lastZxid);
    leader.learnerConnected(99, now);
    const info = new Writer(32);
    writeLearnerInfo(info, { serverId: 4, configVersion: 0 });
    leader.packet(99, packet(PacketType.OBSERVERINFO, makeZxid(3, 0), info.written()), now);
    introduce(leader, 4, 3);
    leader.wake(at(options.tickTimeMs / 2));
    acceptEpoch(leader, 4, 3, start.lastZxid);
    expect(notes.take()).toContain('save currentEpoch 4');
    leader.channelGone(99);
  });

  it('does not take the PING answers and ACKs of an observer for those of the voter whose id it claims', () => {
    const leader = serving([2]);
    introduce(leader, 3, 3, PacketType.OBSERVERINFO);
    acceptEpoch(leader, 3, 3, start.lastZxid);
    acknowledge(leader, 3, makeZxid(4, 0));
    leader.packet(2, packet(PacketType.REQUEST, -1, requestOf(OpCode.sync)), now);
    leader.channelGone(2);
    leader.sync({ kind: 'sync' } as never, now);
    notes.take();
    leader.packet(3, packet(PacketType.PING, 0), now);
    leader.packet(3, packet(PacketType.PING, 0), now);
    expect(notes.take()).toEqual([]);
  });

  // A server that the configuration lists as a voter may still introduce itself as an observer.
  it.each([7, 3])('A54: does not count ACKs of observers, even with the sid of a voter: sid %i', (sid) => {
    const leader = serving();
    introduce(leader, sid, 3, PacketType.OBSERVERINFO);
    acceptEpoch(leader, sid, 3, start.lastZxid);
    acknowledge(leader, sid, makeZxid(4, 0));
    propose(leader, makeZxid(4, 1));
    leader.appended(makeZxid(4, 1), now);
    notes.take();
    acknowledge(leader, sid, makeZxid(4, 1));
    expect(notes.take()).toEqual([]);
    acknowledge(leader, 2, makeZxid(4, 1));
    expect(notes.take()).toContain('committed 0x400000001');
  });

  it('E21: sends a joining learner the proposals that are not committed, before NEWLEADER', () => {
    const leader = serving();
    propose(leader, makeZxid(4, 1));
    notes.take();
    introduce(leader, 3, 3);
    acceptEpoch(leader, 3, 3, start.lastZxid);
    expect(notes.take().slice(-2)).toEqual(['3 <- PROPOSAL 0x400000001', '3 <- NEWLEADER 0x400000000']);
    // Its ACK counts like any other.
    leader.appended(makeZxid(4, 1), now);
    acknowledge(leader, 3, makeZxid(4, 0));
    acknowledge(leader, 3, makeZxid(4, 1));
    expect(notes.take()).toContain('committed 0x400000001');
  });

  it('ends when the zxid counter of the epoch is exhausted', () => {
    const leader = serving();
    propose(leader, makeZxid(4, 0xffff_0000));
    expect(leader.endText).toContain('counter');
  });
});

describe('a leader in broadcast', () => {
  it('C4-13: sends a learner a PING every half tick, and drops it after silence of syncLimit', () => {
    const leader = serving();
    leader.wake(at(50));
    expect(notes.take()).toEqual(['2 <- PING 0x400000000']);
    leader.wake(at(500));
    expect(leader.endReason).toBeUndefined();
    leader.wake(at(501));
    expect(notes.take()).toContain('close 2: nothing was received from the learner for 501 ms');
  });

  it('C4-5, C4-14: stands down at the next tick without a quorum', () => {
    const leader = serving();
    leader.channelGone(2);
    leader.wake(at(100));
    expect(leader.endText).toBe('the leader has lost its quorum');
  });

  it('as one of two voters with the oracle, continues while the other is synchronised, and then needs it', () => {
    const oracle = new OracleQuorum(1, [1, 2]);
    oracle.oracleAnswered(true);
    const leader = leading([1, 2], {}, {}, oracle);
    leader.quorumChanged(now);
    leader.epochSaved('acceptedEpoch', now);
    leader.epochSaved('currentEpoch', now);
    expect(notes.take()).toContain('serve 4');
    introduce(leader, 2, 3);
    acceptEpoch(leader, 2, 3, start.lastZxid);
    const tick = { elapsedMs: now.elapsedMs + options.tickTimeMs, wallMs: now.wallMs };
    leader.wake(tick);
    expect(leader.endReason).toBeUndefined();
    acknowledge(leader, 2, makeZxid(4, 0));
    expect(oracle.containsQuorum(new Set([1]))).toBe(false);
    leader.channelGone(2);
    expect(oracle.containsQuorum(new Set([1]))).toBe(true);
  });

  it('stands down at once when the remaining voters are not a quorum', () => {
    const leader = leading([1, 2, 3, 4, 5]);
    introduce(leader, 2, 3);
    leader.maybeStepDown(new Set([3, 4]));
    expect(leader.endReason).toBeUndefined();
    // A connected voter counts as present, whatever it voted before.
    leader.maybeStepDown(new Set([2, 3, 4]));
    expect(leader.endReason).toBeUndefined();
    leader.maybeStepDown(new Set([3, 4, 5]));
    expect(leader.endText).toBe('the voters that can still follow this server are not a quorum');
  });

  it('does not stand down because of votes of others once it serves', () => {
    const leader = serving();
    leader.maybeStepDown(new Set([2, 3]));
    expect(leader.endReason).toBeUndefined();
  });

  it('stands down when no quorum connects within initLimit', () => {
    const leader = leading();
    leader.wake(at(1000));
    expect(leader.endReason).toBeUndefined();
    leader.wake(at(1100));
    expect(leader.endText).toContain('no quorum within initLimit');
  });

  it('D8, E4: answers a sync only after a quorum has answered a PING that was sent after it', () => {
    const leader = serving([2, 3]);
    leader.wake(at(50));
    notes.take();
    leader.sync({} as never, at(60));
    expect(notes.take()).toEqual(['2 <- PING 0x400000000', '3 <- PING 0x400000000']);
    // An answer to the PING before it.
    leader.packet(2, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), at(61));
    expect(notes.take()).toEqual([]);
    leader.packet(2, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), at(62));
    expect(notes.take()).toEqual(['synced']);
  });

  it('does not wait for answers to PINGs before UPTODATE, which learners do not answer', () => {
    const leader = serving([2, 3]);
    leader.channelGone(3);
    introduce(leader, 3, 3);
    acceptEpoch(leader, 3, 3, start.lastZxid);
    leader.wake(at(50));
    expect(notes.take()).toContain('3 <- PING 0x400000000');
    acknowledge(leader, 3, makeZxid(4, 0));
    leader.channelGone(2);
    leader.sync({} as never, at(60));
    notes.take();
    leader.packet(3, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), at(61));
    expect(notes.take()).toEqual(['synced']);
  });

  it('tolerates the silence of a learner that waits for others to be synchronised', () => {
    const leader = leading([1, 2, 3, 4, 5]);
    for (const sid of [2, 3]) introduce(leader, sid, 3);
    leader.epochSaved('acceptedEpoch', now);
    for (const sid of [2, 3]) acceptEpoch(leader, sid, 3, start.lastZxid);
    leader.epochSaved('currentEpoch', now);
    acknowledge(leader, 2, makeZxid(4, 0));
    leader.wake(at(900));
    notes.take();
    leader.packet(3, packet(PacketType.ACK, makeZxid(4, 0)), at(900));
    expect(notes.take()).toEqual(['serve 4', '2 <- UPTODATE 0xffffffffffffffff', '3 <- UPTODATE 0xffffffffffffffff']);
    // From here on its silence counts.
    leader.wake(at(1400));
    expect(notes.take().filter((line) => line.startsWith('close'))).toEqual([]);
    leader.wake(at(1401));
    expect(notes.take()).toContain('close 2: nothing was received from the learner for 501 ms');
  });

  it('E26: waits for a learner that reads its output, and for the quorum with it, however long that takes', () => {
    const leader = leading();
    introduce(leader, 2, 3);
    leader.epochSaved('acceptedEpoch', now);
    acceptEpoch(leader, 2, 3, start.lastZxid);
    leader.epochSaved('currentEpoch', now);
    notes.take();
    for (let ms = 900; ms <= 4500; ms += 900) {
      leader.onProgress(2, at(ms));
      leader.wake(at(ms));
    }
    expect(notes.take().filter((line) => line.startsWith('close'))).toEqual([]);
    expect(leader.endReason).toBeUndefined();
    // Without progress the time runs.
    leader.wake(at(5501));
    expect(notes.take()).toContain('close 2: nothing was received from the learner for 1001 ms');
  });

  it('measures the ACK delay of earlier proposals from UPTODATE on, after the history was sent', () => {
    const leader = serving([2]);
    introduce(leader, 3, 3);
    propose(leader, makeZxid(4, 1));
    acknowledge(leader, 2, makeZxid(4, 1));
    acceptEpoch(leader, 3, 3, start.lastZxid);
    for (let ms = 400; ms <= 4000; ms += 400) {
      for (const sid of [2, 3]) leader.packet(sid, packet(PacketType.PING, 0), at(ms));
      leader.wake(at(ms));
    }
    leader.packet(3, packet(PacketType.ACK, makeZxid(4, 0)), at(4000));
    for (const sid of [2, 3]) leader.packet(sid, packet(PacketType.PING, 0), at(4400));
    leader.wake(at(4500));
    expect(notes.take().filter((line) => line.startsWith('close 3'))).toEqual([]);
    leader.wake(at(4501));
    expect(notes.take()).toContain('close 3: the learner has not acknowledged 0x400000001 for 501 ms');
  });

  it('drops a learner that reads its output but sends nothing once it is synchronised', () => {
    const leader = serving();
    leader.onProgress(2, at(500));
    leader.wake(at(501));
    expect(notes.take()).toContain('close 2: nothing was received from the learner for 501 ms');
  });

  it('does not answer a sync of a closed stream to the learner that reuses its channel', () => {
    const leader = serving([2, 3]);
    leader.packet(2, packet(PacketType.REQUEST, -1, requestOf(OpCode.sync)), now);
    leader.channelGone(2);
    leader.learnerConnected(2, now);
    notes.take();
    leader.packet(3, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), now);
    leader.packet(3, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), now);
    expect(notes.take().filter((line) => line.includes('SYNC'))).toEqual([]);
  });

  it('answers a sync after everything proposed before it', () => {
    const leader = serving();
    propose(leader, makeZxid(4, 1));
    leader.sync({} as never, now);
    leader.packet(2, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), now);
    leader.appended(makeZxid(4, 1), now);
    expect(notes.take()).not.toContain('synced');
    acknowledge(leader, 2, makeZxid(4, 1));
    expect(notes.take()).toEqual(['2 <- COMMIT 0x400000001', 'committed 0x400000001', 'synced']);
  });

  it('answers a sync before what was proposed after it, though both are committed at once', () => {
    const leader = serving();
    propose(leader, makeZxid(4, 1));
    leader.sync({} as never, now);
    leader.packet(2, packet(PacketType.REQUEST, -1, requestOf(OpCode.sync)), now);
    propose(leader, makeZxid(4, 2));
    leader.packet(2, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), now);
    leader.packet(2, packet(PacketType.PING, makeZxid(4, 0), Buffer.alloc(0)), now);
    acknowledge(leader, 2, makeZxid(4, 2));
    notes.take();
    leader.appended(makeZxid(4, 2), now);
    expect(notes.take()).toEqual([
      '2 <- COMMIT 0x400000001',
      'committed 0x400000001',
      'synced',
      '2 <- SYNC 0x0',
      '2 <- COMMIT 0x400000002',
      'committed 0x400000002',
    ]);
  });

  it('sends a learner its SYNC before what was proposed after it, whichever learner has acknowledged that; a learner of ZooKeeper would stop for good otherwise', () => {
    const leader = serving([2, 3]);
    introduce(leader, 4, 3, PacketType.OBSERVERINFO);
    acceptEpoch(leader, 4, 3, start.lastZxid);
    acknowledge(leader, 4, makeZxid(4, 0));
    for (const sid of [3, 4]) leader.packet(sid, packet(PacketType.REQUEST, -1, requestOf(OpCode.sync)), now);
    propose(leader, makeZxid(4, 1));
    leader.appended(makeZxid(4, 1), now);
    notes.take();
    acknowledge(leader, 2, makeZxid(4, 1));
    const delivered = notes.take();
    expect(delivered.filter((line) => line.startsWith('3 <- '))).toEqual(['3 <- SYNC 0x0', '3 <- COMMIT 0x400000001']);
    expect(delivered.filter((line) => line.startsWith('4 <- '))).toEqual(['4 <- SYNC 0x0', '4 <- INFORM 0x400000001']);
  });

  it('takes ACKs of a later proposal by a quorum as confirmation, like answers to a PING', () => {
    const leader = serving([2]);
    leader.sync({} as never, now);
    // It has been synchronised since, and was not sent that PING.
    leader.channelGone(2);
    introduce(leader, 3, 3);
    acceptEpoch(leader, 3, 3, start.lastZxid);
    acknowledge(leader, 3, makeZxid(4, 0));
    propose(leader, makeZxid(4, 1));
    acknowledge(leader, 3, makeZxid(4, 1));
    notes.take();
    leader.appended(makeZxid(4, 1), now);
    expect(notes.take()).toEqual(['synced', '3 <- COMMIT 0x400000001', 'committed 0x400000001']);
  });
});

it('a leader receives forwarded requests and touched sessions from a learner', () => {
  const leader = serving();
  leader.packet(2, packet(PacketType.REQUEST, -1, requestOf(OpCode.create)), now);
  const touched = Buffer.alloc(24);
  touched.writeInt32BE(5, 4);
  touched.writeInt32BE(6, 16);
  leader.packet(2, packet(PacketType.PING, 0, touched), now);
  expect(notes.take()).toEqual([`request ${OpCode.create} through 1`, 'touched 5', 'touched 6']);
});
