/**
 * The packets of a learner to its leader, and above all their time: never before the disk has what
 * they promise.
 */
import {
  LeaderFeature,
  makeZxid,
  OpCode,
  PacketType,
  PacketView,
  Reader,
  writeLeaderInfo,
  Writer,
  writeTxn,
  type Zxid,
} from '@tskeeper/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { Learner } from '../../src/zab/learner.ts';
import type { LearnerStart } from '../../src/zab/learner-host.ts';
import { Notes, packet } from './packets.ts';

const options = { sid: 2, tickTimeMs: 100, initLimitTicks: 10, syncLimitTicks: 5, forceSnapshotSync: false, counterMax: 0xffff_0000 };
const start: LearnerStart = {
  role: 'follower',
  acceptedEpoch: 4,
  currentEpoch: 3,
  lastZxid: makeZxid(3, 7),
  resyncEpoch: 0,
  configVersion: 0,
  leader: 1,
};
const now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };

let notes: Notes;
beforeEach(() => {
  notes = new Notes();
});

function learning(changed: Partial<LearnerStart> = {}): Learner {
  const host = {
    apply: ({ zxid }: { zxid: Zxid }) => notes.note(`apply 0x${zxid.toString(16)}`),
    committed: () => undefined,
    beginSnapshot: (zxid: Zxid) => notes.note(`load 0x${zxid.toString(16)}`),
    startServing: () => {
      notes.note('serve');
      return { server: undefined as never, forwarder: undefined as never };
    },
    historyComplete: () => notes.note('history'),
    configSeen: (text: string) => {
      notes.note(`config ${text}`);
      return undefined;
    },
    configActivated: (text: string) => {
      notes.note(`activate ${text}`);
      return { isFollowed: true, isRoleChanged: false, canLeaderLeadOn: true };
    },
  };
  return new Learner(options, { ...start, ...changed }, 9, new PacketView(), notes, notes, host, now);
}

function txn(zxid: Zxid): Buffer {
  const writer = new Writer(64);
  const header = { clientHigh: 0, clientLow: 1, cxid: 1, zxid, time: 0, type: OpCode.delete };
  writeTxn(writer, { header, txn: { kind: 'delete', path: '/a' }, digest: undefined });
  return Buffer.from(writer.written());
}

function proposal(zxid: Zxid): PacketView {
  return packet(PacketType.PROPOSAL, zxid, txn(zxid));
}

function leaderInfo(epoch: number, features: number): PacketView {
  const writer = new Writer(8);
  writeLeaderInfo(writer, features);
  return packet(PacketType.LEADERINFO, makeZxid(epoch, 0), Buffer.from(writer.written()));
}

/** Up to ACKEPOCH, for epoch 5. */
function accepted(changed: Partial<LearnerStart> = {}): Learner {
  const learner = learning(changed);
  learner.packet(packet(PacketType.LEADERINFO, makeZxid(5, 0), Buffer.from([0, 1, 0, 0])), now);
  learner.epochSaved('acceptedEpoch', now);
  notes.take();
  return learner;
}

const newLeader = packet(PacketType.NEWLEADER, makeZxid(5, 0), Buffer.from('version=0'));

