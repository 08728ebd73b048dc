/**
 * Packets between leaders and learners of Apache ZooKeeper (fixtures/README.md), sorted by time.
 */
import { PacketView, type Sid } from '@tskeeper/protocol';
import { fixtureBytes } from '../fixtures.ts';

export interface RecordedPacket {
  /** Seconds since the recording began. */
  readonly t: number;
  readonly fromLeader: boolean;
  /** Its offset in that direction of the stream. */
  readonly offset: number;
  /** Its type; the bytes of a snapshot, after SNAP, are `snapshot`. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** One connection to a leader's learner port. */
export interface RecordedLearning {
  readonly title: string;
  readonly learner: Sid;
  readonly leader: Sid;
  /** In order of time; the order within one direction is certain. */
  readonly packets: readonly RecordedPacket[];
  /** When the learner disconnected, in seconds. */
  readonly closed: number;
}

interface Message {
  readonly t: number;
  readonly dir: 'initiator>acceptor' | 'acceptor>initiator';
  readonly offset: number;
  readonly hex: string;
  readonly packet?: string;
}

interface Connection {
  readonly port: 'election' | 'learner';
  readonly initiator: Sid;
  readonly acceptor: Sid;
  readonly closed: number;
  readonly messages: readonly Message[];
}

export type Recording = 'ensemble-mixed' | 'ensemble-reconfig';

export function recordedLearnings(recording: Recording): RecordedLearning[] {
  const { connections } = JSON.parse(fixtureBytes(`${recording}.json`).toString('utf8')) as { connections: Connection[] };
  return connections.flatMap(({ port, initiator, acceptor, messages, closed }, index) => {
    if (port !== 'learner') return [];
    const packets = messages.map(({ t, dir, offset, hex, packet }) => {
      return { t, fromLeader: dir === 'acceptor>initiator', offset, name: packet ?? 'snapshot', bytes: Buffer.from(hex, 'hex') };
    });
    const title = `${recording} ${index}, server ${initiator} with leader ${acceptor}`;
    return [{ title, learner: initiator, leader: acceptor, packets: inOrder(packets), closed }];
  });
}

/**
 * Each direction is in the order of its offsets. A packet with the same time as one in the other
 * direction may be a question or its answer: the question comes first.
 */
function inOrder(packets: readonly RecordedPacket[]): RecordedPacket[] {
  const ways = [true, false].map((fromLeader) => {
    return packets.filter((packet) => packet.fromLeader === fromLeader).sort((a, b) => a.offset - b.offset);
  });
  const [fromLeader, fromLearner] = ways as [RecordedPacket[], RecordedPacket[]];
  const merged: RecordedPacket[] = [];
  while (fromLeader.length > 0 || fromLearner.length > 0) {
    const leaderIsNext = fromLearner.length === 0 || (fromLeader.length > 0 && fromLeader[0]!.t < fromLearner[0]!.t);
    merged.push((leaderIsNext ? fromLeader : fromLearner).shift()!);
  }
  return merged;
}

export function viewOf(bytes: Buffer): PacketView {
  return new PacketView().wrap(bytes, 0, bytes.length);
}
