import type { Millis, Sid } from '@tskeeper/protocol';

/** Options that affect a leader and its learners. Defaults are ZooKeeper's. */
export interface ZabOptions {
  /** `myid`: the id of this server. */
  readonly sid: Sid;
  /** tickTime */
  readonly tickTimeMs: Millis;
  /** initLimit: how long a learner may take to connect and to be synchronised. */
  readonly initLimitTicks: number;
  /** syncLimit: how long a learner or a leader may be silent. */
  readonly syncLimitTicks: number;
  /**
   * zookeeper.leader.maxTimeToWaitForEpoch: a leader that has waited longer for a quorum gives up
   * as soon as one of its voters looks for a leader. Default: syncLimit, since a voter that looks
   * does not follow, and another election takes less time than the rest of initLimit. ZooKeeper by
   * default waits for initLimit in any case.
   */
  readonly maxTimeToWaitForEpochMs?: Millis;
  /**
   * tskeeper.maxUnknownObservers: how many learners outside the configuration may join. Default:
   * 16.
   */
  readonly unknownObserversMax?: number | undefined;
  /** zookeeper.forceSnapshotSync: learners are always sent a snapshot. */
  readonly forceSnapshotSync: boolean;
  /**
   * zookeeper.leader.maxConcurrentSnapSyncs: to how many observers of the configuration a snapshot
   * is sent at a time. Voters do not count.
   */
  readonly snapSyncsMax?: number;
  /**
   * zookeeper.leader.maxConcurrentDiffSyncs: for how many learners that do not vote the log is read
   * at a time.
   */
  readonly diffSyncsMax?: number;
  /**
   * The last counter of an epoch's txns; then its leader gives up, so that another epoch begins.
   */
  readonly counterMax: number;
  /**
   * `tskeeper.leaderPriority`: a leader gives the lead to a follower with a higher one. 0: never
   * leads while another can. Default: 1.
   */
  readonly leaderPriority?: number | undefined;
}

/** `tskeeper.leaderPriority`. */
export const leaderPriorityDefault = 1;
export const snapSyncsMaxDefault = 10;
export const diffSyncsMaxDefault = 100;
