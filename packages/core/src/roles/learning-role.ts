import type { Millis, PacketView, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { canLeadOn } from '../quorum/configuration.ts';
import { StepBudget } from '../step-budget.ts';
import { LeaderForwarder, type LeaderLink, type LeaderTxn } from '../request/leader-forwarder.ts';
import { Replica } from '../request/replica.ts';
import type { Server } from '../server.ts';
import { SnapshotLoader } from '../snapshot/snapshot-loader.ts';
import type { LeaderConnector } from '../zab/leader-connector.ts';
import { Learner } from '../zab/learner.ts';
import type { ConfigChange, LearnerHost, LoggedProposal } from '../zab/learner-host.ts';
import type { EpochName } from '../zab/peer-storage.ts';
import { leaderPriorityDefault } from '../zab/zab-options.ts';
import type { ChannelId } from '../zab/quorum-links.ts';
import { stopIfLeaderIsLost } from './connecting-role.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/**
 * What a znode in a snapshot takes besides its data, at most: path and Stat, or the entries of an
 * ACL.
 */
const snapshotItemExtraBytes = 1024 * 1024;

/** This server follows or observes a leader (zab/learner.ts), or tries to. */
export class LearningRole extends PeerRole implements LearnerHost {
  readonly name = 'learning';
  readonly #state: PeerState;
  readonly #channel: ChannelId;
  readonly #connector: LeaderConnector;
  readonly #learner: Learner;
  readonly #kind: 'follower' | 'observer';
  /** Znodes visited in one step. */
  readonly #visitsPerStepMax: number;
  /** The snapshot that the leader is sending. */
  #snapshotLoad: { readonly loader: SnapshotLoader; readonly zxid: Zxid } | undefined;

  constructor(state: PeerState, channel: ChannelId, connector: LeaderConnector, now: Now) {
    super();
    this.#state = state;
    this.#channel = channel;
    this.#connector = connector;
    this.#kind = state.config.ownRole === 'observer' ? 'observer' : 'follower';
    this.#visitsPerStepMax = new StepBudget(state.options.core.stepUnits).visits;
    const start = {
      role: this.#kind,
      ...state.disk.persisted,
      resyncEpoch: state.resyncEpoch,
      configVersion: state.config.version,
      incarnation: state.incarnation,
      leaderPriority: state.options.zab.leaderPriority ?? leaderPriorityDefault,
      leader: connector.leader,
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
    return { state: this.#state.learnerState, phase, syncMode, leader: this.#connector.leader };
  }

  // ---- inputs

  override peersChanged(): void {
    if (!this.#learner.stages.isUnanswered || !this.#state.election.isLeaderNotReceiving) return;
    this.#learner.leaderNotReceiving();
    this.#connector.leaderNotReceiving();
  }

  override packet(channel: ChannelId, packet: PacketView, now: Now): void {
    if (channel === this.#channel) this.#learner.packet(packet, now);
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

  // What this server sends is not a sign of its leader: over a link that is cut in one direction,
  // only the leader does not arrive. So there is no `partSent`.
  override partReceived(channel: ChannelId, now: Now): void {
    if (channel === this.#channel) this.#learner.bytesReceived(now);
  }

  override channelClosed(channel: ChannelId, now: Now): void {
    if (channel === this.#channel) this.#learner.channelGone(now);
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

  override wake(now: Now): void {
    this.#learner.wake(now);
  }

  override deadline(): Millis | undefined {
    return this.#learner.deadline();
  }

  override next(now: Now): Transition | undefined {
    const { resyncEpoch, wasSynced, successor } = this.#learner;
    const { endReason, endText, connectFailure } = this.#learner.stages;
    if (endReason === undefined) return undefined;
    const state = this.#state;
    const connector = this.#connector;
    this.#snapshotLoad = undefined;
    this.#learner.stop(now);
    if (connectFailure !== undefined) {
      connector.attemptFailed(connectFailure, now);
      stopIfLeaderIsLost(connector, state.election);
      return { to: 'connecting', connector };
    }
    state.resyncEpoch = 0;
    if (!wasSynced && resyncEpoch === undefined) state.leaderAttemptFailed(connector.leader, now);
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
  }

  // ---- as LearnerHost

  apply(sent: LeaderTxn, now: Now): void {
    this.#state.apply(sent, now);
  }

  committed({ zxid, entry }: LoggedProposal): void {
    this.#state.committedLog.append(zxid, entry);
  }

  beginSnapshot(zxid: Zxid): void {
    const { juteMaxBuffer, juteMaxBufferExtra } = this.#state.options.core;
    const itemBytesMax = juteMaxBuffer + juteMaxBufferExtra + snapshotItemExtraBytes;
    this.#snapshotLoad = { loader: new SnapshotLoader(this.#state.replicaOptions, { itemBytesMax }), zxid };
  }

  startServing(epoch: number, link: LeaderLink, now: Now): { readonly server: Server; readonly forwarder: LeaderForwarder } {
    const state = this.#state;
    state.onSynced();
    state.startEpoch(epoch);
    let forwarder!: LeaderForwarder;
    const server = state.newServer(now, (parts) => (forwarder = new LeaderForwarder(this.#kind, link, parts)), true);
    return { server, forwarder };
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
    const { members: before, ownRole } = config;
    const isActivated = this.#state.activateConfig(text, isTxn, now);
    return {
      isFollowed: options.core.reconfigEnabled,
      isRoleChanged: config.ownRole !== ownRole,
      canLeaderLeadOn: !isActivated || canLeadOn(this.#connector.leader, before, config.members),
    };
  }
}
