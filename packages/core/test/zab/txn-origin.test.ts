/**
 * The server that a leader names as a txn's origin, so that no other server answers its own client
 * with it.
 */
import { makeZxid, OpCode, PacketType, writeRevalidateRequest } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { bytesOf, checksOf, multiOf, shortWrite } from '../support/records.ts';
import { LocalTxnFilter } from '../../src/zab/txn-origin.ts';
import { LoneLeader } from './lone-leader.ts';
import { packet } from './packets.ts';

const channel = 2;
const session = 7;
const timeoutMs = 40_000;
const checks = checksOf(200);
const long = multiOf(checks);

/** A leader of server 1, whose learner 2 has a client. */
function leaderWithSession(): LoneLeader {
  const leader = new LoneLeader({ core: { stepUnits: 100 } });
  leader.serveWithFollower();
  const timeOut = Buffer.alloc(4);
  timeOut.writeInt32BE(timeoutMs);
  leader.request(channel, session, 0, OpCode.createSession, timeOut);
  leader.settle();
  leader.ack(channel, makeZxid(4, 1));
  leader.settle();
  leader.take(channel);
  return leader;
}

/** The client reconnects to the same learner. */
function comesBack(leader: LoneLeader): void {
  const asked = bytesOf((writer) => writeRevalidateRequest(writer, { sessionHigh: 0, sessionLow: session, timeOut: timeoutMs }));
  leader.say(channel, PacketType.REVALIDATE, -1, asked);
}

function origins(leader: LoneLeader): (string | null | undefined)[] {
  leader.settle();
  const proposals = leader.take(channel).filter(({ type }) => type === PacketType.PROPOSAL);
  return proposals.map(({ authinfo }) => authinfo?.find(({ scheme }) => scheme === 'origin')?.id);
}

describe('the authinfo of a PROPOSAL', () => {
  it('names the server through which the request came', () => {
    const leader = leaderWithSession();
    leader.request(channel, session, 1, OpCode.setData, shortWrite);
    expect(origins(leader)).toEqual(['2']);
  });

  it('names no server for a write that is validated while its session moves to another connection at that server', () => {
    const leader = leaderWithSession();
    leader.request(channel, session, 1, OpCode.multi, long);
    expect(leader.peer.server!.isBusy).toBe(true);
    comesBack(leader);
    leader.request(channel, session, 2, OpCode.setData, shortWrite);
    expect(origins(leader)).toEqual(['', '2']);
  });

  it('names no server for a write that waited for a transfer of the lead, and is validated while its session moves', () => {
    const leader = leaderWithSession();
    leader.follow(3);
    // Server 3 does not acknowledge it, so it is not in step, and then it is lost.
    leader.request(channel, session, 1, OpCode.setData, shortWrite);
    expect(origins(leader)).toEqual(['2']);
    expect(leader.peer.transferLeadership(3, leader.now)).toBe(3);
    leader.request(channel, session, 2, OpCode.multi, long);
    expect(leader.peer.server!.isBusy).toBe(false);
    leader.streamGone(3);
    leader.peer.wake(leader.now);
    expect(leader.peer.server!.isBusy).toBe(true);
    comesBack(leader);
    leader.request(channel, session, 3, OpCode.setData, shortWrite);
    expect(origins(leader)).toEqual(['', '2']);
  });
});

describe('a learner', () => {
  it('treats a txn as its own if the authinfo names it, names no server, or has another scheme', () => {
    const own = new LocalTxnFilter(3);
    const taken = [
      null,
      [],
      [{ scheme: 'origin', id: '3' }],
      [{ scheme: 'origin', id: '33' }],
      [{ scheme: 'origin', id: '' }],
      [{ scheme: 'ip', id: '::1' }],
    ].map((authinfo) => own.mayBeLocal(packet(PacketType.PROPOSAL, makeZxid(4, 1), Buffer.from('a txn'), authinfo)));
    expect(taken).toEqual([true, true, true, false, false, true]);
  });
});
