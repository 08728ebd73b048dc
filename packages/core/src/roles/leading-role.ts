import type { Millis, PacketView, ServerState, Sid, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { ObserverStatus } from '../inspector.ts';
import type { Now } from '../now.ts';
import { LocalSequencer } from '../request/local-sequencer.ts';
import { StepBudget } from '../step-budget.ts';
import type { Server } from '../server.ts';
import type { LeaderConfig, LeaderHost } from '../zab/leader-host.ts';
import type { LeaderPreference } from '../zab/leader-preference.ts';
import { Leader } from '../zab/leader.ts';
import type { TransferEnd, TransferRefusal } from '../transfer-outcome.ts';
import type { SyncTarget } from '../zab/sync-target.ts';
import { type LogEntry, LearnerSyncer, type LearnerSyncerOptions } from '../zab/learner-syncer.ts';
import { diffSyncsMaxDefault, snapSyncsMaxDefault } from '../zab/zab-options.ts';
import type { EpochName } from '../zab/peer-storage.ts';
import type { ChannelId, ChannelRank } from '../zab/quorum-links.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/** This server is the leader (zab/leader.ts), or tries to become it. */
export class LeadingRole extends PeerRole implements LeaderHost {
  readonly name = 'leading';
  readonly config: LeaderConfig;
  readonly acceptsKeeperWrites: boolean;
  readonly #state: PeerState;
  readonly #leader: Leader;
  readonly #syncer: LearnerSyncer;
  /** Once clients are served. */
  #sequencer: LocalSequencer | undefined;

  constructor(state: PeerState, now: Now) {
    super();
    this.#state = state;
    this.config = state.config;
    this.acceptsKeeperWrites = state.options.core.keeperExtensions;
    this.#syncer = new LearnerSyncer(synchroniserOptions(state), state.replica, state.committedLog, state.io.quorum, state.io.storage);
    const { options, config, disk } = state;
    this.#leader = new Leader(options.zab, config.verifier, disk.persisted, state.io.quorum, disk, this, now);
    state.leaderBackoff.attemptStarted(now);
  }

  override get server(): Server | undefined {
    return this.#leader.server;
  }

  override get front(): Server | undefined {
    return this.#state.options.leaderServes === false ? undefined : this.server;
  }

  override get epoch(): number | undefined {
    return this.#leader.server === undefined ? undefined : this.#leader.epoch;
  }

  override status(): RoleStatus {
    const leading = this.#leader.server === undefined ? undefined : this.#leader.status();
    return { state: 'leading', phase: this.#leader.phase, leader: this.#state.options.zab.sid, leading };
  }

  // ---- inputs

  override voted(from: Sid, state: ServerState, now: Now): void {
    if (state === 'looking') this.#leader.voterLooking(from, now);
  }

  override peersChanged(): void {
    this.#leader.maybeStepDown(this.#state.election.voterReachability.lostVoters);
  }

  override get acceptedLearners(): 'all' {
    return 'all';
  }

  override observers(): Iterable<ObserverStatus> {
    return this.#leader.observers();
  }

  override resetObserverStats(): void {
    this.#leader.resetObserverCounts();
  }

  override accepted(channel: ChannelId, now: Now): boolean {
    this.#leader.learnerConnected(channel, now);
    return true;
  }

  override packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#leader.packet(channel, packet, now);
  }

  override partReceived(channel: ChannelId, now: Now): void {
    this.#leader.onProgress(channel, now);
  }

  /** A learner that takes a large snapshot or packet may not be able to send anything meanwhile. */
  override partSent(channel: ChannelId, now: Now): void {
    this.#leader.onProgress(channel, now);
  }

  override channelRank(channel: ChannelId): ChannelRank {
    return this.#leader.rankOf(channel);
  }

  override channelClosed(channel: ChannelId): void {
    this.#leader.channelGone(channel);
    this.peersChanged();
  }

  override appended(zxid: Zxid, now: Now): void {
    this.#leader.appended(zxid, now);
  }

  override epochSaved(name: EpochName, _epoch: number, now: Now): void {
    this.#leader.epochSaved(name, now);
  }

  override logReadRefused(channel: ChannelId): void {
    this.#syncer.logReadRefused(channel);
  }

  override logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean): void {
    this.#syncer.logRead(channel, entries, isEnd, this.#leader.committed);
  }

  override stepDown(text: string): void {
    this.#leader.stepDown(text);
  }

  override transferLeadership(target: Sid | undefined, now: Now): Sid | TransferRefusal {
    return this.#leader.transferLeadership(target, now);
  }

  override quorumChanged(now: Now): void {
    this.#leader.quorumChanged(now);
  }

  override resumed(now: Now): void {
    this.#leader.resumedAfterPause(now);
  }

  override wake(now: Now, heardMs: Millis): void {
    this.#leader.wake(now, heardMs);
    this.#syncer.wake(this.#isBusy, now.elapsedMs);
  }

  override deadline(): Millis | undefined {
    return this.#syncer.hasWork(this.#isBusy) ? 0 : this.#leader.deadline();
  }

  override next(now: Now): Transition | undefined {
    this.#leader.maybeCompleteTransfer(now);
    if (this.#leader.endReason === undefined) return undefined;
    this.#syncer.stop();
    if (this.#leader.server === undefined) this.#state.leaderAttemptFailed(this.#state.options.zab.sid, now);
    this.#leader.stop(now);
    this.#state.observer.roleEnded(this.#leader.endReason, this.#leader.endText);
    return { to: 'flushing', delayMs: 0, successor: this.#leader.successor };
  }

  override fingerprint(to: Fingerprint, now: Now): void {
    this.#leader.fingerprint(to, now);
    this.#syncer.fingerprint(to);
  }

  get #isBusy(): boolean {
    return this.server?.isBusy ?? false;
  }

  // ---- as LeaderHost

  configSeen(text: string, now: Now): void {
    this.#state.configProposed(text, now);
  }

  configActivated(text: string, isTxn: boolean, now: Now): void {
    this.#state.activateConfig(text, isTxn, now);
  }

  startServing(epoch: number, now: Now): Server {
    const state = this.#state;
    const leader = this.#leader;
    state.onSynced();
    state.election.updateVote(epoch);
    state.startEpoch(epoch);
    return state.newServer(now, (parts, then) => (this.#sequencer = new LocalSequencer(parts, leader, then, leader)), false);
  }

  get leaderPreference(): LeaderPreference {
    return this.#state.leaderPreference;
  }

  holdWrites(isHeld: boolean): void {
    this.#sequencer?.holdWrites(isHeld);
  }

  transferBegan(target: Sid, byPriority: boolean): void {
    this.#state.observer.notice({ kind: 'transferBegan', target, byPriority });
  }

  transferEnded(target: Sid, outcome: TransferEnd, heldMs: Millis): void {
    this.#state.observer.notice({ kind: 'transferEnded', target, outcome, heldMs });
  }

  syncLearner(learner: SyncTarget, leaderLast: Zxid): void {
    this.#syncer.add(learner, leaderLast);
  }

  learnerGone(channel: ChannelId): void {
    this.#syncer.remove(channel);
  }

  followersChanged(followers: ReadonlySet<Sid>): void {
    if (this.#state.config.setFollowers(followers)) this.#state.io.oracle?.ask();
  }

  committed(zxid: Zxid, entry: Buffer): void {
    const { committedLog, replica, disk } = this.#state;
    committedLog.append(zxid, entry, Math.min(replica.lastZxid, disk.durable));
  }
}

/** For the learners of a leader, or the observers of a follower. */
export function synchroniserOptions({ options, observer, logCompleteFromZxid }: PeerState): LearnerSyncerOptions {
  const { forceSnapshotSync, tickTimeMs, snapSyncsMax = snapSyncsMaxDefault, diffSyncsMax = diffSyncsMaxDefault } = options.zab;
  return {
    tickTimeMs,
    forceSnapshotSync,
    snapSyncsMax,
    diffSyncsMax,
    snapshotSliceBytes: new StepBudget(options.core.stepUnits).snapshotBytes,
    logCompleteFromZxid,
    observer,
  };
}
