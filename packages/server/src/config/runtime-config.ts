/**
 * The options of the runtime: folders, log, snapshots, connections of clients. Most are one key
 * each; the others have rules of their own.
 */
import type { QuorumServer } from '@tskeeper/protocol';
import { runtimeDefaults, type RuntimeOptions } from '@tskeeper/runtime';
import { fourLetterWords } from '@tskeeper/runtime/internal';
import { readClientEndpoint } from './client-endpoint.ts';
import { ConfigError } from './config-error.ts';
import type { ConfigSettings } from './config-settings.ts';
import type { ConfigSources } from './config-sources.ts';
import { commaList } from './setting-values.ts';

/** Commands of the Java server that are not four letter words. */
const javaOnlyWords = ['telnet close'];
/** ZooKeeper's purge keeps at least this many, whatever is configured. */
const snapshotsKeptMin = 3;
const hourMs = 3_600_000;

export interface DataFolders {
  readonly dataDir: string;
  readonly dataLogDir: string;
}

/** `server` is the line of this server in the list of servers, if there is one. */
export function readRuntimeOptions(
  { dataDir, dataLogDir }: DataFolders,
  sources: ConfigSources,
  server: QuorumServer | undefined,
  settings: ConfigSettings,
): RuntimeOptions {
  return {
    unsafe: unsafeSettings(settings),
    dataDir,
    dataLogDir,
    dataDirAutocreate: settings.boolean('datadir.autocreate'),
    dbAutocreate: settings.boolean('db.autocreate'),
    snapshotTrustEmpty: settings.boolean('snapshot.trust.empty'),
    snapCount: settings.int('snapCount'),
    snapSizeLimitBytes: Math.max(0, settings.int('snapSizeLimitInKb')) * 1024,
    txnLogSizeLimitBytes: Math.max(0, settings.int('txnLogSizeLimitInKb')) * 1024,
    preAllocSizeBytes: settings.int('preAllocSize') * 1024,
    forceSync: settings.boolean('forceSync'),
    fsyncWarningThresholdMs: settings.int('fsync.warningthresholdms'),
    flushDelayMs: settings.int('flushDelay'),
    maxWriteQueuePollMs: settings.maybeInt('maxWriteQueuePollTime') ?? Math.floor(settings.int('flushDelay') / 3),
    maxBatchSize: settings.int('maxBatchSize'),
    snapshotCompression: snapshotCompression(settings),
    serializeLastProcessedZxid: settings.boolean('serializeLastProcessedZxid.enabled'),
    snapRetainCount: snapRetainCount(settings),
    purgeIntervalMs: settings.int('autopurge.purgeInterval') * hourMs,
    ...readClientEndpoint(sources, server, settings),
    clientPortListenBacklog: minusOneIsDefault(settings.int('clientPortListenBacklog')),
    maxClientCnxns: settings.int('maxClientCnxns'),
    maxCnxns: settings.int('maxCnxns'),
    fourLetterWords: enabledWords(settings),
    sessionlessTimeoutMs: settings.int('nio.sessionlessCnxnTimeout'),
    largeRequestThreshold: settings.int('largeRequestThreshold'),
    largeRequestMaxBytes: settings.int('largeRequestMaxBytes'),
    heldBytesMax: runtimeDefaults.heldBytesMax,
    connectionThrottle: {
      tokens: settings.int('connection_throttle_tokens'),
      fillTimeMs: settings.int('connection_throttle_fill_time'),
      fillCount: settings.int('connection_throttle_fill_count'),
      freezeTimeMs: settings.int('connection_throttle_freeze_time'),
      dropIncrease: settings.real('connection_throttle_drop_increase'),
      dropDecrease: settings.real('connection_throttle_drop_decrease'),
      decreaseRatio: settings.real('connection_throttle_decrease_ratio'),
      weightEnabled: settings.boolean('connection_throttle_weight_enabled'),
      ...sessionWeights(settings),
    },
  };
}

function unsafeSettings(settings: ConfigSettings): readonly string[] {
  const unsafe: [string, string][] = [];
  if (!settings.boolean('forceSync'))
    unsafe.push(['forceSync=no', 'writes are acknowledged before the disk has them, and a loss of power loses them']);
  if (settings.boolean('skipACL')) unsafe.push(['skipACL=yes', 'every client may read and change every znode']);
  if (settings.boolean('snapshot.trust.empty')) unsafe.push(['snapshot.trust.empty=true', 'missing snapshots go unnoticed']);
  for (const [setting, consequence] of unsafe) {
    settings.warn(
      settings.where(setting.slice(0, setting.indexOf('='))),
      `UNSAFE: ${setting}: ${consequence}. Do not run it where data matters.`,
    );
  }
  return unsafe.map(([setting]) => setting);
}

function snapshotCompression(settings: ConfigSettings): 'none' | 'gz' | 'snappy' {
  const name = 'snapshot.compression.method';
  const value = settings.text(name).toLowerCase();
  switch (value) {
    case '':
    case 'none':
      return 'none';
    case 'gz':
    case 'snappy':
      return value;
    default:
      throw new ConfigError(`${settings.where(name)}: ${name} must be gz, snappy or empty, not "${value}".`);
  }
}

function snapRetainCount(settings: ConfigSettings): number {
  const name = 'autopurge.snapRetainCount';
  const count = settings.int(name);
  if (count < snapshotsKeptMin) settings.warn(settings.where(name), `${name} is raised to ${snapshotsKeptMin}, the minimum.`);
  return Math.max(snapshotsKeptMin, count);
}

function enabledWords(settings: ConfigSettings): readonly string[] {
  const name = '4lw.commands.whitelist';
  const asked = commaList(settings.text(name));
  // zkServer.sh asks srvr for the status, and a client that looks for a server that is not
  // read-only asks isro.
  const known: readonly string[] = fourLetterWords;
  const enabled = new Set(asked.includes('*') ? known : ['srvr', ...asked]);
  if (settings.boolean('readonlymode.enabled')) enabled.add('isro');
  for (const word of asked) {
    if (javaOnlyWords.includes(word)) settings.notice(settings.where(name), word, 'it is for the Java server');
    else if (word !== '*' && !known.includes(word)) {
      settings.warn(settings.where(name), `${name} names ${word}, which is not a four letter word; known are ${known.join(', ')}.`);
    }
  }
  return known.filter((word) => enabled.has(word));
}

function sessionWeights(settings: ConfigSettings): { globalSessionWeight: number; localSessionWeight: number; renewSessionWeight: number } {
  const localSessionWeight = settings.int('connection_throttle_local_session_weight');
  // A session that is written to the log cannot cost less than one that is not.
  return {
    globalSessionWeight: Math.max(localSessionWeight, settings.int('connection_throttle_global_session_weight')),
    localSessionWeight,
    renewSessionWeight: Math.max(localSessionWeight, settings.int('connection_throttle_renew_session_weight')),
  };
}

function minusOneIsDefault(value: number): number | undefined {
  return value < 0 ? undefined : value;
}
