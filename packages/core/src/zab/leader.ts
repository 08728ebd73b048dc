/**
 * The leader's side of Zab: discovery, synchronisation and broadcast.
 *
 *     discovery        a quorum has sent its accepted epochs      -> save a new epoch, LEADERINFO
 *     acknowledgement  a quorum has accepted it                   -> save currentEpoch; synchronise
 *                                                                    each learner, NEWLEADER
 *     synchronisation  a quorum has all of the history on disk    -> serve clients; UPTODATE
 *     broadcast        PROPOSAL, a quorum of ACKs, in zxid order  -> COMMIT, INFORM
 *
 * A leader never returns to an earlier stage: without a quorum it is over, and an election follows.
 *
 * This file receives the packets of learners and the answers of the disk, and takes each to the
 * part that it concerns: the stages (epoch-stages), the learners (learner-table), what is proposed
 * and committed (broadcast), syncs (sync-confirmation) and requests (learner-requests).
 */
import {
  counterOf,
  type ErrorCode,
  formatZxid,
  makeZxid,
  type Millis,
  PacketType,
  type PacketView,
  packetTypeName,
  type QuorumConfig,
  readAckEpoch,
  readTouchedSessions,
  type ReconfigRequest,
  type Sid,
  type Zxid,
} from '@tskeeper/protocol';
import type { SessionOwner } from '../client-output.ts';
import { age, msUntil, type Fingerprint } from '../fingerprint.ts';
import type { LeaderStatus, ObserverStatus } from '../inspector.ts';
import type { Now } from '../now.ts';
import { canLeadOn } from '../quorum/configuration.ts';
import type { QuorumVerifier, SidSet } from '../quorum/quorum-verifier.ts';
import type { TransferRefusal } from '../transfer-outcome.ts';
import type { SequencerLeader } from '../request/local-sequencer.ts';
import type { PendingSync } from '../pending/pending-request.ts';
import type { Server } from '../server.ts';
import type { TxnLog } from '../txn-log.ts';
import { Broadcast } from './broadcast.ts';
import { EpochStages } from './epoch-stages.ts';
import type { LeaderHost, LeaderStart } from './leader-host.ts';
import { LeadershipTransfer } from './leadership-transfer.ts';
import { LearnerPings } from './learner-pings.ts';
import type { LearnerProgress } from './learner-progress.ts';
import { LearnerRequests } from './learner-requests.ts';
import { LearnerTable } from './learner-table.ts';
import type { DurableState, EpochName } from './peer-storage.ts';
import { entryOf, ProposalQueue } from './proposal-queue.ts';
import type { ChannelId, ChannelRank, QuorumLinks } from './quorum-links.ts';
import type { RoleEndReason } from '../role-end.ts';
import { observersLagOf } from './observers-lag.ts';
import { SyncConfirmations } from './sync-confirmation.ts';
import type { ZabOptions } from './zab-options.ts';

export class Leader implements TxnLog, SequencerLeader {
  readonly #options: ZabOptions;
  readonly #quorum: QuorumVerifier;
  readonly #storage: DurableState;
  readonly #host: LeaderHost;
  readonly #stages: EpochStages;
  readonly #proposals: ProposalQueue;
  readonly #pings: LearnerPings;
  readonly #learners: LearnerTable;
  readonly #syncs: SyncConfirmations;
  readonly #broadcast: Broadcast;
  readonly #requests: LearnerRequests;
  readonly #transfer: LeadershipTransfer;
  #server: Server | undefined;
  #servingSinceMs: Millis = 0;
  /** Time of the last input: precise enough for the age of a proposal. */
  #nowMs: Millis;
  #nextPingMs: Millis;
  #nextTickMs: Millis;