describe('discovery', () => {
  it('an epoch is accepted when it is on disk, and not before', () => {
    const learner = learning();
    expect(notes.take()).toEqual(['9 <- FOLLOWERINFO 0x400000000']);
    learner.packet(packet(PacketType.LEADERINFO, makeZxid(5, 0)), now);
    expect(notes.take()).toEqual(['save acceptedEpoch 5']);
    learner.epochSaved('acceptedEpoch', now);
    expect(notes.take()).toEqual(['9 <- ACKEPOCH 0x300000007 3']);
  });

  it('a learner whose log cannot be truncated reconnects, and reports to that leader only that it has nothing', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.TRUNC, makeZxid(3, 2)), now);
    learner.truncationRefused();
    expect([learner.stages.endText, learner.resyncEpoch]).toEqual([expect.stringContaining('requesting a snapshot'), 5]);
    notes.take();
    const again = learning({ acceptedEpoch: 5, resyncEpoch: 5 });
    again.packet(packet(PacketType.LEADERINFO, makeZxid(5, 0)), now);
    expect(notes.take()).toEqual(['9 <- FOLLOWERINFO 0x500000000', '9 <- ACKEPOCH 0x0 -1']);
    const elsewhere = learning({ acceptedEpoch: 5, resyncEpoch: 5 });
    elsewhere.packet(packet(PacketType.LEADERINFO, makeZxid(6, 0)), now);
    elsewhere.epochSaved('acceptedEpoch', now);
    expect(notes.take().at(-1)).toBe('9 <- ACKEPOCH 0x300000007 3');
  });

  it('C4-17: an epoch that is not later than an accepted one is not accepted again', () => {
    const older = learning();
    older.packet(packet(PacketType.LEADERINFO, makeZxid(3, 0)), now);
    expect(older.stages.endText).toContain('epoch');
    notes.take();
    const same = learning();
    same.packet(packet(PacketType.LEADERINFO, makeZxid(4, 0)), now);
    // It says so, and is not counted for it.
    expect(notes.take()).toEqual(['9 <- FOLLOWERINFO 0x400000000', '9 <- ACKEPOCH 0x300000007 -1']);
    expect(same.stages.endReason).toBeUndefined();
  });

  it('an observer follows in an earlier epoch than it has accepted, but not in one before its current epoch', () => {
    const observer = { role: 'observer', acceptedEpoch: 6, currentEpoch: 5 } as const;
    const learner = learning(observer);
    learner.packet(packet(PacketType.LEADERINFO, makeZxid(5, 0)), now);
    // Nothing must be saved, and its accepted epoch stays.
    expect(notes.take()).toEqual(['9 <- OBSERVERINFO 0x600000000', '9 <- ACKEPOCH 0x300000007 -1']);
    expect(learner.stages.endReason).toBeUndefined();
    const behind = learning(observer);
    behind.packet(packet(PacketType.LEADERINFO, makeZxid(4, 0)), now);
    expect(behind.stages.endText).toContain("the leader's epoch is 4, but this server is in epoch 5");
  });

  it('a follower without a vote follows in an earlier epoch than it has accepted, if its leader says so', () => {
    const follower = { acceptedEpoch: 6, currentEpoch: 5 };
    const learner = learning(follower);
    learner.packet(leaderInfo(5, LeaderFeature.noVote), now);
    expect(notes.take()).toEqual(['9 <- FOLLOWERINFO 0x600000000', '9 <- ACKEPOCH 0x300000007 -1']);
    expect(learner.stages.endReason).toBeUndefined();
    const voter = learning(follower);
    voter.packet(leaderInfo(5, LeaderFeature.origins), now);
    expect(voter.stages.endText).toContain("the leader's epoch is 5, but this server has accepted epoch 6");
    const behind = learning(follower);
    behind.packet(leaderInfo(4, LeaderFeature.noVote), now);
    expect(behind.stages.endText).toContain("the leader's epoch is 4, but this server is in epoch 5");
  });

  it('an observer introduces itself with OBSERVERINFO', () => {
    learning({ role: 'observer' });
    expect(notes.take()).toEqual(['9 <- OBSERVERINFO 0x400000000']);
  });
});

