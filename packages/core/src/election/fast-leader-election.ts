/**
 * One server's part in the elections of its ensemble, and what it tells others when it takes no part.
 *
 * A server that looks for a leader votes for itself, tells every voter, and takes over each better vote it hears of, telling everyone
 * again. So the best vote spreads, and once a quorum has announced the same one, only a still better one that is under way could change
 * the outcome: that is what the settling wait is for. A server that comes when the others have settled already is told so by them and joins.
 *
 * An election decides nothing for good. Any message may come late, so two servers can believe to have won; what makes at most one of them
 * lead is the discovery phase that follows (Zab, phase 1). An election that chose badly costs time, never a txn.
 *
 * docs/internals/election.md tells the whole of it, and why the wait may end early.
 */
import {
  type Millis,
  type Notification,
  notificationVersion,
  noVote,
  parseQuorumConfig,
  type QuorumConfig,
  QuorumConfigError,
  type ServerState,
  type Sid,
  type Zxid,
} from '@tskeeper/protocol';
import { type Fingerprint, writeSet } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier, Sids } from '../quorum/quorum-verifier.ts';
import type { ElectionLinks } from './election-links.ts';
import { Eligibility } from './eligibility.ts';
import { agree, type AnnouncedVote, beats, sameVote, type Vote, voteOf } from './vote.ts';
import { Whereabouts } from './whereabouts.ts';

export interface ConfigListener {
  /**
   * `from` uses a configuration of a higher version than this server's. Called with `reconfigEnabled` only, while this server is looking. The owner adopts
   * it with `reconfigure` before it reads `decided`, and starts a new election if the voters differ.
   */
  configSeen(from: Sid, config: QuorumConfig): void;
}

export interface ElectionOptions {
  readonly sid: Sid;
  /** An observer finds the leader in the same way, without a voice. */
  readonly role: 'participant' | 'observer';
  /** Whether configurations of others are heeded. Default: false, as in ZooKeeper. */
  readonly reconfigEnabled?: boolean;
  /** How long a better vote is waited for when a quorum agrees. Default: 200, as in ZooKeeper, so that a mixed ensemble settles at one pace. */
  readonly finalizeWaitMs?: Millis;
  /** Whether this wait ends when every voter that can be reached agrees. Default: true. Java servers always wait. */
  readonly earlySettling?: boolean;
  /** After how long a notification is repeated at first (`zookeeper.fastleader.minNotificationInterval`). Default: 200. */
  readonly minNotificationIntervalMs?: Millis;
  /** It doubles each time up to this (`zookeeper.fastleader.maxNotificationInterval`). Default: 60,000. */
  readonly maxNotificationIntervalMs?: Millis;
}

/** The configuration a server goes by. */
export interface ElectionConfig {
  /** Quorums of the configuration in force, and of the last seen one as well if that is newer (`JointQuorum`). */
  readonly verifier: QuorumVerifier;
  /** Its text as in /zookeeper/config, which goes into each notification; and the version that stands in it. */
  readonly text: string;
  readonly version: number;
}

/** How an election ended for this server. */
export interface Outcome {
  readonly state: 'leading' | 'following' | 'observing';
  readonly vote: Vote;
}

/** What was last said to a server. */
interface Said {
  readonly notification: Notification;
  /** What it answered; undefined for what was said to everyone. */
  readonly answers: Notification | undefined;
  readonly atMs: Millis;
}

/** How many times `finalizeWaitMs` after this server has settled its leader has heard of it, and has done so too. */
const heardWaits = 2;

/** The zxid of a server that has no data and must not choose among those that have: it may have lost what it had. */
const noData: Zxid = -1;

export class FastLeaderElection {
  readonly #sid: Sid;
  readonly #role: 'participant' | 'observer';
  readonly #reconfigEnabled: boolean;
  readonly #finalizeWaitMs: Millis;
  readonly #earlySettling: boolean;
  readonly #minIntervalMs: Millis;
  readonly #maxIntervalMs: Millis;
  readonly #links: Pick<ElectionLinks, 'notify'>;
  readonly #configs: ConfigListener;
  #config: ElectionConfig;

