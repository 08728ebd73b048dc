/**
 * Leading (Zab's discovery, synchronisation and broadcast, from the leader's side).
 *
 *     discovery        a quorum has said which epochs it knows        -> a new epoch, written down, LEADERINFO
 *     acknowledgement  a quorum has accepted it                       -> currentEpoch written down; each is sent what it lacks, NEWLEADER
 *     synchronisation  a quorum has all of it on disk                 -> clients are served; UPTODATE
 *     broadcast        PROPOSAL, a quorum of ACKs, in zxid order      -> COMMIT, INFORM
 *
 * A leader never goes back to an earlier stage: when it has lost its quorum, or has none in time, it is over, and an election follows.
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
  readForwardedRequest,
  readLearnerInfo,
  readRevalidateRequest,
  readTouchedSessions,
  type Sid,
  OpCode,
  writeEmptyPacket,
  writeLeaderInfo,
  Writer,
  writeRevalidateAnswer,
  type Zxid,
} from '@tskeeper/protocol';
import { PassedOnIdentities } from '../auth/passed-on-identities.ts';
import { Fifo } from '../fifo.ts';
import { age, distance, type Fingerprint, writeBytes, writeSet } from '../fingerprint.ts';
import type { LeadingInspect } from '../inspect.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier, Sids } from '../quorum/quorum-verifier.ts';
import type { Server } from '../server.ts';
import type { SessionOwner } from '../client-output.ts';
import type { TxnLog } from '../txn-log.ts';
import type { Lead } from '../request/authority.ts';
import { ownerHere } from '../session/session-tracker.ts';
import type { WaitingSync } from '../request/session-order.ts';
import type { LearnerSync } from './learner-sync.ts';
import { originOf, originUnknown } from './txn-origin.ts';
import type { ZabOptions } from './zab-options.ts';
import type { EpochName, PeerStorage } from './peer-storage.ts';
import { type ChannelId, ChannelRank, type QuorumLinks } from './quorum-links.ts';

/** What a leader begins with: its own state, on which everyone else's will be. */
export interface LeaderStart {
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The last txn of its log, all of which has been applied. */
  readonly lastZxid: Zxid;
}

/** What a leader needs of the peer that it is. */
export interface LeaderHost {
  /** Makes the server that clients speak to, now that there is an epoch to order writes in. Its log is `proposed`. */
  serve(epoch: number, now: Now): Server;
  /** Works out what a learner lacks, and sends it; `NEWLEADER` and everything after it follow behind. */
  synchronise(learner: LearnerSync, leaderLast: Zxid): void;
  /** The learner is gone. */
  forget(channel: ChannelId): void;
  /** Whether a voter follows this leader, told when that changes: an oracle has no say while one does. */
  followed?(isFollowed: boolean): void;
  /** Of the configuration in force. */
  configVersion(): number;
  /** Whether the configuration in force has this server, as a voter or an observer. */
  isMember(sid: Sid): boolean;
  /** The configuration that learners are told of in NEWLEADER: the one in force, or one that this epoch gives its first version. */
  newLeaderConfig(epoch: number): string;
  /** A txn is committed: header, record and digest as they stand in the log. */
  committed(zxid: Zxid, entry: Buffer): void;
}

type Stage = 'discovery' | 'saving acceptedEpoch' | 'acknowledgement' | 'saving currentEpoch' | 'synchronisation' | 'broadcast' | 'over';

type LearnerStage =
  /** It has connected. */
  | 'silent'
  /** It has said that it is a learner that has a stream already, which is asked whether it lives. */
  | 'claiming'
  /** FOLLOWERINFO or OBSERVERINFO has come. */
  | 'known'
  /** ACKEPOCH has come. */
  | 'accepted'
  /** It is being sent what it lacks. */
  | 'synchronising'
  /** NEWLEADER has been acknowledged. */
  | 'synchronised'
  /** UPTODATE has been sent. */
  | 'active';

/** Another stream gives the id of a learner that has one. */
interface Claim {
  claimant: Learner;
  /** The PING that the learner was sent for it; undefined while it answers none, since it is being brought up to date. */
  ping: number | undefined;
  askedMs: Millis;
}

class Learner {
  readonly channel: ChannelId;
  /** What it passes on bears this number, once it does: channels' numbers are used again, and what waits of an older one is not this one's. */
  owner: SessionOwner | undefined;
  stage: LearnerStage = 'silent';
  sid: Sid = 0;
  /** Of its process; 0 when it does not say. */
  incarnation = 0;
  introducedMs: Millis = 0;
  claim: Claim | undefined;
  /** When bytes last went over its stream. */
  movedMs: Millis;
  isObserver = false;
  acceptedEpoch = 0;
  lastZxid: Zxid = 0;
  /** Where the history ended that it was sent when it came. */
  historyEnd: Zxid = 0;
  heardMs: Millis;
  /** Everything up to here is in its log. */
  ackedZxid: Zxid = 0;
  /** It is told of every txn from here on. */
  hears = false;
  /** Txns and what belongs behind them wait here while it is sent what was before them; undefined when nothing has to wait. */
  backlog: Writer | undefined;
  /** Since it is sent UPTODATE. What it was proposed before may have waited for its history to be sent, which is not its fault. */
  activeMs: Millis = 0;
  /** Proposals that it has not acknowledged: the oldest one's age is how far it lags. */
  readonly unacked = new Fifo<{ readonly zxid: Zxid; readonly sentMs: Millis }>();
  /** Numbers of the PINGs that it has not answered, and when they were sent. */
  readonly pings = new Fifo<number>();
  readonly pingTimes = new Fifo<Millis>();
  answeredPing = 0;
  /** When the last PING was sent that it has answered: whom it had heard by then it has told. Nobody speaks to it before it is active. */
  toldMs: Millis = 0;