describe('synchronisation', () => {
  it('A52, E16, E21: NEWLEADER is acknowledged when the log has the history, and after it currentEpoch', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.DIFF, makeZxid(4, 1)), now);
    learner.packet(proposal(makeZxid(4, 1)), now);
    learner.packet(packet(PacketType.COMMIT, makeZxid(4, 1)), now);
    learner.packet(newLeader, now);
    expect(notes.take()).toEqual(['append 0x400000001', 'apply 0x400000001', 'history', 'config version=0']);
    learner.appended(makeZxid(4, 1));
    expect(notes.take()).toEqual(['save currentEpoch 5']);
    learner.epochSaved('currentEpoch', now);
    expect(notes.take()).toEqual(['9 <- ACK 0x500000000']);
    learner.packet(packet(PacketType.UPTODATE, -1), now);
    expect(notes.take()).toEqual(['activate version=0', 'serve', '9 <- ACK 0x500000000']);
  });

  describe('a snapshot of less than this server has acknowledged to the same leader', () => {
    const again = { acceptedEpoch: 5, currentEpoch: 5, lastZxid: makeZxid(5, 7) };
    const sent = (changed: Partial<LearnerStart>, zxid: Zxid): Learner => {
      const learner = learning(changed);
      learner.packet(packet(PacketType.LEADERINFO, makeZxid(5, 0)), now);
      notes.take();
      learner.packet(packet(PacketType.SNAP, zxid), now);
      return learner;
    };

    it('is refused: the acknowledged txns may be committed, and the learner reconnects', () => {
      const why = 'the leader sent a snapshot of 0x500000006, but this server has acknowledged 0x500000007 in this epoch: reconnecting';
      expect(sent(again, makeZxid(5, 6)).stages.endText).toBe(why);
      expect(notes.take()).toEqual([`close 9: ${why}`]);
    });

    it.each<[string, Partial<LearnerStart>, Zxid]>([
      ['of everything it has acknowledged', again, makeZxid(5, 7)],
      // Committed txns of an earlier epoch were in the leader's history when its epoch began.
      ['of less, in an earlier epoch', { ...again, currentEpoch: 4, lastZxid: makeZxid(4, 7) }, makeZxid(4, 6)],
      ['of less, if its ACK does not count', { ...again, role: 'observer' }, makeZxid(5, 6)],
    ])('is accepted if it is one %s', (_what, changed, zxid) => {
      const learner = sent(changed, zxid);
      expect(notes.take()).toEqual([`load 0x${zxid.toString(16)}`]);
      expect(learner.stages.endReason).toBeUndefined();
    });
  });

  it('C4-19: a proposal is acknowledged when it is in the log, and never before NEWLEADER', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    // Not committed when it was sent.
    learner.packet(proposal(makeZxid(5, 1)), now);
    learner.packet(newLeader, now);
    learner.packet(proposal(makeZxid(5, 2)), now);
    expect(notes.take()).toEqual(['append 0x500000001', 'history', 'config version=0', 'append 0x500000002']);
    learner.appended(makeZxid(5, 1));
    expect(notes.take()).toEqual(['save currentEpoch 5']);
    learner.epochSaved('currentEpoch', now);
    expect(notes.take()).toEqual(['9 <- ACK 0x500000000', '9 <- ACK 0x500000001']);
    learner.appended(makeZxid(5, 2));
    expect(notes.take()).toEqual(['9 <- ACK 0x500000002']);
    learner.packet(proposal(makeZxid(5, 3)), now);
    expect(notes.take()).toEqual(['append 0x500000003']);
    learner.appended(makeZxid(5, 3));
    expect(notes.take()).toEqual(['9 <- ACK 0x500000003']);
  });

  it.each([1, 5, 10, 20])(
    'A52: proposals that follow NEWLEADER do not delay its ACK, with a log sync of %i ms and a write every ms',
    (syncMs) => {
      const learner = accepted();
      learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
      learner.packet(proposal(makeZxid(5, 1)), now);
      let logged = 1;
      let syncing: { readonly counter: number; readonly doneMs: number } | undefined;
      const acks: string[] = [];
      for (let ms = 0; ms < 200; ms++) {
        const at = { elapsedMs: now.elapsedMs + ms, wallMs: 0 };
        if (ms === 30) learner.packet(newLeader, at);
        learner.packet(proposal(makeZxid(5, ++logged)), at);
        // One sync after the other, each of everything written before it began.
        if (syncing !== undefined && ms >= syncing.doneMs) {
          learner.appended(makeZxid(5, syncing.counter));
          syncing = undefined;
        }
        syncing ??= { counter: logged, doneMs: ms + syncMs };
        const lines = notes.take();
        if (lines.includes('save currentEpoch 5')) learner.epochSaved('currentEpoch', at);
        for (const line of [...lines, ...notes.take()]) if (line.includes('ACK')) acks.push(line);
      }
      // NEWLEADER first, then every proposal in order, up to what is on disk by then.
      expect(acks.length).toBeGreaterThan(200 - 2 * syncMs - 2);
      expect(acks).toEqual(acks.map((_, counter) => `9 <- ACK 0x5${counter.toString(16).padStart(8, '0')}`));
    },
  );

  it('a TRUNC is complete before later packets are processed', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.TRUNC, makeZxid(3, 5)), now);
    learner.packet(proposal(makeZxid(4, 1)), now);
    learner.packet(packet(PacketType.COMMIT, makeZxid(4, 1)), now);
    learner.packet(newLeader, now);
    expect(notes.take()).toEqual(['truncate 0x300000005']);
    learner.truncated(makeZxid(3, 5), now);
    expect(notes.take()).toEqual(['append 0x400000001', 'apply 0x400000001', 'history', 'config version=0']);
  });

  it('a snapshot is on disk before later packets are processed', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.SNAP, makeZxid(4, 9)), now);
    expect(notes.take()).toEqual(['load 0x400000009']);
    learner.snapshotLoaded(now);
    learner.packet(proposal(makeZxid(4, 10)), now);
    learner.packet(newLeader, now);
    expect(notes.take()).toEqual(['install 0x400000009']);
    learner.installed(now);
    expect(notes.take()).toEqual(['append 0x40000000a', 'history', 'config version=0']);
    learner.appended(makeZxid(4, 10));
    expect(notes.take()).toEqual(['save currentEpoch 5']);
  });

  it.each(['follower', 'observer'] as const)('txns contained in a snapshot are skipped, and the next one follows it: %s', (role) => {
    const learner = accepted({ role });
    learner.packet(packet(PacketType.SNAP, makeZxid(4, 9)), now);
    learner.snapshotLoaded(now);
    learner.installed(now);
    notes.take();
    // A leader of ZooKeeper first chooses the first txn to send, and then reads the zxid of the
    // snapshot that it writes.
    learner.packet(proposal(makeZxid(4, 8)), now);
    learner.packet(packet(PacketType.COMMIT, makeZxid(4, 8)), now);
    learner.packet(packet(PacketType.INFORM, makeZxid(4, 9), txn(makeZxid(4, 9))), now);
    learner.packet(proposal(makeZxid(4, 10)), now);
    learner.packet(packet(PacketType.COMMIT, makeZxid(4, 10)), now);
    expect(notes.take()).toEqual(['append 0x40000000a', 'apply 0x40000000a']);
    expect(learner.stages.endReason).toBeUndefined();
  });

  it.each([
    ['a gap in zxids', () => [proposal(makeZxid(3, 9))]],
    ['a txn twice', () => [proposal(makeZxid(3, 8)), proposal(makeZxid(3, 8))]],
    ['an epoch that begins with 2', () => [proposal(makeZxid(4, 2))]],
    ['a COMMIT without a proposal', () => [packet(PacketType.COMMIT, makeZxid(3, 8))]],
    ['a COMMIT out of order', () => [proposal(makeZxid(3, 8)), proposal(makeZxid(3, 9)), packet(PacketType.COMMIT, makeZxid(3, 9))]],
    ['NEWLEADER of another epoch', () => [packet(PacketType.NEWLEADER, makeZxid(6, 0))]],
    ['UPTODATE before NEWLEADER', () => [packet(PacketType.UPTODATE, -1)]],
    ['DIFF twice', () => [packet(PacketType.DIFF, start.lastZxid)]],
    ['a packet of an unknown type', () => [packet(77, 0)]],
    ['a SYNC that was not requested', () => [packet(PacketType.SYNC, 0)]],
  ])('E21: a learner leaves a leader that sends %s', (_what, packets) => {
    const learner = accepted();
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    for (const each of packets()) learner.packet(each, now);
    expect(learner.stages.endReason).toBeDefined();
    expect(notes.take().at(-1)).toContain('close 9');
  });

  it('A54: an observer acknowledges NEWLEADER, and no txn', () => {
    const learner = accepted({ role: 'observer' });
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    learner.packet(newLeader, now);
    learner.epochSaved('currentEpoch', now);
    notes.take();
    learner.packet(packet(PacketType.INFORM, makeZxid(5, 1), txn(makeZxid(5, 1))), now);
    learner.appended(makeZxid(5, 1));
    expect(notes.take()).toEqual(['append 0x500000001', 'apply 0x500000001']);
  });
});

