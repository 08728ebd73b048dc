/**
 * How a leader gives the lead to a follower of its choice, without an election.
 *
 *     begin     clients' writes wait at the leader from here on (request/held-writes.ts)
 *     drain     all that was proposed is committed, applied and answered, and the target has it all
 *     hand over HANDOVER names the next leader to every learner, after their last COMMIT; the leader
 *               resigns, and all of them connect to that server
 *
 * Nothing here decides who leads: the target becomes the leader of a new epoch as after an election,
 * when a quorum has accepted that epoch and has its history. If it cannot, an election follows. So a
 * HANDOVER that is lost, or a target that crashes, costs time and nothing else.
 *
 * Writes that wait are never proposed once the leader has resigned: their clients see
 * ConnectionLoss, as at any loss of a leader. They are not passed on to the next one: the session may
 * have sent later requests through another server by then, and those must not be overtaken
 * (docs/decisions/transfer-of-leadership.md).
 */
import { beginQuorumPacket, endQuorumPacket, type Millis, PacketType, type Sid, writeDesignatedLeader } from '@tskeeper/protocol';
import { age, type Fingerprint, msUntil } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import type { Server } from '../server.ts';
import type { Broadcast } from './broadcast.ts';
import type { LeaderHost } from './leader-host.ts';
import type { LearnerProgress } from './learner-progress.ts';
import type { LearnerTable } from './learner-table.ts';
import type { ProposalQueue } from './proposal-queue.ts';
import type { TransferEnd, TransferRefusal } from '../transfer-outcome.ts';
import { leaderPriorityDefault, type ZabOptions } from './zab-options.ts';

interface Transfer {
  readonly target: Sid;
  readonly startMs: Millis;
}

export class LeadershipTransfer {
  readonly #options: ZabOptions;
  readonly #quorum: QuorumVerifier;
  readonly #host: LeaderHost;
  readonly #learners: LearnerTable;
  readonly #proposals: ProposalQueue;
  readonly #broadcast: Broadcast;
  #transfer: Transfer | undefined;
  #successor: Sid | undefined;

  constructor(
    options: ZabOptions,
    quorum: QuorumVerifier,
    host: LeaderHost,
    learners: LearnerTable,
    proposals: ProposalQueue,
    broadcast: Broadcast,
  ) {
    this.#options = options;
    this.#quorum = quorum;
    this.#host = host;
    this.#learners = learners;
    this.#proposals = proposals;
    this.#broadcast = broadcast;
  }

  /** The server to which the lead is being given; undefined while none is. */
  get target(): Sid | undefined {
    return this.#transfer?.target;
  }

  /** The server that leads next; undefined before the lead is handed over. */
  get successor(): Sid | undefined {
    return this.#successor;
  }

  // ---- requests

  /**
   * Begins to give the lead to `target`, or to the best follower. Returns that server, or why this
   * one does not.
   *
   * @param byPriority whether this server has decided that by itself.
   */
  begin(target: Sid | undefined, now: Now, byPriority = false): Sid | TransferRefusal {
    const chosen = this.#choose(target);
    if (typeof chosen === 'string') return chosen;
    this.#transfer = { target: chosen.sid, startMs: now.elapsedMs };
    this.#host.transferBegan(chosen.sid, byPriority);
    this.#host.holdWrites(true);
    return chosen.sid;
  }

