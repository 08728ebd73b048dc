export {
  ConnectionThrottle,
  connectionThrottleDefaults,
  type ConnectionThrottleOptions,
  type SessionKind,
} from './cnxn/connection-throttle.ts';
export type { ElectionOptions, ElectionOutcome } from './election/election-options.ts';
export { FastLeaderElection } from './election/fast-leader-election.ts';
export type { Vote } from './election/vote.ts';
export { Fifo } from './fifo.ts';
export type { Fingerprint } from './fingerprint.ts';
export { Configuration } from './quorum/configuration.ts';
export type { ElectionConfig } from './quorum/election-config.ts';
export { HierarchicalQuorum, type HierarchicalQuorumOptions } from './quorum/hierarchical-quorum.ts';
export { JointQuorum } from './quorum/joint-quorum.ts';
export { MajorityQuorum } from './quorum/majority-quorum.ts';
export { OracleQuorum } from './quorum/oracle-quorum.ts';
export type { QuorumVerifier, SidSet } from './quorum/quorum-verifier.ts';
export { verifierOf } from './quorum/config-verifier.ts';
export { StepBudget, stepUnitsDefault } from './step-budget.ts';
export { FairQueue, FairShare } from './request/fair-queue.ts';
export { Replica, replicaOptions } from './request/replica.ts';
export { ExpiryQueue } from './session/expiry-queue.ts';
export { fileLimits, type LoadedSnapshot, type SnapshotLimits, SnapshotLoader } from './snapshot/snapshot-loader.ts';
export type { DataTree, NodeId, NodeKind } from './tree/data-tree.ts';
export { CommittedLog, committedLogDefaults, type CommittedLogOptions, isPossibleSuccessor } from './zab/committed-log.ts';
export type { LogEntry } from './zab/learner-syncer.ts';
export { logBytesMax, LogWalk, planSync, type SyncPlan } from './zab/sync-plan.ts';
export { AuthToLocal } from './auth/kerberos-name.ts';
export { SaslNames } from './auth/sasl-names.ts';
export { saslProvider } from './auth/sasl-provider.ts';
