/**
 * What a stranger may do without harm: it uses no other server's id, requests nothing in the name
 * of clients, and touches no session; so every guarantee holds meanwhile. Its bytes may be valid
 * but out of place, extreme, truncated, or missing.
 */
import { PacketType, type Sid } from '@tskeeper/protocol';
import { electionPort, quorumPort } from '../world/peer-ports.ts';
import { unknownHighSid, type Attack, dialElection, dialQuorum, type AttackKind, unknownSid, unknownSession } from './attack.ts';
import { FakeLearner } from './fake-learner.ts';
import type { HostileCnxn } from './hostile-peer.ts';
import {
  ackEpoch,
  anyBody,
  anyLong,
  anyNotification,
  malformedInitialMessage,
  extremeInts,
  forwarded,
  garbage,
  initialMessage,
  learnerInfo,
  longOf,
  packet,
  pick,
  sessionWithTimeout,
} from './hostile-packets.ts';

/** Leaves a connection open, ends it, resets it, or stops reading. */
function abandonCnxn({ random }: Attack, cnxn: HostileCnxn): void {
  const ways = [() => undefined, () => cnxn.end(), () => cnxn.reset(), () => cnxn.stopReading()];
  cnxn.after(random.below(300), pick(random, ways));
}

function infoOf(attack: Attack, sid: Sid = unknownSid(attack)): Buffer {
  const { random, targetZxid } = attack;
  const type = pick(random, [PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO]);
  return packet(type, anyLong(random, targetZxid), learnerInfo(sid));
}

