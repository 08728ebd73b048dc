/**
 * What a peer can do that uses the id of a configured server, or sends requests as those of
 * clients: servers do not authenticate each other, so it may write anything, take over ids and
 * sessions, and lose what it has acknowledged. No guarantee to clients holds then. What must hold:
 * none of its bytes ends a process or keeps one busy for good, and once it is gone the honest
 * servers serve again, and start from what is on their disks.
 */
import { epochOf, PacketType, type Sid } from '@tskeeper/protocol';
import { electionPort } from '../world/peer-ports.ts';
import {
  takeDownOtherServer,
  otherServerSid,
  anySession,
  type Attack,
  dialElection,
  dialQuorum,
  type AttackKind,
  unknownSid,
} from './attack.ts';
import { FakeLearner, type FakeLearnerScript } from './fake-learner.ts';
import type { CnxnHandler, HostileCnxn } from './hostile-peer.ts';
import {
  ackEpoch,
  anyBody,
  anyLong,
  anyNotification,
  extremeInts,
  forwarded,
  garbage,
  initialMessage,
  learnerInfo,
  type Long,
  longOf,
  lookingNotification,
  packet,
  pick,
  sessionWithTimeout,
} from './hostile-packets.ts';

const [lowestOpCode, highestOpCode] = [-20, 120];
const identityLists = [
  null,
  [],
  [{ scheme: 'super', id: '' }],
  [
    { scheme: 'digest', id: 'a:b' },
    { scheme: '', id: '' },
  ],
] as const;

/**
 * Introduces itself as a follower or an observer with that id and a recently accepted epoch, or
 * with none, or with one that is impossible.
 */
function infoOf({ random, targetZxid }: Attack, sid: Sid): Buffer {
  const epoch = epochOf(targetZxid) + pick(random, [-1, 0, 0, 0, 1, 2, 1000]);
  const zxid: Long =
    random.below(6) === 0
      ? pick(random, [
          [-1, 0],
          [0x7fffffff, 0],
          [-0x80000000, 0],
        ])
      : [epoch, 0];
  return packet(pick(random, [PacketType.FOLLOWERINFO, PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO]), zxid, learnerInfo(sid));
}

function learnerWithSid(attack: Attack, sid: Sid, plan: Partial<FakeLearnerScript>): FakeLearner {
  const { random, targetZxid } = attack;
  return new FakeLearner({
    info: infoOf(attack, sid),
    onLeaderInfo: (cnxn) => {
      const [zxid, epoch] =
        random.below(2) === 0
          ? ([longOf(targetZxid), epochOf(targetZxid)] as const)
          : ([anyLong(random, targetZxid), pick(random, [...extremeInts, epochOf(targetZxid) + 1])] as const);
      cnxn.send(packet(PacketType.ACKEPOCH, zxid, ackEpoch(epoch)));
    },
    ...plan,
  });
}

/**
 * Claims to be another server, or an observer that is not configured: either may request anything.
 */
function someLearner(attack: Attack, plan: Partial<FakeLearnerScript>): FakeLearner {
  const sid = otherServerSid(attack);
  if (sid !== undefined && attack.random.below(3) === 0) return learnerWithSid(attack, sid, plan);
  return learnerWithSid(attack, unknownSid(attack), {
    info: packet(PacketType.OBSERVERINFO, longOf(0), learnerInfo(unknownSid(attack))),
    ...plan,
  });
}

function request(attack: Attack, opCode: number): Buffer {
  const { random } = attack;
  const cxid = pick(random, [...extremeInts, random.below(60)]);
  const body = forwarded(anySession(attack), cxid, opCode, anyBody(random));
  return packet(PacketType.REQUEST, longOf(-1), body, pick(random, identityLists));
}

/**
 * Arbitrary votes; or one repeatedly, of a much later round, so that each server that begins to
 * look meanwhile receives it.
 */
function votes(attack: Attack): CnxnHandler {
  const { random, run, targetZxid } = attack;
  const sids = run.world.servers.map(({ sid }) => sid);
  return {
    opened: (cnxn) => {
      if (random.below(2) === 0) {
        const round = pick(random, [2 ** 31, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER]);
        const vote = lookingNotification(pick(random, sids), targetZxid, round);
        for (let atMs = 0; atMs < 1500; atMs += 50) cnxn.after(atMs, () => cnxn.send(vote));
        return;
      }
      for (let count = 1 + random.below(10); count > 0; count--) {
        cnxn.after(random.below(700), () => cnxn.send(anyNotification(random, targetZxid, sids)));
      }
    },
  };
}

