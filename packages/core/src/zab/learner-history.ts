/**
 * The txns that a learner has received from its leader: up to where they are in the log, durable,
 * acknowledged and committed.
 *
 * Each proposal is acknowledged once it is durable. The ACK of NEWLEADER covers the whole history
 * before it, so that must be durable first, but not proposals that arrive while the disk writes it.
 */
import { counterOf, epochOf, PacketType, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import type { LearnerStart, LoggedProposal } from './learner-host.ts';
import type { DurableState } from './peer-storage.ts';
import type { ChannelId, QuorumLinks } from './quorum-links.ts';

export class LearnerHistory {
  readonly #isFollower: boolean;
  readonly #channel: ChannelId;
  readonly #links: QuorumLinks;
  readonly #storage: DurableState;
  /** In the log, or being appended, and not committed. */
  readonly #proposals = new Fifo<LoggedProposal>();
  /** The last txn that was appended to the log, and the last that is durable there. */
  #logged: Zxid;
  #durable: Zxid;
  /** The last txn logged when NEWLEADER arrived. */
  #historyEnd: Zxid = 0;
  /** Proposals to be acknowledged, in order. */
  readonly #pendingAcks = new Fifo<Zxid>();
  /**
   * The zxid of the received snapshot, 0 for none. Txns up to it are in it, and may be sent again:
   * a leader of ZooKeeper chooses the first txn to send a moment before it reads the zxid of the
   * snapshot it writes.
   */
  snapshotZxid: Zxid = 0;

  constructor({ role, lastZxid }: LearnerStart, channel: ChannelId, links: QuorumLinks, storage: DurableState) {
    this.#isFollower = role === 'follower';
    this.#channel = channel;
    this.#links = links;
    this.#storage = storage;
    this.#logged = this.#durable = lastZxid;
  }

  get logged(): Zxid {
    return this.#logged;
  }

  /** The log ends at `zxid`, after a TRUNC or a snapshot. */
  restartAt(zxid: Zxid): void {
    this.#logged = this.#durable = zxid;
  }

  /** Whether the received snapshot contains the txn. */
  isInSnapshot(zxid: Zxid): boolean {
    return zxid <= this.snapshotZxid;
  }

  /** Whether the txn follows the last one without a gap. */
  isNext(zxid: Zxid): boolean {
    return zxid === this.#logged + 1 || (counterOf(zxid) === 1 && epochOf(zxid) > epochOf(this.#logged));
  }

  /** Appends a proposal to the log. Those before NEWLEADER are acknowledged with it. */
  append(proposal: LoggedProposal, isBeforeNewLeader: boolean): void {
    const { zxid, entry } = proposal;
    this.#proposals.push(proposal);
    this.#logged = zxid;
    this.#storage.append(zxid, entry, 0, entry.length);
    if (this.#isFollower && !isBeforeNewLeader) this.#pendingAcks.push(zxid);
  }

  /** The next proposal to be committed; undefined if all are. */
  get nextProposal(): LoggedProposal | undefined {
    return this.#proposals.peek();
  }

  /** Removes the next proposal: it is committed, or the learner is over. */
  takeProposal(): LoggedProposal | undefined {
    return this.#proposals.shift();
  }

  /** NEWLEADER has arrived. */
  endHistory(): void {
    this.#historyEnd = this.#logged;
    if (this.#isFollower) for (const { zxid } of this.#proposals.values()) this.#pendingAcks.push(zxid);
  }

  /**
   * Whether everything before NEWLEADER is durable. Under steady load the end of the log never is.
   */
  get isDurable(): boolean {
    return this.#durable >= this.#historyEnd;
  }

  /** Every txn up to `zxid` is durable in the log. */
  appended(zxid: Zxid): void {
    this.#durable = zxid;
  }

  /** Acknowledges the durable proposals. Not before NEWLEADER has been acknowledged. */
  ackDurable(): void {
    for (let next = this.#pendingAcks.peek(); next !== undefined && next <= this.#durable; next = this.#pendingAcks.peek()) {
      this.#pendingAcks.shift();
      this.ack(next);
    }
  }

  ack(zxid: Zxid): void {
    writeEmptyPacket(this.#links.packets(this.#channel), PacketType.ACK, zxid);
  }

  fingerprint(to: Fingerprint): void {
    for (const zxid of [this.#logged, this.#durable, this.#historyEnd, this.snapshotZxid]) to.number(zxid);
    to.number(this.#proposals.length);
    for (const { entry, mayBeLocal } of this.#proposals.values()) {
      fingerprintBytes(to, entry);
      to.number(mayBeLocal ? 1 : 0);
    }
    to.number(this.#pendingAcks.length);
    for (const zxid of this.#pendingAcks.values()) to.number(zxid);
  }
}