  constructor(
    options: ZabOptions,
    quorum: QuorumVerifier,
    start: LeaderStart,
    links: QuorumLinks,
    storage: DurableState,
    host: LeaderHost,
    now: Now,
  ) {
    this.#options = options;
    this.#quorum = quorum;
    this.#storage = storage;
    this.#host = host;
    this.#stages = new EpochStages(options, quorum, start, storage, now);
    this.#proposals = new ProposalQueue(start.lastZxid);
    this.#pings = new LearnerPings(links, this.#proposals);
    this.#learners = new LearnerTable(options, quorum, links, host, this.#stages, this.#pings);
    this.#syncs = new SyncConfirmations(options.sid, quorum, this.#learners, this.#pings, this.#proposals);
    this.#broadcast = new Broadcast(options.sid, quorum, host, this.#proposals, this.#learners, this.#syncs);
    this.#requests = new LearnerRequests(this.#learners, this.#syncs);
    this.#transfer = new LeadershipTransfer(options, quorum, host, this.#learners, this.#proposals, this.#broadcast);
    this.#nowMs = now.elapsedMs;
    this.#nextPingMs = now.elapsedMs + options.tickTimeMs / 2;
    this.#nextTickMs = now.elapsedMs + options.tickTimeMs;
  }

  // ---- questions

  /** Why the leader is over; undefined while it leads. An election follows. */
  get endReason(): RoleEndReason | undefined {
    return this.#stages.endReason;
  }

  /** The same, for the operator. */
  get endText(): string {
    return this.#stages.endText;
  }

  /** The server that leads next, if this one has given up the lead in its favour. */
  get successor(): Sid | undefined {
    return this.#broadcast.successor ?? this.#transfer.successor;
  }

  /** As `SequencerLeader.sid`. */
  get sid(): Sid {
    return this.#options.sid;
  }

  get epoch(): number {
    return this.#stages.epoch;
  }

  /** The last committed txn. */
  get committed(): Zxid {
    return this.#proposals.committed;
  }

  /** The server for clients, once clients are served. */
  get server(): Server | undefined {
    return this.#server;
  }

