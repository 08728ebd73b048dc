/**
 * What a server of an ensemble keeps from role to role: its state in memory, what is on its disk, its election, its
 * configuration, and which leaders it has failed to follow.
 */
import { incarnationOf, makeZxid, type Millis, type PacketView, type Sid, type Zxid } from '@tskeeper/protocol';
import { Attempts } from '../election/attempts.ts';
import { type ElectionConfig, FastLeaderElection } from '../election/fast-leader-election.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Observer } from '../observer.ts';
import type { PeerOptions } from '../peer-options.ts';
import type { PeerIo } from '../peer-io.ts';
import { Configuration } from '../quorum/configuration.ts';
import type { Random } from '../random.ts';
import type { OrderFactory } from '../request/authority.ts';
import type { MemoryState } from '../request/memory-limits.ts';
import { Replica, replicaOptions, type ReplicaOptions } from '../request/replica.ts';
import type { SentTxn } from '../request/forwarding.ts';
import { Server } from '../server.ts';
import type { CommittedLog } from '../zab/committed-log.ts';
import { Dialling } from '../zab/dialling.ts';
import { DiskState, type FoundOnDisk } from '../zab/disk-state.ts';

/** What a start has found in the data folder. */
export interface Recovered extends FoundOnDisk {
  /** The state after every txn of the log. */
  readonly replica: Replica;
  /** The last txns of the log. */
  readonly committedLog: CommittedLog;
  /** The zxid of the snapshot that recovery began with; 0 for none. */
  readonly snapshotZxid: Zxid;
}

const leaderConnectDelayMsDefault = 100;

export class PeerState {
  readonly options: PeerOptions;
  readonly view: PacketView;
  readonly io: PeerIo;
  readonly random: Random;
  readonly observer: Observer;
  /** Of this process; see `LearnerInfo`. */
  readonly incarnation: number;
  readonly disk: DiskState;
  readonly config: Configuration;
  readonly election: FastLeaderElection;
  readonly attempts: Attempts;
  readonly committedLog: CommittedLog;
  readonly replicaOptions: ReplicaOptions;
  /** The state in memory. A TRUNC or a SNAP replaces it. */
  replica: Replica;
  /** This server has applied every txn of the log after this one, so none is missing in between. */
  wholeFrom: Zxid;
  /** The epoch whose leader this server asks for a snapshot, see `LearnerStart.snapshotIn`; 0 for none. */
  snapshotIn = 0;
  /** For the observer only. */
  lookingSinceMs: Millis = 0;
  memory: { readonly state: MemoryState; readonly watchesMayGrow: boolean } = { state: 'ample', watchesMayGrow: true };

  constructor(
    options: PeerOptions,
    config: ElectionConfig,
    recovered: Recovered,
    view: PacketView,
    io: PeerIo,
    random: Random,
    observer: Observer,
  ) {
    this.options = options;
    this.view = view;
    this.io = io;
    this.random = random;
    this.observer = observer;
    this.config = new Configuration(config, options.core.reconfigEnabled);
    this.disk = new DiskState(recovered, io.storage);
    this.attempts = new Attempts(options.zab);
    this.incarnation = incarnationOf(random.uint32(), random.uint32());
    this.replicaOptions = replicaOptions(options.core, random);
    this.replica = recovered.replica;
    this.committedLog = recovered.committedLog;
    this.wholeFrom = recovered.snapshotZxid;
    const { core, zab, role, election } = options;
    const electionOptions = { ...election, sid: zab.sid, role, reconfigEnabled: core.reconfigEnabled };
    this.election = new FastLeaderElection(electionOptions, config, io.election, this.config);
  }

  /** As ZooKeeper calls this server when it has a leader. */
  get learnerState(): 'following' | 'observing' {
    return this.options.role === 'observer' ? 'observing' : 'following';
  }

  // ---- leaders

  /** Dials a leader, with a pause if this server has failed with it before. */
  connectTo(leader: Sid, now: Now): Dialling {
    this.attempts.begin(now);
    const options = {
      zab: this.options.zab,
      delayMsMax: this.options.leaderConnectDelayMs ?? leaderConnectDelayMsDefault,
      pauseMs: this.attempts.pauseMsBefore(leader),
    };
    return new Dialling(leader, options, this.io.quorum, now);
  }

  failedWith(leader: Sid, now: Now, wasRefused = false): void {
    const shunnedMs = this.attempts.failedWith(leader, now, wasRefused);
    if (shunnedMs > 0) this.election.shun(leader, now.elapsedMs + shunnedMs);
  }

  // ---- the configuration

  /** `text` is in force, or this server has only heard of it and is late. */
  maybeAdopt(text: string, now: Now): void {
    if (this.config.maybeAdopt(text)) this.#configAdopted(now);
  }

  maybeAdoptHeard(now: Now): void {
    if (this.config.maybeAdoptHeard()) this.#configAdopted(now);
  }

  maybeAdoptKept(now: Now): void {
    if (this.config.maybeAdoptKept(this.replica.tree)) this.#configAdopted(now);
  }

  #configAdopted(now: Now): void {
    this.config.keepIn(this.replica.tree);
    this.election.reconfigure(this.config.active, now);
  }

  // ---- the state in memory

  /** Another replica takes the place of the one in memory. */
  replaceReplica(replica: Replica): void {
    this.replica = replica;
    this.config.keepIn(replica.tree);
  }

  apply({ header, txn, digest }: SentTxn, now: Now): void {
    const job = this.replica.apply(header, txn, digest);
    // This server serves no clients yet, so it applies the txn to its end.
    if (job !== undefined) while (job.next(now).done !== true);
  }

  // ---- serving

  /** This server leads, or is in step with its leader. No txn has the first zxid of an epoch: it stands for everything of the epochs before. */
  beginEpoch(epoch: number): void {
    this.observer.epochBegun(epoch, this.replica.lastZxid);
    this.replica.lastZxid = Math.max(this.replica.lastZxid, makeZxid(epoch, 0));
  }

  synced(): void {
    this.attempts.succeeded();
    this.election.forgive();
  }

  newServer(now: Now, orderOf: OrderFactory, notesTouches: boolean): Server {
    // No server carries out a reconfig yet, so each answers it as if it were switched off, also where `reconfigEnabled` lets servers
    // exchange the version of their configuration.
    const options = { ...this.options.core, reconfigEnabled: false };
    const server = new Server(options, this.io.clients, this.random, this.observer, now, orderOf, this.replica, notesTouches);
    server.memory(this.memory.state, this.memory.watchesMayGrow);
    return server;
  }

  /** Everything of this that can influence behaviour, for an explorer. */
  fingerprint(to: Fingerprint, now: Now): void {
    this.disk.fingerprint(to);
    to.number(this.wholeFrom);
    to.number(this.snapshotIn);
    to.text(`${this.memory.state} ${this.memory.watchesMayGrow}`);
    this.replica.fingerprint(to);
    this.committedLog.fingerprint(to);
    this.config.fingerprint(to);
    this.election.fingerprint(to, now);
    this.attempts.fingerprint(to);
  }
}
