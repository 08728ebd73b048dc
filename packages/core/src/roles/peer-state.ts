/**
 * What a server of an ensemble keeps from role to role: its state in memory, what is on its disk,
 * its election, its configuration, and which leaders it has failed to follow.
 */
import { incarnationOf, makeZxid, type Millis, type PacketView, type QuorumConfig, type Sid, type Zxid } from '@tskeeper/protocol';
import { LeaderBackoff } from '../election/leader-backoff.ts';
import { FastLeaderElection } from '../election/fast-leader-election.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { PeerOptions } from '../peer-options.ts';
import type { PeerIo } from '../peer-io.ts';
import type { Configuration } from '../quorum/configuration.ts';
import type { ConfigListener } from '../quorum/election-config.ts';
import type { Random } from '../random.ts';
import type { SequencerFactory } from '../request/local-sequencer.ts';
import type { MemoryState } from '../request/memory-limits.ts';
import { Replica, replicaOptions, type ReplicaOptions } from '../request/replica.ts';
import type { LeaderTxn } from '../request/leader-forwarder.ts';
import { Server } from '../server.ts';
import type { CommittedLog } from '../zab/committed-log.ts';
import { LeaderConnector } from '../zab/leader-connector.ts';
import { LeaderPreference } from '../zab/leader-preference.ts';
import { DiskState, type PersistedState } from '../zab/disk-state.ts';
import { ObserverMasters } from '../zab/observer-masters.ts';

/** What a start has found in the data folder. */
export interface PeerStart extends PersistedState {
  /** The state after every txn of the log. */
  readonly replica: Replica;
  /** The last txns of the log. */
  readonly committedLog: CommittedLog;
  /** The zxid of the snapshot that recovery began with; 0 for none. */
  readonly snapshotZxid: Zxid;
}

/** What a server of an ensemble is made of. */
export interface PeerDependencies {
  readonly options: PeerOptions;
  /** As the server's files have it; the peer adds what its log has. */
  readonly config: Configuration;
  readonly start: PeerStart;
  /** Placed over each packet that arrives or is sent; shared with the learner port. */
  readonly packetView: PacketView;
  readonly io: PeerIo;
  readonly random: Random;
  readonly observer: Observer;
}

const leaderConnectDelayMsDefault = 100;

export class PeerState implements ConfigListener {
  readonly options: PeerOptions;
  readonly packetView: PacketView;
  readonly io: PeerIo;
  readonly random: Random;
  readonly observer: Observer;
  /** Of this process; see `LearnerInfo`. */
  readonly incarnation: number;
  readonly disk: DiskState;
  readonly config: Configuration;
  readonly election: FastLeaderElection;
  readonly leaderBackoff: LeaderBackoff;
  readonly leaderPreference: LeaderPreference;
  /** The servers that this one learns from as an observer; undefined if that is the leader. */
  readonly #observerMasters: ObserverMasters | undefined;
  readonly committedLog: CommittedLog;
  readonly replicaOptions: ReplicaOptions;
  /** The state in memory. A TRUNC or a SNAP replaces it. */
  replica: Replica;
  /** This server has applied every txn of the log after this one, so none is missing in between. */
  logCompleteFromZxid: Zxid;
  /**
   * The epoch whose leader this server asks for a snapshot, see `LearnerStart.resyncEpoch`; 0 for
   * none.
   */
  resyncEpoch = 0;
  /** For the observer only. */
  lookingSinceMs: Millis = 0;
  /** Other servers have reported another pending configuration, and the election must begin anew. */
  #isReportNew = false;
  memory: { readonly state: MemoryState; readonly watchesMayGrow: boolean } = { state: 'ample', watchesMayGrow: true };

  constructor({ options, config, start, packetView, io, random, observer }: PeerDependencies) {
    this.options = options;
    this.packetView = packetView;
    this.io = io;
    this.random = random;
    this.observer = observer;
    this.config = config;
    this.disk = new DiskState(start, io.storage);
    this.leaderBackoff = new LeaderBackoff(options.zab);
    this.leaderPreference = new LeaderPreference(options.zab.initLimitTicks * options.zab.tickTimeMs);
    this.incarnation = incarnationOf(random.uint32(), random.uint32());
    this.replicaOptions = replicaOptions(options.core, random);
    this.replica = start.replica;
    this.committedLog = start.committedLog;
    this.logCompleteFromZxid = start.snapshotZxid;
    const { core, zab, election, observerMasterEnabled = false, observerReconnectDelayMs = 0 } = options;
    if (observerMasterEnabled) this.#observerMasters = new ObserverMasters(random, observerReconnectDelayMs);
    const electionOptions = { ...election, sid: zab.sid, reconfigEnabled: core.reconfigEnabled };
    this.election = new FastLeaderElection(electionOptions, this.config, io.election, this);
    // The log decides: a crash may have taken from it what is in the file, or the other way round. What an operator
    // has written stays until others confirm a later configuration: the log may know old addresses only.
    if (this.config.readFrom(this.replica.tree)) {
      if (!this.config.overrulesFiles) this.disk.saveConfig(this.config.members, this.config.lastSeen);
      this.#publishMembers();
    }
    this.config.storeIn(this.replica.tree);
  }

  /** As ZooKeeper calls this server when it has a leader. */
  get learnerState(): 'following' | 'observing' {
    return this.config.ownRole === 'observer' ? 'observing' : 'following';
  }

  // ---- leaders

