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
 */
import {
  beginQuorumPacket,
  counterOf,
  endQuorumPacket,
  epochMax,
  epochOf,
  formatZxid,
  type Id,
  makeZxid,
  type Millis,
  PacketType,
  type PacketView,
  packetHeadBytes,
  packetTypeName,
  readAckEpoch,
  readLearnerRequest,
  readLearnerInfo,
  readRevalidateRequest,
  readTouchedSessions,
  type Sid,
  OpCode,
  writeEmptyPacket,
  writeLeaderInfo,
  Writer,
  writeRevalidateReply,
  type Zxid,
} from '@tskeeper/protocol';
import { ForwardedIdentities } from '../auth/forwarded-identities.ts';
import { Fifo } from '../fifo.ts';
import { age, msUntil, type Fingerprint, fingerprintBytes, fingerprintSet } from '../fingerprint.ts';
import type { LeaderStatus } from '../inspector.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier, SidSet } from '../quorum/quorum-verifier.ts';
import type { Server } from '../server.ts';
import type { SessionOwner } from '../client-output.ts';
import type { TxnLog } from '../txn-log.ts';
import type { SequencerLeader } from '../request/local-sequencer.ts';
import { localOwner } from '../session/session-tracker.ts';
import type { PendingSync } from '../request/pending-request.ts';
import type { RoleEndReason } from './role-end.ts';
import type { SyncTarget } from './sync-target.ts';
import { originOf, unknownOrigin } from './txn-origin.ts';
import type { ZabOptions } from './zab-options.ts';
import type { DurableState, EpochName } from './peer-storage.ts';
import { type ChannelId, ChannelRank, type QuorumLinks } from './quorum-links.ts';

/** The state with which a leader starts. All learners are synchronised to it. */
export interface LeaderStart {
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The last txn of its log, all of which has been applied. */
  readonly lastZxid: Zxid;
}

/** What a leader needs from its peer. */
export interface LeaderHost {
  /**
   * Creates the server for clients, once there is an epoch in which to order writes. The leader is
   * its log.
   */
  startServing(epoch: number, now: Now): Server;
  /**
   * Determines which txns a learner lacks, and sends them; `NEWLEADER` and everything later follow.
   */
  syncLearner(learner: SyncTarget, leaderLast: Zxid): void;
  /** The learner has disconnected. */
  learnerGone(channel: ChannelId): void;
  /**
   * Called when the leader gets its first following voter or loses its last: while a voter follows,
   * the oracle is not consulted.
   */
  hasFollowerChanged?(hasFollower: boolean): void;
  /** The version of the active configuration. */
  configVersion(): number;
  /** Whether the active configuration contains this server, as a voter or an observer. */
  isMember(sid: Sid): boolean;
  /**
   * The configuration sent in NEWLEADER: the active one, or one that gets its first version from
   * this epoch.
   */
  newLeaderConfig(epoch: number): string;
  /** A txn is committed. `entry`: header, record and digest as in the log. */
  committed(zxid: Zxid, entry: Buffer): void;
}

type LeaderStage =
  | 'discovery'
  | 'saving acceptedEpoch'
  | 'acknowledgement'
  | 'saving currentEpoch'
  | 'synchronisation'
  | 'broadcast'
  | 'over';

type ProgressStage =
  /** It has connected. */
  | 'silent'
  /**
   * It has given the id of a learner that already has a stream, which is asked whether it is alive.
   */
  | 'claiming'
  /** FOLLOWERINFO or OBSERVERINFO has arrived. */
  | 'known'
  /** ACKEPOCH has arrived. */
  | 'accepted'
  /** It is being sent the history that it lacks. */
  | 'synchronising'
  /** NEWLEADER has been acknowledged. */
  | 'synchronised'
  /** UPTODATE has been sent. */
  | 'active';

/** Another stream claims the id of a connected learner. */
interface SidConflict {
  claimant: LearnerProgress;
  /**
   * The PING sent to the learner because of the claim; undefined while the learner answers none,
   * since it is being synchronised.
   */
  ping: number | undefined;
  challengedMs: Millis;
}

class LearnerProgress {
  readonly channel: ChannelId;
  /**
   * The owner number of its requests, once it forwards one. Channel numbers are reused, and waiting
   * requests of an older channel must not be taken for this learner's.
   */
  owner: SessionOwner | undefined;
  stage: ProgressStage = 'silent';
  sid: Sid = 0;
  /** Of its process; 0 if unknown. */
  incarnation = 0;
  introducedMs: Millis = 0;
  sidConflict: SidConflict | undefined;
  /** When bytes last moved over its stream. */
  lastProgressMs: Millis;
  isObserver = false;
  acceptedEpoch = 0;
  lastZxid: Zxid = 0;
  /** The last txn of the history sent at its start. */
  historyEndZxid: Zxid = 0;
  lastReceivedMs: Millis;
  /** All txns up to here are in its log. */
  ackedZxid: Zxid = 0;
  /** It receives every txn from here on. */
  isReplicating = false;
  /** Packets that must follow the history being sent wait here; undefined if none must wait. */
  backlog: Writer | undefined;
  /**
   * When UPTODATE was sent. Earlier proposals may have waited for the history, which the learner
   * could not influence.
   */
  activeSinceMs: Millis = 0;
  /** Proposals that it has not acknowledged: the age of the oldest is its lag. */
  readonly unackedProposals = new Fifo<{ readonly zxid: Zxid; readonly sentMs: Millis }>();
  /** Numbers of the PINGs that it has not answered, and when they were sent. */
  readonly pings = new Fifo<number>();
  readonly pingTimes = new Fifo<Millis>();
  answeredPing = 0;
  /**
   * When the last answered PING was sent: the learner has reported all sessions with signs of life
   * before that time. No client is connected to it before it is active.
   */
  touchesWatermarkMs: Millis = 0;

