export type { AcceptingProxy } from './virtual/accepting-proxy.ts';
export type { Pipe, PipeConditions, WireScheduler } from './virtual/pipe.ts';
export { VirtualNetwork } from './virtual/virtual-network.ts';
export { type VirtualCnxn, VirtualWire } from './virtual/virtual-wire.ts';
export { type MetricKind, type MetricRow, metricTable } from './metrics/metric-table.ts';
export type { Metrics, MetricSources, MetricValue, Traffic } from './metrics/metrics.ts';
export { type LoadTimes, ServerMetrics } from './metrics/server-metrics.ts';
export { AdvancedSummary, Summary } from './metrics/summary.ts';
export { MemoryGuard, type OwnMemory } from './memory-guard.ts';
export type { ClientFront as ClientCore } from '@tskeeper/core';
export { ClientPort, type ClientPortDependencies } from './ports/client/client-port.ts';
export { clientPortDefaults, type ClientPortOptions, type ClientPortSizes } from './ports/client/client-port-options.ts';
export { type DescriptorPlan, planDescriptors, warnOfShortage } from './ports/descriptor-plan.ts';
export type { CnxnList, CnxnView } from './ports/cnxn-list.ts';
export type { ElectionCore } from './ports/election/election-core.ts';
export { ElectionPort, type ElectionPortDependencies } from './ports/election/election-port.ts';
export { electionPortDefaults, type ElectionPortOptions } from './ports/election/election-port-options.ts';
export { type FourLetterWord, FourLetterWords, fourLetterWords, parseWhitelist } from './ports/four-letter-words/four-letter-words.ts';
export { RateLimitedLog } from './ports/rate-limited-log.ts';
export { LearnerPort, type LearnerPortDependencies } from './ports/learner/learner-port.ts';
export { learnerPortDefaults, type LearnerPortOptions } from './ports/learner/learner-port-options.ts';
export type { LearnerCore } from './ports/learner/learner-core.ts';
export type { PeerServer } from './ports/peer-server.ts';
export type { PortObserver } from './ports/port-observer.ts';
export type { ServerConf, ServerFacts } from './ports/server-facts.ts';
export { ReceivedList } from './received-list.ts';
export { logPrefix, snapshotPrefix } from './storage/file-names.ts';
export { installNoteName } from './storage/install-note.ts';
export { isAllZero, type OnDamagedEntry } from './storage/log-reader.ts';
export {
  afterZxid,
  damageOf,
  describeLogEnd,
  isTruncated,
  logConditionOf,
  type LogCondition,
  markMismatch,
} from './storage/log-condition.ts';
export { lostLogs, type OrphanMark } from './storage/lost-logs.ts';
export { compressionOfName } from './storage/snapshot-codec.ts';
export { isUnreadable } from './storage/snapshot-files.ts';
export { decodeMark, markBytes, type SyncedMark } from './storage/synced-mark.ts';
export { StreamTable } from './stream-table.ts';
export { ConfigFiles } from './storage/config-files.ts';
