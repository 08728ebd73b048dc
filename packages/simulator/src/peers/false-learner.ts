/**
 * A conversation with a leader as a learner has it: it introduces itself, accepts the epoch,
 * receives the synchronisation, and acknowledges NEWLEADER. At each of these places an attack may
 * do something else.
 */
import { epochOf, PacketCutter, PacketType, type PacketView, snapshotMarkBytes, type Zxid } from '@tskeeper/protocol';
import type { Conversation, HostileCnxn } from './hostile-peer.ts';
import { ackEpoch, longOf, packet } from './hostile-packets.ts';

export interface FalseLearnerPlan {
  /** The packet with which it introduces itself. */
  readonly info: Buffer;
  /** Replaces the ACKEPOCH of an empty history. */
  leaderInfo?(cnxn: HostileCnxn, epoch: number): void;
  /** Replaces the ACK of NEWLEADER. */
  newLeader?(cnxn: HostileCnxn, zxid: Zxid): void;
  /** Called at UPTODATE; `zxid` is that of NEWLEADER. */
  served?(cnxn: HostileCnxn, zxid: Zxid): void;
  /** Called at DIFF, TRUNC, SNAP, and at each proposal. */
  taught?(cnxn: HostileCnxn, type: number, zxid: Zxid): void;
}

/** Longer than anything that a leader sends in a run. */
const packetBytesMax = 10_000_000;

export class FalseLearner implements Conversation {
  readonly #plan: FalseLearnerPlan;
  readonly #cutter = new PacketCutter(packetBytesMax);
  #newLeaderZxid: Zxid = 0;
  /** The end of what has arrived of a snapshot. */
  #tail = Buffer.alloc(0);

  constructor(plan: FalseLearnerPlan) {
    this.#plan = plan;
  }

  opened(cnxn: HostileCnxn): void {
    cnxn.send(this.#plan.info);
  }

  received(cnxn: HostileCnxn, bytes: Buffer): void {
    this.#cutter.feed(bytes, 0, bytes.length, {
      packet: (view) => {
        this.#packet(cnxn, view);
        return true;
      },
      raw: (chunk, start, end) => this.#raw(chunk, start, end),
    });
  }

  #packet(cnxn: HostileCnxn, { type, zxid }: PacketView): void {
    const plan = this.#plan;
    switch (type) {
      case PacketType.LEADERINFO:
        if (plan.leaderInfo !== undefined) plan.leaderInfo(cnxn, epochOf(zxid));
        else cnxn.send(packet(PacketType.ACKEPOCH, longOf(0), ackEpoch(0)));
        return;
      case PacketType.NEWLEADER:
        this.#newLeaderZxid = zxid;
        if (plan.newLeader !== undefined) plan.newLeader(cnxn, zxid);
        else cnxn.send(packet(PacketType.ACK, longOf(zxid), null));
        return;
      case PacketType.UPTODATE:
        plan.served?.(cnxn, this.#newLeaderZxid);
        return;
      case PacketType.PING:
        cnxn.send(packet(PacketType.PING, longOf(zxid), Buffer.alloc(0)));
        return;
      case PacketType.SNAP:
        this.#cutter.beginRaw();
        plan.taught?.(cnxn, type, zxid);
        return;
      case PacketType.DIFF:
      case PacketType.TRUNC:
      case PacketType.PROPOSAL:
      case PacketType.INFORM:
        plan.taught?.(cnxn, type, zxid);
        return;
      default:
    }
  }

  /** Skips a snapshot, up to the mark after it. */
  #raw(chunk: Buffer, start: number, end: number): number {
    const before = this.#tail.length;
    const all = Buffer.concat([this.#tail, chunk.subarray(start, end)]);
    const at = all.indexOf(snapshotMarkBytes);
    if (at === -1) {
      this.#tail = all.subarray(Math.max(0, all.length - snapshotMarkBytes.length + 1));
      return end;
    }
    this.#tail = Buffer.alloc(0);
    this.#cutter.endRaw();
    return start + at + snapshotMarkBytes.length - before;
  }
}
