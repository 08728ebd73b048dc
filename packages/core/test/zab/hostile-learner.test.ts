/**
 * Whatever a learner sends, in any state of the leader: at most its own stream is closed. A request
 * that its client must not send gets an error txn, so that this client gets a reply, and the stream
 * with all other requests stays open.
 */
import { ErrorCode, makeZxid, OpCode, openAcl, operations, PacketType, Reader, readTxn, Writer } from '@tskeeper/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { sample } from '../../../../test/breadth.ts';
import { isWrite } from '../../src/pending/proposal.ts';
import { ChannelRank } from '../../src/zab/quorum-links.ts';
import { LoneLeader } from './lone-leader.ts';

/** Not that of the honest follower. */
const hostile = 9;
const session = 0x77;

const allOpCodes = [...Array.from({ length: 150 }, (_, at) => at - 20), 999, 0x7fff_ffff, -0x8000_0000];
const opCodes = [OpCode.createSession, OpCode.check, OpCode.deleteContainer, OpCode.multi, OpCode.closeSession, ...sample(allOpCodes, 10)];
const packetTypes = [
  PacketType.ACK,
  PacketType.PING,
  PacketType.REVALIDATE,
  ...sample(
    Array.from({ length: 64 }, (_, at) => at - 16),
    6,
  ),
];

