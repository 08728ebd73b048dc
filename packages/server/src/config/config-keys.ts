/**
 * Every key that zoo.cfg or a -D setting may hold, with its default and its effect on this server.
 * The table is the source of `docs/reference/config.md`, and a test compares the two.
 *
 * A key that protects something and is not supported stops the start: a server that ignored
 * `secureClientPort` would be open where its operator believes it closed. A key that only observes
 * warns. A key that tunes internals this server does not have is accepted.
 */
import { editDistance } from '@tskeeper/protocol/internal';

export interface ConfigKey {
  /** A name that ends in `.*` covers a family of keys. */
  readonly name: string;
  /**
   * Where ZooKeeper reads it. `file`: in zoo.cfg only. `property`: the system property
   * `zookeeper.<name>`, which zoo.cfg sets too when it names the key without the prefix. `bare`:
   * the system property `<name>`, which zoo.cfg cannot set. `either`: both properties.
   */
  readonly source: 'file' | 'property' | 'bare' | 'either';
  readonly value: ValueKind;
  /** As written in zoo.cfg; empty for none. */
  readonly default: string;
  /** `ensemble`: every server reads and checks it, and only an ensemble uses it. */
  readonly status: 'built' | 'ensemble' | 'no effect' | 'warns' | 'stops';
  /** For `stops` and `warns`: what the key asks for. For `no effect`: why it has none. */
  readonly reason?: string;
  /** Values at which a key that stops or warns asks for nothing. */
  readonly inertValues?: readonly string[];
}

type ValueKind =
  | 'boolean'
  | 'yes or no'
  | 'text'
  | { readonly min: number; readonly max: number }
  | { readonly real: true; readonly min?: number };

const int32Max = 2 ** 31 - 1;
const whole = { min: 0, max: int32Max };
const positive = { min: 1, max: int32Max };
/** -1 means "the default" or "off". */
const orMinusOne = { min: -1, max: int32Max };
const any = { min: -(2 ** 31), max: int32Max };
const port = { min: 0, max: 65_535 };
/** The limit keeps the number of bytes an exact integer. */
const kilobytes = { min: -1, max: 2 ** 42 };

const ensemble = 'it matters in an ensemble only';
const jvm = 'it tunes internals of the Java server';
const client = 'only clients read it';
const tlsOrSasl = 'it matters with TLS or SASL only';
const logging = 'it sets up the logging of the Java server';

const closeNeverBlocks = 'closing a connection never blocks the server';
const oneQueue = "a request of a learner's client waits in one place only, so there is no second one to skip";
const oneWrite = 'the output of a turn for a server is sent in one write, at once';

const off = ['false'];

type Facts = Partial<Omit<ConfigKey, 'name'>>;
const built = (name: string, source: ConfigKey['source'], value: ValueKind, fallback: string): ConfigKey => {
  return { name, source, value, default: fallback, status: 'built' };
};
const inEnsemble = (name: string, source: ConfigKey['source'], value: ValueKind, fallback: string): ConfigKey => {
  return { name, source, value, default: fallback, status: 'ensemble', reason: ensemble };
};
const withoutEffect = (name: string, reason: string, facts: Facts = {}): ConfigKey => {
  return { name, source: 'property', value: 'text', default: '', status: 'no effect', reason, ...facts };
};
const stops = (name: string, reason: string, facts: Facts = {}): ConfigKey => {
  return { name, source: 'property', value: 'text', default: '', status: 'stops', reason, ...facts };
};
const warns = (name: string, reason: string, facts: Facts = {}): ConfigKey => {
  return { name, source: 'property', value: 'text', default: '', status: 'warns', reason, ...facts };
};
const file = (value: ValueKind, fallback = ''): Facts => ({ source: 'file', value, default: fallback });