  /** Dials a leader, with a pause if this server has failed with it before. */
  connectTo(leader: Sid, now: Now): LeaderConnector {
    this.leaderBackoff.attemptStarted(now);
    const masters = this.#mastersUnder(leader);
    const options = {
      zab: this.options.zab,
      retryDelayMsMax: this.options.leaderConnectDelayMs ?? leaderConnectDelayMsDefault,
      initialDelayMs: this.leaderBackoff.dialDelayMs(leader) + (masters === undefined ? this.#reconnectDelayMs() : 0),
      masters,
    };
    return new LeaderConnector(leader, options, this.io.quorum, now);
  }

  /**
   * The servers that an observer may learn from; undefined: the leader. A leader that is a quorum by
   * itself, or with an oracle, may have no follower, and refuses observers at its observerMasterPort.
   */
  #mastersUnder(leader: Sid): ObserverMasters | undefined {
    const { ownRole, verifier } = this.config;
    if (ownRole !== 'observer' || verifier.mayLackMajority || verifier.containsQuorum({ has: (sid) => sid === leader })) return undefined;
    this.#observerMasters?.setVoters(verifier.voters);
    return this.#observerMasters;
  }

  /** Many observers that have lost one leader must not all dial the next one at once. */
  #reconnectDelayMs(): Millis {
    const { observerReconnectDelayMs: maxMs = 0 } = this.options;
    return this.config.ownRole === 'observer' && maxMs > 0 ? this.random.uint32() % maxMs : 0;
  }

  leaderAttemptFailed(leader: Sid, now: Now, wasRefused = false): void {
    const backoffMs = this.leaderBackoff.attemptFailed(leader, now, wasRefused);
    if (backoffMs > 0) this.election.eligibility.backOff(leader, now.elapsedMs + backoffMs);
  }

  // ---- the configuration

  /** `text` may become active next: from here on both configurations count. */
  configProposed(text: string, now: Now): void {
    if (this.config.maybeSee(text)) this.#configChanged(now);
  }

  /**
   * `text` is committed. `isTxn`: by a txn, which shows it in the tree when it is applied. Returns
   * whether it is later than the active one.
   */
  activateConfig(text: string, isTxn: boolean, now: Now): boolean {
    if (!this.config.maybeActivate(text)) return false;
    if (!isTxn) this.config.storeIn(this.replica.tree);
    this.#configChanged(now);
    return true;
  }

  /** As `ConfigListener`: the servers that may confirm it can be reached from here on. */
  configSeen(from: Sid, config: QuorumConfig): boolean {
    if (!this.config.maybeNoteAnnouncement(from, config)) return false;
    this.#publishMembers();
    return true;
  }

  /** As `ConfigListener`. */
  pendingConfigSeen(from: Sid, text: string | undefined): void {
    if (!this.config.maybeNotePending(from, text)) return;
    this.#isReportNew = true;
    this.#publishMembers();
  }

  /** Activates what enough servers have announced. Returns whether other quorums count now. */
  followAnnouncements(now: Now): boolean {
    const isReportNew = this.#isReportNew;
    this.#isReportNew = false;
    if (!this.config.maybeActivateAnnounced()) return isReportNew;
    this.config.storeIn(this.replica.tree);
    this.#configChanged(now);
    return true;
  }

  #configChanged(now: Now): void {
    const { members, lastSeen } = this.config;
    this.disk.saveConfig(members, lastSeen);
    this.#publishMembers();
    this.election.quorumChanged(now);
  }

  #publishMembers(): void {
    this.io.members?.changed(this.config.members, this.config.others);
  }

  /** The last leader has named the next one, so there is no election. */
  appoint(leader: Sid, now: Now): void {
    const { election, disk, options } = this;
    const { lastZxid: zxid, currentEpoch: peerEpoch } = disk.persisted;
    const vote = { leader, zxid, electionEpoch: election.electionEpoch, peerEpoch };
    this.observer.leaderAppointed(leader);
    election.finalize({ state: leader === options.zab.sid ? 'leading' : this.learnerState, vote }, now);
  }

  // ---- the state in memory

  /** Another replica takes the place of the one in memory. */
  replaceReplica(replica: Replica, now: Now): void {
    this.replica = replica;
    this.config.storeIn(replica.tree);
    // What the log had proposed may be gone.
    if (this.config.readFrom(replica.tree)) this.#configChanged(now);
  }

  apply({ header, txn, digest }: LeaderTxn, now: Now): void {
    const job = this.replica.apply(header, txn, digest);
    // This server serves no clients yet, so it applies the txn to its end.
    if (job !== undefined) while (job.next(now).done !== true);
  }

  // ---- serving

  /**
   * This server leads, or is in step with its leader. No txn has the first zxid of an epoch: it
   * stands for everything of the epochs before.
   */
  startEpoch(epoch: number): void {
    this.observer.epochStarted(epoch, this.replica.lastZxid);
    this.replica.lastZxid = Math.max(this.replica.lastZxid, makeZxid(epoch, 0));
  }

  onSynced(): void {
    this.leaderBackoff.clear();
    this.election.eligibility.clearBackoff();
  }

  newServer(now: Now, createSequencer: SequencerFactory, recordsTouches: boolean): Server {
    const server = new Server(
      this.options.core,
      this.io.clients,
      this.random,
      this.observer,
      now,
      createSequencer,
      this.replica,
      recordsTouches,
    );
    server.setMemoryState(this.memory.state, this.memory.watchesMayGrow);
    return server;
  }

  /** Everything of this that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, now: Now): void {
    this.disk.fingerprint(to);
    to.number(this.logCompleteFromZxid);
    to.number(this.resyncEpoch);
    to.text(`${this.memory.state} ${this.memory.watchesMayGrow}`);
    this.replica.fingerprint(to);
    this.committedLog.fingerprint(to);
    this.config.fingerprint(to);
    this.election.fingerprint(to, now);
    this.leaderBackoff.fingerprint(to);
    this.leaderPreference.fingerprint(to, now.elapsedMs);
    this.#observerMasters?.fingerprint(to);
  }
}
