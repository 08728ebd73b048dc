import type { Millis, PacketView, ServerState, Sid, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { Authority } from '../request/authority.ts';
import { StepBudget } from '../request/budget.ts';
import type { Server } from '../server.ts';
import { Leader, type LeaderHost } from '../zab/leader.ts';
import type { LearnerSync } from '../zab/learner-sync.ts';
import { type LogEntry, Synchroniser, type SynchroniserOptions } from '../zab/synchroniser.ts';
import { diffSyncsMaxDefault, snapSyncsMaxDefault } from '../zab/zab-options.ts';
import type { EpochName } from '../zab/peer-storage.ts';
import type { ChannelId, ChannelRank } from '../zab/quorum-links.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/** This server is the leader (zab/leader.ts), or tries to become it. */
export class LeadingRole extends PeerRole implements LeaderHost {
  readonly name = 'leading';
  readonly #state: PeerState;
  readonly #leader: Leader;
  readonly #synchroniser: Synchroniser;

  constructor(state: PeerState, now: Now) {
    super();
    this.#state = state;
    this.#synchroniser = new Synchroniser(synchroniserOptions(state), state.replica, state.committedLog, state.io.quorum, state.disk);
    const { options, config, disk } = state;
    this.#leader = new Leader(options.zab, config.active.verifier, disk.found, state.io.quorum, disk, this, now);
    state.attempts.begin(now);
  }

  override get server(): Server | undefined {
    return this.#leader.server;
  }

  override get epoch(): number | undefined {
    return this.#leader.server === undefined ? undefined : this.#leader.epoch;
  }

  override status(): RoleStatus {
    const leading = this.#leader.server === undefined ? undefined : this.#leader.inspect();
    return { state: 'leading', phase: this.#leader.phase, leader: this.#state.options.zab.sid, leading };
  }

  // ---- inputs

  override voted(from: Sid, state: ServerState, now: Now): void {
    if (state === 'looking') this.#leader.voterLooks(from, now);
  }

  override peersChanged(): void {
    this.#leader.maybeMakeWay(this.#state.election.lost);
  }

  override accepted(channel: ChannelId, now: Now): boolean {
    this.#leader.connected(channel, now);
    return true;
  }

  override packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#leader.packet(channel, packet, now);
  }

  override partReceived(channel: ChannelId, now: Now): void {
    this.#leader.moves(channel, now);
  }

  /** A learner that takes a large snapshot or packet may not be able to send anything meanwhile. */
  override partSent(channel: ChannelId, now: Now): void {
    this.#leader.moves(channel, now);
  }

  override channelRank(channel: ChannelId): ChannelRank {
    return this.#leader.rankOf(channel);
  }

  override channelClosed(channel: ChannelId): void {
    this.#leader.gone(channel);
    this.peersChanged();
  }

  override appended(zxid: Zxid, now: Now): void {
    this.#leader.appended(zxid, now);
  }

  override epochSaved(name: EpochName, _epoch: number, now: Now): void {
    this.#leader.epochSaved(name, now);
  }

  override logRefused(channel: ChannelId): void {
    this.#synchroniser.logRefused(channel);
  }

  override logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean): void {
    this.#synchroniser.logRead(channel, entries, isEnd, this.#leader.committed);
  }

  override standDown(reason: string): void {
    this.#leader.standDown(reason);
  }

  override quorumChanged(now: Now): void {
    this.#leader.quorumChanged(now);
  }

  override resumed(now: Now): void {
    this.#leader.stoodStill(now);
  }

  override wake(now: Now, heardMs: Millis): void {
    this.#leader.wake(now, heardMs);
    this.#synchroniser.wake(this.#isBusy, now.elapsedMs);
  }

  override deadline(): Millis | undefined {
    return this.#synchroniser.wants(this.#isBusy) ? 0 : this.#leader.deadline();
  }

  override next(now: Now): Transition | undefined {
    if (this.#leader.over === undefined) return undefined;
    this.#synchroniser.end();
    if (this.#leader.server === undefined) this.#state.failedWith(this.#state.options.zab.sid, now);
    this.#leader.end(now);
    this.#state.observer.roleEnded(this.#leader.over);
    return { to: 'flushing', delayMs: 0 };
  }

  override fingerprint(to: Fingerprint, now: Now): void {
    this.#leader.fingerprint(to, now);
    this.#synchroniser.fingerprint(to);
  }

  get #isBusy(): boolean {
    return this.server?.busy ?? false;
  }

  // ---- as LeaderHost

  serve(epoch: number, now: Now): Server {
    const state = this.#state;
    const leader = this.#leader;
    state.synced();
    state.election.updateVote(epoch);
    state.beginEpoch(epoch);
    state.maybeAdopt(state.config.proposedBy(epoch), now);
    return state.newServer(now, (parts, then) => new Authority(parts, leader, then, leader), false);
  }

  synchronise(learner: LearnerSync, leaderLast: Zxid): void {
    this.#synchroniser.add(learner, leaderLast);
  }

  forget(channel: ChannelId): void {
    this.#synchroniser.remove(channel);
  }

  followed(isFollowed: boolean): void {
    if (this.#state.config.followed(isFollowed)) this.#state.io.oracle?.ask();
  }

  configVersion(): number {
    return this.#state.config.version;
  }

  isMember(sid: Sid): boolean {
    return this.#state.config.has(sid);
  }

  newLeaderConfig(epoch: number): string {
    return this.#state.config.proposedBy(epoch);
  }

  committed(zxid: Zxid, entry: Buffer): void {
    const { committedLog, replica, disk } = this.#state;
    committedLog.append(zxid, entry, Math.min(replica.lastZxid, disk.durable));
  }
}

function synchroniserOptions({ options, observer, wholeFrom }: PeerState): SynchroniserOptions {
  const { forceSnapshotSync, tickTimeMs, snapSyncsMax = snapSyncsMaxDefault, diffSyncsMax = diffSyncsMaxDefault } = options.zab;
  return {
    tickTimeMs,
    forceSnapshotSync,
    snapSyncsMax,
    diffSyncsMax,
    snapshotSliceBytes: new StepBudget(options.core.turnUnits).snapshotBytes,
    wholeFrom,
    stepEnded: () => observer.stepEnded('sync'),
    limitMet: (limit) => observer.limitMet(limit),
    begun: (by, from, snapshots, isBehind) => observer.learnerSynchronised(by, from, snapshots, isBehind),
  };
}
