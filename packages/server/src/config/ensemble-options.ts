/** The options of a server of an ensemble, from its configuration. */
import type { HostPort } from '@tskeeper/protocol';
import type { EnsembleOptions } from '@tskeeper/runtime';
import { ConfigError } from './config-error.ts';
import type { EnsembleConfig } from './ensemble-config.ts';

/**
 * From this number of txns on an epoch ends. ZooKeeper counts to 0xffffffff and stops serving
 * there; an earlier end leaves room for everything in flight.
 */
const counterMax = 0xffff_0000;

/** Throws a `ConfigError` when the configuration asks for something that is not supported. */
export function ensembleOptionsOf(config: EnsembleConfig, tickTimeMs: number): EnsembleOptions {
  const [unsupported] = config.unsupported;
  if (unsupported !== undefined) throw new ConfigError(unsupported);
  const { myid, quorum, quorumListenOnAllIps } = config;
  const { addresses } = quorum.servers.get(myid)!;
  const own = (portOf: (address: (typeof addresses)[number]) => number): HostPort[] => {
    const all = addresses.map((address) => ({ host: quorumListenOnAllIps ? '0.0.0.0' : address.host, port: portOf(address) }));
    // Two addresses with the same port are one wildcard address.
    return all.filter(({ host, port }, index) => all.findIndex((other) => other.host === host && other.port === port) === index);
  };
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
      ...(config.maxTimeToWaitForEpochMs === undefined ? {} : { maxTimeToWaitForEpochMs: config.maxTimeToWaitForEpochMs }),
    },
    role: config.role,
    quorum,
    electionAddresses: own(({ electionPort }) => electionPort),
    quorumAddresses: own(({ quorumPort }) => quorumPort),
    cnxTimeoutMs: config.cnxTimeoutMs,
    quorumCnxnTimeoutMs: config.quorumCnxnTimeoutMs,
    bindTriesMax: config.electionPortBindRetry,
    multiAddressEnabled: config.multiAddressEnabled,
    connectToLeaderMs: config.connectToLearnerMasterTicks * tickTimeMs,
    leaderConnectDelayMs: config.leaderConnectDelayDuringRetryMs,
    minNotificationIntervalMs: config.minNotificationIntervalMs,
    maxNotificationIntervalMs: config.maxNotificationIntervalMs,
    observerElectionDelayMs: config.observerElectionDelayMs,
    leaderServes: config.leaderServes,
    commitLogCount: config.commitLogCount,
    snapshotSizeFactor: config.snapshotSizeFactor,
  };
}
