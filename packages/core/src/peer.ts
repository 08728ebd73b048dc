/**
 * A server of an ensemble. At any time it has one role (roles/peer-role.ts), and only as a leader
 * or a learner that is in step with a quorum does it serve clients; roles/read-only-mode.ts is the
 * exception. This class passes each input to what it concerns and then advances the role.
 *
 *     flushing -> looking -> leading                -> flushing ...
 *                         -> connecting -> learning -> flushing ...
 *
 * Before an election the state in memory is that of the log: everything in the log has been
 * applied, and is durable, before the server says in an election how far its log goes. What a TRUNC
 * takes from the log, it takes from memory (ZOOKEEPER-2845).
 */
import type { Millis, Notification, PacketView, Sid, Zxid } from '@tskeeper/protocol';
import type { ClientFront } from './client-front.ts';
import { type Fingerprint, msUntil } from './fingerprint.ts';
import type { EnsembleStatus, Inspector, ObserverStatus } from './inspector.ts';
import type { Now } from './now.ts';
import { PeerInspector } from './peer-inspector.ts';
import { earlierOf } from './request/local-sequencer.ts';
import type { MemoryState } from './request/memory-limits.ts';
import type { Replica } from './request/replica.ts';
import { ClosedFront } from './roles/closed-front.ts';
import { ConnectingRole } from './roles/connecting-role.ts';
import { FlushingRole } from './roles/flushing-role.ts';
import { LeadingRole } from './roles/leading-role.ts';
import { LearningRole } from './roles/learning-role.ts';
import { LookingRole } from './roles/looking-role.ts';
import type { PeerRole, Transition } from './roles/peer-role.ts';
import { type PeerDependencies, PeerState } from './roles/peer-state.ts';
import type { Server } from './server.ts';
import type { SnapshotWriter } from './snapshot/snapshot-writer.ts';
import type { ConnectFailure } from './zab/leader-connector.ts';
import type { TransferRefusal } from './transfer-outcome.ts';
import type { LogEntry } from './zab/learner-syncer.ts';
import type { EpochName } from './zab/peer-storage.ts';
import type { ChannelId, ChannelRank } from './zab/quorum-links.ts';

export class Peer {
  readonly #state: PeerState;
  #role: PeerRole;
  readonly #closedFront: ClosedFront;
  /** The front that the client port delivers to. */
  #attachedFront: ClientFront;
  readonly inspect: Inspector;
  /** While the lead is handed over: how long new connections wait for it. */
  #holdUntilMs: Millis = 0;
  /** Everything that had arrived by then has been delivered. */
  #inputWatermarkMs: Millis = -Infinity;

  constructor(dependencies: PeerDependencies, now: Now) {
    const state = new PeerState(dependencies);
    this.#state = state;
    this.#role = new FlushingRole(state, undefined, undefined);
    this.#closedFront = new ClosedFront(state);
    this.#attachedFront = this.#closedFront;
    state.io.clients.attach(this.#closedFront);
    this.inspect = new PeerInspector(this);
    this.#enter({ to: 'flushing', delayMs: 0 }, now);
    this.#advanceRole(now);
  }

  // ---- from role to role

  /** After an input: the role may have ended, and may have begun or ceased to serve clients. */
  #advanceRole(now: Now): void {
    this.#replaceEndedRoles(now);
    if (this.#closedFront.isHolding && (this.server !== undefined || now.elapsedMs >= this.#holdUntilMs))
      this.#closedFront.isHolding = false;
    const { front } = this;
    if (front === this.#attachedFront) return;
    this.#attachedFront = front;
    this.#state.io.clients.attach(front);
  }

  /** Replaces a role that has ended, and that which follows if it has ended as well. */
  #replaceEndedRoles(now: Now): void {
    for (;;) {
      const transition = this.#role.next(now);
      if (transition === undefined) return;
      this.#enter(transition, now);
      // A leader without others may end at once. It is replaced after the next input, so that this
      // loop ends.
      if (transition.to === 'leading') return;
    }
  }

  #enter(transition: Transition, now: Now): void {
    const state = this.#state;
    switch (transition.to) {
      case 'flushing': {
        const { delayMs, successor } = transition;
        this.#role = new FlushingRole(state, delayMs === 0 ? undefined : now.elapsedMs + delayMs, successor);
        this.#closedFront.isHolding = successor !== undefined;
        this.#holdUntilMs = now.elapsedMs + state.options.zab.tickTimeMs;
        state.lookingSinceMs = now.elapsedMs;
        state.observer.roleChanged('looking');
        return;
      }
      case 'looking':
        this.#role = new LookingRole(state, now);
        return;
      case 'connecting':
        this.#role = new ConnectingRole(state, transition.connector);
        return;
      case 'leading':
        this.#role = new LeadingRole(state, now);
        return;
      case 'learning':
        this.#role = new LearningRole(state, transition.channel, transition.connector, now);
        return;
      default:
        transition satisfies never;
    }
  }