function pathRecord(path: string): Buffer {
  const writer = new Writer(32);
  writer.ustring(path);
  return Buffer.from(writer.written());
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

const payloads: Readonly<Record<string, Buffer>> = {
  nothing: Buffer.alloc(0),
  'one byte': Buffer.from([1]),
  'a number': int(4000),
  'a negative number': int(-1),
  'a path': pathRecord('/zookeeper'),
  'a path and more': Buffer.concat([pathRecord('/a'), Buffer.alloc(24)]),
  'false lengths': Buffer.alloc(64, 0x7f),
};

const smallSteps = { core: { stepUnits: 1000 } };

/** A multi whose validation takes more than one such step. */
const longMulti = ((): Buffer => {
  const writer = new Writer(1024);
  operations.multi.request.write(writer, {
    ops: Array.from({ length: 100 }, (_, at) => ({
      kind: 'create' as const,
      path: `/n${at}`,
      data: Buffer.alloc(16),
      acl: openAcl,
      flags: 0,
    })),
  });
  return Buffer.from(writer.written());
})();

/** The leader in each of its states, with the hostile learner as far as it can be there. */
const states: Readonly<Record<string, (leader: LoneLeader) => void>> = {
  'in discovery, unknown': (leader) => leader.connect(hostile),
  'in discovery, introduced': (leader) => leader.introduce(hostile, hostile, 3, PacketType.OBSERVERINFO),
  'while acceptedEpoch is saved': (leader) => {
    leader.introduce(hostile, hostile, 3, PacketType.OBSERVERINFO);
    leader.introduce(2, 2);
  },
  'in acknowledgement': (leader) => {
    leader.introduce(hostile, hostile, 3, PacketType.OBSERVERINFO);
    leader.introduce(2, 2);
    leader.settle();
    leader.acceptEpoch(hostile);
  },
  'while currentEpoch is saved': (leader) => {
    leader.introduce(2, 2);
    leader.settle();
    leader.introduce(hostile, hostile, 3, PacketType.OBSERVERINFO);
    leader.acceptEpoch(2);
  },
  'in synchronisation': (leader) => {
    leader.introduce(2, 2);
    leader.settle();
    leader.acceptEpoch(2);
    leader.settle();
    leader.introduce(hostile, hostile, 3, PacketType.OBSERVERINFO);
    leader.acceptEpoch(hostile);
  },
  'in broadcast, unknown': (leader) => {
    leader.serveWithFollower();
    leader.connect(hostile);
  },
  'in broadcast, introduced': (leader) => {
    leader.serveWithFollower();
    leader.introduce(hostile, hostile, 4, PacketType.OBSERVERINFO);
  },
  'in broadcast, synchronised': (leader) => {
    leader.serveWithFollower();
    leader.introduce(hostile, hostile, 4, PacketType.OBSERVERINFO);
    leader.acceptEpoch(hostile);
  },
  'in broadcast, active': (leader) => {
    leader.serveWithFollower();
    leader.introduce(hostile, hostile, 4, PacketType.OBSERVERINFO);
    leader.acceptEpoch(hostile);
    leader.ack(hostile, makeZxid(4, 0));
  },
  'in broadcast, as a follower': (leader) => {
    leader.serveWithFollower();
    leader.introduce(hostile, 3, 4);
    leader.acceptEpoch(hostile);
    leader.ack(hostile, makeZxid(4, 0));
  },
  'in broadcast, while a long request is validated': (leader) => {
    leader.serveWithFollower();
    leader.introduce(hostile, hostile, 4, PacketType.OBSERVERINFO);
    leader.acceptEpoch(hostile);
    leader.ack(hostile, makeZxid(4, 0));
    leader.request(2, 1, 0, OpCode.createSession, int(4000));
    leader.request(2, 1, 1, OpCode.multi, longMulti);
    if (!leader.peer.server!.isBusy) throw new Error('it is not busy');
  },
};

/** The harm to the leader and its honest follower: none. */
function harm(leader: LoneLeader): string[] {
  leader.settle();
  const closed = [...leader.closed]
    .filter(([channel]) => channel !== hostile)
    .map(([channel, reason]) => `${channel} is closed: ${reason}`);
  return leader.peer.role === 'leading' ? closed : [`it is ${leader.peer.role}`, ...closed];
}

describe.each(Object.entries(states))('a learner hostile to a leader %s', (_state, reach) => {
  it.each(Object.entries(payloads))('that forwards requests of every opcode with %s harms only itself', (_what, payload) => {
    let leader: LoneLeader | undefined;
    for (const opCode of opCodes) {
      if (leader === undefined) reach((leader = new LoneLeader(smallSteps)));
      leader.request(hostile, session, 7, opCode, payload);
      if (!leader.closed.has(hostile)) continue;
      expect(harm(leader)).toEqual([]);
      leader = undefined;
    }
    if (leader !== undefined) expect(harm(leader)).toEqual([]);
  });

  it('that sends every type of packet, with valid and malformed data, harms only itself', () => {
    let leader: LoneLeader | undefined;
    for (const type of packetTypes) {
      for (const data of [null, ...Object.values(payloads)]) {
        for (const zxid of [-1, makeZxid(4, 0), makeZxid(5, 1)]) {
          if (leader === undefined) reach((leader = new LoneLeader(smallSteps)));
          leader.say(hostile, type, zxid, data);
          if (!leader.closed.has(hostile)) continue;
          expect(harm(leader)).toEqual([]);
          leader = undefined;
        }
      }
    }
    if (leader !== undefined) expect(harm(leader)).toEqual([]);
  });
});

describe('a learner that has not been sent UPTODATE', () => {
  it.each(['unknown', 'introduced', 'synchronised'])('gets no request performed and no session checked: %s', (stage) => {
    for (const type of [PacketType.REQUEST, PacketType.REVALIDATE]) {
      const leader = new LoneLeader(smallSteps);
      states[`in broadcast, ${stage}`]!(leader);
      leader.take(2);
      if (type === PacketType.REQUEST) leader.request(hostile, session, 0, OpCode.createSession, int(4000));
      else leader.say(hostile, type, -1, Buffer.alloc(12));
      expect(harm(leader)).toEqual([]);
      expect(LoneLeader.txns(leader.take(2))).toEqual([]);
      expect(leader.closed.get(hostile)).toContain('before UPTODATE');
    }
  });

  it('does not count for commits', () => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    leader.introduce(hostile, 3, 4);
    leader.ack(hostile, makeZxid(4, 9));
    expect(leader.closed.get(hostile)).toBe('the learner acknowledged 0x400000009, but was sent no proposal');
  });
});

