import type { Millis, PacketView, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { ObserverStatus } from '../inspector.ts';
import type { Now } from '../now.ts';
import { canLeadOn } from '../quorum/configuration.ts';
import { StepBudget } from '../step-budget.ts';
import { LeaderForwarder, type LeaderTxn } from '../request/leader-forwarder.ts';
import { Replica } from '../request/replica.ts';
import type { Server } from '../server.ts';
import { SnapshotLoader } from '../snapshot/snapshot-loader.ts';
import type { LeaderConnector } from '../zab/leader-connector.ts';
import type { LeaderConfig } from '../zab/leader-host.ts';
import { Learner } from '../zab/learner.ts';
import type { ConfigChange, LearnerHost, LearnerServer, LoggedProposal } from '../zab/learner-host.ts';
import { type LogEntry, LearnerSyncer } from '../zab/learner-syncer.ts';
import { ObserverMaster, type ObserverMasterHost } from '../zab/observer-master.ts';
import type { EpochName } from '../zab/peer-storage.ts';
import { type ChannelId, ChannelRank } from '../zab/quorum-links.ts';
import type { RequestQueue } from '../zab/request-queue.ts';
import type { SyncTarget } from '../zab/sync-target.ts';
import { leaderPriorityDefault } from '../zab/zab-options.ts';
import { stopIfLeaderIsLost } from './connecting-role.ts';
import { synchroniserOptions } from './leading-role.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/**
 * What a znode in a snapshot takes besides its data, at most: path and Stat, or the entries of an
 * ACL.
 */
const snapshotItemExtraBytes = 1024 * 1024;

/**
 * This server follows or observes a leader (zab/learner.ts), or tries to. As a follower it may
 * accept observers of its own (zab/observer-master.ts).
 */
export class LearningRole extends PeerRole implements LearnerHost, ObserverMasterHost {
  readonly name = 'learning';
  readonly #state: PeerState;
  readonly #channel: ChannelId;
  readonly #connector: LeaderConnector;
  readonly #learner: Learner;
  readonly #kind: 'follower' | 'observer';
  readonly config: LeaderConfig;
  /** Once this server follows; undefined if it accepts no observers. */
  #observers: ObserverMaster | undefined;
  /** Synchronises them. */
  #syncer: LearnerSyncer | undefined;
  /** Znodes visited in one step. */
  readonly #visitsPerStepMax: number;
  /** The snapshot that the leader is sending. */
  #snapshotLoad: { readonly loader: SnapshotLoader; readonly zxid: Zxid } | undefined;

  constructor(state: PeerState, channel: ChannelId, connector: LeaderConnector, now: Now) {
    super();
    this.#state = state;
    this.#channel = channel;
    this.#connector = connector;
    this.#kind = kindOf(state.config);
    this.config = state.config;
    this.#visitsPerStepMax = new StepBudget(state.options.core.stepUnits).visits;
    const start = {
      role: this.#kind,
      ...state.disk.persisted,
      resyncEpoch: state.resyncEpoch,
      configVersion: state.config.version,
      incarnation: state.incarnation,
      leaderPriority: state.options.zab.leaderPriority ?? leaderPriorityDefault,
      leader: connector.leader,
      acceptsObservers: this.#acceptsObservers,
    };
    this.#learner = new Learner(state.options.zab, start, channel, state.packetView, state.io.quorum, state.disk, this, now);
  }

  override get server(): Server | undefined {
    return this.#learner.server;
  }

  override get epoch(): number | undefined {
    return this.#learner.epoch;
  }

  override status(): RoleStatus {
    const { phase, syncMode } = this.#learner;
    const { leader, target } = this.#connector;
    const learnerMaster = this.#kind === 'observer' ? target : undefined;
    return { state: this.#state.learnerState, phase, syncMode, leader, learnerMaster, observersOfFollower: this.#observers?.observerCount };
  }

  get #acceptsObservers(): boolean {
    return this.#kind === 'follower' && this.#state.options.observerMasterEnabled === true;
  }

  override get acceptedLearners(): 'observers' | 'none' {
    return this.#observers === undefined ? 'none' : 'observers';
  }

  override observers(): Iterable<ObserverStatus> {
    return this.#observers?.observers() ?? [];
  }

  override resetObserverStats(): void {
    this.#observers?.resetObserverCounts();
  }

  // ---- inputs

  override peersChanged(): void {
    if (this.#connector.usesMasters || !this.#learner.stages.isUnanswered || !this.#state.election.isLeaderNotReceiving) return;
    this.#learner.leaderNotReceiving();
    this.#connector.leaderNotReceiving();
  }

  override accepted(channel: ChannelId, now: Now): boolean {
    this.#observers?.connected(channel, now);
    return this.#observers !== undefined;
  }

  override packet(channel: ChannelId, packet: PacketView, now: Now): void {
    if (channel === this.#channel) this.#learner.packet(packet, now);
    else this.#observers?.packet(channel, packet, now);
  }

  override isReceivingSnapshot(channel: ChannelId): boolean {
    return this.#snapshotLoad !== undefined && channel === this.#channel;
  }

  override feedSnapshot(channel: ChannelId, bytes: Buffer, now: Now): number {
    if (this.#snapshotLoad === undefined || channel !== this.#channel) return 0;
    const { loader, zxid } = this.#snapshotLoad;
    const taken = loader.isComplete ? 1 : loader.feed(bytes);
    this.#learner.bytesReceived(now);
    if (!loader.isComplete) return taken;
    // The caller keeps the last byte, and offers it again in a later turn: so nothing after the
    // snapshot is read before the tree is whole.
    if (!loader.finishStep(this.#visitsPerStepMax)) {
      this.#state.observer.stepYielded('sync');
      return taken - 1;
    }
    this.#snapshotLoad = undefined;
    const state = this.#state;
    // The snapshot holds the leader's configuration; which one this server uses is another matter
    // (ZOOKEEPER-2819).
    state.replaceReplica(new Replica(state.replicaOptions, { snapshot: loader.finish(), zxid, digestComparison: 'when synced' }), now);
    state.committedLog.clear();
    state.logCompleteFromZxid = zxid;
    this.#learner.snapshotLoaded(now);
    return taken;
  }

  override partReceived(channel: ChannelId, now: Now): void {
    if (channel === this.#channel) this.#learner.bytesReceived(now);
    else this.#observers?.onProgress(channel, now);
  }

  /**
   * What this server sends is not a sign of its leader: over a link that is cut in one direction,
   * only the leader does not arrive.
   */
  override partSent(channel: ChannelId, now: Now): void {
    if (channel !== this.#channel) this.#observers?.onProgress(channel, now);
  }

  override channelRank(channel: ChannelId): ChannelRank {
    return channel === this.#channel || this.#observers === undefined ? ChannelRank.voter : this.#observers.rankOf(channel);
  }

  override channelClosed(channel: ChannelId, now: Now): void {
    if (channel === this.#channel) this.#learner.channelGone(now);
    else this.#observers?.channelGone(channel);
  }

  override logReadRefused(channel: ChannelId): void {
    this.#syncer?.logReadRefused(channel);
  }

  override logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean): void {
    if (this.#observers !== undefined) this.#syncer?.logRead(channel, entries, isEnd, this.#observers.committed);
  }

  override appended(zxid: Zxid): void {
    this.#learner.appended(zxid);
  }

  override epochSaved(name: EpochName, epoch: number, now: Now): void {
    this.#learner.epochSaved(name, now);
    if (name === 'currentEpoch') this.#state.election.updateVote(epoch);
  }

  override truncated(lastZxid: Zxid, now: Now): void {
    this.#learner.truncated(lastZxid, now);
  }

  override truncationRefused(): void {
    this.#learner.truncationRefused();
  }

  override snapshotInstalled(now: Now): void {
    this.#learner.installed(now);
  }

  override resumed(now: Now): void {
    this.#learner.wake(now);
  }

  override wake(now: Now, inputWatermarkMs: Millis): void {
    this.#learner.wake(now);
    if (this.#learner.stages.isOver) return;
    this.#observers?.wake(now, inputWatermarkMs);
    this.#syncer?.wake(this.#isBusy, now.elapsedMs);
  }

  override deadline(): Millis | undefined {
    const due = this.#learner.deadline();
    if (due === undefined || this.#observers === undefined) return due;
    return this.#syncer?.hasWork(this.#isBusy) === true ? 0 : Math.min(due, this.#observers.deadline());
  }

  get #isBusy(): boolean {
    return this.server?.isBusy ?? false;
  }

  override next(now: Now): Transition | undefined {
    const { resyncEpoch, wasSynced, successor } = this.#learner;
    const { endReason, endText, connectFailure } = this.#learner.stages;
    if (endReason === undefined) return undefined;
    const state = this.#state;
    const connector = this.#connector;
    this.#snapshotLoad = undefined;
    this.#syncer?.stop();
    this.#observers?.stop();
    this.#learner.stop(now);
    if (connectFailure !== undefined) {
      connector.attemptFailed(connectFailure, now);
      stopIfLeaderIsLost(connector, state.election);
      return { to: 'connecting', connector };
    }
    state.resyncEpoch = 0;
    if (!wasSynced && resyncEpoch === undefined && !connector.usesMasters) state.leaderAttemptFailed(connector.leader, now);
    state.observer.roleEnded(endReason, endText);
    if (successor !== undefined) return { to: 'flushing', delayMs: 0, successor };
    if (resyncEpoch === undefined) return { to: 'flushing', delayMs: this.#electionDelayMs() };
    // At once, and to the same leader, which does not wait forever: an election could elect no
    // other server.
    state.resyncEpoch = resyncEpoch;
    return { to: 'connecting', connector: state.connectTo(connector.leader, now) };
  }

  /**
   * Many observers that lose one leader must not all connect to the next one at once. Voters do not
   * wait.
   */
  #electionDelayMs(): Millis {
    const maxMs = this.#state.options.observerElectionDelayMs ?? 0;
    return maxMs > 0 && this.#kind === 'observer' ? this.#state.random.uint32() % maxMs : 0;
  }

  override fingerprint(to: Fingerprint, now: Now): void {
    if (this.#snapshotLoad !== undefined) throw new Error('a snapshot that has been loaded in part has no fingerprint');
    this.#learner.fingerprint(to, now);
    if (this.#learner.stages.isUnanswered) this.#connector.fingerprint(to, now);
    this.#observers?.fingerprint(to, now);
    this.#syncer?.fingerprint(to);
  }

  // ---- as LearnerHost

  apply(sent: LeaderTxn, now: Now): void {
    this.#state.apply(sent, now);
  }

  committed({ zxid, entry }: LoggedProposal): void {
    const { committedLog, replica, disk } = this.#state;
    // An observer that is sent a snapshot, or txns of the log, gets those that follow from memory.
    committedLog.append(zxid, entry, this.#acceptsObservers ? Math.min(replica.lastZxid, disk.durable) : Infinity);
  }

  beginSnapshot(zxid: Zxid): void {
    const { juteMaxBuffer, juteMaxBufferExtra } = this.#state.options.core;
    const itemBytesMax = juteMaxBuffer + juteMaxBufferExtra + snapshotItemExtraBytes;
    this.#snapshotLoad = { loader: new SnapshotLoader(this.#state.replicaOptions, { itemBytesMax }), zxid };
  }

  startServing(epoch: number, requests: RequestQueue, now: Now): LearnerServer {
    const state = this.#state;
    state.onSynced();
    state.startEpoch(epoch);
    let forwarder!: LeaderForwarder;
    const server = state.newServer(now, (parts) => (forwarder = new LeaderForwarder(this.#kind, requests, parts)), true);
    if (this.#acceptsObservers) this.#startObserverMaster(epoch, requests, now);
    return { server, forwarder, observers: this.#observers };
  }

  #startObserverMaster(epoch: number, requests: RequestQueue, now: Now): void {
    const { options, config, replica, committedLog, io } = this.#state;
    this.#syncer = new LearnerSyncer(synchroniserOptions(this.#state), replica, committedLog, io.quorum, io.storage);
    const { verifier: quorum } = config;
    const { sessions, lastZxid: committed } = replica;
    const parts = { options: options.zab, quorum, links: io.quorum, host: this, requests, sessions, epoch, committed };
    this.#observers = new ObserverMaster(parts, now);
  }

  // ---- as ObserverMasterHost

  syncLearner(learner: SyncTarget, committed: Zxid): void {
    this.#syncer?.add(learner, committed);
  }

  learnerGone(channel: ChannelId): void {
    this.#syncer?.remove(channel);
  }

  historyComplete(): void {
    this.#state.replica.markExact();
  }

  configSeen(text: string, now: Now): string | undefined {
    const { config } = this.#state;
    this.#state.configProposed(text, now);
    return config.refusalOf(text);
  }

  configActivated(text: string, isTxn: boolean, now: Now): ConfigChange {
    const { config, options } = this.#state;
    const { members: before } = config;
    const isActivated = this.#state.activateConfig(text, isTxn, now);
    return {
      isFollowed: options.core.reconfigEnabled,
      // Also if the leader's history has taken back a pending configuration, which gave this server a vote.
      isRoleChanged: this.#kind !== kindOf(config),
      canLeaderLeadOn: !isActivated || canLeadOn(this.#connector.leader, before, config.members),
    };
  }
}

/** What a server learns as: an observer gets only what is committed. */
function kindOf({ ownRole }: PeerState['config']): 'follower' | 'observer' {
  return ownRole === 'observer' ? 'observer' : 'follower';
}