describe('a reconfig', () => {
  const reconfig = (zxid: Zxid): Buffer => {
    const writer = new Writer(64);
    const header = { clientHigh: 0, clientLow: 1, cxid: 1, zxid, time: 0, type: OpCode.reconfig };
    const change = { kind: 'setData', path: '/zookeeper/config', data: Buffer.from('version=500000001'), version: -1 } as const;
    writeTxn(writer, { header, txn: change, digest: undefined });
    return Buffer.from(writer.written());
  };
  const designating = (sid: number): Buffer => Buffer.from([0, 0, 0, 0, 0, 0, 0, sid]);
  const zxid = makeZxid(5, 1);

  it('is checked before it is logged, and is active when it is committed', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    learner.packet(packet(PacketType.PROPOSAL, zxid, reconfig(zxid)), now);
    expect(notes.take()).toEqual(['config version=500000001', 'append 0x500000001']);
    learner.packet(packet(PacketType.COMMITANDACTIVATE, zxid, designating(1)), now);
    expect(notes.take()).toEqual(['apply 0x500000001', 'activate version=500000001']);
    expect(learner.stages.endReason).toBeUndefined();
  });

  it('is sent to an observer with its txn', () => {
    const learner = accepted({ role: 'observer' });
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    learner.packet(packet(PacketType.INFORMANDACTIVATE, zxid, Buffer.concat([designating(1), reconfig(zxid)])), now);
    expect(notes.take()).toEqual(['config version=500000001', 'append 0x500000001', 'apply 0x500000001', 'activate version=500000001']);
  });

  it('may designate another leader: the learner then leaves the present one, which commits nothing more', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    learner.packet(packet(PacketType.PROPOSAL, zxid, reconfig(zxid)), now);
    learner.packet(packet(PacketType.COMMITANDACTIVATE, zxid, designating(3)), now);
    expect(learner.stages.endText).toBe('the leader resigned in favour of server 3');
  });
});

