/**
 * Whatever a learner sends, in whatever state the leader is: at most its own stream is closed. A request that its client must not make gets
 * an error txn, so that this client is answered, and the stream with everybody else's requests stays.
 */
import { ErrorCode, makeZxid, OpCode, openAcl, operations, PacketType, Reader, readTxn, Writer } from '@tskeeper/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { sample } from '../../../../test/breadth.ts';
import { isWrite } from '../../src/request/proposal.ts';
import { ChannelRank } from '../../src/zab/quorum-links.ts';
import { LoneLeader } from './lone-leader.ts';

/** Not those of the honest follower. */
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
  'lengths that lie': Buffer.alloc(64, 0x7f),
};

const smallSteps = { core: { turnUnits: 1000 } };

/** A multi that takes more than one such step to be judged. */
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
  'in broadcast, while a long request is judged': (leader) => {
    leader.serveWithFollower();
    leader.introduce(hostile, hostile, 4, PacketType.OBSERVERINFO);
    leader.acceptEpoch(hostile);
    leader.ack(hostile, makeZxid(4, 0));
    leader.request(2, 1, 0, OpCode.createSession, int(4000));
    leader.request(2, 1, 1, OpCode.multi, longMulti);
    if (!leader.peer.busy) throw new Error('it is not busy');
  },
};

/** What has happened to the leader and its honest follower: nothing. */
function harm(leader: LoneLeader): string[] {
  leader.settle();
  const closed = [...leader.closed]
    .filter(([channel]) => channel !== hostile)
    .map(([channel, reason]) => `${channel} is closed: ${reason}`);
  return leader.peer.role === 'leading' ? closed : [`it is ${leader.peer.role}`, ...closed];
}