  #choose(target: Sid | undefined): LearnerProgress | TransferRefusal {
    if (this.#transfer !== undefined) return 'transfer under way';
    if (target === this.#options.sid) return 'leads already';
    if (target !== undefined && this.#quorum.weight(target) === 0) return 'not a voter';
    if (this.#broadcast.isReconfigPending) return 'reconfiguration pending';
    for (const learner of this.#learners.values()) {
      // Observers find the next leader by themselves, and no quorum waits for them.
      if (learner.isSynced && this.#learners.isVoting(learner) && learner.leaderPriority === undefined) return 'follower without support';
    }
    const chosen = target === undefined ? this.#best() : this.#learners.replicatingFollower(target);
    return chosen !== undefined && this.#canTakeOver(chosen) ? chosen : 'not in step';
  }

  #canTakeOver(learner: LearnerProgress): boolean {
    return learner.stage === 'active' && this.#learners.isVoting(learner) && this.#quorum.weight(learner.sid) > 0;
  }

  /** The follower with the highest priority; among several, one that lags least. */
  #best(): LearnerProgress | undefined {
    let best: LearnerProgress | undefined;
    for (const learner of this.#learners.values())
      if (this.#canTakeOver(learner) && (best === undefined || isBetter(learner, best))) best = learner;
    return best;
  }

  // ---- priorities

  /**
   * Whether a follower of a higher priority than this server has been in step for syncLimit, as this
   * server has served for as long; begins a transfer to the best one. How often is up to
   * `LeaderHost.leaderPreference`.
   */
  maybePrefer(servingSinceMs: Millis, now: Now): void {
    const { leaderPriority = leaderPriorityDefault } = this.#options;
    const { leaderPreference } = this.#host;
    const { syncLimitTicks, tickTimeMs } = this.#options;
    const steadySinceMs = now.elapsedMs - syncLimitTicks * tickTimeMs;
    if (servingSinceMs > steadySinceMs || !leaderPreference.isDue(now.elapsedMs)) return;
    const best = this.#best();
    if (best === undefined || priorityOf(best) <= leaderPriority || best.activeSinceMs > steadySinceMs) return;
    if (this.begin(best.sid, now, true) === best.sid) leaderPreference.attempted(now.elapsedMs);
  }

  // ---- progress

  /**
   * Hands the lead over once the target is in step and no reply is owed for anything proposed, or
   * gives up. Returns the server that leads next, if it has.
   */
  maybeComplete(server: Server, now: Now): Sid | undefined {
    const transfer = this.#transfer;
    if (transfer === undefined || this.#successor !== undefined) return undefined;
    const target = this.#learners.replicatingFollower(transfer.target);
    if (target === undefined || !this.#canTakeOver(target)) return this.#end(transfer, 'target lost', now);
    // A job has a zxid, and proposes its txn at its end.
    const isDrained = this.#proposals.first() === undefined && !server.hasUnapplied;
    if (isDrained && this.#has(target)) {
      this.#successor = transfer.target;
      this.#announce(transfer.target);
      return this.#end(transfer, 'handed over', now);
    }
    if (now.elapsedMs - transfer.startMs > this.#limitMs) return this.#end(transfer, 'target too slow', now);
    return undefined;
  }

  /** Whether it has everything proposed: as much as any follower may have. */
  #has(target: LearnerProgress): boolean {
    return target.unackedProposals.length === 0;
  }

  #announce(successor: Sid): void {
    for (const learner of this.#learners.values()) {
      // Others are not in step yet, and look for a leader by themselves.
      if (learner.stage !== 'active' || learner.leaderPriority === undefined) continue;
      const writer = this.#learners.outputAfterBacklog(learner);
      const at = beginQuorumPacket(writer, PacketType.HANDOVER, this.#proposals.committed);
      writeDesignatedLeader(writer, successor);
      endQuorumPacket(writer, at);
    }
  }

  /** Returns the successor, which is undefined unless the lead has been handed over. */
  #end({ target, startMs }: Transfer, outcome: TransferEnd, now: Now): Sid | undefined {
    this.#transfer = undefined;
    this.#host.transferEnded(target, outcome, now.elapsedMs - startMs);
    // The next leader's clients must not wait for writes that are proposed no more.
    if (outcome !== 'handed over') this.#host.holdWrites(false);
    return this.#successor;
  }

  /**
   * Half of syncLimit: clients' writes wait meanwhile, and a follower that has acknowledged nothing
   * for syncLimit is disconnected in any case.
   */
  get #limitMs(): Millis {
    return (this.#options.syncLimitTicks * this.#options.tickTimeMs) / 2;
  }

  /** When the transfer has taken too long; Infinity without one. */
  get deadlineMs(): Millis {
    return this.#transfer === undefined ? Infinity : this.#transfer.startMs + this.#limitMs + 1;
  }

  fingerprint(to: Fingerprint, servingSinceMs: Millis, nowMs: Millis): void {
    to.number(this.#transfer?.target ?? -1);
    to.number(this.#successor ?? -1);
    to.number(this.#transfer === undefined ? -1 : msUntil(this.deadlineMs, nowMs));
    // How long servers have been in step matters only where one is preferred to this one.
    const { leaderPriority = leaderPriorityDefault, syncLimitTicks, tickTimeMs } = this.#options;
    const preferred = [...this.#learners.values()].filter((learner) => this.#canTakeOver(learner) && priorityOf(learner) > leaderPriority);
    const sinceMs = preferred.length === 0 ? [] : [servingSinceMs, ...preferred.map(({ activeSinceMs }) => activeSinceMs)];
    for (const ms of sinceMs) to.number(age(ms, nowMs, syncLimitTicks * tickTimeMs));
  }
}

function priorityOf({ leaderPriority = 0 }: LearnerProgress): number {
  return leaderPriority;
}

function isBetter(a: LearnerProgress, b: LearnerProgress): boolean {
  if (priorityOf(a) !== priorityOf(b)) return priorityOf(a) > priorityOf(b);
  return a.ackedZxid === b.ackedZxid ? a.sid > b.sid : a.ackedZxid > b.ackedZxid;
}