it('requests of a closed stream are not performed for the next one with its channel number, though the session exists', () => {
  const leader = new LoneLeader(smallSteps);
  leader.serveWithFollower();
  const joins = (): void => {
    leader.introduce(hostile, hostile, 4, PacketType.OBSERVERINFO);
    leader.acceptEpoch(hostile);
    leader.ack(hostile, makeZxid(4, 0));
  };
  joins();
  leader.request(hostile, session, 0, OpCode.createSession, int(4000));
  leader.request(2, 1, 0, OpCode.createSession, int(4000));
  leader.settle();
  leader.request(2, 1, 1, OpCode.multi, longMulti);
  expect(leader.peer.server!.isBusy).toBe(true);
  leader.request(hostile, session, 1, OpCode.delete, Buffer.concat([pathRecord('/zookeeper'), int(-1)]));
  leader.streamGone(hostile);
  joins();
  const question = Buffer.alloc(12);
  question.writeInt32BE(session, 4);
  question.writeInt32BE(4000, 8);
  leader.say(hostile, PacketType.REVALIDATE, -1, question);
  leader.take(2);
  leader.settle();
  const mine = LoneLeader.txns(leader.take(2)).filter(({ header }) => header.clientLow === session);
  expect(mine).toMatchObject([{ header: { cxid: 1 }, txn: { kind: 'error', err: ErrorCode.SessionMoved } }]);
});

describe('a request that no client may send', () => {
  it.each([...new Set(opCodes)].filter((opCode) => !isWrite(opCode) && opCode !== OpCode.sync))(
    'with opcode %i is refused by an error txn for its client, and the stream stays open',
    (opCode) => {
      const leader = new LoneLeader(smallSteps);
      states['in broadcast, active']!(leader);
      leader.request(hostile, session, 0, OpCode.createSession, int(4000));
      leader.settle();
      leader.take(2);
      leader.request(hostile, session, 7, opCode, pathRecord('/zookeeper'));
      leader.settle();
      const txns = LoneLeader.txns(leader.take(2));
      expect(txns).toMatchObject([{ header: { clientLow: session, cxid: 7 }, txn: { kind: 'error', err: ErrorCode.Unimplemented } }]);
      expect(leader.closed.has(hostile)).toBe(false);
    },
  );

  it.each(['at once', 'after it was held'])('as a truncated createSession is refused %s, and no session is created', (when) => {
    const leader = new LoneLeader(smallSteps);
    states[when === 'at once' ? 'in broadcast, active' : 'in broadcast, while a long request is validated']!(leader);
    leader.request(hostile, session, 0, OpCode.createSession, Buffer.from([0, 0]));
    leader.settle();
    leader.ack(2, makeZxid(4, 3));
    leader.settle();
    expect(LoneLeader.txns(leader.take(2)).at(-1)).toMatchObject({ txn: { kind: 'error', err: ErrorCode.SessionExpired } });
    expect(leader.closed.has(hostile)).toBe(false);
  });
});

/**
 * Half a tick: the time in which a learner must show that it is alive when another stream claims
 * its id.
 */
const claimWaitMs = 50;

