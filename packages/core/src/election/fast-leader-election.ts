/**
 * The part of one server in the elections of its ensemble, and its answers to others while it takes
 * no part.
 *
 * A server that looks for a leader votes for itself, notifies every voter, and adopts each better
 * vote it receives, notifying all again. So the best vote spreads. Once a quorum has announced the
 * same vote, only a better vote still in flight could change the result: the finalize wait covers
 * that. A server that starts after the others have settled learns the result from them and joins.
 *
 * An election decides nothing for good. Any message may be late, so two servers may both believe
 * that they have won; the discovery phase that follows (Zab, phase 1) lets at most one of them
 * lead. A bad result costs time, never a txn.
 *
 * docs/internals/election.md describes all of it, and why the wait may end early.
 */
import { type Millis, type Notification, notificationVersion, noVote, type ServerState, type Sid, type Zxid } from '@tskeeper/protocol';
import { age, type Fingerprint, fingerprintSet } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { type ConfigListener, type ElectionConfig, newerConfig } from '../quorum/election-config.ts';
import type { ElectionLinks } from './election-links.ts';
import type { ElectionOptions, ElectionOutcome } from './election-options.ts';
import { Eligibility } from './eligibility.ts';
import { type AnnouncedVote, isBetterVote, sameVote, type Vote, voteOf } from './vote.ts';
import { VoteNotifier } from './vote-notifier.ts';
import { fingerprintVote, VoteSet } from './vote-set.ts';
import { VoterReachability } from './voter-reachability.ts';

/**
 * After this many times `finalizeWaitMs` since this server has settled, its leader has received
 * that and has settled too.
 */
const notificationWaits = 2;

/**
 * The zxid of a server without data. It must not choose among servers with data, since it may have
 * lost its own.
 */
const noData: Zxid = -1;

export class FastLeaderElection {
  readonly #sid: Sid;
  readonly #reconfigEnabled: boolean;
  readonly #finalizeWaitMs: Millis;
  readonly #earlyFinalization: boolean;
  readonly #configs: ConfigListener;
  readonly #notifier: VoteNotifier;
  /** Which servers get votes; the owner reports here what it learns about leaders. */
  readonly eligibility: Eligibility;
  readonly voterReachability = new VoterReachability();
  /** It may change between two inputs; see `quorumChanged`. */
  readonly #config: ElectionConfig;

  /** Undefined before the first election, when there is nothing to send yet. */
  #state: ServerState | undefined;
  /**
   * The logical clock: the number of this server's election, or a later one that it has received.
   * Not kept over a restart.
   */
  #round = 0;
  #ownZxid: Zxid = noData;
  #currentEpoch = 0;
  /** The best vote of this round so far. Its electionEpoch is always #round. */
  #proposal: Vote = { leader: noVote, zxid: noVote, electionEpoch: 0, peerEpoch: noVote };
  /** The last vote of each voter in this round, including this server's. */
  readonly #received = new VoteSet();
  /** The last vote of each voter that has settled, in any round ("out of election"). */
  readonly #outOfElection = new VoteSet();
  #outcome: ElectionOutcome | undefined;
  /** When this server settled. */
  #finalizedMs: Millis = 0;
  /** When the finalize wait ends; undefined while no quorum agrees. */
  #finalizeAtMs: Millis | undefined;
  /** Voters that look in an earlier round and vote for this server, since its election began. */
  readonly #supporters = new Set<Sid>();

