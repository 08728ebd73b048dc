/**
 * The learners of a leader, or the observers of a follower: how they are admitted, and how they are
 * lost.
 *
 * One stream per learner: another one would carry outdated packets. Any process that reaches the
 * port may claim any id, so a second stream with the id of a learner waits in `claiming` until the
 * first has answered a PING, or has failed to. Whatever removes a learner goes through `#remove`,
 * which admits the stream that waits for its id.
 */
import {
  beginQuorumPacket,
  endQuorumPacket,
  epochOf,
  formatZxid,
  type Id,
  LeaderFeature,
  makeZxid,
  type Millis,
  PacketType,
  type PacketView,
  readLearnerInfo,
  type Sid,
  writeEmptyPacket,
  writeLeaderInfo,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { SessionOwner } from '../client-output.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import { localOwner } from '../session/session-tracker.ts';
import type { ObserverStatus } from '../inspector.ts';
import type { LearnerMaster, MasterStages } from './learner-master.ts';
import type { LearnerPings } from './learner-pings.ts';
import { LearnerProgress } from './learner-progress.ts';
import { type ChannelCloseReason, type ChannelId, ChannelRank, type QuorumLinks } from './quorum-links.ts';
import { originOf, unknownOrigin } from './txn-origin.ts';
import type { ZabOptions } from './zab-options.ts';

/**
 * How long a learner has to answer when another stream claims its id: a restarted server must not
 * wait longer because of its old stream.
 */
const sidConflictWaitMsMax: Millis = 1000;

/**
 * Enough for observers that only their own configuration contains, as in containers, and few enough
 * to send all of them everything.
 */
const unknownObserversMaxDefault = 16;

/** How many observers of one learner are distinguished as origins of requests. */
const observerOwnersMax = 1024;

/**
 * One part of a tick: a session that is due waits this long for learners outside the configuration.
 */
const unknownObserverWaitDivisor = 4;

export class LearnerTable {
  readonly #options: ZabOptions;
  readonly #quorum: QuorumVerifier;
  readonly #links: QuorumLinks;
  readonly #host: LearnerMaster;
  readonly #stages: MasterStages;
  readonly #pings: LearnerPings;
  readonly #learners = new Map<ChannelId, LearnerProgress>();
  /** The origin that is sent with txns of clients of this server and of each learner. */
  readonly #origins = new Map<SessionOwner, readonly Id[]>();
  /** The voters that follow and are in step. */
  #followers: ReadonlySet<Sid> = new Set();
  #lastAnonymousSid = 0;
  #lastOwner: SessionOwner = localOwner;

  constructor(
    options: ZabOptions,
    quorum: QuorumVerifier,
    links: QuorumLinks,
    host: LearnerMaster,
    stages: MasterStages,
    pings: LearnerPings,
  ) {
    this.#options = options;
    this.#quorum = quorum;
    this.#links = links;
    this.#host = host;
    this.#stages = stages;
    this.#pings = pings;
    this.#origins.set(localOwner, originOf(options.sid));
  }

  get(channel: ChannelId): LearnerProgress | undefined {
    return this.#learners.get(channel);
  }

  values(): IterableIterator<LearnerProgress> {
    return this.#learners.values();
  }

  isVoting({ isObserver, sid }: LearnerProgress): boolean {
    return !isObserver && this.#quorum.isVoter(sid);
  }

  /** Whether the active configuration contains it. */
  isMember({ sid }: LearnerProgress): boolean {
    return this.#quorum.isVoter(sid) || this.#host.config.isMember(sid);
  }

  rankOf(channel: ChannelId): ChannelRank {
    const learner = this.#learners.get(channel);
    if (learner === undefined || !learner.isIdentified) return ChannelRank.stranger;
    if (this.isVoting(learner)) return ChannelRank.voter;
    return this.isMember(learner) ? ChannelRank.observer : ChannelRank.stranger;
  }

  /** The follower whose ACKs and answers count for this server. */
  replicatingFollower(sid: Sid): LearnerProgress | undefined {
    for (const learner of this.#learners.values()) if (learner.sid === sid && learner.isReplicating && !learner.isObserver) return learner;
    return undefined;
  }

  // ---- output

  /** The output for packets that follow everything already sent to the learner. */
  outputAfterBacklog({ channel, backlog }: LearnerProgress): Writer {
    return backlog ?? this.#links.packets(channel);
  }

  writeShared({ channel, backlog }: LearnerProgress, packet: Buffer, start: number): void {
    if (backlog === undefined) this.#links.writeShared(channel, packet, start);
    else backlog.raw(packet, start, packet.length);
  }

  sendLeaderInfo(learner: LearnerProgress): void {
    const { channel, incarnation, leaderPriority } = learner;
    const writer = this.#links.packets(channel);
    const at = beginQuorumPacket(writer, PacketType.LEADERINFO, makeZxid(this.#stages.epoch, 0));
    // A learner of ZooKeeper sends no incarnation, and gets what its own leader would send.
    const transfer = leaderPriority === undefined || this.#host.acceptsTransfers === false ? 0 : LeaderFeature.transfer;
    const keeperWrites = this.#host.acceptsKeeperWrites ? LeaderFeature.keeperWrites : 0;
    const noVote = this.isVoting(learner) ? 0 : LeaderFeature.noVote;
    writeLeaderInfo(writer, incarnation === 0 ? undefined : LeaderFeature.origins | transfer | keeperWrites | noVote);
    endQuorumPacket(writer, at);
  }

  /**
   * From here on the learner receives everything after `historyEnd`: it is written to the returned
   * backlog, until the history has been sent.
   */
  beginHistory(learner: LearnerProgress, historyEnd: Zxid): Writer {
    learner.historyEndZxid = historyEnd;
    learner.isReplicating = true;
    return (learner.backlog = new Writer(256));
  }

  /** The learner has been sent the history: what has waited for that follows. */
  endHistory(learner: LearnerProgress): void {
    const { backlog } = learner;
    learner.backlog = undefined;
    if (backlog !== undefined) this.outputAfterBacklog(learner).raw(backlog.bytes, 0, backlog.offset);
  }

  /** The learner has the history, and serves clients from here on. */
  activate(learner: LearnerProgress, nowMs: Millis): void {
    learner.stage = 'active';
    // It may have had to wait for other learners, with nothing to send.
    learner.lastReceivedMs = learner.activeSinceMs = learner.touchesWatermarkMs = nowMs;
    writeEmptyPacket(this.outputAfterBacklog(learner), PacketType.UPTODATE, -1);
  }

  // ---- signs of life of learners

  /** A packet has arrived. Returns its learner; undefined if that is gone. */
  received(channel: ChannelId, now: Now): LearnerProgress | undefined {
    const learner = this.#learners.get(channel);
    if (learner === undefined) return undefined;
    learner.packetsReceived++;
    learner.lastReceivedMs = learner.lastProgressMs = now.elapsedMs;
    return learner;
  }

  /**
   * A learner has read some of its output, or a part of a packet has arrived. During a snapshot
   * these are the only signs of life; a synchronised learner must send packets. Returns the learner
   * if it is being synchronised.
   */
  progressed(channel: ChannelId, now: Now): LearnerProgress | undefined {
    const learner = this.#learners.get(channel);
    if (learner === undefined) return undefined;
    learner.lastProgressMs = now.elapsedMs;
    if (learner.stage !== 'synchronising') return undefined;
    learner.lastReceivedMs = now.elapsedMs;
    return learner;
  }

  /** The learner has answered the oldest of its PINGs. */
  pingAnswered(learner: LearnerProgress): void {
    learner.answeredPing = learner.pings.shift() ?? learner.answeredPing;
    if (learner.sidConflict?.ping !== undefined && learner.answeredPing >= learner.sidConflict.ping) this.#rejectClaimant(learner);
  }

  // ---- owners of sessions

  /** `observer`: the learner has passed the request on for this observer. */
  ownerOf(learner: LearnerProgress, observer?: Sid): SessionOwner {
    if (observer !== undefined) {
      const known = (learner.observerOwners ??= new Map<Sid, SessionOwner>()).get(observer);
      if (known !== undefined) return known;
      if (learner.observerOwners.size < observerOwnersMax) {
        const owner = this.#newOwner(observer);
        learner.observerOwners.set(observer, owner);
        return owner;
      }
    }
    return (learner.owner ??= this.#newOwner(learner.sid));
  }

  #newOwner(sid: Sid): SessionOwner {
    const owner = ++this.#lastOwner;
    this.#origins.set(owner, originOf(sid));
    return owner;
  }

  originOf(owner: SessionOwner): readonly Id[] {
    return this.#origins.get(owner) ?? unknownOrigin;
  }

  // ---- introduction

  connected(channel: ChannelId, now: Now): void {
    this.#learners.set(channel, new LearnerProgress(channel, now));
  }

  /** FOLLOWERINFO or OBSERVERINFO: the learner introduces itself. */
  onInfo(learner: LearnerProgress, packet: PacketView, now: Now): void {
    if (learner.stage !== 'silent') {
      this.disconnect(learner, 'protocol error', 'the learner introduced itself twice');
      return;
    }
    const { serverId, configVersion, incarnation, leaderPriority } = readLearnerInfo(packet.data, packet.hasData);
    if (configVersion !== undefined && configVersion > this.#host.config.version) {
      this.disconnect(
        learner,
        'learner has a later configuration',
        `the learner has configuration ${configVersion.toString(16)}, which is later than this leader's`,
      );
      return;
    }
    if (serverId === this.#options.sid) {
      this.disconnect(
        learner,
        'learner is this server',
        `the learner claims to be server ${serverId}, which is this server: correct the myid of one of the two`,
      );
      return;
    }
    // Any number of observers without an id send -1.
    learner.sid = serverId === undefined || serverId < 0 ? --this.#lastAnonymousSid : serverId;
    learner.incarnation = incarnation;
    learner.leaderPriority = leaderPriority;
    learner.introducedMs = now.elapsedMs;
    learner.isObserver = packet.type === PacketType.OBSERVERINFO;
    learner.acceptedEpoch = epochOf(packet.zxid);
    if (this.isVoting(learner) && !this.#isPlausibleEpoch(learner)) return;
    const holder = this.#holderOf(learner.sid);
    if (holder === undefined) this.#accept(learner);
    else this.#challengeHolder(learner, holder, now);
  }

  /** The server of an impossible epoch stays outside, and the others continue. */
  #isPlausibleEpoch(learner: LearnerProgress): boolean {
    if (this.#stages.isPlausibleEpoch(learner.acceptedEpoch)) return true;
    const remedy = 'If its file acceptedEpoch contains this number, stop it, move its version-2 aside, keep its myid, and restart it';
    const claim = `server ${learner.sid} claims to have accepted epoch ${learner.acceptedEpoch}, which is impossible`;
    this.disconnect(learner, 'learner of an impossible epoch', `${claim}: this leader is in epoch ${this.#stages.knownEpoch}. ${remedy}`);
    return false;
  }

  #accept(learner: LearnerProgress): void {
    if (!this.#hasRoomFor(learner)) return;
    learner.stage = 'known';
    const { stage, epoch } = this.#stages;
    if (stage === 'discovery') {
      // Any process may claim to be an observer. One that has accepted a later epoch than the
      // chosen one follows nevertheless, or, if it runs ZooKeeper, stays outside until a later one
      // is chosen.
      if (this.isVoting(learner)) this.#stages.voterDiscovered(learner.sid, learner.acceptedEpoch);
    } else if (learner.acceptedEpoch > epoch && this.isVoting(learner)) {
      // It has promised a failed leader not to follow this epoch. It can follow no leader before
      // there is an epoch later than both, and it might be needed; ZooKeeper leaves it outside
      // until the leader is lost for another reason.
      this.#stages.end(
        'later epoch accepted',
        `server ${learner.sid} has accepted epoch ${learner.acceptedEpoch} and can only follow a leader of a later epoch`,
      );
    } else if (stage !== 'saving acceptedEpoch') {
      this.sendLeaderInfo(learner);
    }
  }

  /**
   * Any process that reaches the port may claim to be an observer, and each costs memory and
   * output. Observers of the configuration are always admitted.
   */
  #hasRoomFor(learner: LearnerProgress): boolean {
    if (this.isMember(learner)) return true;
    const { unknownObserversMax = unknownObserversMaxDefault } = this.#options;
    let present = 0;
    for (const other of this.#learners.values()) if (other.isIdentified && !this.isMember(other)) present++;
    if (present < unknownObserversMax) return true;
    const remedy = 'Add it to the server lines of every server, or raise tskeeper.maxUnknownObservers';
    this.disconnect(
      learner,
      'too many unknown observers',
      `server ${learner.sid} is not in the configuration, and ${present} such observers are connected already. ${remedy}`,
    );
    return false;
  }

  // ---- two streams with one sid

  #holderOf(sid: Sid): LearnerProgress | undefined {
    for (const learner of this.#learners.values()) if (learner.sid === sid && learner.isIdentified) return learner;
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
      this.disconnect(older, 'sid already connected', `another connection also claims to be server ${claimant.sid}`);
    } else {
      holder.sidConflict = { claimant, ping: undefined, challengedMs: 0 };
      this.#pings.challenge(holder, holder.sidConflict, now.elapsedMs);
    }
    // A process has one stream and knows which; but others can copy the incarnation it sends.
    const isSameProcess = claimant.incarnation !== 0 && claimant.incarnation === holder.incarnation;
    if (isSameProcess && now.elapsedMs - holder.introducedMs >= this.#sidConflictWaitMs)
      this.disconnect(holder, 'replaced by a later connection', 'the learner has reconnected');
  }

  resolveSidConflicts(elapsedMs: Millis): void {
    const waitMs = this.#sidConflictWaitMs;
    for (const holder of this.#learners.values()) {
      const { sidConflict } = holder;
      if (sidConflict === undefined || elapsedMs - sidConflict.challengedMs < waitMs) continue;
      // Bytes that were in flight at the claim prove nothing; later bytes do, even part of a
      // packet.
      if (holder.lastProgressMs > sidConflict.challengedMs + waitMs / 2) this.#rejectClaimant(holder);
      // This server itself was late, and may have an answer to read.
      else if (elapsedMs - sidConflict.challengedMs > waitMs * 1.5) this.#pings.challenge(holder, sidConflict, elapsedMs);
      else this.disconnect(holder, 'replaced by a later connection', 'the learner has reconnected, and this connection does not answer');
    }
  }

  /** The learner whose id another stream claims is alive. */
  #rejectClaimant(holder: LearnerProgress): void {
    const { claimant } = holder.sidConflict!;
    holder.sidConflict = undefined;
    const remedy = 'If this is another server, correct the myid of one of the two';
    this.disconnect(claimant, 'sid already connected', `server ${holder.sid} is already connected and answers. ${remedy}`);
  }

  /** When the next conflict must be resolved; Infinity without one. */
  get sidConflictsDueMs(): Millis {
    let dueMs = Infinity;
    for (const { sidConflict } of this.#learners.values())
      if (sidConflict !== undefined) dueMs = Math.min(dueMs, sidConflict.challengedMs + this.#sidConflictWaitMs);
    return dueMs;
  }

  get #sidConflictWaitMs(): Millis {
    return Math.min(this.#options.tickTimeMs / 2, sidConflictWaitMsMax);
  }

  // ---- signs of life of sessions

  /** As `SequencerLeader.learnersWatermarkMs`. */
  watermarkMs(nowMs: Millis): Millis {
    const unknownObserversMs = nowMs - this.#unknownObserversWaitMs;
    let watermarkMs = Infinity;
    for (const learner of this.#learners.values()) {
      if (learner.stage !== 'active') continue;
      const { touchesWatermarkMs } = learner;
      watermarkMs = Math.min(
        watermarkMs,
        touchesWatermarkMs >= unknownObserversMs || this.isMember(learner) ? touchesWatermarkMs : unknownObserversMs,
      );
    }
    return watermarkMs;
  }

  /** As `SequencerLeader.unknownObserversAwaitedUntilMs`. */
  unknownObserversAwaitedUntilMs(dueMs: Millis, nowMs: Millis): Millis | undefined {
    const untilMs = dueMs + this.#unknownObserversWaitMs;
    if (nowMs >= untilMs) return undefined;
    for (const learner of this.#learners.values()) {
      if (learner.stage === 'active' && learner.touchesWatermarkMs < dueMs && !this.isMember(learner)) return untilMs;
    }
    return undefined;
  }

  get #unknownObserversWaitMs(): Millis {
    return this.#options.tickTimeMs / unknownObserverWaitDivisor;
  }

  // ---- loss

  dropSilent(inputWatermarkMs: Millis): void {
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
      if (silentMs > silentMaxMs) this.disconnect(learner, 'learner silent', `nothing was received from the learner for ${silentMs} ms`);
      else if (unackedMs > silentMaxMs)
        this.disconnect(
          learner,
          'proposal not acknowledged',
          `the learner has not acknowledged ${formatZxid(oldest!.zxid)} for ${unackedMs} ms`,
        );
      else if (unansweredMs > silentMaxMs)
        this.disconnect(learner, 'PING not answered', `the learner has not answered a PING for ${unansweredMs} ms`);
    }
  }

  disconnect(learner: LearnerProgress, reason: ChannelCloseReason, text: string): void {
    this.#links.closeChannel(learner.channel, reason, text);
    this.#remove(learner);
  }

  channelGone(channel: ChannelId): void {
    const learner = this.#learners.get(channel);
    if (learner !== undefined) this.#remove(learner);
  }

  /** This role is over: no stream that waits for an id takes the place of another. */
  closeAll(reason: 'not leading' | 'not following' = 'not leading'): void {
    const text = reason === 'not leading' ? 'this server no longer leads' : 'this server no longer follows a leader';
    for (const { channel } of this.#learners.values()) this.#links.closeChannel(channel, reason, text);
    this.#learners.clear();
    this.updateFollowers();
  }

  #remove(learner: LearnerProgress): void {
    this.#learners.delete(learner.channel);
    if (learner.owner !== undefined) this.#origins.delete(learner.owner);
    for (const owner of learner.observerOwners?.values() ?? []) this.#origins.delete(owner);
    this.#host.learnerGone(learner.channel);
    this.updateFollowers();
    if (learner.stage === 'claiming') {
      for (const holder of this.#learners.values()) if (holder.sidConflict?.claimant === learner) holder.sidConflict = undefined;
      return;
    }
    // A silent learner has no sid yet, and an observer is not the voter whose sid it may give.
    if (learner.stage !== 'silent' && this.isVoting(learner)) this.#stages.voterLeft(learner.sid);
    // The old stream was left over, or its server has disconnected meanwhile.
    if (learner.sidConflict !== undefined && this.#stages.stage !== 'over') this.#accept(learner.sidConflict.claimant);
  }

  /**
   * A voter that is being synchronised cannot complete this leader's quorum, so the oracle decides
   * until it is synchronised.
   */
  updateFollowers(): void {
    const followers = new Set<Sid>();
    for (const learner of this.#learners.values()) if (learner.isSynced && this.isVoting(learner)) followers.add(learner.sid);
    if (followers.size === this.#followers.size && [...followers].every((sid) => this.#followers.has(sid))) return;
    this.#followers = followers;
    this.#host.followersChanged?.(followers);
  }

  // ---- for operators

  /** The observers that receive each commit, the last of which is `committed`. */
  *observers(committed: Zxid): Generator<ObserverStatus, void, undefined> {
    for (const learner of this.#learners.values()) {
      if (!learner.isObserver || !learner.isReplicating) continue;
      const { channel, sid, connectedMs, packetsReceived, requestsReceived } = learner;
      yield { channel, sid, connectedMs, packetsReceived, requestsReceived, lastZxid: committed };
    }
  }

  /** Resets the counters of `observers` (orst). */
  resetObserverCounts(): void {
    for (const learner of this.#learners.values()) if (learner.isObserver) learner.packetsReceived = learner.requestsReceived = 0;
  }

  fingerprint(to: Fingerprint, nowMs: Millis, limitMs: Millis): void {
    to.number(this.#lastAnonymousSid);
    to.number(this.#lastOwner);
    to.number(this.#learners.size);
    const channels = [...this.#learners.keys()].sort((a, b) => a - b);
    for (const channel of channels) this.#learners.get(channel)!.fingerprint(to, nowMs, limitMs, this.#pings.last);
  }
}
