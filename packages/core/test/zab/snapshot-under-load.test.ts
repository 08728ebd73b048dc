/** What a learner is sent by SNAP while the leader commits more than it has applied, and more than it keeps in memory. */
import { makeZxid, OpCode, openAcl, operations, PacketType, Writer, type Zxid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { LoneLeader } from './lone-leader.ts';

const session = 0x77;
const learner = 9;

/** A write whose txn takes a good part of what one step may spend. */
function multi(name: string, parts = 300): Buffer {
  const writer = new Writer(1024);
  const ops = Array.from({ length: parts }, (_, at) => ({
    kind: 'create' as const,
    path: `/${name}-${at}`,
    data: null,
    acl: openAcl,
    flags: 0,
  }));
  operations.multi.request.write(writer, { ops } as never);
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

/** So many txns, committed all at once: most of them are yet to be applied. Returns the last. */
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
  ])('is followed by all of them, though they are too %s for what memory is to keep', (_what, committedLog) => {
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