export const configKeys: readonly ConfigKey[] = [
  // Data folders and client addresses.
  built('dataDir', 'file', 'text', ''),
  built('dataLogDir', 'file', 'text', ''),
  built('clientPort', 'file', port, ''),
  built('clientPortAddress', 'file', 'text', ''),
  built('clientPortListenBacklog', 'file', orMinusOne, '-1'),
  built('clientTcpKeepAlive', 'property', 'boolean', 'false'),
  built('datadir.autocreate', 'property', 'boolean', 'true'),
  built('db.autocreate', 'property', 'boolean', 'true'),
  stops('secureClientPort', 'a TLS client port', file(port)),
  stops('secureClientPortAddress', 'a TLS client port', file('text')),
  stops('client.portUnification', 'TLS on the client port', { value: 'boolean', default: 'false', inertValues: off }),

  // Sessions and time.
  built('tickTime', 'file', positive, '3000'),
  built('minSessionTimeout', 'file', orMinusOne, '-1'),
  built('maxSessionTimeout', 'file', orMinusOne, '-1'),
  built('nio.sessionlessCnxnTimeout', 'property', positive, '10000'),
  inEnsemble('localSessionsEnabled', 'file', 'boolean', 'false'),
  inEnsemble('localSessionsUpgradingEnabled', 'file', 'boolean', 'false'),

  // Log and snapshots.
  built('snapCount', 'property', { min: 2, max: int32Max }, '100000'),
  built('snapSizeLimitInKb', 'property', kilobytes, '4194304'),
  built('txnLogSizeLimitInKb', 'property', kilobytes, '-1'),
  built('preAllocSize', 'property', { min: 0, max: 2 ** 21 }, '65536'),
  built('forceSync', 'property', 'yes or no', 'yes'),
  built('fsync.warningthresholdms', 'either', whole, '1000'),
  built('flushDelay', 'property', whole, '0'),
  built('maxWriteQueuePollTime', 'property', whole, ''),
  built('maxBatchSize', 'property', whole, '1000'),
  built('snapshot.compression.method', 'property', 'text', ''),
  built('snapshot.trust.empty', 'property', 'boolean', 'false'),
  built('serializeLastProcessedZxid.enabled', 'property', 'boolean', 'true'),
  built('digest.enabled', 'property', 'boolean', 'true'),
  built('closeSessionTxn.enabled', 'property', 'boolean', 'true'),
  built('autopurge.snapRetainCount', 'file', whole, '3'),
  built('autopurge.purgeInterval', 'file', whole, '1'),
  inEnsemble('commitLogCount', 'property', whole, '500'),

  // Limits.
  built('jute.maxbuffer', 'bare', { min: 1, max: 2 ** 30 }, '1048575'),
  built('jute.maxbuffer.extrasize', 'property', { min: 0, max: 2 ** 30 }, ''),
  built('maxClientCnxns', 'file', whole, '60'),
  built('maxCnxns', 'property', whole, '0'),
  // Ours: the Java server has -Xmx instead.
  built('tskeeper.memoryLimitInMb', 'file', { min: 64, max: 2 ** 32 }, ''),
  // Ours: operations that ZooKeeper does not have.
  built('tskeeper.keeperExtensions', 'file', 'boolean', 'false'),
  // Ours: ZooKeeper's numbers of sequential znodes have 32 bits.
  built('tskeeper.wideSequences', 'file', 'boolean', 'false'),
  built('globalOutstandingLimit', 'property', positive, '1000'),
  built('request_throttle_max_requests', 'property', whole, '0'),
  built('request_throttle_stall_time', 'property', positive, '100'),
  built('request_throttle_drop_stale', 'property', 'boolean', 'true'),
  built('throttled_op_wait_time', 'property', whole, '0'),
  built('largeRequestThreshold', 'property', orMinusOne, '-1'),
  built('largeRequestMaxBytes', 'property', positive, '104857600'),
  built('connection_throttle_tokens', 'property', whole, '0'),
  built('connection_throttle_fill_time', 'property', positive, '1'),
  built('connection_throttle_fill_count', 'property', whole, '1'),
  built('connection_throttle_freeze_time', 'property', orMinusOne, '-1'),
  built('connection_throttle_drop_increase', 'property', { real: true }, '0.02'),
  built('connection_throttle_drop_decrease', 'property', { real: true }, '0.002'),
  built('connection_throttle_decrease_ratio', 'property', { real: true }, '0'),
  built('connection_throttle_weight_enabled', 'property', 'boolean', 'false'),
  built('connection_throttle_global_session_weight', 'property', positive, '3'),
  built('connection_throttle_local_session_weight', 'property', positive, '1'),
  built('connection_throttle_renew_session_weight', 'property', positive, '2'),
  warns('request_stale_connection_check', 'a finer rule for dropping requests', {
    value: 'boolean',
    default: 'true',
    inertValues: ['true'],
  }),
  warns('request_stale_latency_check', 'a finer rule for dropping requests', { value: 'boolean', default: 'false', inertValues: off }),

  // Znodes.
  built('extendedTypesEnabled', 'property', 'boolean', 'false'),
  built('emulate353TTLNodes', 'property', 'boolean', 'false'),
  built('enforceQuota', 'property', 'boolean', 'false'),
  built('znode.container.checkIntervalMs', 'bare', whole, '60000'),
  built('znode.container.maxPerMinute', 'bare', positive, '10000'),
  built('znode.container.maxNeverUsedIntervalMs', 'bare', whole, '0'),
  built('reconfigEnabled', 'file', 'boolean', 'false'),

  // Access control.
  built('skipACL', 'property', 'yes or no', 'no'),
  built('DigestAuthenticationProvider.enabled', 'property', 'boolean', 'true'),
  built('DigestAuthenticationProvider.superDigest', 'property', 'text', ''),
  built('DigestAuthenticationProvider.digestAlg', 'property', 'text', 'SHA1'),
  built('enforce.auth.enabled', 'property', 'boolean', 'false'),
  built('enforce.auth.schemes', 'property', 'text', ''),
  withoutEffect('enableEagerACLCheck', 'the leader checks the ACL of every write', { value: 'boolean', default: 'false' }),
  built('sessionRequireClientSASLAuth', 'property', 'boolean', 'false'),
  built('authProvider.*', 'property', 'text', ''),
  stops('ssl.*', 'TLS'),
  stops('sslQuorum', 'TLS between servers', { ...file('boolean', 'false'), inertValues: off }),
  stops('portUnification', 'TLS between servers', { ...file('boolean', 'false'), inertValues: off }),
  withoutEffect('sslQuorumReloadCertFiles', tlsOrSasl, file('boolean', 'false')),
  stops('quorum.auth.enableSasl', 'SASL between servers', { ...file('boolean', 'false'), inertValues: off }),
  stops('quorum.auth.serverRequireSasl', 'SASL between servers', { ...file('boolean', 'false'), inertValues: off }),
  stops('quorum.auth.learnerRequireSasl', 'SASL between servers', { ...file('boolean', 'false'), inertValues: off }),
  withoutEffect('quorum.auth.learner.saslLoginContext', tlsOrSasl, file('text', 'QuorumLearner')),
  withoutEffect('quorum.auth.server.saslLoginContext', tlsOrSasl, file('text', 'QuorumServer')),
  withoutEffect('quorum.auth.kerberos.servicePrincipal', tlsOrSasl, file('text', 'zkquorum/localhost')),
  stops('audit.enable', 'an audit log', { value: 'boolean', default: 'false', inertValues: off }),
  withoutEffect('audit.impl.class', 'audit.enable decides'),
  built('java.security.auth.login.config', 'bare', 'text', ''),
  warns('X509AuthenticationProvider.superUser', 'a super user known by certificate'),
  built('superUser', 'property', 'text', ''),
  built('superUser.*', 'property', 'text', ''),
  built('SASLAuthenticationProvider.superPassword', 'property', 'text', ''),
  built('allowSaslFailedClients', 'property', 'boolean', 'false'),
  built('letAnySaslUserDoX', 'property', 'text', ''),
  built('requireKerberosConfig', 'property', 'boolean', 'false'),
  withoutEffect('kinit', tlsOrSasl),
  built('kerberos.removeHostFromPrincipal', 'property', 'boolean', 'false'),
  built('kerberos.removeRealmFromPrincipal', 'property', 'boolean', 'false'),
  withoutEffect('kerberos.*', tlsOrSasl),
  built('security.auth_to_local', 'property', 'text', 'DEFAULT'),
  built('java.security.krb5.conf', 'bare', 'text', '/etc/krb5.conf'),
  built('java.security.krb5.realm', 'bare', 'text', ''),
  built('sasl.serverconfig', 'property', 'text', 'Server'),
  withoutEffect('fips-mode', tlsOrSasl, { value: 'boolean', default: 'true' }),
  withoutEffect('IPAuthenticationProvider.usexforwardedfor', 'it matters on the admin port only', { value: 'boolean', default: 'false' }),
  built('ensembleAuthName', 'property', 'text', ''),

  // Monitoring.
  built('4lw.commands.whitelist', 'property', 'text', 'srvr'),
  warns('admin.*', 'the admin port', { inertValues: off }),
  warns('metricsProvider.className', 'a metrics provider', {
    ...file('text', 'org.apache.zookeeper.metrics.impl.DefaultMetricsProvider'),
    inertValues: ['org.apache.zookeeper.metrics.impl.DefaultMetricsProvider', 'org.apache.zookeeper.metrics.impl.NullMetricsProvider'],
  }),
  warns('metricsProvider.*', 'a metrics provider', file('text')),
  warns('pathStats.*', 'statistics of paths', { inertValues: off }),
  withoutEffect('messageTracker.*', 'when a learner is disconnected the log says why; its last packets are not kept for that'),
  withoutEffect('jvm.pause.monitor', jvm, file('boolean', 'false')),
  withoutEffect('jvm.pause.warn-threshold.ms', jvm, file(whole, '10000')),
  withoutEffect('jvm.pause.info-threshold.ms', jvm, file(whole, '1000')),
  withoutEffect('jvm.pause.sleep.time.ms', jvm, file(whole, '500')),

  // Ensembles.
  built('server.*', 'file', 'text', ''),
  built('dynamicConfigFile', 'file', 'text', ''),
  built('standaloneEnabled', 'file', 'boolean', 'true'),
  built('peerType', 'file', 'text', 'participant'),
  built('readonlymode.enabled', 'bare', 'boolean', 'false'),
  inEnsemble('group.*', 'file', 'text', ''),
  inEnsemble('weight.*', 'file', 'text', ''),
  inEnsemble('initLimit', 'file', whole, ''),
  inEnsemble('syncLimit', 'file', whole, ''),
  inEnsemble('connectToLearnerMasterLimit', 'file', whole, '0'),
  inEnsemble('electionAlg', 'file', { min: 3, max: 3 }, '3'),
  inEnsemble('quorumListenOnAllIPs', 'file', 'boolean', 'false'),
  inEnsemble('syncEnabled', 'file', 'boolean', 'true'),
  inEnsemble('observerMasterPort', 'file', port, '0'),
  withoutEffect('quorum.cnxn.threads.size', 'no connection needs a thread', file(whole, '20')),
  inEnsemble('oraclePath', 'file', 'text', ''),
  inEnsemble('multiAddress.enabled', 'property', 'boolean', 'false'),
  inEnsemble('multiAddress.reachabilityCheckTimeoutMs', 'property', positive, '1000'),
  inEnsemble('multiAddress.reachabilityCheckEnabled', 'property', 'boolean', 'true'),
  inEnsemble('leaderServes', 'property', 'yes or no', 'yes'),
  inEnsemble('forceSnapshotSync', 'property', 'boolean', 'false'),
  inEnsemble('snapshotSizeFactor', 'property', { real: true, min: -Number.MAX_VALUE }, '0.33'),
  inEnsemble('cnxTimeout', 'property', whole, '5000'),
  inEnsemble('quorumCnxnTimeoutMs', 'property', orMinusOne, '-1'),
  inEnsemble('electionPortBindRetry', 'property', any, '3'),
  inEnsemble('fastleader.minNotificationInterval', 'property', positive, '200'),
  inEnsemble('fastleader.maxNotificationInterval', 'property', positive, '60000'),
  inEnsemble('leader.maxConcurrentSnapSyncs', 'property', positive, '10'),
  inEnsemble('leader.maxConcurrentDiffSyncs', 'property', positive, '100'),
  inEnsemble('leader.maxTimeToWaitForEpoch', 'property', orMinusOne, '-1'),
  withoutEffect('leader.ackLoggingFrequency', 'acknowledgements are not logged', { value: any, default: '1000' }),
  withoutEffect('leader.closeSocketAsync', closeNeverBlocks, { value: 'boolean', default: 'false' }),
  withoutEffect('leader.nodelay', oneWrite, { source: 'bare', value: 'boolean', default: 'true' }),
  withoutEffect('follower.nodelay', oneWrite, { source: 'bare', value: 'boolean', default: 'true' }),
  withoutEffect('follower.skipLearnerRequestToNextProcessor', oneQueue, { value: 'boolean', default: 'false' }),
  // Ours: a ZooKeeper leader accepts any number.
  inEnsemble('tskeeper.maxUnknownObservers', 'file', whole, '16'),
  inEnsemble('tskeeper.leaderPriority', 'file', { min: 0, max: 1000 }, '1'),
  inEnsemble('leaderConnectDelayDuringRetryMs', 'property', whole, '100'),
  withoutEffect('learner.asyncSending', 'sending to the leader never blocks the server', { value: 'boolean', default: 'false' }),
  withoutEffect('learner.closeSocketAsync', closeNeverBlocks, { value: 'boolean', default: 'false' }),
  inEnsemble('observer.reconnectDelayMs', 'property', whole, '0'),
  inEnsemble('observer.election.DelayMs', 'property', whole, '200'),
  inEnsemble('observer.syncEnabled', 'property', 'boolean', ''),
  inEnsemble('observerMaster.sizeLimit', 'property', whole, '33554432'),
  inEnsemble('tcpKeepAlive', 'property', 'boolean', 'false'),
  withoutEffect('forward_learner_requests_to_commit_processor_disabled', oneQueue, { value: 'boolean', default: 'false' }),

  // Internals of the Java server.
  withoutEffect('serverCnxnFactory', jvm, { default: 'org.apache.zookeeper.server.NIOServerCnxnFactory' }),
  withoutEffect('maxResponseCacheSize', jvm, { value: any, default: '400' }),
  withoutEffect('maxGetChildrenResponseCacheSize', jvm, { value: any, default: '400' }),
  withoutEffect('watchManagerName', jvm),
  withoutEffect('watcherCleanThreadsNum', jvm),
  withoutEffect('watcherCleanIntervalInSeconds', jvm),
  withoutEffect('watcherCleanThreshold', jvm),
  withoutEffect('maxInProcessingDeadWatchers', jvm),
  withoutEffect('bitHashCacheSize', jvm),
  withoutEffect('intBufferStartingSizeBytes', jvm),
  withoutEffect('nio.numSelectorThreads', jvm),
  withoutEffect('nio.numWorkerThreads', jvm),
  withoutEffect('nio.directBufferBytes', jvm),
  withoutEffect('nio.shutdownTimeout', jvm),
  withoutEffect('netty.*', jvm),
  withoutEffect('commitProcessor.*', jvm),
  withoutEffect('request_throttler.shutdownTimeout', jvm),
  withoutEffect('jmx.*', jvm),
  withoutEffect('controllerPort', jvm),
  withoutEffect('log.*', logging),
  withoutEffect('auditlog.*', logging),
  withoutEffect('tracelog.*', logging),
  withoutEffect('root.logger', logging),
  withoutEffect('console.threshold', logging),
  withoutEffect('client.secure', client),
  withoutEffect('client.certReload', client),
  withoutEffect('clientCnxnSocket', client),
  withoutEffect('disableAutoWatchReset', client),
  withoutEffect('request.timeout', client),
  withoutEffect('sasl.client', client),
  withoutEffect('sasl.client.*', client),
  withoutEffect('sasl.clientconfig', client),
  withoutEffect('server.principal', client),
  withoutEffect('server.realm', client),
];

