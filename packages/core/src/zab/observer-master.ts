/**
 * A follower as the master of observers (observerMasterPort): it speaks the leader's side of the
 * protocol to them, so that a large number of observers costs the leader nothing.
 *
 *     epoch        the current one: this follower is part of it, so nothing is left to agree on
 *     history      DIFF, TRUNC or SNAP, from its own committed txns, log and tree
 *     INFORM       each txn, once the leader has reported it as committed
 *     REQUEST      passed on to the leader, with the number of the observer (zab/txn-origin.ts)
 *     REVALIDATE   passed on; the leader's answers come in order, and are routed back
 *     SYNC         passed on among the requests: its answer follows everything committed before
 *     PING         the touches are reported in this follower's own answers to the leader
 *
 * It lives as long as the follower serves. When the leader is lost its observers are disconnected,
 * and look for another master.
 */
import {
  beginQuorumPacket,
  counterOf,
  endQuorumPacket,
  epochOf,
  formatZxid,
  makeZxid,
  type Millis,
  packetHeadBytes,
  PacketType,
  type PacketView,
  packetTypeName,
  readAckEpoch,
  readLearnerRequest,
  readRevalidateRequest,
  readTouchedSessions,
  type Sid,
  type RevalidateReply,
  writeDesignatedLeader,
  writeEmptyPacket,
  writeRevalidateReply,
  type Zxid,
} from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { ObserverStatus } from '../inspector.ts';
import type { Now } from '../now.ts';
import type { QuorumVerifier } from '../quorum/quorum-verifier.ts';
import type { SessionTable } from '../session/session-table.ts';
import { TouchedSessions } from '../session/touched-sessions.ts';
import type { LearnerMaster, MasterStages } from './learner-master.ts';
import { LearnerPings } from './learner-pings.ts';
import type { LearnerProgress } from './learner-progress.ts';
import { LearnerTable } from './learner-table.ts';
import type { ChannelId, ChannelRank, QuorumLinks } from './quorum-links.ts';
import type { ObserverRequests } from './request-queue.ts';
import type { SyncTarget } from './sync-target.ts';
import type { ZabOptions } from './zab-options.ts';

/** What an observer master needs from its peer. */
export interface ObserverMasterHost extends Omit<LearnerMaster, 'acceptsKeeperWrites'> {
  /** As `LeaderHost.syncLearner`. */
  syncLearner(learner: SyncTarget, committed: Zxid): void;
}

export interface ObserverMasterParts {
  readonly options: ZabOptions;
  readonly quorum: QuorumVerifier;
  readonly links: QuorumLinks;
  readonly host: ObserverMasterHost;
  /** Takes requests to the leader. */
  readonly requests: ObserverRequests;
  /** All sessions of the ensemble, as far as applied here. */
  readonly sessions: Pick<SessionTable, 'find'>;
  /** This follower has acknowledged it. */
  readonly epoch: number;
  /** The last txn that the leader has reported as committed, or the beginning of the epoch. */
  readonly committed: Zxid;
}

/**
 * Limit of what waits for room in the stream to the leader. An observer bounds what its clients may
 * have in flight to less.
 */
const queuedRequestBytesMax = 64 * 1024 * 1024;
/** One part of a tick: PINGs of the leader are passed on to observers at most so often. */
const relayedPingsPerTick = 8;
const packetTypeBytes = 4;

/** A follower that serves is in broadcast, and counts no voters. */
class FollowerStages implements MasterStages {
  stage: 'broadcast' | 'over' = 'broadcast';
  readonly epoch: number;

  constructor(epoch: number) {
    this.epoch = epoch;
  }

  get knownEpoch(): number {
    return this.epoch;
  }

  /** No voter is admitted here, so no claim of one can matter. */
  isPlausibleEpoch(): boolean {
    return true;
  }

  voterDiscovered(): void {}

  voterLeft(): void {}

  end(): void {
    this.stage = 'over';
  }
}

