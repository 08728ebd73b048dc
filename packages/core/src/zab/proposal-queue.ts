/**
 * Txns that have been proposed and not committed, and how far the log of this server is.
 *
 * Txns are proposed and committed in zxid order, so a queue is enough: the next commit is always
 * its first member, whatever has been acknowledged beyond it. Invariant: committed <= proposed.
 */
import { beginQuorumPacket, endQuorumPacket, type Id, PacketType, packetHeadBytes, Writer, type Zxid } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';

const dataLengthBytes = 4;

/** A txn that has been proposed and not committed. */
export interface PendingProposal {
  readonly zxid: Zxid;
  /** The PROPOSAL packet. */
  readonly packet: Buffer;
}

/** The log entry of a txn, from the packet that proposes it. */
export function entryOf(packet: Buffer): Buffer {
  const length = packet.readInt32BE(packetHeadBytes - dataLengthBytes);
  return packet.subarray(packetHeadBytes, packetHeadBytes + length);
}

export class ProposalQueue {
  readonly #pending = new Fifo<PendingProposal>();
  readonly #writer = new Writer(1024);
  #proposed: Zxid;
  #committed: Zxid;
  /** All txns up to here are durable in this server's own log. */
  ownAcked: Zxid;

  constructor(lastZxid: Zxid) {
    this.#proposed = this.#committed = this.ownAcked = lastZxid;
  }

  /** The last txn proposed. */
  get proposed(): Zxid {
    return this.#proposed;
  }

  /** The last committed txn. */
  get committed(): Zxid {
    return this.#committed;
  }

  /** The epoch's first txn follows `zxid`; a quorum has everything before. */
  beginEpoch(zxid: Zxid): void {
    this.#proposed = this.#committed = this.ownAcked = zxid;
  }

  /** Adds a txn, and returns the packet that proposes it. */
  add(zxid: Zxid, bytes: Buffer, start: number, end: number, origin: readonly Id[]): Buffer {
    const writer = this.#writer;
    writer.clear();
    const at = beginQuorumPacket(writer, PacketType.PROPOSAL, zxid);
    writer.raw(bytes, start, end);
    endQuorumPacket(writer, at, origin);
    const packet = Buffer.from(writer.written());
    this.#proposed = zxid;
    this.#pending.push({ zxid, packet });
    return packet;
  }

  /** The only txn that may be committed next. */
  first(): PendingProposal | undefined {
    return this.#pending.peek();
  }

  commitFirst(): void {
    this.#committed = this.#pending.shift()!.zxid;
  }

  /** In zxid order. The queue must not change meanwhile. */
  values(): Generator<PendingProposal, void, undefined> {
    return this.#pending.values();
  }

  fingerprint(to: Fingerprint): void {
    for (const zxid of [this.#proposed, this.#committed, this.ownAcked]) to.number(zxid);
    to.number(this.#pending.length);
    for (const { packet } of this.#pending.values()) fingerprintBytes(to, packet);
  }
}