  /** Everything that can influence behaviour, for an explorer. PINGs are counted back from the last one. */
  fingerprint(to: Fingerprint, nowMs: Millis, limitMs: Millis, lastPing: number): void {
    to.text(this.stage);
    to.number(this.isObserver ? 1 : 0);
    to.number(this.hears ? 1 : 0);
    const { channel, owner = 0, sid, acceptedEpoch, lastZxid, historyEnd, ackedZxid } = this;
    for (const number of [channel, owner, sid, acceptedEpoch, lastZxid, historyEnd, ackedZxid]) to.number(number);
    to.number(age(this.heardMs, nowMs, limitMs));
    to.number(lastPing - this.answeredPing);
    to.number(this.pings.length);
    for (const ping of this.pings.values()) to.number(lastPing - ping);
    for (const sentMs of this.pingTimes.values()) to.number(age(sentMs, nowMs, limitMs));
    to.number(age(this.toldMs, nowMs, limitMs));
    to.number(this.unacked.length);
    for (const { zxid, sentMs } of this.unacked.values()) {
      to.number(zxid);
      to.number(age(Math.max(sentMs, this.activeMs), nowMs, limitMs));
    }
    to.number(this.incarnation);
    to.number(this.claim?.claimant.channel ?? -1);
    if (this.claim !== undefined) {
      to.number(lastPing - (this.claim.ping ?? -1));
      for (const ms of [this.claim.askedMs, this.movedMs, this.introducedMs]) to.number(age(ms, nowMs, limitMs));
    }
    to.number(this.backlog?.offset ?? -1);
    if (this.backlog !== undefined) writeBytes(to, this.backlog.bytes, 0, this.backlog.offset);
  }

  constructor(channel: ChannelId, now: Now) {
    this.channel = channel;
    this.heardMs = this.movedMs = now.elapsedMs;
  }
}

/** A txn that has been proposed and not committed. */
interface Outstanding {
  readonly zxid: Zxid;
  /** The packet that proposes it. */
  readonly packet: Buffer;
}

/** A sync that waits for the leader to make sure that it still leads. */
interface PendingSync {
  /** Where the answer goes: to a learner, or to a client of our own. */
  readonly learner: Learner | undefined;
  readonly local: WaitingSync | undefined;
  /** What was proposed when it came must have been committed. */
  readonly zxid: Zxid;
  /** A quorum must have answered this PING, which was sent after it came. */
  readonly ping: number;
}

/** Why a leader gives up that `leader.maxTimeToWaitForEpoch` tells to. */
export const disloyalVoter = 'a voter looks for another leader';

/**
 * A voter's accepted epoch can be later than any that this server knows, by one for each would-be leader that has failed meanwhile: one in some
 * seconds at most, while a quorum was there and no leader came of it. So many are a day of that. A later one is no epoch but a damaged file, or a
 * lie; a leader that went by it would soon have used up those that there are (`epochMax`).
 */
const acceptedAheadMax = 10_000;

/** How long at most a learner has to answer when another stream gives its id: a restarted server must not wait longer for its old stream. */
const claimWaitMsMax: Millis = 1000;

/** Enough for observers that only their own configuration has, as in containers, and few enough to be sent everything. */
export const unknownObserversMaxDefault = 16;

/** Of a tick, one part: a session that is due waits so long for learners that the configuration does not have. */
const strangersWaitParts = 4;
const packetTypeBytes = 4;
const dataLengthBytes = 4;

/** It has acknowledged NEWLEADER. */
function isInStep({ stage }: Learner): boolean {
  return stage === 'synchronised' || stage === 'active';
}

/** It has said who it is, and nobody else is that. */
function isKnown({ stage }: Learner): boolean {
  return stage !== 'silent' && stage !== 'claiming';
}

/** The bytes of a txn as they stand in the log, out of the packet that proposes it. */
function entryOf(packet: Buffer): Buffer {
  const length = packet.readInt32BE(packetHeadBytes - dataLengthBytes);
  return packet.subarray(packetHeadBytes, packetHeadBytes + length);
}

export class Leader implements TxnLog, Lead {
  readonly #passedOn = new PassedOnIdentities();
  readonly #options: ZabOptions;
  readonly #quorum: QuorumVerifier;
  readonly #links: QuorumLinks;
  readonly #storage: PeerStorage;
  readonly #host: LeaderHost;
  readonly #start: LeaderStart;
  readonly #isVoter: boolean;
  #stage: Stage = 'discovery';
  #epoch = 0;
  #server: Server | undefined;
  readonly #learners = new Map<ChannelId, Learner>();
  /** Voters that are in, this one included, at the stage the leader is at. */
  #agreeing = new Set<Sid>();
  #acceptedMax: number;
  /** Why it is over; undefined while it is not. */
  #overReason: string | undefined;

  readonly #outstanding = new Fifo<Outstanding>();
  #proposed: Zxid;
  #committed: Zxid;
  /** The commit that the server has heard of. Behind #committed only while more is being committed. */
  #told: Zxid;
  #ownAcked: Zxid;
  readonly #syncs = new Fifo<PendingSync>();
  #ping = 0;
  #ownPing = 0;

  #servesSinceMs: Millis = 0;
  #isFollowed = false;
  /** When the leader came to the stage it is at. */
  #stageMs: Millis;
  /** The time of the last input: near enough for how old a proposal is. */
  #nowMs: Millis;
  #nextPingMs: Millis;
  /** When the last PING was sent. */
  #askedMs: Millis = -Infinity;
  #nextTickMs: Millis;
  #unnamed = 0;
  #owners: SessionOwner = ownerHere;
  /** What the txns say that clients of this server and of the learners ask for. */
  readonly #origins = new Map<SessionOwner, readonly Id[]>();
  /** Whom to ask for a quorum at each ACK and each PING: made once, and set to the zxid or the PING in question. */
  readonly #acked = { zxid: 0, has: (sid: Sid): boolean => this.#ackedBy(sid) >= this.#acked.zxid };
  readonly #pinged = { ping: 0, has: (sid: Sid): boolean => this.#pingAnsweredBy(sid) >= this.#pinged.ping };
  readonly #packet = new Writer(1024);