  constructor(options: ElectionOptions, config: ElectionConfig, links: Pick<ElectionLinks, 'notify'>, configs: ConfigListener) {
    this.#sid = options.sid;
    this.#reconfigEnabled = options.reconfigEnabled ?? false;
    this.#finalizeWaitMs = options.finalizeWaitMs ?? 200;
    this.#earlyFinalization = options.earlyFinalization ?? true;
    this.eligibility = new Eligibility(this.#finalizeWaitMs);
    this.#config = config;
    this.#notifier = new VoteNotifier(options, links, this.eligibility);
    this.#configs = configs;
  }

  /**
   * The result of the election; undefined while it is running. Read it after each input: any input
   * may end the election.
   */
  get outcome(): ElectionOutcome | undefined {
    return this.#outcome;
  }

  /** The round, which ZooKeeper calls the logical clock. */
  get electionEpoch(): number {
    return this.#round;
  }

  /** When to call `wake`, on the monotonic clock. */
  deadline(): Millis | undefined {
    // No repetition during the wait: a quorum has received the vote, and the others learn the
    // result when they ask.
    if (this.#finalizeAtMs !== undefined || this.#notifier.repeatAtMs === undefined) return this.#finalizeAtMs;
    return Math.min(this.#notifier.repeatAtMs, this.eligibility.deadline());
  }

  /**
   * Input: this server starts looking for a leader. `ownZxid` is the last one in its log, -1
   * without data; `currentEpoch` is that of the last leader with which it was synchronised. Those
   * of an observer are not used.
   */
  start(ownZxid: Zxid, currentEpoch: number, now: Now): void {
    this.#state = 'looking';
    this.#outcome = undefined;
    this.#ownZxid = ownZxid;
    this.#currentEpoch = currentEpoch;
    // A peer may send the highest possible round. It stays at that: a higher one could not be
    // decoded, and other servers would ignore this server.
    this.#round = Math.min(this.#round + 1, Number.MAX_SAFE_INTEGER);
    this.#received.clear();
    this.#outOfElection.clear();
    this.#supporters.clear();
    this.voterReachability.startRound();
    this.eligibility.expireBackoffs(now);
    this.eligibility.beginRound();
    this.#notifier.resetInterval();
    this.#propose(this.#ownVote(), now);
    this.#evaluate(now);
  }

  /**
   * Whether the leader on which this server has settled is known not to lead: it looks in a later
   * round, follows another server, or its host refuses connections.
   */
  get isLeaderGone(): boolean {
    return this.#outcome !== undefined && this.voterReachability.isGone(this.#outcome.vote.leader);
  }

  /**
   * Whether the leader on which this server has settled sends votes but does not receive this
   * server's: it is still looking, and would lead otherwise.
   */
  get isLeaderNotReceiving(): boolean {
    return this.#outcome !== undefined && this.voterReachability.isNotReceiving(this.#outcome.vote.leader);
  }

  /**
   * Input: a notification. The owner guarantees that `from` is the sid at the other end of the
   * connection.
   */
  notified(from: Sid, notification: Notification, now: Now): void {
    // No server can have counted to a round beyond the exact range, where rounds could not be
    // compared.
    if (this.#state === undefined || from === this.#sid || !Number.isSafeInteger(notification.electionEpoch)) return;
    if (this.#state === 'looking' && this.#reconfigEnabled) this.#noteConfigs(from, notification, now);
    if (!this.#config.verifier.isVoter(from)) {
      // An observer asks all voters and does not count. It is sent this server's round, not that of
      // its vote, as in ZooKeeper.
      this.#notifier.reply(from, notification, this.#notification(this.#round), now);
      return;
    }
    this.voterReachability.receivedFrom(from);
    if (this.#state === 'looking') {
      this.#onNotification(from, notification, now);
      return;
    }
    this.voterReachability.updateFrom(
      from,
      notification,
      this.#currentVote(),
      now.elapsedMs > this.#finalizedMs + this.#finalizeWaitMs * notificationWaits,
    );
    if (notification.state === 'looking') {
      this.#notifier.reply(from, notification, this.#notification(this.#currentVote().electionEpoch), now);
    }
  }

  /** Input: `deadline()` has passed. Earlier calls do nothing. */
  wake(now: Now): void {
    if (this.#finalizeAtMs !== undefined) {
      if (now.elapsedMs >= this.#finalizeAtMs) this.#decide(this.#proposal, now);
      return;
    }
    if (this.#notifier.repeatAtMs === undefined) return;
    if (this.eligibility.maybeAbandon(this.#proposal.leader, now)) this.#abandonProposal(now);
    if (this.eligibility.expireBackoffs(now)) this.#reconsider(now);
    if (this.#notifier.repeatAtMs === undefined || now.elapsedMs < this.#notifier.repeatAtMs) return;
    this.#notifier.lengthenInterval(this.#canVote());
    this.#notifyAll(now);
    // No notification has arrived, but an oracle may have answered.
    this.#evaluate(now);
  }

  /**
   * Input: the connection with that server has closed, and a dial since then was refused: no server
   * listens on that host. A dial without an answer is not a refusal: on the other side of a
   * partition a voter may be well and about to win. Nor is a refusal enough if there never was a
   * connection: when an ensemble starts, not all servers listen yet.
   */
  unreachable(sid: Sid, now: Now): void {
    this.voterReachability.unreachable(sid);
    if (this.#state === 'looking') this.#evaluate(now);
  }

  /** Input: there is a connection with that server again, opened by either side. */
  reachable(sid: Sid): void {
    this.voterReachability.reachable(sid);
    this.eligibility.connected(sid);
    // The process that listens there may be a new one, which has received nothing yet.
    this.#notifier.forget(sid);
  }

  /**
   * Input: the election has ended for another reason than a vote, such as a reconfiguration that
   * named the leader. Until the next `start`, servers that look for a leader are sent this result.
   */
  finalize(outcome: ElectionOutcome, now: Now): void {
    this.#state = outcome.state;
    this.#outcome = outcome;
    this.#finalizedMs = now.elapsedMs;
    this.#finalizeAtMs = undefined;
    this.eligibility.endRound();
    this.#notifier.stopRepeating();
    this.#received.clear();
    this.#outOfElection.clear();
    this.voterReachability.finalize();
  }

  /**
   * Input: this server is synchronised with its leader, or leads, in a new epoch. Its vote has that
   * epoch from now on. Servers that join later compare epochs, and otherwise servers that took part
   * in the election would disagree with those that joined after it (ZOOKEEPER-1732).
   */
  updateVote(newEpoch: number): void {
    if (this.#outcome === undefined) return;
    this.#outcome = { state: this.#outcome.state, vote: { ...this.#outcome.vote, peerEpoch: newEpoch } };
  }

  /**
   * Input: the configuration is another one, or the oracle has changed its answer. A running
   * election counts by it at once and keeps its votes: if the voters differ, `start` a new one.
   */
  quorumChanged(now: Now): void {
    if (this.#state === 'looking') this.#evaluate(now);
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, now: Now): void {
    to.text(this.#state ?? '');
    to.number(this.#round);
    to.number(this.#ownZxid);
    to.number(this.#currentEpoch);
    to.number(this.#notifier.intervalMs);
    const settledMs = this.#finalizeWaitMs * notificationWaits;
    to.number(this.#outcome === undefined ? -1 : age(this.#finalizedMs, now.elapsedMs, settledMs));
    for (const time of [this.#finalizeAtMs, this.#notifier.repeatAtMs])
      to.number(time === undefined ? -1 : Math.max(0, time - now.elapsedMs));
    to.text(this.#config.text);
    to.number(this.#config.version);
    this.#config.verifier.fingerprint(to);
    fingerprintVote(to, this.#currentVote());
    this.#received.fingerprint(to);
    this.#outOfElection.fingerprint(to);
    this.voterReachability.fingerprint(to);
    this.eligibility.fingerprint(to, now);
    fingerprintSet(to, this.#supporters);
    this.#notifier.fingerprint(to, now);
  }

  // ---- notifications of others, while looking

  #noteConfigs(from: Sid, { config, pendingConfig }: Notification, now: Now): void {
    const newer = newerConfig(config, this.#config);
    if (newer !== undefined && this.#configs.configSeen(from, newer)) this.#notifyAnnounced(now);
    this.#configs.pendingConfigSeen(from, pendingConfig);
  }

  #onNotification(from: Sid, notification: Notification, now: Now): void {
    // The sender is in an older round. It is answered even if the rest of its message cannot be
    // used.
    if (notification.state === 'looking' && notification.electionEpoch < this.#round) {
      this.#noteSupport(from, notification.leader, now);
      this.#notifier.reply(from, notification, this.#notification(this.#round), now);
      return;
    }
    if (!this.#config.verifier.isVoter(notification.leader)) {
      this.#joinRoundOf(notification, now);
      return;
    }
    switch (notification.state) {
      case 'looking':
        this.#onLooking(from, notification, now);
        return;
      case 'following':
      case 'leading':
        this.#onOutOfElection(from, notification, now);
        return;
      case 'observing':
        // An observer knows no more than the servers it observes.
        return;
      default:
        notification.state satisfies never;
    }
  }

  /**
   * A voter votes for a server that has no vote in this server's configuration: it knows of a
   * pending one. Its vote cannot be adopted, but it must learn ours, which takes its round: only
   * then it can see that its candidate gets no quorum, and try one that has a vote in both.
   */
  #joinRoundOf({ state, leader, electionEpoch }: Notification, now: Now): void {
    if (state !== 'looking' || leader === noVote || !this.#reconfigEnabled || electionEpoch <= this.#round) return;
    this.#beginRound(electionEpoch);
    this.#propose(this.#ownVote(), now);
  }

  /**
   * Votes of an older round are void: their senders may since have failed and restarted with less.
   */
  #beginRound(round: number): void {
    this.#round = round;
    this.#received.clear();
    this.eligibility.beginRound();
  }

  /**
   * A server that backs off from its own candidacy sends nothing, so voters of an earlier round do
   * not learn that it has started a new one. If a quorum votes for it there, they elect it, find
   * that it does not lead, and back off from it; by then it may announce its vote again, to voters
   * that no longer adopt it. So it announces its vote as soon as a quorum votes for it.
   */
  #noteSupport(from: Sid, leader: Sid, now: Now): void {
    if (leader === this.#sid) this.#supporters.add(from);
    else this.#supporters.delete(from);
    if (this.#proposal.leader !== this.#sid || this.eligibility.isEligible(this.#sid, now)) return;
    if (!this.#config.verifier.containsQuorum({ has: (sid) => sid === this.#sid || this.#supporters.has(sid) })) return;
    this.eligibility.endBackoff(this.#sid);
    this.#notifyAll(now);
  }

  #onLooking(from: Sid, notification: Notification, now: Now): void {
    // It has joined this round or is in a later one, and no longer waits for this server there.
    this.#supporters.delete(from);
    if (this.#lacksData() || notification.zxid === noData) return;
    const vote = voteOf(notification);
    const { verifier } = this.#config;
    if (vote.electionEpoch > this.#round) {
      this.#beginRound(vote.electionEpoch);
      const own = this.#ownVote();
      this.#propose(this.#isBetter(vote, own, now) ? vote : own, now);
    } else if (this.#isBetter(vote, this.#proposal, now)) {
      this.#propose(vote, now);
    }
    this.#record(from, { ...vote, state: 'looking', version: notification.version });
    // The sender votes for less than this server, so our vote has not reached it. It is probably in
    // flight; if it was sent long ago, it is lost, and the next repetition may be a minute away.
    // ZooKeeper does nothing here.
    if (isBetterVote(this.#proposal, vote, verifier) && !this.#notifier.hasSentRecently(from, now)) {
      this.#notifier.send(from, this.#notification(this.#round), undefined, now);
    }
    this.#evaluate(now);
  }

  #onOutOfElection(from: Sid, notification: Notification, now: Now): void {
    // A settled server keeps no votes. If it starts looking a moment later, as followers of a
    // failed leader do one after the other, it will not know our last notification: that must then
    // be sent again at once, not with the next repetition.
    this.#notifier.forget(from);
    const { verifier } = this.#config;
    // A quorum that does not know this server's pending configuration may have elected a leader, which
    // takes that back: its learners need not count by it. This server leads only by both.
    const quorum = notification.leader === this.#sid ? verifier : verifier.active;
    const vote: AnnouncedVote = { ...voteOf(notification), state: notification.state, version: notification.version };
    if (vote.electionEpoch === this.#round) {
      // Within a round some servers have raised the epoch of their vote already and some have not;
      // the leader is the same. Version 0 makes `agree` compare the leader only.
      this.#record(from, { ...vote, version: 0 });
      if (this.#received.hasQuorum(vote, quorum) && this.#checkLeader(this.#received, vote)) {
        this.#decide(voteOf(notification), now);
        return;
      }
    }
    this.#outOfElection.set(from, vote);
    if (this.#outOfElection.hasQuorum(vote, quorum) && this.#checkLeader(this.#outOfElection, vote)) {
      this.#round = vote.electionEpoch;
      this.#decide(voteOf(notification), now);
      return;
    }
    // One of two voters leads by the oracle's decision, and no quorum will ever confirm it to the
    // others. One that may continue alone too follows nevertheless: the other may have been allowed
    // to before, and have written.
    if (vote.state === 'leading' && vote.leader === from && verifier.mayLackMajority) {
      this.#round = vote.electionEpoch;
      this.#decide(voteOf(notification), now);
      return;
    }
    this.#maybeRepeatSooner(vote.leader, now);
    this.#evaluate(now);
  }

  /**
   * A quorum has one leader, which leads, and differs only in the epoch: its members raise that one
   * after the other while the epoch begins, without notifying others. A server that has been
   * looking for long would ask again only in a minute.
   */
  #maybeRepeatSooner(leader: Sid, now: Now): void {
    if (this.#outOfElection.get(leader)?.state !== 'leading' || !this.#outOfElection.hasQuorumFor(leader, this.#config.verifier.active))
      return;
    this.#notifier.repeatSoon(now);
  }

  /**
   * Followers may not have noticed yet that their leader has failed, so their votes are not enough:
   * the leader itself must lead.
   */
  #checkLeader(votes: VoteSet, vote: Vote): boolean {
    if (vote.leader !== this.#sid) return votes.get(vote.leader)?.state === 'leading';
    // They follow this server: by this election, or by one before it failed. In the latter case it
    // may have restarted with less than they voted for.
    return vote.electionEpoch === this.#round && !isBetterVote(vote, this.#ownVote(), this.#config.verifier);
  }

  // ---- the own vote

  #canVote(): boolean {
    return this.#config.ownRole === 'participant' && this.#config.verifier.isVoter(this.#sid);
  }

  #lacksData(): boolean {
    return this.#canVote() && this.#ownZxid === noData;
  }

  #ownVote(): Vote {
    const electionEpoch = this.#round;
    if (!this.#canVote()) return { leader: noVote, zxid: noVote, electionEpoch, peerEpoch: noVote };
    return { leader: this.#sid, zxid: this.#ownZxid, electionEpoch, peerEpoch: this.#currentEpoch };
  }

  #isBetter(vote: Vote, than: Vote, now: Now): boolean {
    const { verifier } = this.#config;
    // It was announced before a TRUNC or a SNAP of the last leader has taken txns from this server's
    // log, and has reached another voter late. ZooKeeper adopts it, and may elect a server that
    // its own voters do not follow, since they have more.
    if (vote.leader === this.#sid && isBetterVote(vote, this.#ownVote(), verifier)) return false;
    return this.eligibility.isEligible(vote.leader, now) && isBetterVote(vote, than, verifier);
  }

  /**
   * Replaces the proposal by the next best. This server's own is replaced by one with an equal
   * history: a server with less could not lead with this server in its quorum, and then only
   * silence makes room for others.
   */
  #abandonProposal(now: Now): void {
    let next = this.#ownVote();
    if (this.#proposal.leader === this.#sid) {
      const { peerEpoch, zxid } = next;
      for (const vote of this.#received.values()) {
        const hasAsMuch = vote.electionEpoch === this.#round && vote.peerEpoch === peerEpoch && vote.zxid === zxid;
        if (!hasAsMuch || !this.eligibility.isEligible(vote.leader, now)) continue;
        if (this.#config.verifier.weight(vote.leader) > 0 && (next.leader === this.#sid || vote.leader > next.leader)) next = vote;
      }
    }
    this.#reconsider(now, next);
  }

  /** A vote that was not adopted may be the best by now; the own vote may be announced again. */
  #reconsider(now: Now, own: Vote = this.#proposal): void {
    let best = own;
    for (const vote of this.#received.values()) if (vote.electionEpoch === this.#round && this.#isBetter(vote, best, now)) best = vote;
    const { leader, zxid, electionEpoch, peerEpoch } = best;
    this.#propose({ leader, zxid, electionEpoch, peerEpoch }, now);
    this.#evaluate(now);
  }

  #propose(vote: Vote, now: Now): void {
    this.#proposal = vote;
    this.#finalizeAtMs = undefined;
    if (this.#canVote() && !this.#lacksData()) {
      this.#received.set(this.#sid, { ...vote, state: 'looking', version: notificationVersion });
    }
    this.#notifyAll(now);
  }

  /**
   * A new vote shows that votes are still in flight: the finalize wait begins again. A repeated one
   * does not delay it.
   */
  #record(from: Sid, vote: AnnouncedVote): void {
    const before = this.#received.get(from);
    if (before === undefined || !sameVote(before, vote)) this.#finalizeAtMs = undefined;
    this.#received.set(from, vote);
  }

  /** Checks whether a quorum agrees with the proposal, and whether to wait any longer. */
  #evaluate(now: Now): void {
    const { verifier } = this.#config;
    if (!this.#received.hasQuorum({ ...this.#proposal, state: 'looking', version: notificationVersion }, verifier)) {
      this.#finalizeAtMs = undefined;
      this.eligibility.setHopeless(this.#received.isHopeless(this.#proposal, verifier), now);
      this.#maybeAskCandidate(now);
      return;
    }
    this.eligibility.setHopeless(false, now);
    if (this.#earlyFinalization && this.#allReachableAgree()) {
      this.#decide(this.#proposal, now);
    } else {
      this.#finalizeAtMs ??= now.elapsedMs + this.#finalizeWaitMs;
    }
  }

  /**
   * The candidate of this server may find a quorum by its oracle where this server finds none. It
   * leads then without a word, and gives up if this server does not follow: so it must be asked soon,
   * and not after an interval of up to a minute.
   */
  #maybeAskCandidate(now: Now): void {
    const { leader } = this.#proposal;
    if (leader === this.#sid || !this.#config.verifier.mayLackMajority) return;
    if (this.#received.get(leader)?.leader === leader) this.#notifier.repeatSoon(now);
  }

  /**
   * Whether every reachable voter has announced the proposal. The proposed leader must be one of
   * them: a server must not be hurried into following one that may just have failed.
   */
  #allReachableAgree(): boolean {
    return this.#config.verifier.voters.every((sid) => {
      if (sid === this.#sid) return true;
      if (this.voterReachability.isUnreachable(sid)) return sid !== this.#proposal.leader;
      const vote = this.#received.get(sid);
      return vote !== undefined && sameVote(vote, this.#proposal);
    });
  }

  #decide(vote: Vote, now: Now): void {
    const learnerState = this.#config.ownRole === 'observer' ? 'observing' : 'following';
    this.finalize({ state: vote.leader === this.#sid ? 'leading' : learnerState, vote }, now);
  }

  // ---- own notifications

  #currentVote(): Vote {
    return this.#outcome?.vote ?? this.#proposal;
  }

  #notification(electionEpoch: number): Notification {
    const { leader, zxid, peerEpoch } = this.#currentVote();
    const { text: config, pendingText: pendingConfig } = this.#config;
    return { state: this.#state!, leader, zxid, peerEpoch, electionEpoch, version: notificationVersion, config, pendingConfig };
  }

  #notifyAll(now: Now): void {
    this.#notifier.notifyAll(this.#config.verifier.voters, this.#notification(this.#round), now);
    if (this.#config.announcedVoters.length > 0) this.#notifyAnnounced(now);
  }

  /** Servers that this one does not know may know of a later configuration. */
  #notifyAnnounced(now: Now): void {
    const { verifier, announcedVoters } = this.#config;
    for (const sid of announcedVoters) {
      if (sid !== this.#sid && !verifier.isVoter(sid)) this.#notifier.send(sid, this.#notification(this.#round), undefined, now);
    }
  }
}
