/**
 * What a learner starts with, and what it asks of the role that owns it: apply a txn, load a
 * snapshot, serve clients, use a configuration.
 */
import type { Sid, Zxid } from '@tskeeper/protocol';
import type { Now } from '../now.ts';
import type { LeaderForwarder, LeaderTxn } from '../request/leader-forwarder.ts';
import type { Server } from '../server.ts';
import type { ObserverMaster } from './observer-master.ts';
import type { RequestQueue } from './request-queue.ts';

/** The state with which a learner starts. */
export interface LearnerStart {
  readonly role: 'follower' | 'observer';
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** The last txn of its log, all of which has been applied. */
  readonly lastZxid: Zxid;
  /**
   * The epoch whose leader sent a TRUNC that was impossible: the learner reports zxid 0 to it, and
   * gets a snapshot. 0 for none.
   */
  readonly resyncEpoch: number;
  readonly configVersion: number;
  /** See `LearnerInfo`; undefined for a learner that sends none. */
  readonly incarnation?: number | undefined;
  /** See `LearnerInfo`; undefined for a learner that sends none. */
  readonly leaderPriority?: number | undefined;
  /** The elected leader. An observer may learn from another server. */
  readonly leader: Sid;
  /** Whether it will accept observers, to which each txn is sent again. */
  readonly acceptsObservers?: boolean | undefined;
}

/** A txn from the leader that has been appended to the log. */
export interface LoggedProposal extends LeaderTxn {
  /** Header, record and digest as in the log. */
  readonly entry: Buffer;
  /** The whole packet, of which `entry` is a part, at a follower that accepts observers. */
  readonly packet: Buffer | undefined;
}

/** What serves the clients of a learner. */
export interface LearnerServer {
  readonly server: Server;
  readonly forwarder: LeaderForwarder;
  /** Of a follower that accepts observers. */
  readonly observers?: ObserverMaster | undefined;
}

/** What a configuration that has become active means to a learner. */
export interface ConfigChange {
  /** False if this server does not follow the configurations of others. */
  readonly isFollowed: boolean;
  /** Whether this server is an observer now and was none before, or the other way round. */
  readonly isRoleChanged: boolean;
  /** Whether its leader may go on. */
  readonly canLeaderLeadOn: boolean;
}

/** What a learner needs from its peer. */
export interface LearnerHost {
  /** Applies a committed txn while no clients are served yet. */
  apply(sent: LoggedProposal, now: Now): void;
  /** A txn is committed. */
  committed(sent: LoggedProposal): void;
  /** A snapshot of `zxid` follows. `snapshotLoaded` is called at its end. */
  beginSnapshot(zxid: Zxid): void;
  /** Creates the server for clients. */
  startServing(epoch: number, requests: RequestQueue, now: Now): LearnerServer;
  /**
   * All txns that a snapshot of the leader may contain have been applied: a leader sends NEWLEADER
   * after it, and txns committed meanwhile in between.
   */
  historyComplete(): void;
  /**
   * A configuration that may become active next. Returns why this server cannot use it; undefined
   * if it can.
   */
  configSeen(text: string, now: Now): string | undefined;
  /**
   * A configuration is active. `isTxn`: by a txn, which changes /zookeeper/config when it is
   * applied.
   */
  configActivated(text: string, isTxn: boolean, now: Now): ConfigChange;
}
