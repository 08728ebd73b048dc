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
  writeDesignatedLeader,
  writeEmptyPacket,
  type Zxid,
} from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { canLeadOn } from '../quorum/configuration.ts';
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
  /** The reconfig that has been proposed and not committed. */
  #reconfig: { readonly zxid: Zxid; readonly text: string } | undefined;
  #successor: Sid | undefined;
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

  /**
   * The server that leads under the configuration committed last; undefined while that is this one.
   * After it nothing is committed here.
   */
  get successor(): Sid | undefined {
    return this.#successor;
  }

  /** A reconfig has been proposed, or an earlier leader's is not active yet. */
  get isReconfigPending(): boolean {
    return this.#reconfig !== undefined || this.#host.config.latestText !== this.#host.config.text;
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
    const backlog = this.#learners.beginHistory(learner, this.#proposals.committed);
    if (!learner.isObserver) {
      for (const { zxid, packet } of this.#proposals.values()) {
        backlog.raw(packet);
        learner.proposed(zxid, nowMs);
      }
    }
    const at = beginQuorumPacket(backlog, PacketType.NEWLEADER, makeZxid(epoch, 0));
    backlog.raw(Buffer.from(this.#newLeaderConfig(learner, epoch), 'utf8'));
    endQuorumPacket(backlog, at);
    return this.#proposals.committed;
  }

  /**
   * A learner activates what NEWLEADER brings when UPTODATE arrives. Before broadcast that is what
   * this epoch begins with. Later it is what is committed: a reconfig that is still pending is among
   * the proposals before NEWLEADER. A learner of ZooKeeper would then forget that proposal, and vote
   * by the old configuration alone, so it is sent the pending one, as by its own leaders.
   */
  #newLeaderConfig({ incarnation }: LearnerProgress, epoch: number): string {
    const { config } = this.#host;
    if (this.#server === undefined) return config.newLeaderConfig(epoch);
    return incarnation === 0 ? config.latestText : config.text;
  }

  /** The txn that is proposed next changes the configuration to this text. */
  reconfigProposed(zxid: Zxid, text: string): void {
    this.#reconfig = { zxid, text };
  }

  /** The learner has been sent the history: what has waited for that follows. */
  historySent(learner: LearnerProgress): void {
    this.#learners.endHistory(learner);
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
    if (this.#server === undefined || this.#successor !== undefined) return;
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
      if (this.#reconfig?.zxid === next.zxid) this.#commitReconfig(next, this.#reconfig.text, now);
      else this.#commit(next);
      if (this.#successor !== undefined) break;
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

  /** The new configuration counts from here on, and may have another leader. */
  #commitReconfig({ zxid, packet }: PendingProposal, text: string, now: Now): void {
    const { config } = this.#host;
    this.#reconfig = undefined;
    const entry = entryOf(packet);
    this.#host.committed(zxid, entry);
    const before = config.members;
    this.#host.configActivated(text, true, now);
    const leads = canLeadOn(this.#sid, before, config.members);
    const designated = leads ? this.#sid : this.#bestSuccessor(zxid);
    if (!leads) this.#successor = designated;
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating) continue;
      const writer = this.#learners.outputAfterBacklog(learner);
      const at = beginQuorumPacket(writer, learner.isObserver ? PacketType.INFORMANDACTIVATE : PacketType.COMMITANDACTIVATE, zxid);
      writeDesignatedLeader(writer, designated);
      if (learner.isObserver) writer.raw(entry);
      endQuorumPacket(writer, at);
    }
    this.#learners.updateFollowers();
  }

  /**
   * A voter of the new configuration that has acknowledged the reconfig, and as much after it as
   * possible: followers with more would not follow it. There is one, or a quorum of the new
   * configuration would not have acknowledged it.
   */
  #bestSuccessor(zxid: Zxid): Sid {
    let best: { readonly sid: Sid; readonly ackedZxid: Zxid } | undefined;
    for (const learner of this.#learners.values()) {
      const { sid, ackedZxid } = learner;
      if (!this.#learners.isVoting(learner) || !learner.isReplicating || ackedZxid < zxid || this.#quorum.weight(sid) === 0) continue;
      if (best === undefined || ackedZxid > best.ackedZxid || (ackedZxid === best.ackedZxid && sid > best.sid)) best = { sid, ackedZxid };
    }
    return best?.sid ?? this.#quorum.voters[0]!;
  }

  /** Everything of this that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint): void {
    to.number(this.#reconfig?.zxid ?? 0);
    to.number(this.#successor ?? -1);
  }

  #ackedBy(sid: Sid): Zxid {
    return sid === this.#sid ? this.#proposals.ownAcked : (this.#learners.replicatingFollower(sid)?.ackedZxid ?? -1);
  }
}