  // ---- questions

  get role(): 'looking' | 'leading' | 'learning' {
    const { name } = this.#role;
    return name === 'leading' || name === 'learning' ? name : 'looking';
  }

  /**
   * Orders, forwards or refuses writes, and applies txns; undefined while this server serves no
   * clients.
   */
  get server(): Server | undefined {
    return this.#role.server;
  }

  /** Takes the input of this server's clients. `PeerClients.attach` reports each change. */
  get front(): ClientFront {
    return this.#role.front ?? this.#closedFront;
  }

  get replica(): Replica {
    return this.#state.replica;
  }

  get idleTreeBytes(): number {
    return this.replica.tree.idleBytes;
  }

  get returnedTreeBytes(): number {
    return this.replica.tree.releasedBytes;
  }

  get watchBytes(): number {
    return this.server?.watchBytes ?? 0;
  }

  /** Whether a snapshot can begin: the state is that of a txn's end, and stays what it is. */
  get canSnapshot(): boolean {
    return this.server?.isBusy !== true && !this.#state.disk.isBusy;
  }

  /**
   * A snapshot of this moment, to be written in slices. See `SnapshotWriter` for `writeLastZxid`.
   */
  snapshot(writeLastZxid = true): SnapshotWriter {
    return this.replica.snapshot(writeLastZxid);
  }

  /** How memory is; see `MemoryLimits`. */
  setMemoryState(state: MemoryState, watchesMayGrow: boolean): void {
    this.#state.memory = { state, watchesMayGrow };
    this.server?.setMemoryState(state, watchesMayGrow);
  }

  /** Whether the vote of this server counts. */
  get votes(): boolean {
    return this.#state.config.canVote;
  }

  /** Whether what this server acknowledges counts, or soon does, so that it must be on its disk. */
  get mustKeepLog(): boolean {
    return this.#state.config.mustKeepLog;
  }

  get lastLogged(): Zxid {
    return this.#state.disk.logged;
  }

  /**
   * The epoch that this server has acknowledged, or that it leads; undefined while it is part of
   * none.
   */
  get epoch(): number | undefined {
    return this.#role.epoch;
  }

  /** See `Inspector.ensemble`. */
  status(): EnsembleStatus {
    const { options, config } = this.#state;
    const { voterCount, text: configText, latestText } = config;
    return {
      sid: options.zab.sid,
      voterCount,
      configText,
      pendingConfigText: latestText === configText ? undefined : latestText,
      syncMode: undefined,
      leading: undefined,
      learnerMaster: undefined,
      observersOfFollower: undefined,
      ...this.#role.status(),
    };
  }

  /** See `Inspector.observers`. */
  observers(): Iterable<ObserverStatus> {
    return this.#role.observers();
  }

  resetObserverStats(): void {
    this.#role.resetObserverStats();
  }

  /** Which learners connect to this server now, and so at which port it listens. */
  get acceptedLearners(): 'all' | 'observers' | 'none' {
    return this.#role.acceptedLearners;
  }