  /**
   * Everything that can influence behaviour, for an explorer. PINGs are counted back from the last
   * one.
   */
  fingerprint(to: Fingerprint, nowMs: Millis, limitMs: Millis, lastPing: number): void {
    to.text(this.stage);
    to.number(this.isObserver ? 1 : 0);
    to.number(this.isReplicating ? 1 : 0);
    const { channel, owner = 0, sid, acceptedEpoch, lastZxid, historyEndZxid, ackedZxid } = this;
    for (const number of [channel, owner, sid, acceptedEpoch, lastZxid, historyEndZxid, ackedZxid]) to.number(number);
    to.number(age(this.lastReceivedMs, nowMs, limitMs));
    to.number(lastPing - this.answeredPing);
    to.number(this.pings.length);
    for (const ping of this.pings.values()) to.number(lastPing - ping);
    for (const sentMs of this.pingTimes.values()) to.number(age(sentMs, nowMs, limitMs));
    to.number(age(this.touchesWatermarkMs, nowMs, limitMs));
    to.number(this.unackedProposals.length);
    for (const { zxid, sentMs } of this.unackedProposals.values()) {
      to.number(zxid);
      to.number(age(Math.max(sentMs, this.activeSinceMs), nowMs, limitMs));
    }
    to.number(this.incarnation);
    to.number(this.sidConflict?.claimant.channel ?? -1);
    if (this.sidConflict !== undefined) {
      to.number(lastPing - (this.sidConflict.ping ?? -1));
      for (const ms of [this.sidConflict.challengedMs, this.lastProgressMs, this.introducedMs]) to.number(age(ms, nowMs, limitMs));
    }
    to.number(this.backlog?.offset ?? -1);
    if (this.backlog !== undefined) fingerprintBytes(to, this.backlog.bytes, 0, this.backlog.offset);
  }

  constructor(channel: ChannelId, now: Now) {
    this.channel = channel;
    this.lastReceivedMs = this.lastProgressMs = now.elapsedMs;
  }
}

/** A txn that has been proposed and not committed. */
interface PendingProposal {
  readonly zxid: Zxid;
  /** The PROPOSAL packet. */
  readonly packet: Buffer;
}

/** A sync that waits until the leader knows that it still leads. */
interface SyncConfirmation {
  /** Where to send the reply: to a learner, or to a client of this server. */
  readonly learner: LearnerProgress | undefined;
  readonly localSync: PendingSync | undefined;
  /** The last txn proposed when the sync arrived; it must be committed. */
  readonly zxid: Zxid;
  /** A PING sent after the sync arrived; a quorum must have answered it. */
  readonly ping: number;
}

/**
 * How far the accepted epoch of a voter may be beyond any epoch that this server knows: one for
 * each attempt to lead that has failed meanwhile, at most one in some seconds while a quorum was
 * connected. This many take about a day. A later epoch comes from a damaged file, or is a lie; a
 * leader that accepted it could soon use up all epochs (`epochMax`).
 */
const acceptedEpochLeadMax = 10_000;

/**
 * How long a learner has to answer when another stream claims its id: a restarted server must not
 * wait longer because of its old stream.
 */
const sidConflictWaitMsMax: Millis = 1000;

/**
 * Enough for observers that only their own configuration contains, as in containers, and few enough
 * to send all of them everything.
 */
export const unknownObserversMaxDefault = 16;

/**
 * One part of a tick: a session that is due waits this long for learners outside the configuration.
 */
const unknownObserverWaitDivisor = 4;
const packetTypeBytes = 4;
const dataLengthBytes = 4;

/** Whether it has acknowledged NEWLEADER. */
function isSynced({ stage }: LearnerProgress): boolean {
  return stage === 'synchronised' || stage === 'active';
}

/** Whether it has introduced itself, and no other stream has its id. */
function isIdentified({ stage }: LearnerProgress): boolean {
  return stage !== 'silent' && stage !== 'claiming';
}

/** The log entry of a txn, from the packet that proposes it. */
function entryOf(packet: Buffer): Buffer {
  const length = packet.readInt32BE(packetHeadBytes - dataLengthBytes);
  return packet.subarray(packetHeadBytes, packetHeadBytes + length);
}

export class Leader implements TxnLog, SequencerLeader {
  readonly #forwardedIdentities = new ForwardedIdentities();
  readonly #options: ZabOptions;
  readonly #quorum: QuorumVerifier;
  readonly #links: QuorumLinks;
  readonly #storage: DurableState;
  readonly #host: LeaderHost;
  readonly #start: LeaderStart;
  readonly #isVoter: boolean;
  #stage: LeaderStage = 'discovery';
  #epoch = 0;
  #server: Server | undefined;
  readonly #learners = new Map<ChannelId, LearnerProgress>();
  /** Voters that have reached the current stage, including this server. */
  #joinedVoters = new Set<Sid>();
  #acceptedEpochMax: number;
  /** Why it is over; undefined while it is not. */
  #endReason: RoleEndReason | undefined;
  #endText = '';

  readonly #pendingProposals = new Fifo<PendingProposal>();
  #proposed: Zxid;
  #committed: Zxid;
  /**
   * The commit that the server knows of. Less than #committed only while txns are being committed.
   */
  #deliveredCommit: Zxid;
  #ownAcked: Zxid;
  readonly #syncConfirmations = new Fifo<SyncConfirmation>();
  #lastPing = 0;
  #ownAnsweredPing = 0;

  #servingSinceMs: Millis = 0;
  #hasFollower = false;
  /** When the current stage began. */
  #stageStartMs: Millis;
  /** Time of the last input: precise enough for the age of a proposal. */
  #nowMs: Millis;
  #nextPingMs: Millis;
  /** When the last PING was sent. */
  #pingSentMs: Millis = -Infinity;
  #nextTickMs: Millis;
  #lastAnonymousSid = 0;
  #lastOwner: SessionOwner = localOwner;
  /** The origin that is sent with txns of clients of this server and of each learner. */
  readonly #origins = new Map<SessionOwner, readonly Id[]>();
  /**
   * The set to test for a quorum at each ACK and each PING: created once, and set to the zxid or
   * the PING in question.
   */
  readonly #acked = { zxid: 0, has: (sid: Sid): boolean => this.#ackedBy(sid) >= this.#acked.zxid };
  readonly #pinged = { ping: 0, has: (sid: Sid): boolean => this.#pingAnsweredBy(sid) >= this.#pinged.ping };
  readonly #packet = new Writer(1024);

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
    this.#links = links;
    this.#storage = storage;
    this.#host = host;
    this.#start = start;
    this.#isVoter = quorum.isVoter(options.sid);
    this.#acceptedEpochMax = start.acceptedEpoch;
    this.#origins.set(localOwner, originOf(options.sid));
    this.#proposed = this.#committed = this.#deliveredCommit = this.#ownAcked = start.lastZxid;
    this.#stageStartMs = this.#nowMs = now.elapsedMs;
    this.#nextPingMs = now.elapsedMs + options.tickTimeMs / 2;
    this.#nextTickMs = now.elapsedMs + options.tickTimeMs;
    if (this.#isVoter) this.#joinedVoters.add(options.sid);
    this.#maybeChooseEpoch();
  }