describe.each(Object.entries(states))('a learner that is hostile to a leader %s', (_state, reach) => {
  it.each(Object.entries(payloads))('passes on requests of every opcode with %s, and nobody but itself is harmed', (_what, payload) => {
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

  it('sends every type of packet, with data that can and cannot be read, and nobody but itself is harmed', () => {
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

describe('a learner that has not been told to serve', () => {
  it.each(['unknown', 'introduced', 'synchronised'])('has no request carried out, and asks about no session: %s', (stage) => {
    for (const type of [PacketType.REQUEST, PacketType.REVALIDATE]) {
      const leader = new LoneLeader(smallSteps);
      states[`in broadcast, ${stage}`]!(leader);
      leader.take(2);
      if (type === PacketType.REQUEST) leader.request(hostile, session, 0, OpCode.createSession, int(4000));
      else leader.say(hostile, type, -1, Buffer.alloc(12));
      expect(harm(leader)).toEqual([]);
      expect(LoneLeader.txns(leader.take(2))).toEqual([]);
      expect(leader.closed.get(hostile)).toContain('before it was told to serve');
    }
  });

  it('has no say in what is committed', () => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    leader.introduce(hostile, 3, 4);
    leader.ack(hostile, makeZxid(4, 9));
    expect(leader.closed.get(hostile)).toBe('it has acknowledged 0x400000009, and has been sent nothing');
  });
});

it('what a stream had sent before it went is not carried out for the next one with its number, though the session is there', () => {
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
  expect(leader.peer.busy).toBe(true);
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

describe('a request that no client may make', () => {
  it.each([...new Set(opCodes)].filter((opCode) => !isWrite(opCode) && opCode !== OpCode.sync))(
    'opcode %i is refused by an error txn for its client, and the stream stays',
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

  it.each(['at once', 'after it was held'])('a createSession that is cut short is refused %s, and no session begins', (when) => {
    const leader = new LoneLeader(smallSteps);
    states[when === 'at once' ? 'in broadcast, active' : 'in broadcast, while a long request is judged']!(leader);
    leader.request(hostile, session, 0, OpCode.createSession, Buffer.from([0, 0]));
    leader.settle();
    leader.ack(2, makeZxid(4, 3));
    leader.settle();
    expect(LoneLeader.txns(leader.take(2)).at(-1)).toMatchObject({ txn: { kind: 'error', err: ErrorCode.SessionExpired } });
    expect(leader.closed.has(hostile)).toBe(false);
  });
});

/** Half a tick: the time in which a learner has to show that it lives when another stream gives its id. */
const claimWaitMs = 50;

describe('a stream that gives the id of a learner which has one', () => {
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
    'does not cut it off, however often it comes, while the learner answers: packet type %i',
    (type) => {
      for (let round = 0; round < 100; round++) {
        const impostor = 100 + round;
        leader.introduce(impostor, 2, 4, type);
        leader.elapse(10);
        answer(2);
        expect(leader.closed.get(impostor)).toContain('server 2, which it says that it is, is connected and answers');
        leader.elapse(90);
        answer(2);
        expect(harm(leader)).toEqual(Array.from({ length: round + 1 }, (_, at) => expect.stringContaining(`${100 + at} is closed`)));
      }
      leader.request(2, 1, 0, OpCode.createSession, int(4000));
      leader.settle();
      expect(LoneLeader.txns(leader.take(2))).toHaveLength(1);
    },
  );

  it('is sent nothing, and has no say, until the learner is known to be gone', () => {
    leader.introduce(100, 2, 4);
    expect(leader.take(100)).toEqual([]);
    leader.ack(100, makeZxid(4, 0));
    leader.acceptEpoch(100);
    expect(leader.closed.get(100)).toBe('it has accepted an epoch that it was not told');
    leader.elapse(claimWaitMs * 2);
    expect(leader.closed.has(2)).toBe(false);
  });

  it('takes its place when the learner has not answered a PING for half a tick, and no sooner', () => {
    leader.elapse(7);
    answer(2);
    leader.introduce(100, 2, 4);
    expect(pings(2)).toBe(1);
    leader.elapse(claimWaitMs - 1);
    expect([...leader.closed]).toEqual([]);
    leader.elapse(1);
    expect(leader.closed.get(2)).toBe('it does not answer, and has connected anew');
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
    leader.acceptEpoch(100);
    leader.ack(100, makeZxid(4, 0));
    expect(leader.take(100).map(({ name }) => name)).toContain('UPTODATE');
  });

  it('takes its place at once when the older stream closes', () => {
    leader.introduce(100, 2, 4);
    leader.streamGone(2);
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('gives way to the next that says the same, and the question is not put off by that', () => {
    leader.elapse(3);
    answer(2);
    for (let at = 0; at < 5; at++) {
      leader.introduce(100 + at, 2, 4);
      leader.elapse(claimWaitMs / 5);
    }
    for (let at = 0; at < 4; at++) expect(leader.closed.get(100 + at)).toBe('another connection says as well that it is server 2');
    expect(leader.closed.get(2)).toBe('it does not answer, and has connected anew');
    expect(leader.take(104).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('does not take the place of one that is sending a long packet', () => {
    leader.introduce(100, 2, 4);
    for (let at = 0; at < 5; at++) {
      leader.elapse(claimWaitMs / 5);
      leader.peer.partReceived(2, leader.now);
      if (at === 3) expect(leader.closed.has(100)).toBe(false);
    }
    leader.elapse(1);
    expect(leader.closed.has(2)).toBe(false);
    expect(leader.closed.get(100)).toContain('is connected and answers');
  });

  it('waits for as long again where the leader itself was late, as an answer may wait to be read', () => {
    leader.introduce(100, 2, 4);
    leader.elapse(claimWaitMs * 3);
    expect([...leader.closed]).toEqual([]);
    answer(2);
    expect([...leader.closed.keys()]).toEqual([100]);
  });

  it('takes the place of one that is being brought up to date, once nothing moves there', () => {
    leader.introduce(3, 3, 4);
    leader.acceptEpoch(3);
    leader.introduce(100, 3, 4);
    leader.elapse(claimWaitMs);
    expect(leader.closed.get(3)).toBe('it does not answer, and has connected anew');
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('takes its place at once when it comes from the same process, though not more often than every half tick', () => {
    leader.introduce(3, 3, 4, PacketType.FOLLOWERINFO, 77);
    leader.elapse(claimWaitMs);
    leader.introduce(100, 3, 4, PacketType.FOLLOWERINFO, 77);
    expect(leader.closed.get(3)).toBe('it has connected anew');
    expect(leader.take(100).map(({ name }) => name)).toEqual(['LEADERINFO']);
    leader.introduce(101, 3, 4, PacketType.FOLLOWERINFO, 77);
    expect(leader.closed.has(100)).toBe(false);
    leader.elapse(claimWaitMs);
    expect(leader.closed.has(100)).toBe(true);
    expect(leader.take(101).map(({ name }) => name)).toEqual(['LEADERINFO']);
  });

  it('may be one of any number of observers that have no number of their own, and give -1', () => {
    for (const channel of [100, 101, 102]) {
      leader.introduce(channel, -1, 4, PacketType.OBSERVERINFO);
      leader.acceptEpoch(channel);
      leader.ack(channel, makeZxid(4, 0));
      expect(leader.take(channel).map(({ name }) => name)).toContain('UPTODATE');
    }
    expect([...leader.closed]).toEqual([]);
  });
});

describe('observers that the configuration does not have', () => {
  const observer = (leader: LoneLeader, channel: number, sid: number) => {
    leader.introduce(channel, sid, 4, PacketType.OBSERVERINFO);
    if (leader.closed.has(channel)) return;
    leader.acceptEpoch(channel);
    leader.ack(channel, makeZxid(4, 0));
  };

  it('are let in up to sixteen, with and without a number; the next is refused with a remedy, and comes in when one has gone', () => {
    const leader = new LoneLeader();
    leader.serveWithFollower();
    for (let at = 0; at < 16; at++) observer(leader, 100 + at, at % 2 === 0 ? 1000 + at : -1);
    expect([...leader.closed]).toEqual([]);
    observer(leader, 200, 2000);
    expect(leader.closed.get(200)).toBe(
      'the configuration does not have server 2000, and 16 such observers are connected already. ' +
        'Add it to the server lines of every server, or raise tskeeper.maxUnknownObservers',
    );
    // A voter of the configuration is let in, however many there are.
    leader.introduce(3, 3, 4);
    expect(leader.take(3).map(({ name }) => name)).toEqual(['LEADERINFO']);
    leader.streamGone(107);
    observer(leader, 201, 2000);
    expect(leader.take(201).map(({ name }) => name)).toContain('UPTODATE');
  });

  it('keep a session for a quarter of a tick by saying nothing, and no longer', () => {
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
      // When it asks to be woken, and not before.
      const dueMs = leader.peer.deadline() ?? Infinity;
      leader.elapse(Math.max(1, Math.min(dueMs - leader.now.elapsedMs, 1000)));
    }
    // Sessions end at whole ticks, each at the next one.
    const dueMs = (Math.floor((openedMs + timeoutMs) / tickMs) + 1) * tickMs;
    expect(endedMs).toBeLessThanOrEqual(dueMs + tickMs / 4 + 1);
  });

  it('rank behind voters and behind observers that it has, and strangers that have not said who they are rank with them', () => {
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
