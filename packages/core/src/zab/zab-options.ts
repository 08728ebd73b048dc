import type { Millis, Sid } from '@tskeeper/protocol';

/** What an operator can set that changes how a leader and its learners get on with each other. Defaults are ZooKeeper's. */
export interface ZabOptions {
  /** `myid`: this server's number. */
  readonly sid: Sid;
  /** tickTime */
  readonly tickTimeMs: Millis;
  /** initLimit: how long a learner may take to connect and to be brought up to date. */
  readonly initLimitTicks: number;
  /** syncLimit: for how long a learner or a leader may be silent. */
  readonly syncLimitTicks: number;
  /**
   * zookeeper.leader.maxTimeToWaitForEpoch: a leader that has waited longer for a quorum to come gives up as soon as one of its voters looks for
   * a leader. Default: syncLimit. In ZooKeeper it waits for initLimit by default, whatever they do.
   */
  readonly maxTimeToWaitForEpochMs?: Millis;
  /** tskeeper.maxUnknownObservers: how many learners may join that the configuration does not have. Default: 16. */
  readonly unknownObserversMax?: number | undefined;
  /** zookeeper.forceSnapshotSync: learners are always sent a snapshot. */
  readonly forceSnapshotSync: boolean;
  /** zookeeper.leader.maxConcurrentSnapSyncs: to how many observers of the configuration a snapshot is sent at a time. Voters do not count. */
  readonly snapSyncsMax?: number;
  /** zookeeper.leader.maxConcurrentDiffSyncs: for how many learners that do not vote the log is read at a time. */
  readonly diffSyncsMax?: number;
  /** An epoch's txns are numbered up to here; then its leader hands over, so that another epoch begins. */
  readonly counterMax: number;
}

export const snapSyncsMaxDefault = 10;
export const diffSyncsMaxDefault = 100;
