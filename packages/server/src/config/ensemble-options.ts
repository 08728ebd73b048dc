/** The options of a server of an ensemble, from its configuration. */
import { resolve } from 'node:path';
import type { EnsembleOptions } from '@tskeeper/runtime';
import { editedConfig } from './edited-config.ts';
import type { EnsembleConfig } from './ensemble-config.ts';

/**
 * From this number of txns on an epoch ends. ZooKeeper counts to 0xffffffff and stops serving
 * there; an earlier end leaves room for everything in flight.
 */
const counterMax = 0xffff_0000;

/**
 * `configFile` is the path of zoo.cfg, which a reconfiguration rewrites; without one it is kept in the
 * log only.
 */
export function ensembleOptionsOf(config: EnsembleConfig, tickTimeMs: number, configFile?: string): EnsembleOptions {
  const { myid, quorum, lastSeen, reconfigEnabled, dynamicConfigFile } = config;
  return {
    zab: {
      sid: myid,
      tickTimeMs,
      initLimitTicks: config.initLimitTicks,
      syncLimitTicks: config.syncLimitTicks,
      forceSnapshotSync: config.forceSnapshotSync,
      snapSyncsMax: config.snapSyncsMax,
      diffSyncsMax: config.diffSyncsMax,
      counterMax,
      unknownObserversMax: config.maxUnknownObservers,
      leaderPriority: config.leaderPriority,
      ...(config.maxTimeToWaitForEpochMs === undefined ? {} : { maxTimeToWaitForEpochMs: config.maxTimeToWaitForEpochMs }),
    },
    quorum,
    ...(reconfigEnabled && {
      lastSeen: lastSeen !== undefined && lastSeen.version > quorum.version ? lastSeen : undefined,
      configFile:
        configFile === undefined
          ? undefined
          : { path: resolve(configFile), namesServers: dynamicConfigFile === undefined, edit: editedConfig },
    }),
    standaloneEnabled: config.standaloneEnabled,
    listensOnAllIps: config.quorumListenOnAllIps,
    cnxTimeoutMs: config.cnxTimeoutMs,
    quorumCnxnTimeoutMs: config.quorumCnxnTimeoutMs,
    bindTriesMax: config.electionPortBindRetry,
    multiAddressEnabled: config.multiAddressEnabled,
    reachabilityCheckTimeoutMs: config.reachabilityCheckTimeoutMs,
    connectToLeaderMs: config.connectToLearnerMasterTicks * tickTimeMs,
    leaderConnectDelayMs: config.leaderConnectDelayDuringRetryMs,
    minNotificationIntervalMs: config.minNotificationIntervalMs,
    maxNotificationIntervalMs: config.maxNotificationIntervalMs,
    observerElectionDelayMs: config.observerElectionDelayMs,
    observerReconnectDelayMs: config.observerReconnectDelayMs,
    observerMasterPort: config.observerMasterPort,
    observerMasterSizeLimitBytes: config.observerMasterSizeLimitBytes,
    syncEnabled: config.syncEnabled,
    leaderServes: config.leaderServes,
    readOnlyMode: config.readOnlyMode,
    commitLogCount: config.commitLogCount,
    snapshotSizeFactor: config.snapshotSizeFactor,
  };
}