/** Properties of the JVM and of Java libraries, which have no effect here. */
export const jvmProperty =
  /^(java|javax|sun|com|jdk|user|file|os|line|path|log4j2?|logback|logging|slf4j|io|org|net|networkaddress|http|https)\./;

const exact = new Map(configKeys.filter(({ name }) => !name.endsWith('.*')).map((key) => [key.name, key]));
const families = configKeys.filter(({ name }) => name.endsWith('.*')).sort((a, b) => b.name.length - a.name.length);

/**
 * The key with that name and place, or the family it belongs to. `server.realm` is a property,
 * `server.1` a line of zoo.cfg.
 */
export function findKey(name: string, places: readonly ConfigKey['source'][]): ConfigKey | undefined {
  const key = exact.get(name);
  if (key !== undefined && places.includes(key.source)) return key;
  return families.find((family) => places.includes(family.source) && name.startsWith(family.name.slice(0, -1)));
}

/** The key that was probably meant: the same except for case, or a few letters different. */
export function nearestKey(name: string): string | undefined {
  const bare = name.startsWith('zookeeper.') ? name.slice('zookeeper.'.length) : name;
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(bare.length / 4)) + 1;
  for (const candidate of exact.keys()) {
    const distance = candidate.toLowerCase() === bare.toLowerCase() ? 0 : editDistance(bare, candidate);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}
