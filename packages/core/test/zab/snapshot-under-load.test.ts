/**
 * A learner's SNAP while the leader commits more than it has applied, and more than it keeps in
 * memory.
 */
import { makeZxid, OpCode, openAcl, operations, PacketType, Writer, type Zxid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { LoneLeader } from './lone-leader.ts';

const session = 0x77;
const learner = 9;

/** A write whose txn takes a good part of the budget of one step. */
function multi(name: string, parts = 300): Buffer {
  const writer = new Writer(1024);
  const ops = Array.from({ length: parts }, (_, at) => ({
    kind: 'create' as const,
    path: `/${name}-${at}`,
    data: null,
    acl: openAcl,
    flags: 0,
  }));
  operations.multi.request.write(writer, { ops });
  return Buffer.from(writer.written());
}

function beginSession(leader: LoneLeader): void {
  const timeOut = Buffer.alloc(4);
  timeOut.writeInt32BE(40_000);
  leader.request(2, session, 0, OpCode.createSession, timeOut);
  leader.settle();
  leader.ack(2, makeZxid(4, 1));
  leader.settle();
}

/** Commits `count` txns at once: most of them are not applied yet. Returns the last. */
function commitAtOnce(leader: LoneLeader, count: number): Zxid {
  for (let at = 1; at <= count; at++) leader.request(2, session, at, OpCode.multi, multi(`n${at}`));
  leader.settle();
  const last = makeZxid(4, 1 + count);
  leader.ack(2, last);
  return last;
}

describe('a SNAP that begins while a large group of txns is committed and not applied', () => {
  it.each([
    ['many', { countMax: 3, bytesMax: 1_000_000 }],
    ['large', { countMax: 500, bytesMax: 50_000 }],
  ])('is followed by all of them, though they are too %s for the limits of memory', (_what, committedLog) => {
    const leader = new LoneLeader({ committedLog });
    leader.serveWithFollower();
    beginSession(leader);
    leader.introduce(learner, learner, 4, PacketType.OBSERVERINFO);
    const last = commitAtOnce(leader, 40);
    const applied = leader.peer.replica.lastZxid;
    expect(last - applied).toBeGreaterThan(10);
    leader.acceptEpoch(learner, 0, 0);
    leader.take(learner);
    leader.settle();
    const { snapshotZxid, zxids } = leader.afterSnapshot(learner);
    expect(zxids).toEqual(Array.from({ length: last - snapshotZxid }, (_, at) => snapshotZxid + 1 + at));
    expect(snapshotZxid).toBe(applied);
  });
});

describe('during a SNAP', () => {
  const begun = (): { readonly leader: LoneLeader; readonly snapshotZxid: Zxid } => {
    const leader = new LoneLeader({ committedLog: { countMax: 3, bytesMax: 1_000_000 } });
    leader.serveWithFollower();
    beginSession(leader);
    commitAtOnce(leader, 40);
    leader.settle();
    leader.introduce(learner, learner, 4, PacketType.OBSERVERINFO);
    leader.full.add(learner);
    leader.acceptEpoch(learner, 0, 0);
    leader.elapse(1);
    return { leader, snapshotZxid: leader.peer.replica.lastZxid };
  };
  const write = (leader: LoneLeader, count: number): void => {
    for (let times = 0; times < count; times++) {
      const next = leader.peer.replica.lastZxid + 1;
      leader.request(2, session, next, OpCode.multi, multi(`w${next}`, 1));
      leader.settle();
      leader.ack(2, next);
      leader.settle();
    }
  };

  it('committed txns are not kept for it: they are sent from the log on disk, until memory has the rest', () => {
    const { leader, snapshotZxid } = begun();
    write(leader, 20);
    leader.full.delete(learner);
    leader.settle();
    expect(leader.logsAsked).toEqual([{ channel: learner, from: snapshotZxid, isTail: true }]);
    // More is committed meanwhile, so that memory does not reach back to the end of the part that
    // was read.
    leader.showLog(learner, snapshotZxid, 12);
    write(leader, 10);
    leader.showLog(learner, snapshotZxid + 12, 8, true);
    expect(leader.logsAsked.at(-1)).toEqual({ channel: learner, from: snapshotZxid + 20, isTail: true });
    leader.showLog(learner, snapshotZxid + 20, 9, true);
    const { zxids } = leader.afterSnapshot(learner);
    expect(zxids).toEqual(Array.from({ length: 30 }, (_, at) => snapshotZxid + 1 + at));
    expect(leader.closed.has(learner)).toBe(false);
  });

  it('a few committed txns are sent from memory', () => {
    const { leader, snapshotZxid } = begun();
    write(leader, 2);
    leader.full.delete(learner);
    leader.settle();
    expect(leader.logsAsked).toEqual([]);
    expect(leader.afterSnapshot(learner).zxids).toEqual([snapshotZxid + 1, snapshotZxid + 2]);
  });

  it('the log may be purged, and then the learner must reconnect', () => {
    const { leader, snapshotZxid } = begun();
    write(leader, 20);
    leader.full.delete(learner);
    leader.settle();
    leader.showLog(learner, snapshotZxid + 5, 9);
    expect(leader.closed.get(learner)).toBe('the log was purged while it was read for this learner');
  });
});

describe('learners that need a SNAP at once', () => {
  const join = (leader: LoneLeader, channel: number, type: number = PacketType.OBSERVERINFO): void => {
    leader.introduce(channel, channel, 4, type);
    leader.acceptEpoch(channel, 0, 0);
  };
  /** Too much to be written in one step. */
  const filled = (): LoneLeader => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    beginSession(leader);
    commitAtOnce(leader, 40);
    leader.settle();
    return leader;
  };
  const has = (leader: LoneLeader, channel: number): string[] => leader.take(channel).map(({ name }) => name);
  const voter = 3;
  /** How many steps it takes to send an empty follower all it lacks, after `others`. */
  const stepsToJoin = (others: (leader: LoneLeader) => void): number => {
    const leader = filled();
    others(leader);
    leader.settle();
    join(leader, voter, PacketType.FOLLOWERINFO);
    for (let steps = 1; steps < 10_000; steps++) {
      leader.peer.wake(leader.now);
      if (has(leader, voter).includes('NEWLEADER')) return steps;
    }
    throw new Error('it does not join');
  };

  it('do not delay an empty follower: beside slow or silent strangers it joins in as many steps as alone', () => {
    const alone = stepsToJoin(() => undefined);
    const silent = stepsToJoin((leader) => {
      for (const channel of [9, 10, 11, 12]) {
        leader.full.add(channel);
        join(leader, channel);
      }
    });
    const taking = stepsToJoin((leader) => {
      for (const channel of [9, 10]) {
        leader.full.add(channel);
        join(leader, channel);
        leader.settle();
        leader.full.delete(channel);
      }
    });
    expect([silent, taking]).toEqual([alone, alone]);
  });

  it('do not prevent a snapshot for the file of this server', () => {
    const leader = filled();
    leader.full.add(9);
    join(leader, 9);
    leader.settle();
    expect(has(leader, 9)).toContain('SNAP');
    expect(leader.peer.canSnapshot).toBe(true);
  });
});
