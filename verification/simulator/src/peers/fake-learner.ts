/**
 * A conversation with a leader as a learner has it: it introduces itself, accepts the epoch,
 * receives the synchronisation, and acknowledges NEWLEADER. At each of these places an attack may
 * do something else.
 */
import { epochOf, PacketDecoder, PacketType, type PacketView, snapshotSignatureBytes, type Zxid } from '@tskeeper/protocol';
import type { CnxnHandler, HostileCnxn } from './hostile-peer.ts';
import { ackEpoch, longOf, packet } from './hostile-packets.ts';

export interface FakeLearnerScript {
  /** The packet with which it introduces itself. */
  readonly info: Buffer;
  /** Replaces the ACKEPOCH of an empty history. */
  onLeaderInfo?(cnxn: HostileCnxn, epoch: number): void;
  /** Replaces the ACK of NEWLEADER. */
  onNewLeader?(cnxn: HostileCnxn, zxid: Zxid): void;
  /** Called at UPTODATE; `zxid` is that of NEWLEADER. */
  onUpToDate?(cnxn: HostileCnxn, zxid: Zxid): void;
  /** Called at DIFF, TRUNC, SNAP, and at each proposal. */
  onSyncPacket?(cnxn: HostileCnxn, type: number, zxid: Zxid): void;
}

/** Longer than anything that a leader sends in a run. */
const packetBytesMax = 10_000_000;

export class FakeLearner implements CnxnHandler {
  readonly #script: FakeLearnerScript;
  readonly #cutter = new PacketDecoder(packetBytesMax);
  #newLeaderZxid: Zxid = 0;
  /** The last bytes received of a snapshot. */
  #tail = Buffer.alloc(0);

  constructor(plan: FakeLearnerScript) {
    this.#script = plan;
  }

  opened(cnxn: HostileCnxn): void {
    cnxn.send(this.#script.info);
  }

  received(cnxn: HostileCnxn, bytes: Buffer): void {
    this.#cutter.feed(bytes, 0, bytes.length, {
      packet: (view) => {
        this.#packet(cnxn, view);
        return true;
      },
      raw: (chunk, start, end) => this.#skipSnapshot(chunk, start, end),
    });
  }

  #packet(cnxn: HostileCnxn, { type, zxid }: PacketView): void {
    const plan = this.#script;
    switch (type) {
      case PacketType.LEADERINFO:
        if (plan.onLeaderInfo !== undefined) plan.onLeaderInfo(cnxn, epochOf(zxid));
        else cnxn.send(packet(PacketType.ACKEPOCH, longOf(0), ackEpoch(0)));
        return;
      case PacketType.NEWLEADER:
        this.#newLeaderZxid = zxid;
        if (plan.onNewLeader !== undefined) plan.onNewLeader(cnxn, zxid);
        else cnxn.send(packet(PacketType.ACK, longOf(zxid), null));
        return;
      case PacketType.UPTODATE:
        plan.onUpToDate?.(cnxn, this.#newLeaderZxid);
        return;
      case PacketType.PING:
        cnxn.send(packet(PacketType.PING, longOf(zxid), Buffer.alloc(0)));
        return;
      case PacketType.SNAP:
        this.#cutter.beginRaw();
        plan.onSyncPacket?.(cnxn, type, zxid);
        return;
      case PacketType.DIFF:
      case PacketType.TRUNC:
      case PacketType.PROPOSAL:
      case PacketType.INFORM:
        plan.onSyncPacket?.(cnxn, type, zxid);
        return;
      default:
    }
  }

  /** Skips a snapshot, up to the mark after it. */
  #skipSnapshot(chunk: Buffer, start: number, end: number): number {
    const before = this.#tail.length;
    const all = Buffer.concat([this.#tail, chunk.subarray(start, end)]);
    const at = all.indexOf(snapshotSignatureBytes);
    if (at === -1) {
      this.#tail = all.subarray(Math.max(0, all.length - snapshotSignatureBytes.length + 1));
      return end;
    }
    this.#tail = Buffer.alloc(0);
    this.#cutter.endRaw();
    return start + at + snapshotSignatureBytes.length - before;
  }
}