export const impersonatorAttacks = {
  /** To all others at once: misleading an election takes more than one. */
  'votes of another server': (attack) => {
    const { random, run, peer, reachedGoal } = attack;
    const sid = otherServerSid(attack);
    if (sid === undefined) return;
    // A server with a lower id is dialled back, and speaks over that connection.
    peer.listen(electionPort, votes(attack));
    for (const target of run.world.servers) {
      if (target.sid === sid) continue;
      const conversation = votes(attack);
      dialElection(
        { ...attack, target },
        {
          opened: (cnxn) => {
            const addresses = [{ host: peer.address, port: electionPort }];
            cnxn.send(initialMessage({ sid, protocolVersion: random.below(2) === 0 ? -65536 : -65535, addresses }));
            conversation.opened?.(cnxn);
            reachedGoal();
          },
        },
      );
    }
  },
  /** It joins many times, and each time the server with that id loses its place. */
  'sid of another server': (attack) => {
    const { random, reachedGoal } = attack;
    const sid = otherServerSid(attack);
    if (sid === undefined) return;
    const come = (times: number): void => {
      dialQuorum(attack, {
        opened: (cnxn) => {
          cnxn.send(infoOf(attack, sid));
          reachedGoal();
          cnxn.after(20 + random.below(100), () => {
            if (random.below(2) === 0) cnxn.reset();
            else cnxn.stopReading();
            if (times > 1) come(times - 1);
          });
        },
      });
    };
    come(1 + random.below(6));
  },
  /** It joins, and acknowledges what it has, what it does not have, and what does not exist yet. */
  'ACKs of another server': (attack) => {
    const { random, targetZxid, reachedGoal } = attack;
    const sid = random.below(2) === 0 ? otherServerSid(attack) : takeDownOtherServer(attack, 600);
    if (sid === undefined) return;
    const acks = (cnxn: HostileCnxn, zxid: number) => {
      for (let count = random.below(6); count > 0; count--) cnxn.send(packet(PacketType.ACK, anyLong(random, targetZxid), null));
      cnxn.send(packet(PacketType.ACK, longOf(zxid), null));
      for (let count = random.below(6); count > 0; count--) {
        cnxn.after(random.below(400), () => cnxn.send(packet(PacketType.ACK, longOf(zxid + random.below(200)), null)));
      }
      reachedGoal();
    };
    dialQuorum(attack, learnerWithSid(attack, sid, random.below(2) === 0 ? { onNewLeader: acks } : { onUpToDate: acks }));
  },
  'requests of every opcode': (attack) => {
    const { random, reachedGoal } = attack;
    const opCodes = Array.from({ length: highestOpCode - lowestOpCode + 1 }, (_, at) => lowestOpCode + at);
    dialQuorum(
      attack,
      someLearner(attack, {
        onUpToDate: (cnxn) => {
          const first = random.below(4);
          // Some at once, some while others are outstanding.
          for (const opCode of opCodes)
            cnxn.after(random.below(4) === first ? 0 : random.below(300), () => cnxn.send(request(attack, opCode)));
          reachedGoal();
        },
      }),
    );
  },
  'oversized or malformed requests': (attack) => {
    const { random, reachedGoal } = attack;
    dialQuorum(
      attack,
      someLearner(attack, {
        onUpToDate: (cnxn) => {
          const opCode = pick(random, [1, 2, 5, 7, 14, 15, 16, 19, 20, 21, 22, -10, -11]);
          const long = forwarded(anySession(attack), 1, opCode, Buffer.alloc(pick(random, [200_000, 1_100_000]), random.below(3)));
          cnxn.send(request(attack, opCode));
          if (random.below(2) === 0) cnxn.send(packet(PacketType.REQUEST, longOf(0), long));
          else cnxn.send(Buffer.concat([packet(PacketType.REQUEST, longOf(0), long.subarray(0, 40)).subarray(0, -4), garbage(random, 60)]));
          reachedGoal();
        },
      }),
    );
  },
  /** Keeps the sessions of others alive, with any timeout. */
  "PINGs for others' sessions": (attack) => {
    const { random, reachedGoal } = attack;
    dialQuorum(
      attack,
      someLearner(attack, {
        onUpToDate: (cnxn) => {
          const touched = Array.from({ length: 1 + random.below(12) }, () =>
            sessionWithTimeout(anySession(attack), pick(random, extremeInts)),
          );
          cnxn.send(packet(PacketType.PING, longOf(0), Buffer.concat(touched)));
          reachedGoal();
        },
      }),
    );
  },
  /** Takes sessions over: the servers that have their clients lose them. */
  "REVALIDATE of others' sessions": (attack) => {
    const { random, reachedGoal } = attack;
    dialQuorum(
      attack,
      someLearner(attack, {
        onUpToDate: (cnxn) => {
          for (let count = 1 + random.below(6); count > 0; count--) {
            cnxn.send(packet(PacketType.REVALIDATE, longOf(0), sessionWithTimeout(anySession(attack), pick(random, extremeInts))));
          }
          reachedGoal();
        },
      }),
    );
  },
} as const satisfies Record<string, AttackKind>;
