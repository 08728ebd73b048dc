/**
 * Whatever a learner sends, in whatever state the leader is: at most its own stream is closed. A request that its client must not make gets
 * an error txn, so that this client is answered, and the stream with everybody else's requests stays.
 */
import { ErrorCode, makeZxid, OpCode, openAcl, PacketType, Writer, operations } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { sample } from '../../../../test/breadth.ts';
import { isWrite } from '../../src/request/proposal.ts';
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

/** A multi that takes more than one step to be judged. */
const longMulti = ((): Buffer => {
  const writer = new Writer(1024);
  operations.multi.request.write(writer, {
    ops: Array.from({ length: 1000 }, (_, at) => ({
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
      if (leader === undefined) reach((leader = new LoneLeader()));
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
          if (leader === undefined) reach((leader = new LoneLeader()));
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
      const leader = new LoneLeader();
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
  const leader = new LoneLeader();
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
      const leader = new LoneLeader();
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
    const leader = new LoneLeader();
    states[when === 'at once' ? 'in broadcast, active' : 'in broadcast, while a long request is judged']!(leader);
    leader.request(hostile, session, 0, OpCode.createSession, Buffer.from([0, 0]));
    leader.settle();
    leader.ack(2, makeZxid(4, 3));
    leader.settle();
    expect(LoneLeader.txns(leader.take(2)).at(-1)).toMatchObject({ txn: { kind: 'error', err: ErrorCode.SessionExpired } });
    expect(leader.closed.has(hostile)).toBe(false);
  });
});