  get phase(): 'discovery' | 'synchronization' | 'broadcast' {
    if (this.#stages.stage === 'broadcast') return 'broadcast';
    return this.#stages.stage === 'synchronisation' ? 'synchronization' : 'discovery';
  }

  rankOf(channel: ChannelId): ChannelRank {
    return this.#learners.rankOf(channel);
  }

  /** The state of its learners, for operators. */
  status(): LeaderStatus {
    let [learners, syncedFollowers, syncedNonVotingFollowers, syncedObservers] = [0, 0, 0, 0];
    for (const learner of this.#learners.values()) {
      if (learner.isIdentified) learners++;
      if (!learner.isReplicating) continue;
      if (learner.isObserver) syncedObservers++;
      else syncedFollowers++;
      if (!learner.isObserver && !this.#learners.isVoting(learner)) syncedNonVotingFollowers++;
    }
    const pendingSyncs = this.#syncs.length;
    const transferTarget = this.#transfer.target;
    const followers = { syncedFollowers, syncedNonVotingFollowers };
    return { sinceMs: this.#servingSinceMs, learners, ...followers, syncedObservers, pendingSyncs, transferTarget };
  }

  /** For operators: the observers that receive each commit. */
  observers(): Iterable<ObserverStatus> {
    return this.#learners.observers(this.#proposals.committed);
  }

  resetObserverCounts(): void {
    this.#learners.resetObserverCounts();
  }

  // ---- inputs

  learnerConnected(channel: ChannelId, now: Now): void {
    this.#learners.connected(channel, now);
  }

  channelGone(channel: ChannelId): void {
    this.#learners.channelGone(channel);
  }

  /**
   * A packet of a learner. Throws a `ProtocolError` if it is malformed; the caller then closes the
   * stream.
   */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#nowMs = now.elapsedMs;
    const learner = this.#stages.stage === 'over' ? undefined : this.#learners.received(channel, now);
    if (learner === undefined) return;
    switch (packet.type) {
      case PacketType.FOLLOWERINFO:
      case PacketType.OBSERVERINFO:
        this.#learners.onInfo(learner, packet, now);
        return;
      case PacketType.ACKEPOCH:
        this.#onAckEpoch(learner, packet);
        return;
      case PacketType.ACK:
        this.#onAck(learner, packet.zxid, now);
        return;
      case PacketType.PING:
        this.#onPing(learner, packet, now);
        return;
      case PacketType.REQUEST:
        this.#requests.onRequest(learner, packet, this.#server, now);
        return;
      case PacketType.REVALIDATE:
        this.#requests.onRevalidate(learner, packet, this.#server, now);
        return;
      default:
        this.#learners.disconnect(
          learner,
          'protocol error',
          `the learner sent ${packetTypeName(packet.type)}, which a leader does not accept`,
        );
    }
  }

  /** See `LearnerTable.progressed`. */
  onProgress(channel: ChannelId, now: Now): void {
    const learner = this.#learners.progressed(channel, now);
    if (learner !== undefined && this.#learners.isVoting(learner)) this.#stages.voterProgressed(now);
  }

  /**
   * Some voters will not join, as far as known (`VoterReachability.lostVoters`). If the others are
   * not a quorum, waiting is useless: this server starts an election with them, instead of waiting
   * alone until initLimit. A voter that has connected counts as present, whatever it voted before.
   * A leader in broadcast ends only by the silence of its learners.
   */
  maybeStepDown(lostVoters: SidSet): void {
    if (this.#stages.stage === 'broadcast' || this.#stages.stage === 'over') return;
    const present = new Set<Sid>([this.#options.sid]);
    for (const { stage, sid } of this.#learners.values()) if (stage !== 'silent') present.add(sid);
    if (!this.#quorum.containsQuorum({ has: (sid) => present.has(sid) || !lostVoters.has(sid) })) {
      this.#stages.end('voters elsewhere', 'the voters that can still follow this server are not a quorum');
    }
  }

  /** An epoch file is durable. */
  epochSaved(name: EpochName, now: Now): void {
    this.#nowMs = now.elapsedMs;
    switch (this.#stages.epochSaved(name, now)) {
      case 'acknowledgement':
        for (const learner of this.#learners.values()) if (learner.stage === 'known') this.#learners.sendLeaderInfo(learner);
        this.#stages.maybeSetEpoch();
        return;
      case 'synchronisation':
        for (const learner of this.#learners.values()) if (learner.stage === 'accepted') this.#syncLearner(learner);
        this.#maybeServe(now);
        return;
      case undefined:
    }
  }

  /** Every txn up to `zxid` is durable in this server's own log. */
  appended(zxid: Zxid, now: Now): void {
    this.#nowMs = now.elapsedMs;
    this.#proposals.ownAcked = zxid;
    this.#maybeCommit(now);
  }

  /**
   * As `TxnLog`: the server of this leader has ordered a txn, which is proposed to the followers.
   */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number, owner: SessionOwner): void {
    this.#storage.append(zxid, bytes, start, end);
    const packet = this.#proposals.add(zxid, bytes, start, end, this.#learners.originOf(owner));
    // The leader gave up in this turn. Its log is still what it enters the election with, and may
    // become the history of the next epoch.
    if (this.#stages.stage === 'over') return;
    this.#broadcast.propose(zxid, packet, this.#nowMs);
    if (counterOf(zxid) >= this.#options.counterMax) this.#stages.end('counter exhausted', 'the zxid counter of this epoch is exhausted');
  }

  // ---- reconfiguration

  /** As `SequencerLeader.prepareReconfig`. */
  prepareReconfig(request: ReconfigRequest, zxid: Zxid): QuorumConfig | ErrorCode {
    const inStep: SidSet = { has: (sid) => sid === this.#options.sid || this.#learners.replicatingFollower(sid)?.isSynced === true };
    return this.#host.config.prepareReconfig(request, zxid, (verifier) => verifier.containsQuorum(inStep));
  }

  /** As `SequencerLeader.reconfigProposed`. */
  reconfigProposed(zxid: Zxid, text: string, now: Now): void {
    this.#broadcast.reconfigProposed(zxid, text);
    this.#host.configSeen(text, now);
    // Followers may have a vote in the configuration that begins.
    this.#learners.updateFollowers();
  }

  // ---- the transfer of the lead

  /**
   * As `SequencerLeader.transferLeadership`: begins to give the lead to a follower. Returns
   * that server, or why this one does not.
   */
  transferLeadership(target: Sid | undefined, now: Now): Sid | TransferRefusal {
    return this.#stages.stage === 'broadcast' ? this.#transfer.begin(target, now) : 'not leading';
  }

  /** After each input: hands the lead over if everything is ready for it. */
  maybeCompleteTransfer(now: Now): void {
    if (this.#transfer.target === undefined || this.#stages.stage !== 'broadcast') return;
    const successor = this.#transfer.maybeComplete(this.#server!, now);
    if (successor !== undefined) this.#stages.end('resigned', `this server has given the lead to server ${successor}`);
  }

  /** A client of this server wants to see everything committed by now. */
  sync(sync: PendingSync, now: Now): void {
    this.#syncs.add(undefined, sync, this.#server!, now);
  }

  /**
   * Every sign of life of a session that a learner received before this time has been reported
   * here; Infinity while no learner serves clients. A disconnected learner no longer counts. A
   * learner outside the configuration delays this by a quarter of a tick at most: any process may
   * claim to be such an observer, and could keep sessions of dead clients alive by not answering.
   */
  get learnersWatermarkMs(): Millis {
    return this.#learners.watermarkMs(this.#nowMs);
  }

  /**
   * The time until which a session that is due at `dueMs` waits for learners outside the
   * configuration; undefined if it does not wait.
   */
  unknownObserversAwaitedUntilMs(dueMs: Millis): Millis | undefined {
    return this.#learners.unknownObserversAwaitedUntilMs(dueMs, this.#nowMs);
  }

  /**
   * When learners were last asked for sessions with signs of life; they report them in their
   * answers to a PING.
   */
  get learnersPolledMs(): Millis {
    return this.#pings.sentMs;
  }

  pollLearners(now: Now): void {
    this.#pings.sendToAll(this.#learners.values(), now);
  }

  /**
   * All input that had arrived by `inputWatermarkMs` has been delivered: the silence of learners is
   * measured up to that time.
   */
  wake(now: Now, inputWatermarkMs: Millis = now.elapsedMs): void {
    this.#nowMs = now.elapsedMs;
    if (this.#stages.stage === 'over') return;
    if (now.elapsedMs >= this.#nextPingMs) {
      this.#nextPingMs = now.elapsedMs + this.#options.tickTimeMs / 2;
      this.#pings.sendToAll(this.#learners.values(), now);
    }
    this.#learners.dropSilent(inputWatermarkMs);
    this.#learners.resolveSidConflicts(now.elapsedMs);
    if (now.elapsedMs < this.#nextTickMs) return;
    this.#nextTickMs = now.elapsedMs + this.#options.tickTimeMs;
    this.#checkQuorum(now);
    if (this.#stages.stage === 'broadcast') this.#transfer.maybePrefer(this.#servingSinceMs, now);
  }

  /**
   * This process was paused, and older input may be waiting. Learners that have been sent no PING
   * for longer than syncLimit have given up this leader or will soon, and may follow another: no
   * client may be answered from the old state.
   */
  resumedAfterPause(now: Now): void {
    const { tickTimeMs, syncLimitTicks } = this.#options;
    const silentMs = now.elapsedMs - (this.#nextPingMs - tickTimeMs / 2);
    if (
      this.#stages.stage !== 'over' &&
      !this.#quorum.containsQuorum(new Set([this.#options.sid])) &&
      silentMs > syncLimitTicks * tickTimeMs
    ) {
      this.#stages.end(
        'paused',
        `this server was paused for ${Math.round(silentMs)} ms, longer than syncLimit: another server may lead by now`,
      );
    }
  }

  /** A voter is looking for a leader, this one or another. */
  voterLooking(sid: Sid, now: Now): void {
    this.#stages.voterLooking(sid, now);
  }

  /** Learners cannot reach this server, so it must not lead. */
  stepDown(text: string): void {
    if (this.#stages.stage !== 'over') this.#stages.end('quorum port unreachable', text);
  }

  deadline(): Millis | undefined {
    if (this.#stages.stage === 'over') return undefined;
    return Math.min(this.#nextPingMs, this.#nextTickMs, this.#learners.sidConflictsDueMs, this.#transfer.deadlineMs);
  }

  /**
   * Ends leading. Txns that it has proposed are in its log, and may or may not be in the history of
   * the next leader.
   */
  stop(now: Now): void {
    if (this.#stages.stage !== 'over') this.#stages.end('stopped', 'the role was ended by its owner');
    this.#learners.closeAll();
    this.#server?.stop(now);
    // The next leader decides whether the last proposals are committed; if it is this server, they
    // are.
    for (const { zxid, packet } of this.#proposals.values()) this.#host.committed(zxid, entryOf(packet));
  }

  /**
   * Everything that can influence behaviour, for an explorer, except the server, which the peer
   * writes.
   */
  fingerprint(to: Fingerprint, { elapsedMs: nowMs }: Now): void {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    const limitMs = tickTimeMs * Math.max(initLimitTicks, syncLimitTicks);
    this.#stages.fingerprint(to, nowMs, limitMs);
    this.#proposals.fingerprint(to);
    to.number(this.#pings.last - this.#pings.ownAnswered);
    this.#syncs.fingerprint(to);
    this.#broadcast.fingerprint(to);
    this.#transfer.fingerprint(to, this.#servingSinceMs, nowMs);
    to.number(age(this.#nowMs, nowMs, limitMs));
    to.number(msUntil(this.#nextPingMs, nowMs));
    to.number(msUntil(this.#nextTickMs, nowMs));
    this.#learners.fingerprint(to, nowMs, limitMs);
  }

  // ---- discovery

  #onAckEpoch(learner: LearnerProgress, packet: PacketView): void {
    if (learner.stage !== 'known' || this.#stages.stage === 'discovery' || this.#stages.stage === 'saving acceptedEpoch') {
      this.#learners.disconnect(learner, 'protocol error', 'the learner accepted an epoch before this leader proposed one');
      return;
    }
    const currentEpoch = readAckEpoch(packet.data);
    learner.lastZxid = packet.zxid;
    learner.stage = 'accepted';
    if (this.#stages.stage !== 'acknowledgement') {
      // A quorum has the epoch by now: txns that this learner has beyond the history were never
      // committed.
      if (this.#stages.stage !== 'saving currentEpoch') this.#syncLearner(learner);
      return;
    }
    const { currentEpoch: ownEpoch, lastZxid } = this.#stages.start;
    if (currentEpoch > ownEpoch || (currentEpoch === ownEpoch && packet.zxid > lastZxid)) {
      // It may have txns that a quorum has and this leader has not. They must not be truncated.
      this.#learners.disconnect(
        learner,
        'learner has a later history',
        `the learner has a later history than this leader: epoch ${currentEpoch}, zxid ${formatZxid(packet.zxid)}`,
      );
      return;
    }
    // -1: it had accepted this epoch before, perhaps from another leader, and must not count twice.
    // A learner without data (zxid -1) may have lost what it acknowledged.
    if (currentEpoch !== -1 && packet.zxid !== -1 && this.#learners.isVoting(learner)) this.#stages.voterJoined(learner.sid);
    this.#stages.maybeSetEpoch();
  }

  // ---- synchronisation

  #syncLearner(learner: LearnerProgress): void {
    learner.stage = 'synchronising';
    const { channel, lastZxid } = learner;
    const startReplicating = () => this.#broadcast.addLearner(learner, this.#stages.epoch, this.#nowMs);
    const historySent = () => this.#broadcast.historySent(learner);
    const isMember = this.#learners.isMember(learner);
    this.#host.syncLearner(
      { channel, isVoter: this.#learners.isVoting(learner), isMember, lastZxid, startReplicating, historySent },
      this.#proposals.committed,
    );
  }

  #maybeServe(now: Now): void {
    if (!this.#stages.maybeBeginBroadcast()) return;
    const { config } = this.#host;
    const before = config.members;
    this.#host.configActivated(config.newLeaderConfig(this.#stages.epoch), false, now);
    this.#servingSinceMs = now.elapsedMs;
    this.#server = this.#host.startServing(this.#stages.epoch, now);
    this.#broadcast.begin(this.#server, this.#stages.epoch);
    this.#activateSynced();
    // An earlier leader has proposed to remove this server, and that is complete now. UPTODATE made the
    // learners activate it, and serve in this epoch; now they elect a leader.
    if (!canLeadOn(this.#options.sid, before, config.members))
      this.#stages.end('resigned', 'the configuration that this leader has completed has no place for it as leader');
  }

  #activateSynced(): void {
    for (const learner of this.#learners.values()) if (learner.stage === 'synchronised') this.#learners.activate(learner, this.#nowMs);
  }

  // ---- broadcast

  #onAck(learner: LearnerProgress, zxid: Zxid, now: Now): void {
    if (counterOf(zxid) === 0) {
      // The ACK of NEWLEADER; or of UPTODATE, which needs no action.
      if (learner.stage !== 'synchronising' || zxid !== makeZxid(this.#stages.epoch, 0)) return;
      learner.stage = 'synchronised';
      learner.ackedZxid = Math.max(learner.ackedZxid, learner.historyEndZxid);
      this.#learners.updateFollowers();
      if (this.#stages.stage === 'broadcast') {
        this.#learners.activate(learner, this.#nowMs);
      } else if (this.#learners.isVoting(learner)) {
        this.#stages.voterJoined(learner.sid);
        this.#maybeServe(now);
      }
      return;
    }
    if (learner.isObserver) return;
    if (!learner.isReplicating) {
      this.#learners.disconnect(learner, 'protocol error', `the learner acknowledged ${formatZxid(zxid)}, but was sent no proposal`);
      return;
    }
    learner.acknowledged(zxid);
    this.#maybeCommit(now);
  }

  #maybeCommit(now: Now): void {
    if (this.#stages.stage !== 'broadcast') return;
    this.#broadcast.maybeCommit(now);
    const { successor } = this.#broadcast;
    if (successor !== undefined) this.#stages.end('resigned', `the new configuration has server ${successor} as its leader`);
  }

  #onPing(learner: LearnerProgress, packet: PacketView, now: Now): void {
    // Learners answer after UPTODATE. An earlier one is a sign of life only, and reports no
    // sessions.
    if (learner.stage !== 'active') return;
    readTouchedSessions(packet.data, (high, low, timeOut) => this.#server?.touched(high, low, timeOut, now));
    this.#learners.pingAnswered(learner);
    learner.reportedTouches(observersLagOf(packet, this.#options));
    this.#syncs.replyConfirmed(this.#server, now);
  }

  #checkQuorum(now: Now): void {
    if (this.#stages.stage !== 'broadcast') {
      this.#stages.checkInitLimit(now);
      return;
    }
    const present = new Set<Sid>(this.#quorum.isVoter(this.#options.sid) ? [this.#options.sid] : []);
    for (const learner of this.#learners.values()) {
      if (this.#learners.isVoting(learner) && learner.isSynced) present.add(learner.sid);
    }
    if (!this.#quorum.containsQuorum(present)) this.#stages.end('quorum lost', 'the leader has lost its quorum');
  }

  /** The set of quorums has changed without a packet: the oracle has answered. */
  quorumChanged(now: Now): void {
    this.#nowMs = now.elapsedMs;
    this.#stages.maybeChooseEpoch();
    this.#stages.maybeSetEpoch();
    this.#maybeServe(now);
    this.#maybeCommit(now);
  }
}