  // ---- the election port

  notified(from: Sid, notification: Notification, now: Now): void {
    this.#state.election.notified(from, notification, now);
    this.#role.voted(from, notification.state, now);
    // A server that leads or learns is sent its configurations in order, with what they change.
    if (this.#role.name === 'looking' && this.#state.followAnnouncements(now)) this.#role.configChanged(now);
    this.#role.peersChanged();
    this.#advanceRole(now);
  }

  unreachable(sid: Sid, now: Now): void {
    this.#state.election.unreachable(sid, now);
    this.#role.peersChanged();
    this.#advanceRole(now);
  }

  reachable(sid: Sid): void {
    this.#state.election.reachable(sid);
  }

  /**
   * Whether the oracle of an ensemble of two lets this server go on without the other; see
   * `OracleQuorum`. Without effect on others.
   */
  oracleAnswered(canServeAlone: boolean, now: Now): void {
    const { config, election } = this.#state;
    if (!config.oracleAnswered(canServeAlone)) return;
    election.quorumChanged(now);
    this.#role.quorumChanged(now);
    this.#advanceRole(now);
  }

  // ---- the learner port

  /**
   * A server has connected to this server's learner port, which listens while it leads, or follows
   * and accepts observers; this may be over by now.
   */
  accepted(channel: ChannelId, now: Now): void {
    if (!this.#role.accepted(channel, now)) this.#state.io.quorum.closeChannel(channel, 'not leading', 'this server does not lead');
  }

  /** Learners cannot reach this server, so it must not lead. */
  stepDown(text: string, now: Now): void {
    this.#role.stepDown(text);
    this.#advanceRole(now);
  }

  /**
   * An operator wants `target`, or else the best follower, to lead. Returns the server to which the
   * lead is being given from here on, or why it is not. What becomes of it shows in `status`.
   */
  transferLeadership(target: Sid | undefined, now: Now): Sid | TransferRefusal {
    const outcome = this.#role.transferLeadership(target, now);
    this.#advanceRole(now);
    return outcome;
  }

  dialled(channel: ChannelId, now: Now): void {
    const transition = this.#role.dialled(channel);
    if (transition === undefined) this.#state.io.quorum.closeChannel(channel, 'leader not wanted', 'the leader is no longer wanted');
    else this.#enter(transition, now);
  }

  dialFailed(outcome: ConnectFailure, now: Now): void {
    this.#role.dialFailed(outcome, now);
    this.#advanceRole(now);
  }

  /**
   * A packet of the leader, or of a learner. Throws a `ProtocolError` if it cannot be read; the
   * stream is to be closed then.
   */
  packet(channel: ChannelId, packet: PacketView, now: Now): void {
    this.#role.packet(channel, packet, now);
    this.#advanceRole(now);
  }

  /** Whether the next bytes of this stream belong to a snapshot, and go to `feedSnapshot`. */
  isReceivingSnapshot(channel: ChannelId): boolean {
    return this.#role.isReceivingSnapshot(channel);
  }

  /**
   * Takes the next bytes of the snapshot, and returns how many of them belong to it. Throws a
   * `ProtocolError` if they are not a snapshot; the stream is to be closed then.
   */
  feedSnapshot(channel: ChannelId, bytes: Buffer, now: Now): number {
    return this.#role.feedSnapshot(channel, bytes, now);
  }

  /** Part of a packet has arrived over a stream. */
  partReceived(channel: ChannelId, now: Now): void {
    this.#role.partReceived(channel, now);
  }

  /** Part of what waits for a stream has been sent. */
  partSent(channel: ChannelId, now: Now): void {
    this.#role.partSent(channel, now);
  }

  /** What the server at the other end of a stream is to this one. */
  channelRank(channel: ChannelId): ChannelRank {
    return this.#role.channelRank(channel);
  }

  /** There is room again in the output of a channel that was full. */
  channelDrained(channel: ChannelId, now: Now): void {
    this.#state.io.storage.resumeLogRead(channel);
    this.#wakeRole(now);
  }

  channelGone(channel: ChannelId, now: Now): void {
    this.#state.io.storage.stopLogRead(channel);
    this.#role.channelClosed(channel, now);
    this.#advanceRole(now);
  }

  // ---- the disk

  appended(zxid: Zxid, now: Now): void {
    this.#state.disk.appended(zxid);
    this.#state.observer.txnDurable(zxid);
    this.#role.appended(zxid, now);
    this.#advanceRole(now);
  }

  configSaved(now: Now): void {
    this.#state.disk.configSaved();
    this.#advanceRole(now);
  }

  epochSaved(name: EpochName, epoch: number, now: Now): void {
    this.#state.disk.epochSaved(name, epoch);
    this.#role.epochSaved(name, epoch, now);
    this.#advanceRole(now);
  }

  /** The log ends with `lastZxid`, and `replica` is the state after it. */
  truncated(replica: Replica, lastZxid: Zxid, now: Now): void {
    const state = this.#state;
    state.disk.replaced(lastZxid);
    state.replaceReplica(replica, now);
    state.committedLog.truncate(lastZxid);
    state.observer.historyReplaced('trunc', lastZxid);
    this.#role.truncated(lastZxid, now);
    this.#advanceRole(now);
  }

  /** The log could not be cut, and is as it was. */
  truncationRefused(now: Now): void {
    this.#state.disk.truncationRefused();
    this.#role.truncationRefused();
    this.#advanceRole(now);
  }

  /** The folder holds the state as of `zxid`, and nothing else. */
  installed(zxid: Zxid, now: Now): void {
    this.#state.disk.replaced(zxid);
    this.#state.observer.historyReplaced('snap', zxid);
    this.#role.snapshotInstalled(now);
    this.#advanceRole(now);
  }

  /** The log that `readLog` asked for is more than is worth sending. */
  logReadRefused(channel: ChannelId, now: Now): void {
    this.#role.logReadRefused(channel);
    this.#wakeRole(now);
  }

  /** Txns of the log that `readLog` asked for, in order; `isEnd` when there are no more. */
  logRead(channel: ChannelId, entries: readonly LogEntry[], isEnd: boolean): void {
    this.#role.logRead(channel, entries, isEnd);
  }

  // ---- time

  /**
   * Input: the process did nothing for longer than a tick, so that input may wait. A server whose
   * peers have given it up meanwhile stops serving before it reads any of that input.
   */
  resumedAfterPause(now: Now): void {
    this.#role.resumed(now);
    this.#advanceRole(now);
  }

  /** See `Server.wake` for `inputWatermarkMs`. */
  wake(now: Now, inputWatermarkMs: Millis = now.elapsedMs): void {
    this.#inputWatermarkMs = inputWatermarkMs;
    this.#wakeRole(now);
  }

  #wakeRole(now: Now): void {
    this.#role.wake(now, this.#inputWatermarkMs);
    this.server?.wake(now, this.#inputWatermarkMs);
    this.#advanceRole(now);
  }

  deadline(): Millis | undefined {
    const due = earlierOf(this.#role.deadline(), this.server?.deadline());
    return this.#closedFront.isHolding ? earlierOf(due, this.#holdUntilMs) : due;
  }

  /**
   * Everything that can influence behaviour, for an explorer. Throws an `Error` if part of it
   * cannot be written down: see `Server` and `LearnerSyncer`, and a snapshot that has been loaded
   * in part.
   */
  fingerprint(to: Fingerprint, now: Now): void {
    this.#state.fingerprint(to, now);
    to.text(this.#role.name);
    to.number(this.#closedFront.isHolding ? msUntil(this.#holdUntilMs, now.elapsedMs) : -1);
    this.#role.fingerprint(to, now);
    this.server?.fingerprint(to, now);
  }
}