describe('silence of a leader', () => {
  it('C4-13: a silent leader is given up: after initLimit at first, after syncLimit once synchronised', () => {
    const learner = accepted();
    const at = (ms: number) => ({ elapsedMs: now.elapsedMs + ms, wallMs: 0 });
    learner.wake(at(1000));
    expect(learner.stages.endReason).toBeUndefined();
    learner.packet(packet(PacketType.DIFF, start.lastZxid), at(1000));
    learner.packet(newLeader, at(1000));
    learner.epochSaved('currentEpoch', at(1000));
    learner.wake(at(1500));
    expect(learner.stages.endReason).toBeUndefined();
    learner.wake(at(1501));
    expect(learner.stages.endText).toContain('nothing was received');
  });

  it("is not assumed while bytes arrive, nor while this server's disk is working", () => {
    const at = (ms: number) => ({ elapsedMs: now.elapsedMs + ms, wallMs: 0 });
    const learner = accepted();
    learner.packet(packet(PacketType.SNAP, makeZxid(4, 9)), now);
    for (let ms = 900; ms <= 4500; ms += 900) {
      learner.bytesReceived(at(ms));
      learner.wake(at(ms));
    }
    learner.snapshotLoaded(at(4500));
    // Later packets of the leader wait for the disk, so none is processed.
    learner.wake(at(9000));
    learner.installed(at(9900));
    learner.wake(at(10_900));
    expect(learner.stages.endReason).toBeUndefined();
    learner.wake(at(10_901));
    expect(learner.stages.endText).toContain('nothing was received from the leader for 1001 ms');
  });

  it('C4-13: ends with a PING, which is answered after UPTODATE, and not before', () => {
    const learner = accepted();
    const ping = packet(PacketType.PING, makeZxid(3, 7));
    learner.packet(ping, now);
    learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
    learner.packet(ping, now);
    learner.packet(newLeader, now);
    // A leader of ZooKeeper sends PINGs from here on, and closes the stream at any packet except
    // the expected ACK.
    learner.packet(ping, now);
    learner.epochSaved('currentEpoch', now);
    learner.packet(ping, now);
    expect(notes.take()).toEqual(['history', 'config version=0', 'save currentEpoch 5', '9 <- ACK 0x500000000']);
    learner.packet(packet(PacketType.UPTODATE, -1), now);
    learner.packet(ping, now);
    expect(notes.take()).toEqual(['activate version=0', 'serve', '9 <- ACK 0x500000000', '9 <- PING 0x300000007']);
  });
});