export class ObserverMaster {
  readonly #options: ZabOptions;
  readonly #host: ObserverMasterHost;
  readonly #requests: ObserverRequests;
  /** Signs of life of the observers' clients that the leader does not know of. */
  readonly #touched: TouchedSessions;
  readonly #stages: FollowerStages;
  readonly #pings: LearnerPings;
  readonly #learners: LearnerTable;
  /** Of the last txn reported as committed; see `LearnerPings`. */
  readonly #last: { proposed: Zxid };
  /** Observers that know a later commit than this follower, and wait until it knows it too. */
  readonly #ahead = new Set<LearnerProgress>();
  #nextPingMs: Millis;
  #nowMs: Millis;

  constructor({ options, quorum, links, host, requests, sessions, epoch, committed }: ObserverMasterParts, now: Now) {
    this.#options = options;
    this.#host = host;
    this.#requests = requests;
    this.#touched = new TouchedSessions(sessions);
    this.#stages = new FollowerStages(epoch);
    this.#last = { proposed: committed };
    this.#pings = new LearnerPings(links, this.#last);
    const master = {
      config: host.config,
      acceptsTransfers: false,
      acceptsKeeperWrites: requests.leaderAcceptsKeeperWrites,
      learnerGone: (channel: ChannelId) => host.learnerGone(channel),
    };
    this.#learners = new LearnerTable(options, quorum, links, master, this.#stages, this.#pings);
    this.#nowMs = now.elapsedMs;
    this.#nextPingMs = now.elapsedMs + options.tickTimeMs / 2;
  }

  // ---- questions

  /** The last txn that observers are informed of. */
  get committed(): Zxid {
    return this.#last.proposed;
  }

  rankOf(channel: ChannelId): ChannelRank {
    return this.#learners.rankOf(channel);
  }

