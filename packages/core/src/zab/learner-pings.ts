/**
 * The numbered PINGs of a leader.
 *
 * A PING has three uses: it is a sign of life, its answer reports sessions, and a quorum of answers
 * proves that the leader still leads. The packet has no room for a number. A learner answers each
 * PING in order, so the leader counts: the oldest number in `LearnerProgress.pings` is the one that
 * the next answer is for.
 */
import { type Millis, PacketType, writeEmptyPacket, type Zxid } from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import type { LearnerProgress, SidConflict } from './learner-progress.ts';
import type { QuorumLinks } from './quorum-links.ts';

export class LearnerPings {
  readonly #links: QuorumLinks;
  readonly #proposals: { readonly proposed: Zxid };
  #last = 0;
  #ownAnswered = 0;
  #sentMs: Millis = -Infinity;

  /** `proposals`: the last txn proposed, which a PING carries. */
  constructor(links: QuorumLinks, proposals: { readonly proposed: Zxid }) {
    this.#links = links;
    this.#proposals = proposals;
  }

  get last(): number {
    return this.#last;
  }

  /** The last PING that this server counts as answered by itself. */
  get ownAnswered(): number {
    return this.#ownAnswered;
  }

  /** When the last PING was sent to all learners. */
  get sentMs(): Millis {
    return this.#sentMs;
  }

  /** Returns the number of the PING. */
  sendToAll(learners: Iterable<LearnerProgress>, now: Now): number {
    const number = ++this.#last;
    this.#sentMs = now.elapsedMs;
    this.#ownAnswered = number;
    for (const learner of learners) {
      if (!learner.isReplicating) continue;
      // Not after the history being sent: that may take long, and the learner needs a sign of life.
      if (learner.backlog !== undefined) continue;
      writeEmptyPacket(this.#links.packets(learner.channel), PacketType.PING, this.#proposals.proposed);
      // Learners answer after UPTODATE. An earlier PING is a sign of life only; expecting an answer
      // would shift the numbers.
      if (learner.stage !== 'active') continue;
      learner.pings.push(number);
      learner.pingTimes.push(now.elapsedMs);
    }
    return number;
  }

  /** Sends a PING to a learner whose id another stream claims, unless it could not answer yet. */
  challenge(holder: LearnerProgress, claim: SidConflict, elapsedMs: Millis): void {
    claim.challengedMs = elapsedMs;
    claim.ping = undefined;
    if (holder.stage !== 'active' || holder.backlog !== undefined) return;
    claim.ping = this.#ownAnswered = ++this.#last;
    writeEmptyPacket(this.#links.packets(holder.channel), PacketType.PING, this.#proposals.proposed);
    holder.pings.push(claim.ping);
  }
}
