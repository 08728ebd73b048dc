/**
 * Broadcast: PROPOSAL to every follower, a quorum of ACKs, then COMMIT and INFORM in zxid order.
 *
 * A learner takes part from the moment at which the end of its history is fixed: everything
 * proposed or committed later is written after that history. Until the history has been sent it
 * waits in the learner's backlog, which begins with the proposals that are outstanding then
 * (ZOOKEEPER-4394) and NEWLEADER.
 */
import {
  beginQuorumPacket,
  endQuorumPacket,
  makeZxid,
  type Millis,
  PacketType,
  type Sid,
  writeEmptyPacket,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import type { Server } from '../server.ts';
import type { LeaderHost } from './leader-host.ts';
import type { LearnerProgress } from './learner-progress.ts';
import type { LearnerTable } from './learner-table.ts';
import { entryOf, type PendingProposal, type ProposalQueue } from './proposal-queue.ts';
import type { SyncConfirmations } from './sync-confirmation.ts';

const packetTypeBytes = 4;

export class Broadcast {
  readonly #sid: Sid;
  readonly #quorum: QuorumVerifier;
  readonly #host: LeaderHost;
  readonly #proposals: ProposalQueue;
  readonly #learners: LearnerTable;
  readonly #syncs: SyncConfirmations;
  /** The server for clients; undefined before the stage of broadcast. */
  #server: Server | undefined;
  /**
   * The commit that the server knows of. Less than the committed zxid only while txns are being
   * committed.
   */
  #deliveredCommit: Zxid;
  /** The set to test for a quorum at each ACK: created once, and set to the zxid in question. */
  readonly #acked = { zxid: 0, has: (sid: Sid): boolean => this.#ackedBy(sid) >= this.#acked.zxid };

  constructor(
    sid: Sid,
    quorum: QuorumVerifier,
    host: LeaderHost,
    proposals: ProposalQueue,
    learners: LearnerTable,
    syncs: SyncConfirmations,
  ) {
    this.#sid = sid;
    this.#quorum = quorum;
    this.#host = host;
    this.#proposals = proposals;
    this.#learners = learners;
    this.#syncs = syncs;
    this.#deliveredCommit = proposals.committed;
  }

  /** A quorum has the history; txns of `server` follow. */
  begin(server: Server, epoch: number): void {
    this.#server = server;
    this.#deliveredCommit = makeZxid(epoch, 0);
    this.#proposals.beginEpoch(this.#deliveredCommit);
  }

  /**
   * From here on the learner receives everything, after the history that it lacks. Returns the last
   * txn of that history.
   */
  addLearner(learner: LearnerProgress, epoch: number, nowMs: Millis): Zxid {
    learner.historyEndZxid = this.#proposals.committed;
    learner.isReplicating = true;
    const backlog = (learner.backlog = new Writer(256));
    if (!learner.isObserver) {
      for (const { zxid, packet } of this.#proposals.values()) {
        backlog.raw(packet);
        learner.proposed(zxid, nowMs);
      }
    }
    const at = beginQuorumPacket(backlog, PacketType.NEWLEADER, makeZxid(epoch, 0));
    backlog.raw(Buffer.from(this.#host.config.newLeaderConfig(epoch), 'utf8'));
    endQuorumPacket(backlog, at);
    return this.#proposals.committed;
  }

  /** The learner has been sent the history: what has waited for that follows. */
  historySent(learner: LearnerProgress): void {
    const { backlog } = learner;
    learner.backlog = undefined;
    if (backlog !== undefined) this.#learners.outputAfterBacklog(learner).raw(backlog.bytes, 0, backlog.offset);
  }

  propose(zxid: Zxid, packet: Buffer, nowMs: Millis): void {
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating || learner.isObserver) continue;
      this.#learners.writeShared(learner, packet, 0);
      learner.proposed(zxid, nowMs);
    }
  }

  /** Commits what a quorum has acknowledged. */
  maybeCommit(now: Now): void {
    if (this.#server === undefined) return;
    const before = this.#proposals.committed;
    for (let next = this.#proposals.first(); next !== undefined; next = this.#proposals.first()) {
      this.#acked.zxid = next.zxid;
      if (!this.#quorum.containsQuorum(this.#acked)) break;
      // A session's sync has its place in the order of its writes, and no later write may be
      // applied before it is answered. A quorum's ACKs of a later proposal prove as much as its
      // answers to a PING: this is still the leader.
      if (this.#syncs.hasBefore(next.zxid)) {
        this.#deliverCommits(this.#server, now);
        this.#syncs.replyBefore(next.zxid, this.#server, now);
      }
      this.#proposals.commitFirst();
      this.#commit(next);
    }
    if (this.#proposals.committed === before) return;
    this.#deliverCommits(this.#server, now);
    this.#syncs.replyConfirmed(this.#server, now);
  }

  #deliverCommits(server: Server, now: Now): void {
    if (this.#proposals.committed === this.#deliveredCommit) return;
    this.#deliveredCommit = this.#proposals.committed;
    server.appended(this.#deliveredCommit, now);
  }

  #commit({ zxid, packet }: PendingProposal): void {
    this.#host.committed(zxid, entryOf(packet));
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating) continue;
      const writer = this.#learners.outputAfterBacklog(learner);
      if (learner.isObserver) {
        writer.int32(PacketType.INFORM);
        this.#learners.writeShared(learner, packet, packetTypeBytes);
      } else {
        writeEmptyPacket(writer, PacketType.COMMIT, zxid);
      }
    }
  }

  #ackedBy(sid: Sid): Zxid {
    return sid === this.#sid ? this.#proposals.ownAcked : (this.#learners.replicatingFollower(sid)?.ackedZxid ?? -1);
  }
}