  // ---- questions

  /** Why the leader is over; undefined while it leads. An election follows. */
  get endReason(): RoleEndReason | undefined {
    return this.#endReason;
  }

  /** The same, for the operator. */
  get endText(): string {
    return this.#endText;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** The last committed txn. */
  get committed(): Zxid {
    return this.#committed;
  }

  /** The server for clients, once clients are served. */
  get server(): Server | undefined {
    return this.#server;
  }

  get phase(): 'discovery' | 'synchronization' | 'broadcast' {
    if (this.#stage === 'broadcast') return 'broadcast';
    return this.#stage === 'synchronisation' ? 'synchronization' : 'discovery';
  }

  rankOf(channel: ChannelId): ChannelRank {
    const learner = this.#learners.get(channel);
    if (learner === undefined || !isIdentified(learner)) return ChannelRank.stranger;
    if (this.#isVotingLearner(learner)) return ChannelRank.voter;
    return this.#isMember(learner) ? ChannelRank.observer : ChannelRank.stranger;
  }

  /** The state of its learners, for operators. */
  status(): LeaderStatus {
    let [learners, syncedFollowers, syncedNonVotingFollowers, syncedObservers] = [0, 0, 0, 0];
    for (const learner of this.#learners.values()) {
      if (isIdentified(learner)) learners++;
      if (!learner.isReplicating) continue;
      if (learner.isObserver) syncedObservers++;
      else syncedFollowers++;
      if (!learner.isObserver && !this.#isVotingLearner(learner)) syncedNonVotingFollowers++;
    }
    const pendingSyncs = this.#syncConfirmations.length;
    return { sinceMs: this.#servingSinceMs, learners, syncedFollowers, syncedNonVotingFollowers, syncedObservers, pendingSyncs };
  }

  // ---- inputs

  learnerConnected(channel: ChannelId, now: Now): void {
    this.#learners.set(channel, new LearnerProgress(channel, now));
  }

  channelGone(channel: ChannelId): void {
    const learner = this.#learners.get(channel);
    if (learner !== undefined) this.#removeLearner(learner);
  }

  /**
   * A packet of a learner. Throws a `ProtocolError` if it is malformed; the caller then closes the
   * stream.
   */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#nowMs = now.elapsedMs;
    const learner = this.#learners.get(channel);
    if (learner === undefined || this.#stage === 'over') return;
    learner.lastReceivedMs = learner.lastProgressMs = now.elapsedMs;
    switch (packet.type) {
      case PacketType.FOLLOWERINFO:
      case PacketType.OBSERVERINFO:
        this.#onInfo(learner, packet, now);
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
        this.#onRequest(learner, packet, now);
        return;
      case PacketType.REVALIDATE:
        this.#onRevalidate(learner, packet, now);
        return;
      default:
        this.#disconnect(learner, `the learner sent ${packetTypeName(packet.type)}, which a leader does not accept`);
    }
  }

  /**
   * A learner has read some of its output, or a part of a packet has arrived. During a snapshot
   * these are the only signs of life; a synchronised learner must send packets.
   */
  onProgress(channel: ChannelId, now: Now): void {
    const learner = this.#learners.get(channel);
    if (learner === undefined) return;
    learner.lastProgressMs = now.elapsedMs;
    if (learner.stage !== 'synchronising') return;
    learner.lastReceivedMs = now.elapsedMs;
    // A quorum that is being synchronised will complete, so another election would not help.
    if (this.#stage === 'synchronisation' && this.#isVotingLearner(learner)) this.#stageStartMs = now.elapsedMs;
  }

  /**
   * Some voters will not come any more, as far as known (`FastLeaderElection.lost`). If the others
   * are not a quorum, waiting is useless: this server starts an election with them, instead of
   * waiting alone until initLimit. A voter that has connected counts as present, whatever it voted
   * before. A leader in broadcast ends only by the silence of its learners.
   */
  maybeStepDown(lostVoters: SidSet): void {
    if (this.#stage === 'broadcast' || this.#stage === 'over') return;
    const present = new Set<Sid>([this.#options.sid]);
    for (const { stage, sid } of this.#learners.values()) if (stage !== 'silent') present.add(sid);
    if (!this.#quorum.containsQuorum({ has: (sid) => present.has(sid) || !lostVoters.has(sid) })) {
      this.#shutDown('voters elsewhere', 'the voters that can still follow this server are not a quorum');
    }
  }

  /** An epoch file is durable. */
  epochSaved(name: EpochName, now: Now): void {
    this.#stageStartMs = this.#nowMs = now.elapsedMs;
    if (name === 'acceptedEpoch' && this.#stage === 'saving acceptedEpoch') {
      this.#stage = 'acknowledgement';
      this.#joinedVoters = new Set(this.#isVoter ? [this.#options.sid] : []);
      for (const learner of this.#learners.values()) if (learner.stage === 'known') this.#sendLeaderInfo(learner);
      this.#maybeSetEpoch();
    } else if (name === 'currentEpoch' && this.#stage === 'saving currentEpoch') {
      this.#stage = 'synchronisation';
      this.#joinedVoters = new Set(this.#isVoter ? [this.#options.sid] : []);
      for (const learner of this.#learners.values()) if (learner.stage === 'accepted') this.#syncLearner(learner);
      this.#maybeServe(now);
    }
  }

  /** Every txn up to `zxid` is durable in this server's own log. */
  appended(zxid: Zxid, now: Now): void {
    this.#nowMs = now.elapsedMs;
    this.#ownAcked = zxid;
    this.#maybeCommit(now);
  }

  /**
   * As `TxnLog`: the server of this leader has ordered a txn, which is proposed to the followers.
   */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number, owner: SessionOwner): void {
    this.#storage.append(zxid, bytes, start, end);
    const writer = this.#packet;
    writer.clear();
    const at = beginQuorumPacket(writer, PacketType.PROPOSAL, zxid);
    writer.raw(bytes, start, end);
    endQuorumPacket(writer, at, this.#origins.get(owner) ?? unknownOrigin);
    const packet = Buffer.from(writer.written());
    this.#proposed = zxid;
    this.#pendingProposals.push({ zxid, packet });
    // The leader gave up in this turn. Its log is still what it enters the election with, and may
    // become the history of the next epoch.
    if (this.#stage === 'over') return;
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating || learner.isObserver) continue;
      this.#writeShared(learner, packet, 0);
      learner.unackedProposals.push({ zxid, sentMs: this.#nowMs });
    }
    if (counterOf(zxid) >= this.#options.counterMax) this.#shutDown('counter exhausted', 'the zxid counter of this epoch is exhausted');
  }

  /** A client of this server wants to see everything committed by now. */
  sync(sync: PendingSync, now: Now): void {
    this.#confirmLeadership(undefined, sync, now);
  }

  /**
   * Every sign of life of a session that a learner received before this time has been reported
   * here; Infinity while no learner serves clients. A disconnected learner no longer counts. A
   * learner outside the configuration delays this by a quarter of a tick at most: any process may
   * claim to be such an observer, and could keep sessions of dead clients alive by not answering.
   */
  get learnersWatermarkMs(): Millis {
    const unknownObserversMs = this.#nowMs - this.#unknownObserversWaitMs;
    let watermarkMs = Infinity;
    for (const learner of this.#learners.values()) {
      if (learner.stage !== 'active') continue;
      const { touchesWatermarkMs } = learner;
      watermarkMs = Math.min(
        watermarkMs,
        touchesWatermarkMs >= unknownObserversMs || this.#isMember(learner) ? touchesWatermarkMs : unknownObserversMs,
      );
    }
    return watermarkMs;
  }

  get #unknownObserversWaitMs(): Millis {
    return this.#options.tickTimeMs / unknownObserverWaitDivisor;
  }

  /**
   * The time until which a session that is due at `dueMs` waits for learners outside the
   * configuration; undefined if it does not wait.
   */
  unknownObserversAwaitedUntilMs(dueMs: Millis): Millis | undefined {
    const untilMs = dueMs + this.#unknownObserversWaitMs;
    if (this.#nowMs >= untilMs) return undefined;
    for (const learner of this.#learners.values()) {
      if (learner.stage === 'active' && learner.touchesWatermarkMs < dueMs && !this.#isMember(learner)) return untilMs;
    }
    return undefined;
  }

  /**
   * When learners were last asked for sessions with signs of life; they report them in their
   * answers to a PING.
   */
  get learnersPolledMs(): Millis {
    return this.#pingSentMs;
  }

  pollLearners(now: Now): void {
    this.#sendPing(now);
  }

  /**
   * All input that had arrived by `heardMs` has been delivered: the silence of learners is judged
   * as of that time.
   */
  wake(now: Now, inputWatermarkMs: Millis = now.elapsedMs): void {
    this.#nowMs = now.elapsedMs;
    if (this.#stage === 'over') return;
    if (now.elapsedMs >= this.#nextPingMs) {
      this.#nextPingMs = now.elapsedMs + this.#options.tickTimeMs / 2;
      this.#sendPing(now);
    }
    this.#dropSilent(inputWatermarkMs);
    this.#resolveSidConflicts(now);
    if (now.elapsedMs < this.#nextTickMs) return;
    this.#nextTickMs = now.elapsedMs + this.#options.tickTimeMs;
    this.#checkQuorum(now);
  }

  /**
   * This process was paused, and older input may be waiting. Learners that have been sent no PING
   * for longer than syncLimit have given up this leader or will soon, and may follow another: no
   * client may be answered from the old state.
   */
  resumedAfterPause(now: Now): void {
    const { tickTimeMs, syncLimitTicks } = this.#options;
    const silentMs = now.elapsedMs - (this.#nextPingMs - tickTimeMs / 2);
    if (this.#stage !== 'over' && !this.#quorum.containsQuorum(new Set([this.#options.sid])) && silentMs > syncLimitTicks * tickTimeMs) {
      this.#shutDown(
        'paused',
        `this server was paused for ${Math.round(silentMs)} ms, longer than syncLimit: another server may lead by now`,
      );
    }
  }

  /** A voter is looking for a leader, this one or another. */
  voterLooking(sid: Sid, now: Now): void {
    if (this.#stage !== 'discovery' || !this.#quorum.isVoter(sid)) return;
    const { tickTimeMs, syncLimitTicks, maxTimeToWaitForEpochMs = syncLimitTicks * tickTimeMs } = this.#options;
    if (now.elapsedMs - this.#stageStartMs > maxTimeToWaitForEpochMs) this.#shutDown('disloyal voter', 'a voter looks for another leader');
  }

  /** Learners cannot reach this server, so it must not lead. */
  stepDown(text: string): void {
    if (this.#stage !== 'over') this.#shutDown('quorum port unreachable', text);
  }

  deadline(): Millis | undefined {
    if (this.#stage === 'over') return undefined;
    let due = Math.min(this.#nextPingMs, this.#nextTickMs);
    for (const { sidConflict } of this.#learners.values())
      if (sidConflict !== undefined) due = Math.min(due, sidConflict.challengedMs + this.#sidConflictWaitMs);
    return due;
  }

  /**
   * Ends leading. Txns that it has proposed are in its log, and may or may not be in the history of
   * the next leader.
   */
  stop(now: Now): void {
    if (this.#stage !== 'over') this.#shutDown('stopped', 'the role was ended by its owner');
    for (const { channel } of this.#learners.values()) this.#links.closeChannel(channel, 'this server no longer leads');
    this.#learners.clear();
    this.#updateHasFollower();
    this.#server?.stop(now);
    // The next leader decides whether the last proposals are committed; if it is this server, they
    // are.
    for (const { zxid, packet } of this.#pendingProposals.values()) this.#host.committed(zxid, entryOf(packet));
  }

  /**
   * Everything that can influence behaviour, for an explorer, except the server, which the peer
   * writes.
   */
  fingerprint(to: Fingerprint, { elapsedMs: nowMs }: Now): void {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    const limitMs = tickTimeMs * Math.max(initLimitTicks, syncLimitTicks);
    const { acceptedEpoch, currentEpoch, lastZxid } = this.#start;
    to.text(this.#stage);
    for (const number of [acceptedEpoch, currentEpoch, lastZxid, this.#epoch, this.#acceptedEpochMax]) to.number(number);
    for (const zxid of [this.#proposed, this.#committed, this.#ownAcked]) to.number(zxid);
    fingerprintSet(to, this.#joinedVoters);
    to.number(this.#pendingProposals.length);
    for (const { packet } of this.#pendingProposals.values()) fingerprintBytes(to, packet);
    to.number(this.#lastPing - this.#ownAnsweredPing);
    to.number(this.#syncConfirmations.length);
    for (const { learner, localSync, zxid, ping } of this.#syncConfirmations.values()) {
      for (const number of [learner?.channel ?? -1, localSync?.cnxn ?? -1, zxid, this.#lastPing - ping]) to.number(number);
    }
    to.number(age(this.#stageStartMs, nowMs, limitMs));
    to.number(age(this.#nowMs, nowMs, limitMs));
    to.number(msUntil(this.#nextPingMs, nowMs));
    to.number(msUntil(this.#nextTickMs, nowMs));
    to.number(this.#lastAnonymousSid);
    to.number(this.#lastOwner);
    to.number(this.#learners.size);
    const channels = [...this.#learners.keys()].sort((a, b) => a - b);
    for (const channel of channels) this.#learners.get(channel)!.fingerprint(to, nowMs, limitMs, this.#lastPing);
  }

  // ---- discovery

  #onInfo(learner: LearnerProgress, packet: PacketView, now: Now): void {
    if (learner.stage !== 'silent') {
      this.#disconnect(learner, 'the learner introduced itself twice');
      return;
    }
    const { serverId, configVersion, incarnation } = readLearnerInfo(packet.data, packet.hasData);
    if (configVersion !== undefined && configVersion > this.#host.configVersion()) {
      this.#disconnect(learner, `the learner has configuration ${configVersion.toString(16)}, which is later than this leader's`);
      return;
    }
    if (serverId === this.#options.sid) {
      this.#disconnect(learner, `the learner claims to be server ${serverId}, which is this server: correct the myid of one of the two`);
      return;
    }
    // Any number of observers without an id send -1.
    learner.sid = serverId === undefined || serverId < 0 ? --this.#lastAnonymousSid : serverId;
    learner.incarnation = incarnation;
    learner.introducedMs = now.elapsedMs;
    learner.isObserver = packet.type === PacketType.OBSERVERINFO;
    learner.acceptedEpoch = epochOf(packet.zxid);
    if (this.#isVotingLearner(learner) && !this.#isPlausibleEpoch(learner)) return;
    const holder = this.#holderOf(learner.sid);
    if (holder === undefined) this.#acceptLearner(learner);
    else this.#challengeHolder(learner, holder, now);
  }

  /** One stream per learner: another stream would carry outdated packets. */
  #holderOf(sid: Sid): LearnerProgress | undefined {
    for (const learner of this.#learners.values()) {
      if (learner.sid === sid && isIdentified(learner)) return learner;
    }
    return undefined;
  }

  /**
   * The first stream may be left over from before a restart or a link failure. That must be proven:
   * any process may claim an id, and must not disconnect the real server. So the first is sent a
   * PING, and the second waits for the result.
   */
  #challengeHolder(claimant: LearnerProgress, holder: LearnerProgress, now: Now): void {
    claimant.stage = 'claiming';
    if (holder.sidConflict !== undefined) {
      // The PING is not sent again: repeated claims must not give a dead stream more time.
      const { claimant: older } = holder.sidConflict;
      holder.sidConflict.claimant = claimant;
      this.#disconnect(older, `another connection also claims to be server ${claimant.sid}`);
    } else {
      holder.sidConflict = { claimant, ping: undefined, challengedMs: 0 };
      this.#pingHolder(holder, holder.sidConflict, now);
    }
    // A process has one stream and knows which; but others can copy the incarnation it sends.
    const isSameProcess = claimant.incarnation !== 0 && claimant.incarnation === holder.incarnation;
    if (isSameProcess && now.elapsedMs - holder.introducedMs >= this.#sidConflictWaitMs)
      this.#disconnect(holder, 'the learner has reconnected');
  }

  #pingHolder(holder: LearnerProgress, claim: SidConflict, now: Now): void {
    claim.challengedMs = now.elapsedMs;
    claim.ping = undefined;
    if (holder.stage !== 'active' || holder.backlog !== undefined) return;
    claim.ping = this.#ownAnsweredPing = ++this.#lastPing;
    writeEmptyPacket(this.#links.packets(holder.channel), PacketType.PING, this.#proposed);
    holder.pings.push(claim.ping);
  }

  #resolveSidConflicts({ elapsedMs, wallMs }: Now): void {
    const waitMs = this.#sidConflictWaitMs;
    for (const holder of this.#learners.values()) {
      const { sidConflict } = holder;
      if (sidConflict === undefined || elapsedMs - sidConflict.challengedMs < waitMs) continue;
      // Bytes that were in flight at the claim prove nothing; later bytes do, even part of a
      // packet.
      if (holder.lastProgressMs > sidConflict.challengedMs + waitMs / 2) this.#rejectClaimant(holder);
      // This server itself was late, and may have an answer to read.
      else if (elapsedMs - sidConflict.challengedMs > waitMs * 1.5) this.#pingHolder(holder, sidConflict, { elapsedMs, wallMs });
      else this.#disconnect(holder, 'the learner has reconnected, and this connection does not answer');
    }
  }

  #rejectClaimant(holder: LearnerProgress): void {
    const { claimant } = holder.sidConflict!;
    holder.sidConflict = undefined;
    const remedy = 'If this is another server, correct the myid of one of the two';
    this.#disconnect(claimant, `server ${holder.sid} is already connected and answers. ${remedy}`);
  }

  /**
   * Any process that reaches the port may claim to be an observer, and each costs memory and
   * output. Observers of the configuration are always admitted.
   */
  #hasRoomFor(learner: LearnerProgress): boolean {
    if (this.#isMember(learner)) return true;
    const { unknownObserversMax = unknownObserversMaxDefault } = this.#options;
    let present = 0;
    for (const other of this.#learners.values()) if (isIdentified(other) && !this.#isMember(other)) present++;
    if (present < unknownObserversMax) return true;
    const remedy = 'Add it to the server lines of every server, or raise tskeeper.maxUnknownObservers';
    this.#disconnect(
      learner,
      `server ${learner.sid} is not in the configuration, and ${present} such observers are connected already. ${remedy}`,
    );
    return false;
  }

  #isMember({ sid }: LearnerProgress): boolean {
    return this.#quorum.isVoter(sid) || this.#host.isMember(sid);
  }

  get #sidConflictWaitMs(): Millis {
    return Math.min(this.#options.tickTimeMs / 2, sidConflictWaitMsMax);
  }

  #acceptLearner(learner: LearnerProgress): void {
    if (!this.#hasRoomFor(learner)) return;
    learner.stage = 'known';
    if (this.#stage === 'discovery') {
      // Any process may claim to be an observer. One that has accepted a later epoch than the
      // chosen one follows all the same, or, if it runs ZooKeeper, stays outside until a later one
      // is chosen.
      if (!this.#isVotingLearner(learner)) return;
      this.#acceptedEpochMax = Math.max(this.#acceptedEpochMax, learner.acceptedEpoch);
      this.#joinedVoters.add(learner.sid);
      this.#maybeChooseEpoch();
    } else if (learner.acceptedEpoch > this.#epoch && this.#isVotingLearner(learner)) {
      // It has promised a failed leader not to follow this epoch. It can follow no leader before
      // there is an epoch later than both, and it might be needed; ZooKeeper leaves it outside
      // until the leader is lost for another reason.
      this.#shutDown(
        'later epoch accepted',
        `server ${learner.sid} has accepted epoch ${learner.acceptedEpoch} and can only follow a leader of a later epoch`,
      );
    } else if (this.#stage !== 'saving acceptedEpoch') {
      this.#sendLeaderInfo(learner);
    }
  }

  /**
   * An impossible epoch comes from a damaged file or from an intruder: its server stays outside,
   * and the others continue.
   */
  #isPlausibleEpoch(learner: LearnerProgress): boolean {
    const { acceptedEpoch, currentEpoch, lastZxid } = this.#start;
    const known = Math.max(acceptedEpoch, currentEpoch, epochOf(lastZxid), this.#epoch);
    if (learner.acceptedEpoch <= Math.min(known + acceptedEpochLeadMax, epochMax - 1)) return true;
    const remedy = 'If its file acceptedEpoch contains this number, stop it, move its version-2 aside, keep its myid, and restart it';
    const claim = `server ${learner.sid} claims to have accepted epoch ${learner.acceptedEpoch}, which is impossible`;
    this.#disconnect(learner, `${claim}: this leader is in epoch ${known}. ${remedy}`);
    return false;
  }

  #maybeChooseEpoch(): void {
    if (this.#stage !== 'discovery' || !this.#quorum.containsQuorum(this.#joinedVoters)) return;
    if (this.#acceptedEpochMax >= epochMax) {
      this.#shutDown('last epoch reached', `epoch ${this.#acceptedEpochMax} is the last possible epoch`);
      return;
    }
    this.#stage = 'saving acceptedEpoch';
    this.#epoch = this.#acceptedEpochMax + 1;
    this.#storage.saveEpoch('acceptedEpoch', this.#epoch);
  }

  #sendLeaderInfo({ channel }: LearnerProgress): void {
    const writer = this.#links.packets(channel);
    const at = beginQuorumPacket(writer, PacketType.LEADERINFO, makeZxid(this.#epoch, 0));
    writeLeaderInfo(writer);
    endQuorumPacket(writer, at);
  }

  #onAckEpoch(learner: LearnerProgress, packet: PacketView): void {
    if (learner.stage !== 'known' || this.#stage === 'discovery' || this.#stage === 'saving acceptedEpoch') {
      this.#disconnect(learner, 'the learner accepted an epoch before this leader proposed one');
      return;
    }
    const currentEpoch = readAckEpoch(packet.data);
    learner.lastZxid = packet.zxid;
    learner.stage = 'accepted';
    if (this.#stage !== 'acknowledgement') {
      // A quorum has the epoch by now: txns that this learner has beyond the history were never
      // committed.
      if (this.#stage !== 'saving currentEpoch') this.#syncLearner(learner);
      return;
    }
    const { currentEpoch: ownEpoch, lastZxid } = this.#start;
    if (currentEpoch > ownEpoch || (currentEpoch === ownEpoch && packet.zxid > lastZxid)) {
      // It may have txns that a quorum has and this leader has not. They must not be truncated.
      this.#disconnect(learner, `the learner has a later history than this leader: epoch ${currentEpoch}, zxid ${formatZxid(packet.zxid)}`);
      return;
    }
    // -1: it had accepted this epoch before, perhaps from another leader, and must not count twice.
    // A learner without data (zxid -1) may have lost what it acknowledged.
    if (currentEpoch !== -1 && packet.zxid !== -1 && this.#isVotingLearner(learner)) this.#joinedVoters.add(learner.sid);
    this.#maybeSetEpoch();
  }

  #maybeSetEpoch(): void {
    if (this.#stage !== 'acknowledgement' || !this.#quorum.containsQuorum(this.#joinedVoters)) return;
    this.#stage = 'saving currentEpoch';
    this.#storage.saveEpoch('currentEpoch', this.#epoch);
  }

  // ---- synchronisation

  #syncLearner(learner: LearnerProgress): void {
    learner.stage = 'synchronising';
    const { channel, lastZxid } = learner;
    const startReplicating = () => this.#startBacklog(learner);
    const historySent = () => this.#historySent(learner);
    const isMember = this.#isMember(learner);
    this.#host.syncLearner(
      { channel, isVoter: this.#isVotingLearner(learner), isMember, lastZxid, startReplicating, historySent },
      this.#committed,
    );
  }

  #startBacklog(learner: LearnerProgress): Zxid {
    learner.historyEndZxid = this.#committed;
    // From here on it receives everything, after the history that it lacks.
    learner.isReplicating = true;
    const backlog = (learner.backlog = new Writer(256));
    if (!learner.isObserver) {
      for (const { zxid, packet } of this.#pendingProposals.values()) {
        backlog.raw(packet);
        learner.unackedProposals.push({ zxid, sentMs: this.#nowMs });
      }
    }
    const at = beginQuorumPacket(backlog, PacketType.NEWLEADER, makeZxid(this.#epoch, 0));
    backlog.raw(Buffer.from(this.#host.newLeaderConfig(this.#epoch), 'utf8'));
    endQuorumPacket(backlog, at);
    return this.#committed;
  }

  #historySent(learner: LearnerProgress): void {
    const { backlog, channel } = learner;
    learner.backlog = undefined;
    if (backlog !== undefined) this.#links.packets(channel).raw(backlog.bytes, 0, backlog.offset);
  }

  #maybeServe(now: Now): void {
    if (this.#stage !== 'synchronisation' || !this.#quorum.containsQuorum(this.#joinedVoters)) return;
    this.#stage = 'broadcast';
    this.#servingSinceMs = now.elapsedMs;
    this.#server = this.#host.startServing(this.#epoch, now);
    this.#proposed = this.#committed = this.#deliveredCommit = this.#ownAcked = makeZxid(this.#epoch, 0);
    for (const learner of this.#learners.values()) if (learner.stage === 'synchronised') this.#activate(learner);
  }

  #activate(learner: LearnerProgress): void {
    learner.stage = 'active';
    // It may have had to wait for other learners, with nothing to send.
    learner.lastReceivedMs = learner.activeSinceMs = learner.touchesWatermarkMs = this.#nowMs;
    writeEmptyPacket(this.#outputAfterBacklog(learner), PacketType.UPTODATE, -1);
  }

  // ---- broadcast

  #onAck(learner: LearnerProgress, zxid: Zxid, now: Now): void {
    if (counterOf(zxid) === 0) {
      // The ACK of NEWLEADER; or of UPTODATE, which needs no action.
      if (learner.stage !== 'synchronising' || zxid !== makeZxid(this.#epoch, 0)) return;
      learner.stage = 'synchronised';
      learner.ackedZxid = Math.max(learner.ackedZxid, learner.historyEndZxid);
      this.#updateHasFollower();
      if (this.#stage === 'broadcast') {
        this.#activate(learner);
      } else if (this.#isVotingLearner(learner)) {
        this.#joinedVoters.add(learner.sid);
        this.#maybeServe(now);
      }
      return;
    }
    if (!this.#isVotingLearner(learner)) return;
    if (!learner.isReplicating) {
      this.#disconnect(learner, `the learner acknowledged ${formatZxid(zxid)}, but was sent no proposal`);
      return;
    }
    learner.ackedZxid = Math.max(learner.ackedZxid, zxid);
    for (let next = learner.unackedProposals.peek(); next !== undefined && next.zxid <= zxid; next = learner.unackedProposals.peek())
      learner.unackedProposals.shift();
    this.#maybeCommit(now);
  }

  #ackedBy(sid: Sid): Zxid {
    if (sid === this.#options.sid) return this.#ownAcked;
    for (const learner of this.#learners.values())
      if (learner.sid === sid && learner.isReplicating && !learner.isObserver) return learner.ackedZxid;
    return -1;
  }

  #maybeCommit(now: Now): void {
    if (this.#stage !== 'broadcast') return;
    const before = this.#committed;
    for (let next = this.#pendingProposals.peek(); next !== undefined; next = this.#pendingProposals.peek()) {
      this.#acked.zxid = next.zxid;
      if (!this.#quorum.containsQuorum(this.#acked)) break;
      // A session's sync has its place in the order of its writes, and no later write may be
      // applied before it is answered. A quorum's ACKs of a later proposal prove as much as its
      // answers to a PING: this is still the leader.
      if (this.#hasSyncBefore(next.zxid)) {
        this.#deliverCommits(now);
        while (this.#hasSyncBefore(next.zxid)) this.#replySync(this.#syncConfirmations.shift()!, now);
      }
      this.#pendingProposals.shift();
      this.#commit(next);
    }
    if (this.#committed === before) return;
    this.#deliverCommits(now);
    this.#replySyncs(now);
  }

  #deliverCommits(now: Now): void {
    if (this.#committed === this.#deliveredCommit) return;
    this.#deliveredCommit = this.#committed;
    this.#server!.appended(this.#deliveredCommit, now);
  }

  #hasSyncBefore(zxid: Zxid): boolean {
    const sync = this.#syncConfirmations.peek();
    return sync !== undefined && sync.zxid < zxid;
  }

  #commit({ zxid, packet }: PendingProposal): void {
    this.#committed = zxid;
    this.#host.committed(zxid, entryOf(packet));
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating) continue;
      const writer = this.#outputAfterBacklog(learner);
      if (learner.isObserver) {
        writer.int32(PacketType.INFORM);
        this.#writeShared(learner, packet, packetTypeBytes);
      } else {
        writeEmptyPacket(writer, PacketType.COMMIT, zxid);
      }
    }
  }

  /** The output for packets that follow everything already sent to the learner. */
  #outputAfterBacklog({ channel, backlog }: LearnerProgress): Writer {
    return backlog ?? this.#links.packets(channel);
  }

  #writeShared({ channel, backlog }: LearnerProgress, packet: Buffer, start: number): void {
    if (backlog === undefined) this.#links.writeShared(channel, packet, start);
    else backlog.raw(packet, start, packet.length);
  }

  // ---- clients of learners

  #onRequest(learner: LearnerProgress, packet: PacketView, now: Now): void {
    const { sessionHigh, sessionLow, cxid, type: opCode, payload } = readLearnerRequest(packet.data);
    if (this.#server === undefined || learner.stage !== 'active') {
      this.#disconnect(learner, 'the learner forwarded a request before UPTODATE');
      return;
    }
    if (opCode === OpCode.sync) {
      this.#confirmLeadership(learner, undefined, now);
      return;
    }
    const identities = this.#forwardedIdentities.of(packet);
    const owner = this.#ownerOf(learner);
    const record = Buffer.from(payload);
    this.#server.forwarded({ owner, sessionHigh, sessionLow, cxid, opCode, identities, record, arrivedMs: now.elapsedMs }, now);
  }

  #ownerOf(learner: LearnerProgress): SessionOwner {
    if (learner.owner === undefined) {
      learner.owner = ++this.#lastOwner;
      this.#origins.set(learner.owner, originOf(learner.sid));
    }
    return learner.owner;
  }

  #onRevalidate(learner: LearnerProgress, packet: PacketView, now: Now): void {
    const { sessionHigh, sessionLow, timeOut } = readRevalidateRequest(packet.data);
    if (this.#server === undefined || learner.stage !== 'active') {
      this.#disconnect(learner, 'the learner asked about a session before UPTODATE');
      return;
    }
    const valid = this.#server.validateSession(sessionHigh, sessionLow, timeOut, this.#ownerOf(learner), now);
    const writer = this.#outputAfterBacklog(learner);
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, packet.zxid);
    writeRevalidateReply(writer, { sessionHigh, sessionLow, valid });
    endQuorumPacket(writer, at);
  }

  // ---- confirming the lead

  #confirmLeadership(learner: LearnerProgress | undefined, localSync: PendingSync | undefined, now: Now): void {
    this.#syncConfirmations.push({ learner, localSync, zxid: this.#proposed, ping: this.#sendPing(now) });
    this.#replySyncs(now);
  }

  /** Returns the number of the PING. */
  #sendPing(now: Now): number {
    const number = ++this.#lastPing;
    this.#pingSentMs = now.elapsedMs;
    this.#ownAnsweredPing = number;
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating) continue;
      // Not after the history being sent: that may take long, and the learner needs a sign of life.
      if (learner.backlog !== undefined) continue;
      writeEmptyPacket(this.#links.packets(learner.channel), PacketType.PING, this.#proposed);
      // Learners answer after UPTODATE. An earlier PING is a sign of life only; expecting an answer
      // would shift the numbers.
      if (learner.stage !== 'active') continue;
      learner.pings.push(number);
      learner.pingTimes.push(now.elapsedMs);
    }
    return number;
  }

  #onPing(learner: LearnerProgress, packet: PacketView, now: Now): void {
    // Learners answer after UPTODATE. An earlier one is a sign of life only, and reports no
    // sessions.
    if (learner.stage !== 'active') return;
    readTouchedSessions(packet.data, (high, low, timeOut) => this.#server?.touched(high, low, timeOut, now));
    learner.answeredPing = learner.pings.shift() ?? learner.answeredPing;
    if (learner.sidConflict?.ping !== undefined && learner.answeredPing >= learner.sidConflict.ping) this.#rejectClaimant(learner);
    learner.touchesWatermarkMs = learner.pingTimes.shift() ?? learner.touchesWatermarkMs;
    this.#replySyncs(now);
  }

  #replySyncs(now: Now): void {
    for (let next = this.#syncConfirmations.peek(); next !== undefined; next = this.#syncConfirmations.peek()) {
      this.#pinged.ping = next.ping;
      if (next.zxid > this.#committed || !this.#quorum.containsQuorum(this.#pinged)) return;
      this.#syncConfirmations.shift();
      this.#replySync(next, now);
    }
  }

  #replySync({ learner, localSync }: SyncConfirmation, now: Now): void {
    // Its channel may have been reused.
    const isHere = learner !== undefined && this.#learners.get(learner.channel) === learner;
    if (isHere) writeEmptyPacket(this.#outputAfterBacklog(learner), PacketType.SYNC, 0);
    if (localSync !== undefined) this.#server!.synced(localSync, now);
  }

  #pingAnsweredBy(sid: Sid): number {
    if (sid === this.#options.sid) return this.#ownAnsweredPing;
    for (const learner of this.#learners.values())
      if (learner.sid === sid && learner.isReplicating && !learner.isObserver) return learner.answeredPing;
    return -1;
  }

  #dropSilent(inputWatermarkMs: Millis): void {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    for (const learner of this.#learners.values()) {
      const isIn = learner.stage === 'active';
      const silentMaxMs = (isIn ? syncLimitTicks : initLimitTicks) * tickTimeMs;
      const silentMs = inputWatermarkMs - learner.lastReceivedMs;
      const oldest = learner.unackedProposals.peek();
      const unackedMs = isIn && oldest !== undefined ? inputWatermarkMs - Math.max(oldest.sentMs, learner.activeSinceMs) : 0;
      // No session expires before it has answered, so it must not be awaited longer than a silent
      // learner.
      const unansweredMs = inputWatermarkMs - (learner.pingTimes.peek() ?? inputWatermarkMs);
      if (silentMs > silentMaxMs) this.#disconnect(learner, `nothing was received from the learner for ${silentMs} ms`);
      else if (unackedMs > silentMaxMs)
        this.#disconnect(learner, `the learner has not acknowledged ${formatZxid(oldest!.zxid)} for ${unackedMs} ms`);
      else if (unansweredMs > silentMaxMs) this.#disconnect(learner, `the learner has not answered a PING for ${unansweredMs} ms`);
    }
  }

  #checkQuorum(now: Now): void {
    const { tickTimeMs, initLimitTicks } = this.#options;
    if (this.#stage !== 'broadcast') {
      if (now.elapsedMs - this.#stageStartMs > initLimitTicks * tickTimeMs)
        this.#shutDown('no quorum in time', `no quorum within initLimit (stage: ${this.#stage})`);
      return;
    }
    const present = new Set<Sid>(this.#isVoter ? [this.#options.sid] : []);
    for (const learner of this.#learners.values()) {
      if (this.#isVotingLearner(learner) && isSynced(learner)) present.add(learner.sid);
    }
    if (!this.#quorum.containsQuorum(present)) this.#shutDown('quorum lost', 'the leader has lost its quorum');
  }

  #isVotingLearner({ isObserver, sid }: LearnerProgress): boolean {
    return !isObserver && this.#quorum.isVoter(sid);
  }

  #disconnect(learner: LearnerProgress, reason: string): void {
    this.#links.closeChannel(learner.channel, reason);
    this.#removeLearner(learner);
  }

  #removeLearner(learner: LearnerProgress): void {
    this.#learners.delete(learner.channel);
    if (learner.owner !== undefined) this.#origins.delete(learner.owner);
    this.#host.learnerGone(learner.channel);
    this.#updateHasFollower();
    if (learner.stage === 'claiming') {
      for (const holder of this.#learners.values()) if (holder.sidConflict?.claimant === learner) holder.sidConflict = undefined;
      return;
    }
    // A silent learner has no sid yet, and an observer is not the voter whose sid it may give.
    const hadSay = learner.stage !== 'silent' && this.#isVotingLearner(learner);
    if (hadSay && this.#stage !== 'broadcast' && this.#stage !== 'over') this.#joinedVoters.delete(learner.sid);
    // The old stream was left over, or its server has disconnected meanwhile.
    if (learner.sidConflict !== undefined && this.#stage !== 'over') this.#acceptLearner(learner.sidConflict.claimant);
  }

  /**
   * A voter that is being synchronised cannot complete this leader's quorum, so the oracle decides
   * until it is synchronised.
   */
  #updateHasFollower(): void {
    let isFollowed = false;
    for (const learner of this.#learners.values()) isFollowed ||= isSynced(learner) && this.#isVotingLearner(learner);
    if (isFollowed === this.#hasFollower) return;
    this.#hasFollower = isFollowed;
    this.#host.hasFollowerChanged?.(isFollowed);
  }

  /** The set of quorums has changed without a packet: the oracle has answered. */
  quorumChanged(now: Now): void {
    this.#nowMs = now.elapsedMs;
    this.#maybeChooseEpoch();
    this.#maybeSetEpoch();
    this.#maybeServe(now);
    this.#maybeCommit(now);
  }

  #shutDown(reason: RoleEndReason, text: string): void {
    this.#stage = 'over';
    this.#endReason = reason;
    this.#endText = text;
  }
}