it('the txns in the log when the leader is lost are applied, committed or not', () => {
  const learner = accepted();
  learner.packet(packet(PacketType.DIFF, start.lastZxid), now);
  for (const zxid of [8, 9, 10]) learner.packet(proposal(makeZxid(3, zxid)), now);
  learner.packet(packet(PacketType.COMMIT, makeZxid(3, 8)), now);
  notes.take();
  learner.channelGone(now);
  learner.stop(now);
  expect(notes.take()).toEqual(['close 9: the connection to the leader is closed', 'apply 0x300000009', 'apply 0x30000000a']);
});

describe('requests of clients, while the stream to the leader is full', () => {
  const ask = (learner: Learner, cxid: number, bytes = 10) =>
    learner.requests.request({ sessionHigh: 0, sessionLow: 1 }, cxid, OpCode.setData, new Reader(Buffer.alloc(bytes)), undefined);
  const kinds = () => notes.take().map((line) => line.replace(/^9 <- (\w+).*/, '$1'));

  it('wait in order, and ACKs are sent before them', () => {
    const learner = accepted();
    learner.packet(packet(PacketType.DIFF, makeZxid(3, 7)), now);
    learner.packet(newLeader, now);
    learner.epochSaved('currentEpoch', now);
    notes.take();
    ask(learner, 1);
    expect(kinds()).toEqual(['REQUEST']);
    notes.full.add(9);
    ask(learner, 2);
    learner.requests.revalidate({ sessionHigh: 0, sessionLow: 5 }, 4000);
    ask(learner, 3);
    expect(kinds()).toEqual([]);
    learner.packet(proposal(makeZxid(5, 1)), now);
    learner.appended(makeZxid(5, 1));
    expect(notes.take()).toEqual(['append 0x500000001', '9 <- ACK 0x500000001']);
    notes.full.delete(9);
    // Still after those that wait.
    ask(learner, 4);
    expect(kinds()).toEqual([]);
    learner.wake(now);
    expect(kinds()).toEqual(['REQUEST', 'REVALIDATE', 'REQUEST', 'REQUEST']);
    ask(learner, 5);
    expect(kinds()).toEqual(['REQUEST']);
  });

  it('count in the queued bytes until they have been sent', () => {
    const learner = accepted();
    expect(learner.requests.queuedBytes).toBe(0);
    notes.full.add(9);
    ask(learner, 1, 1000);
    const one = learner.requests.queuedBytes;
    expect(one).toBeGreaterThan(1000);
    ask(learner, 2, 1000);
    expect(learner.requests.queuedBytes).toBe(2 * one);
    learner.wake(now);
    expect(learner.requests.queuedBytes).toBe(2 * one);
    notes.full.delete(9);
    learner.wake(now);
    expect(learner.requests.queuedBytes).toBe(0);
  });
});