  /** Undefined before the first election, when there is nothing yet to tell anyone. */
  #state: ServerState | undefined;
  /** The logical clock: the number of this server's election, or of a later one that it has heard of. Not kept over a restart. */
  #round = 0;
  #ownZxid: Zxid = noData;
  #currentEpoch = 0;
  /** The best vote of this round so far. Its electionEpoch is always #round. */
  #proposal: Vote = { leader: noVote, zxid: noVote, electionEpoch: 0, peerEpoch: noVote };
  /** The last vote of each voter in this round, the own one included. */
  readonly #received = new Map<Sid, AnnouncedVote>();
  /** The last vote of each voter that has settled, of whatever round ("out of election"). */
  readonly #settled = new Map<Sid, AnnouncedVote>();
  #decided: Outcome | undefined;
  /** When this server settled. */
  #decidedMs: Millis = 0;
  /** When the settling wait is over; undefined while no quorum agrees. */
  #settleAtMs: Millis | undefined;
  /** When everyone is told again; undefined unless looking. */
  #repeatAtMs: Millis | undefined;
  #intervalMs: Millis;
  readonly #whereabouts = new Whereabouts();
  readonly #eligible: Eligibility;
  readonly #said = new Map<Sid, Said>();
  /** Voters that looked in an earlier round and voted for this server, since its election began. */
  readonly #supporters = new Set<Sid>();

  constructor(options: ElectionOptions, config: ElectionConfig, links: Pick<ElectionLinks, 'notify'>, configs: ConfigListener) {
    this.#sid = options.sid;
    this.#role = options.role;
    this.#reconfigEnabled = options.reconfigEnabled ?? false;
    this.#finalizeWaitMs = options.finalizeWaitMs ?? 200;
    this.#earlySettling = options.earlySettling ?? true;
    this.#minIntervalMs = options.minNotificationIntervalMs ?? 200;
    this.#maxIntervalMs = options.maxNotificationIntervalMs ?? 60_000;
    this.#intervalMs = this.#minIntervalMs;
    this.#eligible = new Eligibility(this.#finalizeWaitMs);
    this.#config = config;
    this.#links = links;
    this.#configs = configs;
  }

  /** How the election ended; undefined while it goes on. To be looked at after each input: any of them may end it. */
  get decided(): Outcome | undefined {
    return this.#decided;
  }

  /** The round, which ZooKeeper calls the logical clock. */
  get electionEpoch(): number {
    return this.#round;
  }