  /** The number of observers that receive each commit. */
  get observerCount(): number {
    let count = 0;
    for (const { isReplicating } of this.#learners.values()) if (isReplicating) count++;
    return count;
  }

  observers(): Iterable<ObserverStatus> {
    return this.#learners.observers(this.committed);
  }

  resetObserverCounts(): void {
    this.#learners.resetObserverCounts();
  }

  /**
   * By how much the reported signs of life of the observers' clients lag at most; undefined without
   * observers.
   */
  lagMs(now: Now): Millis | undefined {
    const watermarkMs = this.#learners.watermarkMs(now.elapsedMs);
    return watermarkMs === Infinity ? undefined : Math.max(0, now.elapsedMs - watermarkMs);
  }

  /** Visits the sessions of observers' clients with signs of life since the last call. */
  takeTouched(visit: (high: number, low: number, timeoutMs: Millis) => void): void {
    this.#touched.take(visit);
  }

  // ---- observers

  connected(channel: ChannelId, now: Now): void {
    this.#learners.connected(channel, now);
  }

  channelGone(channel: ChannelId): void {
    const learner = this.#learners.get(channel);
    if (learner !== undefined) this.#ahead.delete(learner);
    this.#learners.channelGone(channel);
  }

  /** See `LearnerTable.progressed`. */
  onProgress(channel: ChannelId, now: Now): void {
    this.#learners.progressed(channel, now);
  }

  /**
   * A packet of an observer. Throws a `ProtocolError` if it is malformed; the caller then closes
   * the stream.
   */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#nowMs = now.elapsedMs;
    const learner = this.#learners.received(channel, now);
    if (learner === undefined) return;
    switch (packet.type) {
      case PacketType.OBSERVERINFO:
        this.#learners.onInfo(learner, packet, now);
        return;
      case PacketType.FOLLOWERINFO:
        this.#learners.disconnect(
          learner,
          'learner is not an observer',
          'a follower has connected to the port for observers: its leader accepts it at the quorum port',
        );
        return;
      case PacketType.ACKEPOCH:
        this.#onAckEpoch(learner, packet);
        return;
      case PacketType.ACK:
        this.#onAck(learner, packet.zxid);
        return;
      case PacketType.PING:
        this.#onPing(learner, packet);
        return;
      case PacketType.REQUEST:
        this.#onRequest(learner, packet);
        return;
      case PacketType.REVALIDATE:
        this.#onRevalidate(learner, packet);
        return;
      default:
        this.#learners.disconnect(
          learner,
          'protocol error',
          `the observer sent ${packetTypeName(packet.type)}, which a server that accepts observers does not accept`,
        );
    }
  }

  #onAckEpoch(learner: LearnerProgress, packet: PacketView): void {
    if (learner.stage !== 'known') {
      this.#learners.disconnect(learner, 'protocol error', 'the observer accepted an epoch before this server proposed one');
      return;
    }
    readAckEpoch(packet.data);
    learner.lastZxid = packet.zxid;
    learner.stage = 'accepted';
    // It has learned from a server that knew more of this epoch. Its txns are committed, and
    // ZooKeeper's followers would take them from it (TRUNC). In a moment they are known here.
    if (packet.zxid > this.committed && epochOf(packet.zxid) === this.#stages.epoch) this.#ahead.add(learner);
    else this.#syncLearner(learner);
  }

  #syncLearner(learner: LearnerProgress): void {
    learner.stage = 'synchronising';
    const { channel, lastZxid } = learner;
    const startReplicating = (): Zxid => this.#startReplicating(learner);
    const historySent = (): void => this.#learners.endHistory(learner);
    const isMember = this.#learners.isMember(learner);
    this.#host.syncLearner({ channel, isVoter: false, isMember, lastZxid, startReplicating, historySent }, this.committed);
  }

  #startReplicating(learner: LearnerProgress): Zxid {
    const { epoch } = this.#stages;
    const backlog = this.#learners.beginHistory(learner, this.committed);
    const at = beginQuorumPacket(backlog, PacketType.NEWLEADER, makeZxid(epoch, 0));
    // Not one that is proposed here: an observer receives no proposals, and would activate it before
    // it is committed.
    backlog.raw(Buffer.from(this.#host.config.text, 'utf8'));
    endQuorumPacket(backlog, at);
    return this.committed;
  }

  /** The ACK of NEWLEADER. Those of UPTODATE, and of txns, need no action: an observer never counts. */
  #onAck(learner: LearnerProgress, zxid: Zxid): void {
    if (learner.stage !== 'synchronising' || counterOf(zxid) !== 0 || epochOf(zxid) !== this.#stages.epoch) return;
    this.#learners.activate(learner, this.#nowMs);
  }

  #onPing(learner: LearnerProgress, packet: PacketView): void {
    if (learner.stage !== 'active') return;
    readTouchedSessions(packet.data, (high, low, timeOut) => this.#touched.add(high, low, timeOut));
    this.#learners.pingAnswered(learner);
    learner.reportedTouches(0);
  }

  #onRequest(learner: LearnerProgress, packet: PacketView): void {
    const { type } = readLearnerRequest(packet.data);
    learner.requestsReceived++;
    if (this.#mayPassOn(learner)) this.#requests.passOnRequest(packet, type, learner);
  }

  #onRevalidate(learner: LearnerProgress, packet: PacketView): void {
    readRevalidateRequest(packet.data);
    if (this.#mayPassOn(learner)) this.#requests.passOnRevalidation(packet, learner);
  }

  #mayPassOn(learner: LearnerProgress): boolean {
    if (learner.stage !== 'active') {
      this.#learners.disconnect(learner, 'protocol error', 'the observer forwarded a request before UPTODATE');
      return false;
    }
    const { queuedBytes } = this.#requests;
    if (queuedBytes <= queuedRequestBytesMax) return true;
    this.#learners.disconnect(
      learner,
      'too many requests of observers',
      `${queuedBytes} bytes of requests wait for the leader, which does not read them fast enough: the observer can reconnect later`,
    );
    return false;
  }

  // ---- the leader

  /**
   * The leader has committed the txn that `packet` proposed. `designated`: of a reconfig, the
   * server that leads from here on.
   */
  onCommit(zxid: Zxid, packet: Buffer, designated?: Sid): void {
    this.#last.proposed = zxid;
    for (const learner of this.#learners.values()) {
      if (!learner.isReplicating) continue;
      const writer = this.#learners.outputAfterBacklog(learner);
      if (designated === undefined) {
        writer.int32(PacketType.INFORM);
        this.#learners.writeShared(learner, packet, packetTypeBytes);
      } else {
        const dataBytes = packet.readInt32BE(packetHeadBytes - 4);
        const at = beginQuorumPacket(writer, PacketType.INFORMANDACTIVATE, zxid);
        writeDesignatedLeader(writer, designated);
        writer.raw(packet, packetHeadBytes, packetHeadBytes + dataBytes);
        writer.endFrame(at);
        writer.raw(packet, packetHeadBytes + dataBytes);
      }
    }
    for (const learner of this.#ahead) {
      if (learner.lastZxid > zxid) continue;
      this.#ahead.delete(learner);
      this.#syncLearner(learner);
    }
  }

  /** The leader has sent a PING: what its answer reports should be fresh. */
  onLeaderPing(now: Now): void {
    if (now.elapsedMs - this.#pings.sentMs >= this.#options.tickTimeMs / relayedPingsPerTick)
      this.#pings.sendToAll(this.#learners.values(), now);
  }

  /** The leader has answered a sync that was passed on for this observer. */
  onSynced(learner: LearnerProgress): void {
    if (this.#isHere(learner)) writeEmptyPacket(this.#learners.outputAfterBacklog(learner), PacketType.SYNC, 0);
  }

  /** The leader has answered whether a session of this observer is alive. */
  onRevalidated(learner: LearnerProgress, reply: RevalidateReply): void {
    if (!this.#isHere(learner)) return;
    const writer = this.#learners.outputAfterBacklog(learner);
    const at = beginQuorumPacket(writer, PacketType.REVALIDATE, -1);
    writeRevalidateReply(writer, reply);
    endQuorumPacket(writer, at);
  }

  /** Its channel may have been reused. */
  #isHere(learner: LearnerProgress): boolean {
    return this.#learners.get(learner.channel) === learner;
  }

  // ---- time

  wake(now: Now, inputWatermarkMs: Millis): void {
    this.#nowMs = now.elapsedMs;
    if (now.elapsedMs >= this.#nextPingMs) {
      this.#nextPingMs = now.elapsedMs + this.#options.tickTimeMs / 2;
      this.#pings.sendToAll(this.#learners.values(), now);
    }
    this.#dropWaiting(inputWatermarkMs);
    this.#learners.dropSilent(inputWatermarkMs);
    this.#learners.resolveSidConflicts(now.elapsedMs);
  }

  /** What an observer claims to know is not committed: it waits no longer than a synchronisation may take. */
  #dropWaiting(inputWatermarkMs: Millis): void {
    const { initLimitTicks, tickTimeMs } = this.#options;
    for (const learner of this.#ahead) {
      if (inputWatermarkMs - learner.lastReceivedMs <= initLimitTicks * tickTimeMs) continue;
      this.#ahead.delete(learner);
      this.#learners.disconnect(
        learner,
        'learner has a later history',
        `the observer has ${formatZxid(learner.lastZxid)}, and this server knows no commit after ${formatZxid(this.committed)}`,
      );
    }
  }

  deadline(): Millis {
    return Math.min(this.#nextPingMs, this.#learners.sidConflictsDueMs);
  }

  /** This server follows no longer: its observers look for another master. */
  stop(): void {
    this.#stages.end();
    this.#ahead.clear();
    this.#learners.closeAll('not following');
  }

  fingerprint(to: Fingerprint, { elapsedMs: nowMs }: Now): void {
    const { tickTimeMs, initLimitTicks, syncLimitTicks } = this.#options;
    to.number(this.committed);
    this.#touched.fingerprint(to);
    to.number(Math.max(0, this.#nextPingMs - nowMs));
    for (const { channel } of [...this.#ahead].sort((a, b) => a.channel - b.channel)) to.number(channel);
    this.#learners.fingerprint(to, nowMs, tickTimeMs * Math.max(initLimitTicks, syncLimitTicks));
  }
}