/** FOLLOWERINFO and OBSERVERINFO as servers of any version may send them, and invalid ones. */
function malformedInfo(attack: Attack): Buffer {
  const { random, targetZxid } = attack;
  const type = pick(random, [PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO]);
  const whole = learnerInfo(unknownSid(attack), pick(random, [0, 1, Number.MAX_SAFE_INTEGER, -1]));
  const data = pick(random, [
    null,
    Buffer.alloc(0),
    whole,
    whole.subarray(0, random.below(whole.length)),
    Buffer.concat([whole, garbage(random, 40)]),
    Buffer.concat([Buffer.from([0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), whole.subarray(8)]),
    learnerInfo(pick(random, [-1, -2, -1000])),
  ]);
  return packet(type, anyLong(random, targetZxid), data);
}

const leaderOnlyTypes = [
  PacketType.PROPOSAL,
  PacketType.COMMIT,
  PacketType.SYNC,
  PacketType.INFORM,
  PacketType.COMMITANDACTIVATE,
  PacketType.NEWLEADER,
  PacketType.UPTODATE,
  PacketType.DIFF,
  PacketType.TRUNC,
  PacketType.SNAP,
  PacketType.LEADERINFO,
  PacketType.INFORMANDACTIVATE,
  0,
  77,
  -1,
  -0x80000000,
] as const;

/**
 * Packets of a learner before their time, with any zxid and any data; and packets that only a
 * leader sends.
 */
function outOfOrder({ random, targetZxid }: Attack): Buffer {
  const zxid = anyLong(random, targetZxid);
  const type = pick(random, [
    PacketType.ACKEPOCH,
    PacketType.ACK,
    PacketType.PING,
    PacketType.REQUEST,
    PacketType.REVALIDATE,
    PacketType.FOLLOWERINFO,
    ...leaderOnlyTypes,
  ]);
  if (type === PacketType.ACKEPOCH) return packet(type, zxid, pick(random, [null, Buffer.alloc(3), ackEpoch(pick(random, extremeInts))]));
  return packet(type, zxid, pick(random, [null, Buffer.alloc(0), garbage(random, 40)]));
}

/** An observer that follows the protocol until it serves. */
function observer(attack: Attack, plan: Partial<ConstructorParameters<typeof FakeLearner>[0]>): FakeLearner {
  const { random } = attack;
  const type = pick(random, [PacketType.OBSERVERINFO, PacketType.OBSERVERINFO, PacketType.FOLLOWERINFO]);
  return new FakeLearner({
    info: packet(type, longOf(0), learnerInfo(unknownSid(attack))),
    onLeaderInfo: (cnxn) => {
      const zxid = random.below(3) === 0 ? longOf(0) : anyLong(random, attack.targetZxid);
      cnxn.send(packet(PacketType.ACKEPOCH, zxid, ackEpoch(pick(random, extremeInts))));
    },
    ...plan,
  });
}

export const unknownPeerAttacks = {
  /** Sends nothing on either port, or the beginning of something. */
  'silence on a port of servers': (attack) => {
    const { random, reachedGoal } = attack;
    const [begun, dial] =
      random.below(2) === 0
        ? ([initialMessage({ sid: 77, protocolVersion: -65536, addresses: [] }), dialElection] as const)
        : ([infoOf(attack), dialQuorum] as const);
    // Several at once, so that others have to make way.
    for (let left = 1 + random.below(5); left > 0; left--) {
      dial(attack, {
        opened: (cnxn) => {
          cnxn.send(begun.subarray(0, random.below(begun.length)));
          abandonCnxn(attack, cnxn);
          reachedGoal();
        },
      });
    }
  },
  'garbage on a port of servers': (attack) => {
    const { random, reachedGoal } = attack;
    const dial = random.below(2) === 0 ? dialElection : dialQuorum;
    dial(attack, {
      opened: (cnxn) => {
        cnxn.send(random.below(4) === 0 ? Buffer.alloc(3000, random.below(256)) : garbage(random, 200));
        abandonCnxn(attack, cnxn);
        reachedGoal();
      },
    });
  },
  'malformed introduction': (attack) => {
    const { random, reachedGoal } = attack;
    dialElection(attack, {
      opened: (cnxn) => {
        cnxn.send(malformedInitialMessage(random));
        cnxn.send(anyNotification(random, attack.targetZxid, [77]));
        abandonCnxn(attack, cnxn);
        reachedGoal();
      },
    });
  },
  /** Claims to be the server that it speaks to. */
  "a server's own sid": (attack) => {
    const { random, target, reachedGoal } = attack;
    const { sid } = target;
    if (random.below(2) === 0) {
      dialElection(attack, {
        opened: (cnxn) => {
          cnxn.send(initialMessage({ sid, protocolVersion: -65536, addresses: [{ host: attack.peer.address, port: electionPort }] }));
          for (let count = random.below(4); count > 0; count--) cnxn.send(anyNotification(random, attack.targetZxid, [sid, 77]));
          reachedGoal();
        },
      });
      return;
    }
    dialQuorum(attack, {
      opened: (cnxn) => {
        cnxn.send(infoOf(attack, sid));
        cnxn.send(outOfOrder(attack));
        abandonCnxn(attack, cnxn);
        reachedGoal();
      },
    });
  },
  /** Arbitrary votes of a peer that has no vote. */
  'votes of an unknown server': (attack) => {
    const { random, run, reachedGoal } = attack;
    const sids = [77, ...run.world.servers.map(({ sid }) => sid)];
    dialElection(attack, {
      opened: (cnxn) => {
        cnxn.send(
          initialMessage({ sid: unknownHighSid(attack), protocolVersion: pick(random, [undefined, -65536, -65535]), addresses: [] }),
        );
        for (let count = 1 + random.below(8); count > 0; count--) {
          cnxn.after(random.below(600), () => cnxn.send(anyNotification(random, attack.targetZxid, sids)));
        }
        reachedGoal();
      },
    });
  },
  /**
   * A stranger with a low id asks to be dialled back: where it listens, where nothing listens, or
   * where something else does.
   */
  'unknown server asks to be dialled': (attack) => {
    const { random, run, peer, reachedGoal } = attack;
    const somebody = run.anyServer().address ?? peer.address;
    const address = pick(random, [
      { host: peer.address, port: electionPort },
      { host: '10.99.0.1', port: electionPort },
      { host: 'nobody.example', port: electionPort },
      { host: somebody, port: 2181 },
      { host: somebody, port: quorumPort },
    ]);
    if (address.host === peer.address) {
      peer.listen(electionPort, {
        opened: (cnxn) => {
          cnxn.send(anyNotification(random, attack.targetZxid, [77]));
          abandonCnxn(attack, cnxn);
        },
      });
    }
    dialElection(attack, {
      opened: (cnxn) => {
        cnxn.send(initialMessage({ sid: 0, protocolVersion: -65536, addresses: [address] }));
        reachedGoal();
      },
    });
  },
  'malformed LearnerInfo': (attack) => {
    const { reachedGoal } = attack;
    dialQuorum(attack, {
      opened: (cnxn) => {
        cnxn.send(malformedInfo(attack));
        abandonCnxn(attack, cnxn);
        reachedGoal();
      },
    });
  },
  'packets out of order': (attack) => {
    const { random, reachedGoal } = attack;
    dialQuorum(attack, {
      opened: (cnxn) => {
        if (random.below(2) === 0) cnxn.send(infoOf(attack));
        for (let count = 1 + random.below(4); count > 0; count--) cnxn.send(outOfOrder(attack));
        abandonCnxn(attack, cnxn);
        reachedGoal();
      },
    });
  },
  'half a packet and silence': (attack) => {
    const { random, reachedGoal } = attack;
    // Part of a question that is harmless: later bytes may complete it.
    const half = packet(
      PacketType.REVALIDATE,
      longOf(0),
      Buffer.concat([sessionWithTimeout(unknownSession(attack), 0), garbage(random, 200)]),
    );
    const say = (cnxn: HostileCnxn) => {
      cnxn.send(half.subarray(0, 1 + random.below(half.length - 1)));
      abandonCnxn(attack, cnxn);
      reachedGoal();
    };
    dialQuorum(attack, observer(attack, random.below(2) === 0 ? { onUpToDate: say } : { onNewLeader: say }));
  },
  /** It is sent the whole history, and does not read it, or disconnects in the middle. */
  'a learner that does not read': (attack) => {
    const { random, reachedGoal } = attack;
    dialQuorum(
      attack,
      observer(attack, {
        onSyncPacket: (cnxn) => {
          if (random.below(3) === 0) cnxn.reset();
          else cnxn.stopReading();
          reachedGoal();
        },
      }),
    );
  },
  /**
   * ACKs of NEWLEADER, late, twice or for another epoch, and of proposals that do not exist. An
   * observer's ACKs decide nothing.
   */
  'ACK of a non-voter': (attack) => {
    const { random, targetZxid, reachedGoal } = attack;
    const acks = (cnxn: HostileCnxn, zxid: number) => {
      for (let count = 1 + random.below(5); count > 0; count--) cnxn.send(packet(PacketType.ACK, anyLong(random, targetZxid), null));
      if (random.below(2) === 0) cnxn.send(packet(PacketType.ACK, longOf(zxid), null));
      cnxn.send(packet(PacketType.ACK, anyLong(random, targetZxid + 3), garbage(random, 20)));
      reachedGoal();
    };
    dialQuorum(attack, observer(attack, random.below(2) === 0 ? { onNewLeader: acks } : { onUpToDate: acks }));
  },
  /**
   * It serves, asks about unknown sessions, syncs, and sends packets that are too short to be a
   * request.
   */
  'requests of an observer': (attack) => {
    const { random, reachedGoal } = attack;
    dialQuorum(
      attack,
      observer(attack, {
        onUpToDate: (cnxn) => {
          const short = forwarded([0, 0], 0, 0, Buffer.alloc(0));
          const questions = [
            () => packet(PacketType.REVALIDATE, longOf(0), sessionWithTimeout(unknownSession(attack), pick(random, extremeInts))),
            () => packet(PacketType.REQUEST, longOf(0), forwarded(unknownSession(attack), random.below(9), 9, anyBody(random))),
            () => packet(PacketType.PING, longOf(0), Buffer.alloc(0)),
            () => packet(PacketType.PING, longOf(0), sessionWithTimeout(unknownSession(attack), pick(random, extremeInts))),
          ];
          const attacks = [
            () => packet(PacketType.PING, longOf(0), garbage(random, 11)),
            () => packet(PacketType.REQUEST, longOf(0), short.subarray(0, random.below(short.length))),
            () => packet(PacketType.REVALIDATE, longOf(0), pick(random, [null, Buffer.alloc(0), Buffer.alloc(15)])),
            () => packet(pick(random, leaderOnlyTypes), longOf(0), garbage(random, 30)),
            () => Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]),
            () => garbage(random, 60),
          ];
          for (let count = random.below(6); count > 0; count--) cnxn.send(pick(random, questions)());
          if (random.below(2) === 0) cnxn.send(pick(random, attacks)());
          reachedGoal();
        },
      }),
    );
  },
} as const satisfies Record<string, AttackKind>;