  /** When to call `wake`, on the monotonic clock. */
  deadline(): Millis | undefined {
    // No repetition while the wait runs: a quorum has heard us, and the others hear how it ended when they ask.
    if (this.#settleAtMs !== undefined || this.#repeatAtMs === undefined) return this.#settleAtMs;
    return Math.min(this.#repeatAtMs, this.#eligible.deadline());
  }

  /**
   * Input: this server looks for a leader, for the first time or again. `ownZxid` is the last one in its log, -1 if it has no data;
   * `currentEpoch` that of the last leader it was in step with. An observer's are not used.
   */
  start(ownZxid: Zxid, currentEpoch: number, now: Now): void {
    this.#state = 'looking';
    this.#decided = undefined;
    this.#ownZxid = ownZxid;
    this.#currentEpoch = currentEpoch;
    // Whoever votes may say that the round is the last one. It stays that: a later one could not be read, and nobody would hear this server any more.
    this.#round = Math.min(this.#round + 1, Number.MAX_SAFE_INTEGER);
    this.#received.clear();
    this.#settled.clear();
    this.#supporters.clear();
    this.#whereabouts.look();
    this.#eligible.renew(now);
    this.#eligible.beginRound();
    this.#intervalMs = this.#minIntervalMs;
    this.#propose(this.#ownVote(), now);
    this.#judge(now);
  }

  /**
   * Input: a leader was elected that this server could not reach; or, of this server, that could gather no quorum. Until then its vote is not
   * taken over, or, if it is our own, not announced. Without that the server with the best vote is elected over and over, if somebody
   * hears its votes and passes them on, and a quorum cannot reach it. Whom others have settled on is followed all the same.
   */
  shun(sid: Sid, untilMs: Millis): void {
    this.#eligible.shun(sid, untilMs);
  }

  /**
   * Input: a leader was elected that did not answer when it was dialled, though its votes may still be heard, over a link that is cut in one direction.
   * It is not voted for until there is a new connection with it (`reachable`), which takes both directions, and not after `untilMs`: a quorum that has
   * nobody else has to find out together. The owner makes sure that no connection is left from before. Whom others have settled on is followed all the same.
   */
  unanswering(sid: Sid, untilMs: Millis): void {
    this.#eligible.unanswering(sid, untilMs);
  }

  /** Input: this server leads, or is in step with its leader. */
  forgive(): void {
    this.#eligible.forgive();
  }

  /** Voters that will not come to the leader this server has settled on. See `Whereabouts.lost`. */
  get lost(): Sids {
    return this.#whereabouts.lost;
  }

  /** Whether the leader that this server has settled on is known not to lead: it looks in a later round, follows, or nobody listens where it was. */
  get isLeaderGone(): boolean {
    return this.#decided !== undefined && this.#whereabouts.isGone(this.#decided.vote.leader);
  }

  /** Whether the leader that this server has settled on speaks, and does not hear this server: it still looks, and would lead if it heard. */
  get isLeaderDeaf(): boolean {
    return this.#decided !== undefined && this.#whereabouts.isDeaf(this.#decided.vote.leader);
  }

  /** Input: what a server has said. The owner vouches for `from`, which is the sid at the other end of the connection. */
  notified(from: Sid, notification: Notification, now: Now): void {
    // A round beyond the exact range was not counted up to by anyone, and votes could no longer be told apart by it.
    if (this.#state === undefined || from === this.#sid || !Number.isSafeInteger(notification.electionEpoch)) return;
    const newer = this.#state === 'looking' ? this.#newerConfig(notification) : undefined;
    if (newer !== undefined) this.#configs.configSeen(from, newer);
    if (!this.#config.verifier.isVoter(from)) {
      // An observer asks everyone and is not counted. It is told this server's round, not that of its vote, as in ZooKeeper.
      this.#answer(from, notification, this.#notification(this.#round), now);
      return;
    }
    this.#whereabouts.hear(from);
    if (this.#state === 'looking') {
      this.#hear(from, notification, now);
      return;
    }
    this.#whereabouts.note(from, notification, this.#vote(), now.elapsedMs > this.#decidedMs + this.#finalizeWaitMs * heardWaits);
    if (notification.state === 'looking') {
      this.#answer(from, notification, this.#notification(this.#vote().electionEpoch), now);
    }
  }

  /** Input: `deadline()` has come. Earlier calls do nothing. */
  wake(now: Now): void {
    if (this.#settleAtMs !== undefined) {
      if (now.elapsedMs >= this.#settleAtMs) this.#decide(this.#proposal, now);
      return;
    }
    if (this.#repeatAtMs === undefined) return;
    if (this.#eligible.maybeGiveUp(this.#proposal.leader, now)) this.#giveUpProposal(now);
    if (this.#eligible.renew(now)) this.#reconsider(now);
    if (this.#repeatAtMs === undefined || now.elapsedMs < this.#repeatAtMs) return;
    this.#intervalMs = Math.min(this.#intervalMs * 2, this.#maxIntervalMs);
    this.#notifyAll(now);
    // Nobody has spoken, and an oracle may have.
    this.#judge(now);
  }

  /**
   * Input: the connection with that server has closed, and a dial made since was refused, which is how a host answers on which
   * no server listens. A dial without an answer is not a refusal: behind a cut network a voter may be well and about to win. Nor is
   * a refusal enough where there never was a connection: when an ensemble starts, not all listen yet.
   */
  unreachable(sid: Sid, now: Now): void {
    this.#whereabouts.unreachable(sid);
    if (this.#state === 'looking') this.#judge(now);
  }

  /** Input: there is a connection with that server again, from whichever side. */
  reachable(sid: Sid): void {
    this.#whereabouts.reachable(sid);
    this.#eligible.connected(sid);
    // Whoever listens there now may be another process, which has heard nothing yet.
    this.#said.delete(sid);
  }

  /**
   * Input: the election is over for another reason than a vote, such as a reconfiguration that named the leader. Until the next `start`
   * whoever looks for a leader is told this.
   */
  settle(outcome: Outcome, now: Now): void {
    this.#state = outcome.state;
    this.#decided = outcome;
    this.#decidedMs = now.elapsedMs;
    this.#settleAtMs = undefined;
    this.#eligible.settle();
    this.#repeatAtMs = undefined;
    this.#received.clear();
    this.#settled.clear();
    this.#whereabouts.settle();
  }

  /**
   * Input: this server is in step with its leader, or has become it, in a new epoch. Its vote is of that epoch from now on. Servers that
   * come later compare epochs, and those that were in the election would else disagree with those that joined after it (ZOOKEEPER-1732).
   */
  updateVote(newEpoch: number): void {
    if (this.#decided === undefined) return;
    this.#decided = { state: this.#decided.state, vote: { ...this.#decided.vote, peerEpoch: newEpoch } };
  }

  /**
   * Input: another configuration is in force, or was seen; or an oracle has changed its mind. A running election is judged by it at once,
   * and goes on with the votes it has: if the voters are others, `start` a new one.
   */
  reconfigure(config: ElectionConfig, now: Now): void {
    this.#config = config;
    if (this.#state === 'looking') this.#judge(now);
  }

  /** Everything that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, now: Now): void {
    to.text(this.#state ?? '');
    to.number(this.#round);
    to.number(this.#ownZxid);
    to.number(this.#currentEpoch);
    to.number(this.#intervalMs);
    for (const time of [this.#settleAtMs, this.#repeatAtMs]) to.number(time === undefined ? -1 : Math.max(0, time - now.elapsedMs));
    to.text(this.#config.text);
    to.number(this.#config.version);
    this.#config.verifier.fingerprint(to);
    writeVote(to, this.#vote());
    for (const votes of [this.#received, this.#settled]) {
      to.number(votes.size);
      for (const sid of ascending(votes.keys())) {
        const vote = votes.get(sid)!;
        to.number(sid);
        writeVote(to, vote);
        to.text(vote.state);
        to.number(vote.version);
      }
    }
    this.#whereabouts.fingerprint(to);
    this.#eligible.fingerprint(to, now);
    writeSet(to, this.#supporters);
    for (const sid of ascending(this.#said.keys())) {
      const said = this.#saidLately(sid, now);
      if (said === undefined) continue;
      to.number(sid);
      to.number(now.elapsedMs - said.atMs);
      writeNotification(to, said.notification);
      if (said.answers !== undefined) writeNotification(to, said.answers);
    }
  }

  // --- What others say, while looking ---------------------------------------------------------------------------------------------

  #hear(from: Sid, notification: Notification, now: Now): void {
    // Whoever sends this lags behind. It is told even when the rest of its message is no use.
    if (notification.state === 'looking' && notification.electionEpoch < this.#round) {
      this.#noteSupport(from, notification.leader, now);
      this.#answer(from, notification, this.#notification(this.#round), now);
      return;
    }
    if (!this.#config.verifier.isVoter(notification.leader)) return;
    switch (notification.state) {
      case 'looking':
        this.#onLooking(from, notification, now);
        return;
      case 'following':
      case 'leading':
        this.#onSettled(from, notification, now);
        return;
      case 'observing':
        // A server that observes does not know better than those it observes.
        return;
      default:
        notification.state satisfies never;
    }
  }

  /**
   * A server that shuns itself sends nothing, so voters of an earlier round do not learn that it has started a new one. If a quorum votes for it there,
   * they elect it, find that it does not lead, and shun it; by then it may announce its vote again, to voters that do not adopt it any more. So it
   * announces its vote as soon as a quorum votes for it.
   */
  #noteSupport(from: Sid, leader: Sid, now: Now): void {
    if (leader === this.#sid) this.#supporters.add(from);
    else this.#supporters.delete(from);
    if (this.#proposal.leader !== this.#sid || this.#eligible.has(this.#sid, now)) return;
    if (!this.#config.verifier.containsQuorum({ has: (sid) => sid === this.#sid || this.#supporters.has(sid) })) return;
    this.#eligible.unshun(this.#sid);
    this.#notifyAll(now);
  }

  #onLooking(from: Sid, notification: Notification, now: Now): void {
    if (this.#isWithoutData() || notification.zxid === noData) return;
    const vote = voteOf(notification);
    const { verifier } = this.#config;
    if (vote.electionEpoch > this.#round) {
      // What was said in an older round is void: whoever said it may since have failed and come back with less.
      this.#round = vote.electionEpoch;
      this.#received.clear();
      this.#eligible.beginRound();
      const own = this.#ownVote();
      this.#propose(this.#isBetter(vote, own, now) ? vote : own, now);
    } else if (this.#isBetter(vote, this.#proposal, now)) {
      this.#propose(vote, now);
    }
    this.#record(from, { ...vote, state: 'looking', version: notification.version });
    // It votes for less than we do, so our vote has not reached it. It is most likely under way; if we said it long ago, it is lost, and
    // the next repetition may be a minute away. ZooKeeper leaves it at that.
    if (beats(this.#proposal, vote, verifier) && this.#saidLately(from, now) === undefined) {
      this.#say(from, this.#notification(this.#round), undefined, now);
    }
    this.#judge(now);
  }

  #onSettled(from: Sid, notification: Notification, now: Now): void {
    // A server that has settled keeps no votes. If it begins to look a moment later, as followers of a failed leader do one after the other,
    // it will not know what we said to it: to be said again at once, and not with the next repetition.
    this.#said.delete(from);
    const vote: AnnouncedVote = { ...voteOf(notification), state: notification.state, version: notification.version };
    if (vote.electionEpoch === this.#round) {
      // Within a round some have raised the epoch of their vote already and some have not; the leader is the same. Version 0 says so.
      this.#record(from, { ...vote, version: 0 });
      if (this.#hasQuorum(this.#received, vote) && this.#checksOut(this.#received, vote)) {
        this.#decide(voteOf(notification), now);
        return;
      }
    }
    this.#settled.set(from, vote);
    if (this.#hasQuorum(this.#settled, vote) && this.#checksOut(this.#settled, vote)) {
      this.#round = vote.electionEpoch;
      this.#decide(voteOf(notification), now);
      return;
    }
    // Of two voters one leads with the oracle's consent, and no quorum will ever confirm it to the other.
    if (vote.state === 'leading' && vote.leader === from && this.#config.verifier.deniedByOracle()) {
      this.#round = vote.electionEpoch;
      this.#decide(voteOf(notification), now);
      return;
    }
    this.#maybeHurry(vote.leader, now);
    this.#judge(now);
  }

  /**
   * A quorum has one leader, which leads, and only disagrees on the epoch: its members raise that one after the other while it begins. They tell
   * nobody when they have, and whoever has looked for long would ask again in a minute.
   */
  #maybeHurry(leader: Sid, now: Now): void {
    const names = (sid: Sid): boolean => this.#settled.get(sid)?.leader === leader;
    if (this.#settled.get(leader)?.state !== 'leading' || !this.#config.verifier.containsQuorum({ has: names })) return;
    this.#intervalMs = this.#minIntervalMs;
    this.#repeatAtMs = Math.min(this.#repeatAtMs ?? Infinity, now.elapsedMs + this.#minIntervalMs);
  }

  /** Those who follow may not have noticed yet that their leader has failed, so that they follow is not enough: it must lead. */
  #checksOut(votes: ReadonlyMap<Sid, AnnouncedVote>, vote: Vote): boolean {
    if (vote.leader !== this.#sid) return votes.get(vote.leader)?.state === 'leading';
    // They follow us: in this election, or in one before we failed. In the latter case we may have come back with less than they voted for.
    return vote.electionEpoch === this.#round && !beats(vote, this.#ownVote(), this.#config.verifier);
  }

  // --- The own vote ---------------------------------------------------------------------------------------------------------------

  #hasVoice(): boolean {
    return this.#role === 'participant' && this.#config.verifier.isVoter(this.#sid);
  }

  #isWithoutData(): boolean {
    return this.#hasVoice() && this.#ownZxid === noData;
  }

  #ownVote(): Vote {
    const electionEpoch = this.#round;
    if (!this.#hasVoice()) return { leader: noVote, zxid: noVote, electionEpoch, peerEpoch: noVote };
    return { leader: this.#sid, zxid: this.#ownZxid, electionEpoch, peerEpoch: this.#currentEpoch };
  }

  #isBetter(vote: Vote, than: Vote, now: Now): boolean {
    return this.#eligible.has(vote.leader, now) && beats(vote, than, this.#config.verifier);
  }

  /**
   * The proposal is given up for the next best. That of this server itself is given up for one that has as much: one that has less could not lead with this
   * server in its quorum, and then silence is all that makes room.
   */
  #giveUpProposal(now: Now): void {
    let next = this.#ownVote();
    if (this.#proposal.leader === this.#sid) {
      const { peerEpoch, zxid } = next;
      for (const vote of this.#received.values()) {
        const hasAsMuch = vote.electionEpoch === this.#round && vote.peerEpoch === peerEpoch && vote.zxid === zxid;
        if (!hasAsMuch || !this.#eligible.has(vote.leader, now)) continue;
        if (this.#config.verifier.weight(vote.leader) > 0 && (next.leader === this.#sid || vote.leader > next.leader)) next = vote;
      }
    }
    this.#reconsider(now, next);
  }

  /** A vote that was not taken over may be the best by now; the own one may be announced. */
  #reconsider(now: Now, own: Vote = this.#proposal): void {
    let best = own;
    for (const vote of this.#received.values()) if (vote.electionEpoch === this.#round && this.#isBetter(vote, best, now)) best = vote;
    const { leader, zxid, electionEpoch, peerEpoch } = best;
    this.#propose({ leader, zxid, electionEpoch, peerEpoch }, now);
    this.#judge(now);
  }

  #propose(vote: Vote, now: Now): void {
    this.#proposal = vote;
    this.#settleAtMs = undefined;
    if (this.#hasVoice() && !this.#isWithoutData()) {
      this.#received.set(this.#sid, { ...vote, state: 'looking', version: notificationVersion });
    }
    this.#notifyAll(now);
  }

  /** A vote we did not know shows that votes are still under way: the settling wait begins anew. A repeated one does not put it off. */
  #record(from: Sid, vote: AnnouncedVote): void {
    const before = this.#received.get(from);
    if (before === undefined || !sameVote(before, vote)) this.#settleAtMs = undefined;
    this.#received.set(from, vote);
  }

  /** Does a quorum agree with the proposal, and is there anything left to wait for? */
  #judge(now: Now): void {
    if (!this.#hasQuorum(this.#received, { ...this.#proposal, state: 'looking', version: notificationVersion })) {
      this.#settleAtMs = undefined;
      this.#eligible.judge(this.#isHopeless(), now);
      return;
    }
    this.#eligible.judge(false, now);
    if (this.#earlySettling && this.#allReachableAgree()) {
      this.#decide(this.#proposal, now);
    } else {
      this.#settleAtMs ??= now.elapsedMs + this.#finalizeWaitMs;
    }
  }

  /**
   * A quorum has been heard in this round, and too many of it vote for less than this server does. They have been told its vote, and do not take it over:
   * they cannot reach its leader. Those who vote for more are not counted against it, since they have to come down for the same reason. Of the two halves
   * of a quorum this one waits for a leader that the other cannot reach; so the next best is voted for.
   */
  #isHopeless(): boolean {
    const { verifier } = this.#config;
    const sharesIt = (sid: Sid): boolean => {
      const vote = this.#received.get(sid);
      return vote !== undefined && !beats(this.#proposal, vote, verifier);
    };
    return verifier.containsQuorum(this.#received) && !verifier.containsQuorum({ has: sharesIt });
  }

  #hasQuorum(votes: ReadonlyMap<Sid, AnnouncedVote>, vote: AnnouncedVote): boolean {
    return this.#config.verifier.containsQuorum({
      has: (sid) => {
        const other = votes.get(sid);
        return other !== undefined && agree(vote, other);
      },
    });
  }

  /**
   * Whether every voter that can be reached has announced the proposal. The proposed leader must be one of them: nobody is hurried into
   * following a server that may just have failed.
   */
  #allReachableAgree(): boolean {
    return this.#config.verifier.voters.every((sid) => {
      if (sid === this.#sid) return true;
      if (this.#whereabouts.isUnreachable(sid)) return sid !== this.#proposal.leader;
      const vote = this.#received.get(sid);
      return vote !== undefined && sameVote(vote, this.#proposal);
    });
  }

  #decide(vote: Vote, now: Now): void {
    const learns = this.#role === 'observer' ? 'observing' : 'following';
    this.settle({ state: vote.leader === this.#sid ? 'leading' : learns, vote }, now);
  }

  // --- What we say ----------------------------------------------------------------------------------------------------------------

  #vote(): Vote {
    return this.#decided?.vote ?? this.#proposal;
  }

  #notification(electionEpoch: number): Notification {
    const { leader, zxid, peerEpoch } = this.#vote();
    return { state: this.#state!, leader, zxid, peerEpoch, electionEpoch, version: notificationVersion, config: this.#config.text };
  }

  #notifyAll(now: Now): void {
    const notification = this.#notification(this.#round);
    for (const sid of this.#config.verifier.voters) if (sid !== this.#sid) this.#say(sid, notification, undefined, now);
    this.#repeatAtMs = now.elapsedMs + this.#intervalMs;
  }

  /**
   * Two servers that both answer could go on answering each other for ever, as fast as the network carries it: an observer that is told it
   * is ahead of the voter it asked, say. So the same answer to the same question is not given twice within half the time after which
   * someone who really asks would ask again.
   */
  #answer(to: Sid, question: Notification, answer: Notification, now: Now): void {
    const said = this.#saidLately(to, now);
    if (said?.answers !== undefined && sameNotification(said.answers, question) && sameNotification(said.notification, answer)) return;
    this.#say(to, answer, question, now);
  }

  #saidLately(to: Sid, now: Now): Said | undefined {
    const said = this.#said.get(to);
    return said === undefined || now.elapsedMs - said.atMs >= this.#minIntervalMs / 2 ? undefined : said;
  }

  #say(to: Sid, notification: Notification, answers: Notification | undefined, now: Now): void {
    if (notification.state === 'looking' && notification.leader === this.#sid && !this.#eligible.has(this.#sid, now)) return;
    // What was said long ago is of no account. It is dropped here, since observers without a sid get another number each time they come.
    if (!this.#said.has(to)) for (const sid of this.#said.keys()) if (this.#saidLately(sid, now) === undefined) this.#said.delete(sid);
    this.#said.set(to, { notification, answers, atMs: now.elapsedMs });
    this.#links.notify(to, notification);
  }

  #newerConfig({ config: text }: Notification): QuorumConfig | undefined {
    if (!this.#reconfigEnabled || text === undefined || text === this.#config.text) return undefined;
    try {
      const config = parseQuorumConfig(text);
      return config.version > this.#config.version ? config : undefined;
    } catch (error) {
      // Nobody could go by it. The vote that came with it is judged by the configuration we have, as in ZooKeeper.
      if (error instanceof QuorumConfigError) return undefined;
      throw error;
    }
  }
}

function ascending(sids: Iterable<Sid>): Sid[] {
  return [...sids].sort((a, b) => a - b);
}

function sameNotification(a: Notification, b: Notification): boolean {
  return a.state === b.state && a.version === b.version && a.config === b.config && sameVote(a, b);
}

function writeVote(to: Fingerprint, { leader, zxid, electionEpoch, peerEpoch }: Vote): void {
  for (const number of [leader, zxid, electionEpoch, peerEpoch]) to.number(number);
}

function writeNotification(to: Fingerprint, notification: Notification): void {
  writeVote(to, notification);
  to.text(notification.state);
  to.number(notification.version);
  to.text(notification.config ?? '');
}