describe('a stream that claims the id of a connected learner', () => {
  let leader: LoneLeader;
  const pings = (channel: number) => leader.take(channel).filter(({ type }) => type === PacketType.PING).length;
  const answer = (channel: number) => {
    for (let left = pings(channel); left > 0; left--) leader.say(channel, PacketType.PING, -1, Buffer.alloc(0));
  };
  beforeEach(() => {
    leader = new LoneLeader();
    leader.serveWithFollower();
    answer(2);
  });

  it.each([PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO])(
    'does not disconnect the learner, however often it connects, while the learner answers: packet type %i',
    (type) => {
      for (let round = 0; round < 100; round++) {
        const impostor = 100 + round;
        leader.introduce(impostor, 2, 4, type);
        leader.elapse(10);
        answer(2);
        expect(leader.closed.get(impostor)).toContain('server 2 is already connected and answers');
        leader.elapse(90);
        answer(2);
        expect(harm(leader)).toEqual(Array.from({ length: round + 1 }, (_, at) => expect.stringContaining(`${100 + at} is closed`)));
      }
      leader.request(2, 1, 0, OpCode.createSession, int(4000));
      leader.settle();
      expect(LoneLeader.txns(leader.take(2))).toHaveLength(1);
    },
  );

  it('is sent nothing, and does not count, while the learner may still be connected', () => {
    leader.introduce(100, 2, 4);
    expect(leader.take(100)).toEqual([]);
    leader.ack(100, makeZxid(4, 0));
    leader.acceptEpoch(100);
    expect(leader.closed.get(100)).toBe('the learner accepted an epoch before this leader proposed one');
    leader.elapse(claimWaitMs * 2);
    expect(leader.closed.has(2)).toBe(false);
  });

  it('replaces the learner when that has not answered a PING for half a tick, and not before', () => {
    leader.elapse(7);
    answer(2);
    leader.introduce(100, 2, 4);
    expect(pings(2)).toBe(1);
    leader.elapse(claimWaitMs - 1);
    expect([...leader.closed]).toEqual([]);
    leader.elapse(1);
    expect(leader.closed.get(2)).toBe('the learner has reconnected, and this connection does not answer');
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
    leader.acceptEpoch(100);
    leader.ack(100, makeZxid(4, 0));
    expect(leader.take(100).map(({ name }) => name)).toContain('UPTODATE');
  });

  it('replaces the learner at once when the older stream closes', () => {
    leader.introduce(100, 2, 4);
    leader.streamGone(2);
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('is replaced by the next claimant, and the decision is not delayed by that', () => {
    leader.elapse(3);
    answer(2);
    for (let at = 0; at < 5; at++) {
      leader.introduce(100 + at, 2, 4);
      leader.elapse(claimWaitMs / 5);
    }
    for (let at = 0; at < 4; at++) expect(leader.closed.get(100 + at)).toBe('another connection also claims to be server 2');
    expect(leader.closed.get(2)).toBe('the learner has reconnected, and this connection does not answer');
    expect(leader.take(104).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('does not replace a learner that is sending a long packet', () => {
    leader.introduce(100, 2, 4);
    for (let at = 0; at < 5; at++) {
      leader.elapse(claimWaitMs / 5);
      leader.peer.partReceived(2, leader.now);
      if (at === 3) expect(leader.closed.has(100)).toBe(false);
    }
    leader.elapse(1);
    expect(leader.closed.has(2)).toBe(false);
    expect(leader.closed.get(100)).toContain('is already connected and answers');
  });

  it('waits as long again if the leader itself was late, since an answer may wait to be read', () => {
    leader.introduce(100, 2, 4);
    leader.elapse(claimWaitMs * 3);
    expect([...leader.closed]).toEqual([]);
    answer(2);
    expect([...leader.closed.keys()]).toEqual([100]);
  });

  it('replaces a learner that is being synchronised, once no bytes move on its stream', () => {
    leader.introduce(3, 3, 4);
    leader.acceptEpoch(3);
    leader.introduce(100, 3, 4);
    leader.elapse(claimWaitMs);
    expect(leader.closed.get(3)).toBe('the learner has reconnected, and this connection does not answer');
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('replaces the learner at once if the same process opened it, but at most once per half tick', () => {
    leader.introduce(3, 3, 4, PacketType.FOLLOWERINFO, 77);
    leader.elapse(claimWaitMs);
    leader.introduce(100, 3, 4, PacketType.FOLLOWERINFO, 77);
    expect(leader.closed.get(3)).toBe('the learner has reconnected');
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
    leader.introduce(101, 3, 4, PacketType.FOLLOWERINFO, 77);
    expect(leader.closed.has(100)).toBe(false);
    leader.elapse(claimWaitMs);
    expect(leader.closed.has(100)).toBe(true);
    expect(leader.take(101).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('is accepted for any number of observers without an id, which send -1', () => {
    for (const channel of [100, 101, 102]) {
      leader.introduce(channel, -1, 4, PacketType.OBSERVERINFO);
      leader.acceptEpoch(channel);
      leader.ack(channel, makeZxid(4, 0));
      expect(leader.take(channel).map(({ name }) => name)).toContain('UPTODATE');
    }
    expect([...leader.closed]).toEqual([]);
  });
});

describe('observers outside the configuration', () => {
  const observer = (leader: LoneLeader, channel: number, sid: number) => {
    leader.introduce(channel, sid, 4, PacketType.OBSERVERINFO);
    if (leader.closed.has(channel)) return;
    leader.acceptEpoch(channel);
    leader.ack(channel, makeZxid(4, 0));
  };

  it('are accepted up to sixteen, with and without an id; the next is refused with a remedy, and accepted when one has left', () => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    for (let at = 0; at < 16; at++) observer(leader, 100 + at, at % 2 === 0 ? 1000 + at : -1);
    expect([...leader.closed]).toEqual([]);
    observer(leader, 200, 2000);
    expect(leader.closed.get(200)).toBe(
      'server 2000 is not in the configuration, and 16 such observers are connected already. ' +
        'Add it to the server lines of every server, or raise tskeeper.maxUnknownObservers',
    );
    // A voter of the configuration is accepted, however many there are.
    leader.introduce(3, 3, 4);
    expect(leader.take(3).map(({ name }) => name)).toEqual(['LEADERINFO']);
    leader.streamGone(107);
    observer(leader, 201, 2000);
    expect(leader.take(201).map(({ name }) => name)).toContain('UPTODATE');
  });

  it('delay the expiry of a session by their silence for at most a quarter of a tick', () => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    observer(leader, 100, 1000);
    const [timeoutMs, tickMs] = [400, 100];
    leader.request(2, session, 0, OpCode.createSession, int(timeoutMs));
    const openedMs = leader.now.elapsedMs;
    let endedMs: number | undefined;
    while (endedMs === undefined && leader.now.elapsedMs < openedMs + 2 * timeoutMs) {
      leader.settle();
      for (const { type, zxid, data } of leader.take(2)) {
        if (type === PacketType.PING) leader.say(2, PacketType.PING, 0, Buffer.alloc(0));
        if (type !== PacketType.PROPOSAL) continue;
        if (readTxn(new Reader(data)).header.type === OpCode.closeSession) endedMs = leader.now.elapsedMs;
        leader.ack(2, zxid);
      }
      leader.settle();
      // At its deadline, and not before.
      const dueMs = leader.peer.deadline() ?? Infinity;
      leader.elapse(Math.max(1, Math.min(dueMs - leader.now.elapsedMs, 1000)));
    }
    // Sessions expire at whole ticks, each at the next one.
    const dueMs = (Math.floor((openedMs + timeoutMs) / tickMs) + 1) * tickMs;
    expect(endedMs).toBeLessThanOrEqual(dueMs + tickMs / 4 + 1);
  });

  it('rank after voters and observers of the configuration, and equal to streams that have not introduced themselves', () => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    observer(leader, 100, 1000);
    leader.connect(101);
    leader.introduce(102, 2, 4);
    expect([2, 100, 101, 102].map((channel) => leader.peer.channelRank(channel))).toEqual([
      ChannelRank.voter,
      ChannelRank.stranger,
      ChannelRank.stranger,
      ChannelRank.stranger,
    ]);
  });
});