  constructor(
    options: ZabOptions,
    quorum: QuorumVerifier,
    start: LeaderStart,
    links: QuorumLinks,
    storage: PeerStorage,
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
    this.#acceptedMax = start.acceptedEpoch;
    this.#origins.set(ownerHere, originOf(options.sid));
    this.#proposed = this.#committed = this.#told = this.#ownAcked = start.lastZxid;
    this.#stageMs = this.#nowMs = now.elapsedMs;
    this.#nextPingMs = now.elapsedMs + options.tickTimeMs / 2;
    this.#nextTickMs = now.elapsedMs + options.tickTimeMs;
    if (this.#isVoter) this.#agreeing.add(options.sid);
    this.#maybeChooseEpoch();
  }

  // ---- what others may ask

  /** Why it is over: it leads no more, and an election follows. Undefined while it is not. */
  get over(): string | undefined {
    return this.#overReason;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** The last txn that is committed. */
  get committed(): Zxid {
    return this.#committed;
  }

  /** Clients are served. */
  get server(): Server | undefined {
    return this.#server;
  }

  get phase(): 'discovery' | 'synchronization' | 'broadcast' {
    if (this.#stage === 'broadcast') return 'broadcast';
    return this.#stage === 'synchronisation' ? 'synchronization' : 'discovery';
  }

  rankOf(channel: ChannelId): ChannelRank {
    const learner = this.#learners.get(channel);
    if (learner === undefined || !isKnown(learner)) return ChannelRank.stranger;
    if (this.#votes(learner)) return ChannelRank.voter;
    return this.#isMember(learner) ? ChannelRank.observer : ChannelRank.stranger;
  }

  /** What an operator may know of its learners. */
  inspect(): LeadingInspect {
    let [learners, syncedFollowers, syncedNonVotingFollowers, syncedObservers] = [0, 0, 0, 0];
    for (const learner of this.#learners.values()) {
      if (isKnown(learner)) learners++;
      if (!learner.hears) continue;
      if (learner.isObserver) syncedObservers++;
      else syncedFollowers++;
      if (!learner.isObserver && !this.#votes(learner)) syncedNonVotingFollowers++;
    }
    const pendingSyncs = this.#syncs.length;
    return { sinceMs: this.#servesSinceMs, learners, syncedFollowers, syncedNonVotingFollowers, syncedObservers, pendingSyncs };
  }

  // ---- inputs

  connected(channel: ChannelId, now: Now): void {
    this.#learners.set(channel, new Learner(channel, now));
  }

  gone(channel: ChannelId): void {
    const learner = this.#learners.get(channel);
    if (learner !== undefined) this.#forget(learner);
  }

  /** A packet of a learner. What cannot be read throws a `ProtocolError`, and the stream is to be closed. */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#nowMs = now.elapsedMs;
    const learner = this.#learners.get(channel);
    if (learner === undefined || this.#stage === 'over') return;
    learner.heardMs = learner.movedMs = now.elapsedMs;
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
        this.#drop(learner, `it has sent ${packetTypeName(packet.type)}, which no leader understands`);
    }
  }

  /**
   * Something of what a learner is being sent has been taken, or a part of a packet has come. While a snapshot is under way nothing else tells
   * that the learner lives; a learner that is in step has to say something.
   */
  moves(channel: ChannelId, now: Now): void {
    const learner = this.#learners.get(channel);
    if (learner === undefined) return;
    learner.movedMs = now.elapsedMs;
    if (learner.stage !== 'synchronising') return;
    learner.heardMs = now.elapsedMs;
    // Of a quorum that is on its way it is known that it comes, so there is no use in another election.
    if (this.#stage === 'synchronisation' && this.#votes(learner)) this.#stageMs = now.elapsedMs;
  }

  /**
   * Some voters will not come any more, as far as is known (`FastLeaderElection.lost`). If those that are left make no quorum there is nothing to
   * wait for: this server looks for a leader with the others, rather than alone for what is left of initLimit. Whoever has connected has
   * come, whatever it said before. A leader that has served is over by the silence of its learners alone.
   */
  maybeMakeWay(lost: Sids): void {
    if (this.#stage === 'broadcast' || this.#stage === 'over') return;
    const here = new Set<Sid>([this.#options.sid]);
    for (const { stage, sid } of this.#learners.values()) if (stage !== 'silent') here.add(sid);
    if (!this.#quorum.containsQuorum({ has: (sid) => here.has(sid) || !lost.has(sid) })) {
      this.#giveUp('those who could be its quorum have gone on without it');
    }
  }

  /** An epoch file is on disk. */
  epochSaved(name: EpochName, now: Now): void {
    this.#stageMs = this.#nowMs = now.elapsedMs;
    if (name === 'acceptedEpoch' && this.#stage === 'saving acceptedEpoch') {
      this.#stage = 'acknowledgement';
      this.#agreeing = new Set(this.#isVoter ? [this.#options.sid] : []);
      for (const learner of this.#learners.values()) if (learner.stage === 'known') this.#tellEpoch(learner);
      this.#maybeSetEpoch();
    } else if (name === 'currentEpoch' && this.#stage === 'saving currentEpoch') {
      this.#stage = 'synchronisation';
      this.#agreeing = new Set(this.#isVoter ? [this.#options.sid] : []);
      for (const learner of this.#learners.values()) if (learner.stage === 'accepted') this.#synchronise(learner);
      this.#maybeServe(now);
    }
  }

  /** Every txn up to `zxid` is in this server's own log. */
  appended(zxid: Zxid, now: Now): void {
    this.#nowMs = now.elapsedMs;
    this.#ownAcked = zxid;
    this.#maybeCommit(now);
  }

  /** As `TxnLog`: the server of this leader has ordered a txn, which is proposed to the followers. */
  append(zxid: Zxid, bytes: Buffer, start: number, end: number, owner: SessionOwner): void {
    this.#storage.append(zxid, bytes, start, end);
    const writer = this.#packet;
    writer.clear();
    const at = beginQuorumPacket(writer, PacketType.PROPOSAL, zxid);
    writer.raw(bytes, start, end);
    endQuorumPacket(writer, at, this.#origins.get(owner) ?? originUnknown);
    const packet = Buffer.from(writer.written());
    this.#proposed = zxid;
    this.#outstanding.push({ zxid, packet });
    // It gave up in this very turn. What stands in its log is still part of what it goes into the election with, and may lead others from.
    if (this.#stage === 'over') return;
    for (const learner of this.#learners.values()) {
      if (!learner.hears || learner.isObserver) continue;
      this.#share(learner, packet, 0);
      learner.unacked.push({ zxid, sentMs: this.#nowMs });
    }
    if (counterOf(zxid) >= this.#options.counterMax) this.#giveUp('the counter of this epoch is used up');
  }

  /** A client of our own wants to be sure that it sees everything committed by now. */
  sync(sync: WaitingSync, now: Now): void {
    this.#confirm(undefined, sync, now);
  }

  /**
   * Whatever a learner had heard of sessions by then it has passed on; Infinity while no learner serves. One that is cut off counts no more. One that
   * the configuration does not have is waited for during a quarter of a tick and no longer: anybody may say to be such an observer, and keep sessions
   * of the dead by silence.
   */
  get learnersHeardMs(): Millis {
    const strangersMs = this.#nowMs - this.#strangersWaitMs;
    let heardMs = Infinity;
    for (const learner of this.#learners.values()) {
      if (learner.stage !== 'active') continue;
      const { toldMs } = learner;
      heardMs = Math.min(heardMs, toldMs >= strangersMs || this.#isMember(learner) ? toldMs : strangersMs);
    }
    return heardMs;
  }

  get #strangersWaitMs(): Millis {
    return this.#options.tickTimeMs / strangersWaitParts;
  }

  /** Until when a session that is due at `dueMs` waits for learners that the configuration does not have; undefined when it does not. */
  strangersAwaitedMs(dueMs: Millis): Millis | undefined {
    const untilMs = dueMs + this.#strangersWaitMs;
    if (this.#nowMs >= untilMs) return undefined;
    for (const learner of this.#learners.values()) {
      if (learner.stage === 'active' && learner.toldMs < dueMs && !this.#isMember(learner)) return untilMs;
    }
    return undefined;
  }

  /** When learners were last asked whom they have heard: they say so in their answers to a PING. */
  get learnersAskedMs(): Millis {
    return this.#askedMs;
  }

  askLearners(now: Now): void {
    this.#sendPing(now);
  }

  /** What had arrived by `heardMs` has been handed over: learners are silent as of then. */
  wake(now: Now, heardMs: Millis = now.elapsedMs): void {
    this.#nowMs = now.elapsedMs;
    if (this.#stage === 'over') return;
    if (now.elapsedMs >= this.#nextPingMs) {
      this.#nextPingMs = now.elapsedMs + this.#options.tickTimeMs / 2;
      this.#sendPing(now);
    }
    this.#dropSilent(heardMs);
    this.#judgeClaims(now);
    if (now.elapsedMs < this.#nextTickMs) return;
    this.#nextTickMs = now.elapsedMs + this.#options.tickTimeMs;
    this.#checkQuorum(now);
  }

  /**
   * This server stood still, and input may wait from before. Learners that have not been sent a PING for longer than syncLimit have given this leader up or are
   * about to, and may have another: nobody must be answered any more from what was true before.
   */
  stoodStill(now: Now): void {
    const { tickTimeMs, syncLimitTicks } = this.#options;
    const silentMs = now.elapsedMs - (this.#nextPingMs - tickTimeMs / 2);
    if (this.#stage !== 'over' && !this.#quorum.containsQuorum(new Set([this.#options.sid])) && silentMs > syncLimitTicks * tickTimeMs) {
      this.#giveUp(`it stood still for ${Math.round(silentMs)} ms, which is longer than syncLimit: others may lead by now`);
    }
  }

  /** A voter looks for a leader, this one or another. */
  voterLooks(sid: Sid, now: Now): void {
    if (this.#stage !== 'discovery' || !this.#quorum.isVoter(sid)) return;
    const { tickTimeMs, syncLimitTicks, maxTimeToWaitForEpochMs = syncLimitTicks * tickTimeMs } = this.#options;
    if (now.elapsedMs - this.#stageMs > maxTimeToWaitForEpochMs) this.#giveUp(disloyalVoter);
  }

  /** Leads no more, for a reason that only its owner knows. */
  standDown(reason: string): void {
    if (this.#stage !== 'over') this.#giveUp(reason);
  }

  deadline(): Millis | undefined {
    if (this.#stage === 'over') return undefined;
    let due = Math.min(this.#nextPingMs, this.#nextTickMs);
    for (const { claim } of this.#learners.values()) if (claim !== undefined) due = Math.min(due, claim.askedMs + this.#claimWaitMs);
    return due;
  }

  /** Leads no more. What it has proposed is in its log, and may or may not be what the next leader goes on from. */
  end(now: Now): void {
    if (this.#stage !== 'over') this.#giveUp('it was told to end');
    for (const { channel } of this.#learners.values()) this.#links.closeChannel(channel, 'this server leads no more');
    this.#learners.clear();
    this.#noteFollowers();
    this.#server?.end(now);
    // Whether what was proposed last is committed is for the next leader to say; if that is this server again, it is.
    for (const { zxid, packet } of this.#outstanding.values()) this.#host.committed(zxid, entryOf(packet));
  }

  /** Everything that can influence behaviour, for an explorer. That of its server is the peer's to write. */
  fingerprint(to: Fingerprint, { elapsedMs: nowMs }: Now): void {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    const limitMs = tickTimeMs * Math.max(initLimitTicks, syncLimitTicks);
    const { acceptedEpoch, currentEpoch, lastZxid } = this.#start;
    to.text(this.#stage);
    for (const number of [acceptedEpoch, currentEpoch, lastZxid, this.#epoch, this.#acceptedMax]) to.number(number);
    for (const zxid of [this.#proposed, this.#committed, this.#ownAcked]) to.number(zxid);
    writeSet(to, this.#agreeing);
    to.number(this.#outstanding.length);
    for (const { packet } of this.#outstanding.values()) writeBytes(to, packet);
    to.number(this.#ping - this.#ownPing);
    to.number(this.#syncs.length);
    for (const { learner, local, zxid, ping } of this.#syncs.values()) {
      for (const number of [learner?.channel ?? -1, local?.cnxn ?? -1, zxid, this.#ping - ping]) to.number(number);
    }
    to.number(age(this.#stageMs, nowMs, limitMs));
    to.number(age(this.#nowMs, nowMs, limitMs));
    to.number(distance(this.#nextPingMs, nowMs));
    to.number(distance(this.#nextTickMs, nowMs));
    to.number(this.#unnamed);
    to.number(this.#owners);
    to.number(this.#learners.size);
    const channels = [...this.#learners.keys()].sort((a, b) => a - b);
    for (const channel of channels) this.#learners.get(channel)!.fingerprint(to, nowMs, limitMs, this.#ping);
  }

  // ---- discovery

  #onInfo(learner: Learner, packet: PacketView, now: Now): void {
    if (learner.stage !== 'silent') {
      this.#drop(learner, 'it has introduced itself twice');
      return;
    }
    const { serverId, configVersion, incarnation } = readLearnerInfo(packet.data, packet.hasData);
    if (configVersion !== undefined && configVersion > this.#host.configVersion()) {
      this.#drop(learner, `it goes by configuration ${configVersion.toString(16)}, which this leader has not seen yet`);
      return;
    }
    if (serverId === this.#options.sid) {
      this.#drop(learner, `it says that it is server ${serverId}, as this server does: one of the two has a wrong myid`);
      return;
    }
    // Observers without a number of their own give -1, any number of them.
    learner.sid = serverId === undefined || serverId < 0 ? --this.#unnamed : serverId;
    learner.incarnation = incarnation;
    learner.introducedMs = now.elapsedMs;
    learner.isObserver = packet.type === PacketType.OBSERVERINFO;
    learner.acceptedEpoch = epochOf(packet.zxid);
    if (this.#votes(learner) && !this.#canHaveAccepted(learner)) return;
    const holder = this.#holderOf(learner.sid);
    if (holder === undefined) this.#admit(learner);
    else this.#claim(learner, holder, now);
  }

  /** One stream per learner: what would come over another one is not what its server says now. */
  #holderOf(sid: Sid): Learner | undefined {
    for (const learner of this.#learners.values()) {
      if (learner.sid === sid && isKnown(learner)) return learner;
    }
    return undefined;
  }

  /**
   * The first stream may be a leftover, whose server has restarted or has lost its link. That it is has to show: anybody may give an id, and must not
   * cut off the server that has it. So the first is sent a PING, and the second waits for what comes of it.
   */
  #claim(claimant: Learner, holder: Learner, now: Now): void {
    claimant.stage = 'claiming';
    if (holder.claim !== undefined) {
      // The question stands, however often it is asked: claims that keep coming must not give a dead stream more time.
      const { claimant: older } = holder.claim;
      holder.claim.claimant = claimant;
      this.#drop(older, `another connection says as well that it is server ${claimant.sid}`);
    } else {
      holder.claim = { claimant, ping: undefined, askedMs: 0 };
      this.#askHolder(holder, holder.claim, now);
    }
    // A process has one stream, and knows which; but what it says of itself can be repeated by others.
    const isSameProcess = claimant.incarnation !== 0 && claimant.incarnation === holder.incarnation;
    if (isSameProcess && now.elapsedMs - holder.introducedMs >= this.#claimWaitMs) this.#drop(holder, 'it has connected anew');
  }

  #askHolder(holder: Learner, claim: Claim, now: Now): void {
    claim.askedMs = now.elapsedMs;
    claim.ping = undefined;
    if (holder.stage !== 'active' || holder.backlog !== undefined) return;
    claim.ping = this.#ownPing = ++this.#ping;
    writeEmptyPacket(this.#links.packets(holder.channel), PacketType.PING, this.#proposed);
    holder.pings.push(claim.ping);
  }

  #judgeClaims({ elapsedMs, wallMs }: Now): void {
    const waitMs = this.#claimWaitMs;
    for (const holder of this.#learners.values()) {
      const { claim } = holder;
      if (claim === undefined || elapsedMs - claim.askedMs < waitMs) continue;
      // What was under way when the question was asked says nothing; what has come since does, if only a part of a packet.
      if (holder.movedMs > claim.askedMs + waitMs / 2) this.#refuseClaim(holder);
      // This server itself was late, and may have an answer to read.
      else if (elapsedMs - claim.askedMs > waitMs * 1.5) this.#askHolder(holder, claim, { elapsedMs, wallMs });
      else this.#drop(holder, 'it does not answer, and has connected anew');
    }
  }

  #refuseClaim(holder: Learner): void {
    const { claimant } = holder.claim!;
    holder.claim = undefined;
    const remedy = 'If that is another server, one of the two has a wrong myid';
    this.#drop(claimant, `server ${holder.sid}, which it says that it is, is connected and answers. ${remedy}`);
  }

  /** Anybody who can reach the port may say to be an observer, each of which costs memory and sends. Of those in the configuration all are let in. */
  #hasRoomFor(learner: Learner): boolean {
    if (this.#isMember(learner)) return true;
    const { unknownObserversMax = unknownObserversMaxDefault } = this.#options;
    let present = 0;
    for (const other of this.#learners.values()) if (isKnown(other) && !this.#isMember(other)) present++;
    if (present < unknownObserversMax) return true;
    const remedy = 'Add it to the server lines of every server, or raise tskeeper.maxUnknownObservers';
    this.#drop(
      learner,
      `the configuration does not have server ${learner.sid}, and ${present} such observers are connected already. ${remedy}`,
    );
    return false;
  }

  #isMember({ sid }: Learner): boolean {
    return this.#quorum.isVoter(sid) || this.#host.isMember(sid);
  }

  get #claimWaitMs(): Millis {
    return Math.min(this.#options.tickTimeMs / 2, claimWaitMsMax);
  }

  #admit(learner: Learner): void {
    if (!this.#hasRoomFor(learner)) return;
    learner.stage = 'known';
    if (this.#stage === 'discovery') {
      // Anybody may say to be an observer. One that has accepted a later epoch than is chosen follows all the same, or, if it is of ZooKeeper,
      // stays outside until a later one is.
      if (!this.#votes(learner)) return;
      this.#acceptedMax = Math.max(this.#acceptedMax, learner.acceptedEpoch);
      this.#agreeing.add(learner.sid);
      this.#maybeChooseEpoch();
    } else if (learner.acceptedEpoch > this.#epoch && this.#votes(learner)) {
      // It has promised not to follow this epoch, to a leader whose own has come to nothing. Nobody leads it before there is a later epoch than
      // both, and it might be needed; ZooKeeper leaves it out until the leader is lost for another reason.
      this.#giveUp(`server ${learner.sid} has accepted epoch ${learner.acceptedEpoch}, and can only follow in a later one`);
    } else if (this.#stage !== 'saving acceptedEpoch') {
      this.#tellEpoch(learner);
    }
  }

  /** An epoch that cannot be is that of a damaged file or of nobody's: its server stays outside, and the others go on. */
  #canHaveAccepted(learner: Learner): boolean {
    const { acceptedEpoch, currentEpoch, lastZxid } = this.#start;
    const known = Math.max(acceptedEpoch, currentEpoch, epochOf(lastZxid), this.#epoch);
    if (learner.acceptedEpoch <= Math.min(known + acceptedAheadMax, epochMax - 1)) return true;
    const remedy = 'If its file acceptedEpoch holds that, stop it, move its version-2 aside, keep its myid, and start it again';
    const claim = `server ${learner.sid} says that it has accepted epoch ${learner.acceptedEpoch}, which cannot be`;
    this.#drop(learner, `${claim}: this leader stands in epoch ${known}. ${remedy}`);
    return false;
  }

  #maybeChooseEpoch(): void {
    if (this.#stage !== 'discovery' || !this.#quorum.containsQuorum(this.#agreeing)) return;
    if (this.#acceptedMax >= epochMax) {
      this.#giveUp(`epoch ${this.#acceptedMax} is the last that there can be`);
      return;
    }
    this.#stage = 'saving acceptedEpoch';
    this.#epoch = this.#acceptedMax + 1;
    this.#storage.saveEpoch('acceptedEpoch', this.#epoch);
  }

  #tellEpoch({ channel }: Learner): void {
    const writer = this.#links.packets(channel);
    const at = beginQuorumPacket(writer, PacketType.LEADERINFO, makeZxid(this.#epoch, 0));
    writeLeaderInfo(writer);
    endQuorumPacket(writer, at);
  }

  #onAckEpoch(learner: Learner, packet: PacketView): void {
    if (learner.stage !== 'known' || this.#stage === 'discovery' || this.#stage === 'saving acceptedEpoch') {
      this.#drop(learner, 'it has accepted an epoch that it was not told');
      return;
    }
    const currentEpoch = readAckEpoch(packet.data);
    learner.lastZxid = packet.zxid;
    learner.stage = 'accepted';
    if (this.#stage !== 'acknowledgement') {
      // The epoch is a quorum's by now: whatever this learner has beyond that was never committed.
      if (this.#stage !== 'saving currentEpoch') this.#synchronise(learner);
      return;
    }
    const { currentEpoch: ownEpoch, lastZxid } = this.#start;
    if (currentEpoch > ownEpoch || (currentEpoch === ownEpoch && packet.zxid > lastZxid)) {
      // It may have txns that a quorum has, and this leader has not. They must not be cut off.
      this.#drop(learner, `it is ahead of this leader: epoch ${currentEpoch}, zxid ${formatZxid(packet.zxid)}`);
      return;
    }
    // -1: it had accepted this epoch before, of another leader it may be, and does not count again. And whoever has no data may have lost it.
    if (currentEpoch !== -1 && packet.zxid !== -1 && this.#votes(learner)) this.#agreeing.add(learner.sid);
    this.#maybeSetEpoch();
  }

  #maybeSetEpoch(): void {
    if (this.#stage !== 'acknowledgement' || !this.#quorum.containsQuorum(this.#agreeing)) return;
    this.#stage = 'saving currentEpoch';
    this.#storage.saveEpoch('currentEpoch', this.#epoch);
  }

  // ---- synchronisation

  #synchronise(learner: Learner): void {
    learner.stage = 'synchronising';
    const { channel, lastZxid } = learner;
    const begin = () => this.#beginBacklog(learner);
    const done = () => this.#historySent(learner);
    const isMember = this.#isMember(learner);
    this.#host.synchronise({ channel, isVoter: this.#votes(learner), isMember, lastZxid, begin, done }, this.#committed);
  }

  #beginBacklog(learner: Learner): Zxid {
    learner.historyEnd = this.#committed;
    // From here on it hears of everything, behind what it lacks of the past.
    learner.hears = true;
    const backlog = (learner.backlog = new Writer(256));
    if (!learner.isObserver) {
      for (const { zxid, packet } of this.#outstanding.values()) {
        backlog.raw(packet);
        learner.unacked.push({ zxid, sentMs: this.#nowMs });
      }
    }
    const at = beginQuorumPacket(backlog, PacketType.NEWLEADER, makeZxid(this.#epoch, 0));
    backlog.raw(Buffer.from(this.#host.newLeaderConfig(this.#epoch), 'utf8'));
    endQuorumPacket(backlog, at);
    return this.#committed;
  }

  #historySent(learner: Learner): void {
    const { backlog, channel } = learner;
    learner.backlog = undefined;
    if (backlog !== undefined) this.#links.packets(channel).raw(backlog.bytes, 0, backlog.offset);
  }

  #maybeServe(now: Now): void {
    if (this.#stage !== 'synchronisation' || !this.#quorum.containsQuorum(this.#agreeing)) return;
    this.#stage = 'broadcast';
    this.#servesSinceMs = now.elapsedMs;
    this.#server = this.#host.serve(this.#epoch, now);
    this.#proposed = this.#committed = this.#told = this.#ownAcked = makeZxid(this.#epoch, 0);
    for (const learner of this.#learners.values()) if (learner.stage === 'synchronised') this.#activate(learner);
  }

  #activate(learner: Learner): void {
    learner.stage = 'active';
    // It may have had to wait for the others, with nothing to say.
    learner.heardMs = learner.activeMs = learner.toldMs = this.#nowMs;
    writeEmptyPacket(this.#behind(learner), PacketType.UPTODATE, -1);
  }

  // ---- broadcast

  #onAck(learner: Learner, zxid: Zxid, now: Now): void {
    if (counterOf(zxid) === 0) {
      // Of NEWLEADER; or of UPTODATE, which says nothing new.
      if (learner.stage !== 'synchronising' || zxid !== makeZxid(this.#epoch, 0)) return;
      learner.stage = 'synchronised';
      learner.ackedZxid = Math.max(learner.ackedZxid, learner.historyEnd);
      this.#noteFollowers();
      if (this.#stage === 'broadcast') {
        this.#activate(learner);
      } else if (this.#votes(learner)) {
        this.#agreeing.add(learner.sid);
        this.#maybeServe(now);
      }
      return;
    }
    if (!this.#votes(learner)) return;
    if (!learner.hears) {
      this.#drop(learner, `it has acknowledged ${formatZxid(zxid)}, and has been sent nothing`);
      return;
    }
    learner.ackedZxid = Math.max(learner.ackedZxid, zxid);
    for (let next = learner.unacked.peek(); next !== undefined && next.zxid <= zxid; next = learner.unacked.peek()) learner.unacked.shift();
    this.#maybeCommit(now);
  }

  #ackedBy(sid: Sid): Zxid {
    if (sid === this.#options.sid) return this.#ownAcked;
    for (const learner of this.#learners.values())
      if (learner.sid === sid && learner.hears && !learner.isObserver) return learner.ackedZxid;
    return -1;
  }

  #maybeCommit(now: Now): void {
    if (this.#stage !== 'broadcast') return;
    const before = this.#committed;
    for (let next = this.#outstanding.peek(); next !== undefined; next = this.#outstanding.peek()) {
      this.#acked.zxid = next.zxid;
      if (!this.#quorum.containsQuorum(this.#acked)) break;
      // A session's sync stands in line with its writes, and what comes behind it must not be done before it is answered. That a quorum has
      // acknowledged a later proposal says as much as its answers to a PING: this is still the leader.
      if (this.#hasSyncBefore(next.zxid)) {
        this.#tellServer(now);
        while (this.#hasSyncBefore(next.zxid)) this.#answerSync(this.#syncs.shift()!, now);
      }
      this.#outstanding.shift();
      this.#commit(next);
    }
    if (this.#committed === before) return;
    this.#tellServer(now);
    this.#answerSyncs(now);
  }

  #tellServer(now: Now): void {
    if (this.#committed === this.#told) return;
    this.#told = this.#committed;
    this.#server!.appended(this.#told, now);
  }

  #hasSyncBefore(zxid: Zxid): boolean {
    const sync = this.#syncs.peek();
    return sync !== undefined && sync.zxid < zxid;
  }

  #commit({ zxid, packet }: Outstanding): void {
    this.#committed = zxid;
    this.#host.committed(zxid, entryOf(packet));
    for (const learner of this.#learners.values()) {
      if (!learner.hears) continue;
      const writer = this.#behind(learner);
      if (learner.isObserver) {
        writer.int32(PacketType.INFORM);
        this.#share(learner, packet, packetTypeBytes);
      } else {
        writeEmptyPacket(writer, PacketType.COMMIT, zxid);
      }
    }
  }

  /** Where something goes that comes behind everything that the learner is being sent. */
  #behind({ channel, backlog }: Learner): Writer {
    return backlog ?? this.#links.packets(channel);
  }

  #share({ channel, backlog }: Learner, packet: Buffer, start: number): void {
    if (backlog === undefined) this.#links.share(channel, packet, start);
    else backlog.raw(packet, start, packet.length);
  }

  // ---- learners' clients

  #onRequest(learner: Learner, packet: PacketView, now: Now): void {
    const { sessionHigh, sessionLow, cxid, type: opCode, payload } = readForwardedRequest(packet.data);
    if (this.#server === undefined || learner.stage !== 'active') {
      this.#drop(learner, 'it has passed on a request before it was told to serve');
      return;
    }
    if (opCode === OpCode.sync) {
      this.#confirm(learner, undefined, now);
      return;
    }
    const identities = this.#passedOn.of(packet);
    const owner = this.#ownerOf(learner);
    const record = Buffer.from(payload);
    this.#server.forwarded({ owner, sessionHigh, sessionLow, cxid, opCode, identities, record, arrivedMs: now.elapsedMs }, now);
  }

  #ownerOf(learner: Learner): SessionOwner {
    if (learner.owner === undefined) {
      learner.owner = ++this.#owners;
      this.#origins.set(learner.owner, originOf(learner.sid));
    }
    return learner.owner;
  }

  #onRevalidate(learner: Learner, packet: PacketView, now: Now): void {
    const { sessionHigh, sessionLow, timeOut } = readRevalidateRequest(packet.data);
    if (this.#server === undefined || learner.stage !== 'active') {
      this.#drop(learner, 'it has asked about a session before it was told to serve');
      return;
    }
    const valid = this.#server.validate(sessionHigh, sessionLow, timeOut, this.#ownerOf(learner), now);
    const writer = this.#behind(learner);
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, packet.zxid);
    writeRevalidateAnswer(writer, { sessionHigh, sessionLow, valid });
    endQuorumPacket(writer, at);
  }

  // ---- still leading?

  #confirm(learner: Learner | undefined, local: WaitingSync | undefined, now: Now): void {
    this.#syncs.push({ learner, local, zxid: this.#proposed, ping: this.#sendPing(now) });
    this.#answerSyncs(now);
  }

  /** Returns the PING's number. */
  #sendPing(now: Now): number {
    const number = ++this.#ping;
    this.#askedMs = now.elapsedMs;
    this.#ownPing = number;
    for (const learner of this.#learners.values()) {
      if (!learner.hears) continue;
      // Not behind what it is being sent: that may take long, and it is to hear that its leader lives.
      if (learner.backlog !== undefined) continue;
      writeEmptyPacket(this.#links.packets(learner.channel), PacketType.PING, this.#proposed);
      // Learners answer from UPTODATE on. What comes before tells them that we live; to wait for an answer would put the numbers out of step.
      if (learner.stage !== 'active') continue;
      learner.pings.push(number);
      learner.pingTimes.push(now.elapsedMs);
    }
    return number;
  }

  #onPing(learner: Learner, packet: PacketView, now: Now): void {
    // Learners answer from UPTODATE on. What says so before tells that it lives, and nothing of sessions.
    if (learner.stage !== 'active') return;
    readTouchedSessions(packet.data, (high, low, timeOut) => this.#server?.touched(high, low, timeOut, now));
    learner.answeredPing = learner.pings.shift() ?? learner.answeredPing;
    if (learner.claim?.ping !== undefined && learner.answeredPing >= learner.claim.ping) this.#refuseClaim(learner);
    learner.toldMs = learner.pingTimes.shift() ?? learner.toldMs;
    this.#answerSyncs(now);
  }

  #answerSyncs(now: Now): void {
    for (let next = this.#syncs.peek(); next !== undefined; next = this.#syncs.peek()) {
      this.#pinged.ping = next.ping;
      if (next.zxid > this.#committed || !this.#quorum.containsQuorum(this.#pinged)) return;
      this.#syncs.shift();
      this.#answerSync(next, now);
    }
  }

  #answerSync({ learner, local }: PendingSync, now: Now): void {
    // Its channel may be another's by now.
    const isHere = learner !== undefined && this.#learners.get(learner.channel) === learner;
    if (isHere) writeEmptyPacket(this.#behind(learner), PacketType.SYNC, 0);
    if (local !== undefined) this.#server!.synced(local, now);
  }

  #pingAnsweredBy(sid: Sid): number {
    if (sid === this.#options.sid) return this.#ownPing;
    for (const learner of this.#learners.values())
      if (learner.sid === sid && learner.hears && !learner.isObserver) return learner.answeredPing;
    return -1;
  }

  #dropSilent(heardMs: Millis): void {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    for (const learner of this.#learners.values()) {
      const isIn = learner.stage === 'active';
      const silentMaxMs = (isIn ? syncLimitTicks : initLimitTicks) * tickTimeMs;
      const silentMs = heardMs - learner.heardMs;
      const oldest = learner.unacked.peek();
      const unackedMs = isIn && oldest !== undefined ? heardMs - Math.max(oldest.sentMs, learner.activeMs) : 0;
      // No session ends before it has answered, so it must not be waited for longer than a silent one.
      const unansweredMs = heardMs - (learner.pingTimes.peek() ?? heardMs);
      if (silentMs > silentMaxMs) this.#drop(learner, `nothing came from it for ${silentMs} ms`);
      else if (unackedMs > silentMaxMs) this.#drop(learner, `it has not acknowledged ${formatZxid(oldest!.zxid)} for ${unackedMs} ms`);
      else if (unansweredMs > silentMaxMs) this.#drop(learner, `it has not answered a PING for ${unansweredMs} ms`);
    }
  }

  #checkQuorum(now: Now): void {
    const { tickTimeMs, initLimitTicks } = this.#options;
    if (this.#stage !== 'broadcast') {
      if (now.elapsedMs - this.#stageMs > initLimitTicks * tickTimeMs) this.#giveUp(`no quorum has come as far as ${this.#stage} in time`);
      return;
    }
    const present = new Set<Sid>(this.#isVoter ? [this.#options.sid] : []);
    for (const learner of this.#learners.values()) {
      if (this.#votes(learner) && isInStep(learner)) present.add(learner.sid);
    }
    if (!this.#quorum.containsQuorum(present)) this.#giveUp('it has lost its quorum');
  }

  #votes({ isObserver, sid }: Learner): boolean {
    return !isObserver && this.#quorum.isVoter(sid);
  }

  #drop(learner: Learner, reason: string): void {
    this.#links.closeChannel(learner.channel, reason);
    this.#forget(learner);
  }

  #forget(learner: Learner): void {
    this.#learners.delete(learner.channel);
    if (learner.owner !== undefined) this.#origins.delete(learner.owner);
    this.#host.forget(learner.channel);
    this.#noteFollowers();
    if (learner.stage === 'claiming') {
      for (const holder of this.#learners.values()) if (holder.claim?.claimant === learner) holder.claim = undefined;
      return;
    }
    // Who has not said who it is has no sid, and an observer is not the voter whose sid it may give.
    const hadSay = learner.stage !== 'silent' && this.#votes(learner);
    if (hadSay && this.#stage !== 'broadcast' && this.#stage !== 'over') this.#agreeing.delete(learner.sid);
    // It was a leftover, or its server has gone meanwhile.
    if (learner.claim !== undefined && this.#stage !== 'over') this.#admit(learner.claim.claimant);
  }

  /** One that is still brought up to date cannot stand for this leader's quorum, so the oracle has its say until it is in step. */
  #noteFollowers(): void {
    let isFollowed = false;
    for (const learner of this.#learners.values()) isFollowed ||= isInStep(learner) && this.#votes(learner);
    if (isFollowed === this.#isFollowed) return;
    this.#isFollowed = isFollowed;
    this.#host.followed?.(isFollowed);
  }

  /** What is a quorum has changed without anybody's word: an oracle has spoken. */
  quorumChanged(now: Now): void {
    this.#nowMs = now.elapsedMs;
    this.#maybeChooseEpoch();
    this.#maybeSetEpoch();
    this.#maybeServe(now);
    this.#maybeCommit(now);
  }

  #giveUp(reason: string): void {
    this.#stage = 'over';
    this.#overReason = reason;
  }
}
