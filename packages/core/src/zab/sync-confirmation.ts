/**
 * Syncs that wait until the leader knows that it still leads.
 *
 * After a sync a client must see everything committed anywhere by then. A leader that has been
 * replaced without noticing does not know the later commits, so each sync sends a PING, and waits
 * until a quorum has answered it: had another leader been elected before, a member of that quorum
 * would have left this one. Apache ZooKeeper answers at once (ZOOKEEPER-2136, ZOOKEEPER-3600).
 */
import { PacketType, type Sid, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import { Fifo } from '../fifo.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import type { PendingSync } from '../pending/pending-request.ts';
import type { Server } from '../server.ts';
import type { LearnerPings } from './learner-pings.ts';
import type { LearnerProgress } from './learner-progress.ts';
import type { LearnerTable } from './learner-table.ts';
import type { ProposalQueue } from './proposal-queue.ts';

interface SyncConfirmation {
  /** Where to send the reply: to a learner, or to a client of this server. */
  readonly learner: LearnerProgress | undefined;
  readonly localSync: PendingSync | undefined;
  /** The last txn proposed when the sync arrived; it must be committed. */
  readonly zxid: Zxid;
  /** A PING sent after the sync arrived; a quorum must have answered it. */
  readonly ping: number;
}

export class SyncConfirmations {
  readonly #sid: Sid;
  readonly #quorum: QuorumVerifier;
  readonly #learners: LearnerTable;
  readonly #pings: LearnerPings;
  readonly #proposals: ProposalQueue;
  readonly #waiting = new Fifo<SyncConfirmation>();
  /** The set to test for a quorum at each answer: created once, and set to the PING in question. */
  readonly #pinged = { ping: 0, has: (sid: Sid): boolean => this.#pingAnsweredBy(sid) >= this.#pinged.ping };

  constructor(sid: Sid, quorum: QuorumVerifier, learners: LearnerTable, pings: LearnerPings, proposals: ProposalQueue) {
    this.#sid = sid;
    this.#quorum = quorum;
    this.#learners = learners;
    this.#pings = pings;
    this.#proposals = proposals;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** A sync of a learner, or of a client of `server`, has arrived. */
  add(learner: LearnerProgress | undefined, localSync: PendingSync | undefined, server: Server, now: Now): void {
    const ping = this.#pings.sendToAll(this.#learners.values(), now);
    this.#waiting.push({ learner, localSync, zxid: this.#proposals.proposed, ping });
    this.replyConfirmed(server, now);
  }

  /** Whether a sync arrived before the txn was proposed. */
  hasBefore(zxid: Zxid): boolean {
    const sync = this.#waiting.peek();
    return sync !== undefined && sync.zxid < zxid;
  }

  /**
   * Replies to the syncs that arrived before the txn was proposed: a quorum has acknowledged it.
   */
  replyBefore(zxid: Zxid, server: Server, now: Now): void {
    while (this.hasBefore(zxid)) this.#reply(this.#waiting.shift()!, server, now);
  }

  replyConfirmed(server: Server | undefined, now: Now): void {
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      this.#pinged.ping = next.ping;
      if (next.zxid > this.#proposals.committed || !this.#quorum.containsQuorum(this.#pinged)) return;
      this.#waiting.shift();
      this.#reply(next, server!, now);
    }
  }

  fingerprint(to: Fingerprint): void {
    to.number(this.#waiting.length);
    for (const { learner, localSync, zxid, ping } of this.#waiting.values()) {
      for (const number of [learner?.channel ?? -1, localSync?.cnxn ?? -1, zxid, this.#pings.last - ping]) to.number(number);
    }
  }

  #reply({ learner, localSync }: SyncConfirmation, server: Server, now: Now): void {
    // Its channel may have been reused.
    const isHere = learner !== undefined && this.#learners.get(learner.channel) === learner;
    if (isHere) writeEmptyPacket(this.#learners.outputAfterBacklog(learner), PacketType.SYNC, 0);
    if (localSync !== undefined) server.synced(localSync, now);
  }

  #pingAnsweredBy(sid: Sid): number {
    return sid === this.#sid ? this.#pings.ownAnswered : (this.#learners.replicatingFollower(sid)?.answeredPing ?? -1);
  }
}
