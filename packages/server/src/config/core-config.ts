/**
 * The options of the core: sessions, requests, authentication, znodes. Most are one key each; the
 * others have rules of their own, which are ZooKeeper's unless a comment says otherwise.
 */
import { type AuthProvider, coreDefaults, type CoreOptions } from '@tskeeper/core';
import { digestAlgorithmDefault, isDigestAlgorithm } from '@tskeeper/protocol';
import { readAuthProviders, readEnsembleAuth } from './auth-providers.ts';
import { ConfigError } from './config-error.ts';
import { findKey } from './config-keys.ts';
import type { ConfigSettings } from './config-settings.ts';
import { readSasl } from './sasl-config.ts';
import { commaList } from './setting-values.ts';

/** Room in addition to a frame that ZooKeeper grants at least. */
const juteExtraMin = 1024;
/** Ordinary requests are longer than this. */
const juteMaxBufferUsualMin = 1024;

/** What depends on the ensemble, if there is one. */
export type ServerIdentity = Pick<CoreOptions, 'serverId' | 'localSessions'>;

export function readCoreOptions({ serverId, localSessions }: ServerIdentity, settings: ConfigSettings): CoreOptions {
  const tickTimeMs = settings.int('tickTime');
  const [minSessionTimeoutMs, maxSessionTimeoutMs] = sessionTimeouts(tickTimeMs, settings);
  const juteMaxBufferBytes = juteMaxBuffer(settings);
  const authProviders = readAuthProviders(settings);
  const sasl = readSasl(settings);
  return {
    serverId,
    tickTimeMs,
    minSessionTimeoutMs,
    maxSessionTimeoutMs,
    juteMaxBuffer: juteMaxBufferBytes,
    juteMaxBufferExtra: Math.max(juteExtraMin, settings.maybeInt('jute.maxbuffer.extrasize') ?? juteMaxBufferBytes),
    extendedTypesEnabled: settings.boolean('extendedTypesEnabled'),
    emulate353TtlNodes: settings.boolean('emulate353TTLNodes'),
    enforceQuota: settings.boolean('enforceQuota'),
    keeperExtensions: settings.boolean('tskeeper.keeperExtensions'),
    wideSequences: settings.boolean('tskeeper.wideSequences'),
    skipAcl: settings.boolean('skipACL'),
    digestAuthEnabled: settings.boolean('DigestAuthenticationProvider.enabled'),
    superDigest: superDigest(settings),
    digestAlgorithm: digestAlgorithm(settings),
    treeDigestEnabled: settings.boolean('digest.enabled'),
    closeSessionTxnEnabled: settings.boolean('closeSessionTxn.enabled'),
    reconfigEnabled: settings.boolean('reconfigEnabled'),
    localSessions,
    containerCheckIntervalMs: settings.int('znode.container.checkIntervalMs'),
    containerMaxPerMinute: settings.int('znode.container.maxPerMinute'),
    containerMaxNeverUsedIntervalMs: settings.int('znode.container.maxNeverUsedIntervalMs'),
    globalOutstandingLimit: settings.int('globalOutstandingLimit'),
    inFlightBytesMax: coreDefaults.inFlightBytesMax,
    watchesPerCnxnMax: coreDefaults.watchesPerCnxnMax,
    identitiesPerCnxnMax: coreDefaults.identitiesPerCnxnMax,
    identityBytesPerCnxnMax: coreDefaults.identityBytesPerCnxnMax,
    identityBytesPerAddressMax: coreDefaults.identityBytesPerAddressMax,
    exemptIdentityBytes: coreDefaults.exemptIdentityBytes,
    shortAclEntriesMax: coreDefaults.shortAclEntriesMax,
    stepUnits: coreDefaults.stepUnits,
    requestThrottleLimit: settings.int('request_throttle_max_requests'),
    requestThrottleStallMs: settings.int('request_throttle_stall_time'),
    requestThrottleDropStale: settings.boolean('request_throttle_drop_stale'),
    throttledOpWaitMs: settings.int('throttled_op_wait_time'),
    enforcedAuthSchemes: enforcedAuthSchemes(authProviders, sasl !== undefined, settings),
    sasl,
    allowsFailedSasl: settings.boolean('allowSaslFailedClients'),
    ensembleAuth: readEnsembleAuth(settings),
    authProviders,
  };
}

function sessionTimeouts(tickTimeMs: number, settings: ConfigSettings): [number, number] {
  const [least, most] = [settings.int('minSessionTimeout'), settings.int('maxSessionTimeout')];
  const minMs = least === -1 ? 2 * tickTimeMs : least;
  const maxMs = most === -1 ? 20 * tickTimeMs : most;
  if (minMs > maxMs) {
    const where = settings.where(least === -1 ? 'maxSessionTimeout' : 'minSessionTimeout');
    throw new ConfigError(
      `${where}: minSessionTimeout (${minMs} ms) must not be larger than maxSessionTimeout (${maxMs} ms). Change one of them.`,
    );
  }
  return [minMs, maxMs];
}

function superDigest(settings: ConfigSettings): string | undefined {
  const name = 'DigestAuthenticationProvider.superDigest';
  const value = settings.text(name);
  if (value === '') return undefined;
  // The value is the hash of a secret, or by mistake the secret itself: the message does not
  // repeat it.
  if (!/^[^:]+:[A-Za-z0-9+/]+=*$/.test(value)) {
    throw new ConfigError(
      `${settings.where(name)}: ${name} must be super:<base64 of the digest of "super:password">, not a plain-text password.`,
    );
  }
  return value;
}

function digestAlgorithm(settings: ConfigSettings): string {
  const name = 'DigestAuthenticationProvider.digestAlg';
  const value = settings.text(name) || digestAlgorithmDefault;
  if (!isDigestAlgorithm(value)) {
    throw new ConfigError(
      `${settings.where(name)}: ${name} names an unknown digest, "${value}". Choose SHA1, SHA-256 or SHA-512, the same on all servers.`,
    );
  }
  return value.toUpperCase();
}

/** The schemes of which a client must have one before it may send requests. */
function enforcedAuthSchemes(providers: readonly AuthProvider[], offersSasl: boolean, settings: ConfigSettings): readonly string[] {
  const saslKey = 'sessionRequireClientSASLAuth';
  const key = settings.boolean(saslKey) ? saslKey : 'enforce.auth.schemes';
  const schemes = settings.boolean(saslKey) ? ['sasl'] : requestedSchemes(settings);
  const available = [
    ...(settings.boolean('DigestAuthenticationProvider.enabled') ? ['digest', 'ip'] : ['ip']),
    ...providers.map(({ scheme }) => scheme),
  ];
  const missing = schemes.find((scheme) => !available.includes(scheme));
  const saslClass = 'authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider';
  if (missing === 'sasl')
    throw new ConfigError(`${settings.where(key)}: ${key} asks for sasl, which this server does not offer. Add ${saslClass}.`);
  if (missing !== undefined) {
    throw new ConfigError(
      `${settings.where(key)}: ${key} names ${missing}, which this server does not offer. Name some of: ${available.join(', ')}.`,
    );
  }
  if (schemes.length === 1 && schemes[0] === 'sasl' && !offersSasl) {
    settings.warn(
      settings.where(key),
      `${key} asks for sasl only, and no JAAS section is for clients: every client is refused. Pass -Djava.security.auth.login.config=<file>.`,
    );
  }
  return schemes;
}

function requestedSchemes(settings: ConfigSettings): readonly string[] {
  if (!settings.boolean('enforce.auth.enabled')) return [];
  const schemes = commaList(settings.text('enforce.auth.schemes'));
  if (schemes.length === 0) {
    throw new ConfigError(
      `${settings.where('enforce.auth.enabled')}: enforce.auth.enabled needs enforce.auth.schemes, such as enforce.auth.schemes=digest.`,
    );
  }
  return schemes;
}

function juteMaxBuffer(settings: ConfigSettings): number {
  const name = 'jute.maxbuffer';
  const bytes = settings.int(name);
  if (bytes < juteMaxBufferUsualMin) {
    settings.warn(
      settings.where(name),
      `${name} is ${bytes} bytes: the server closes the connection of a client that sends a longer request, and most requests are longer. Remove the setting to use the default of ${findKey(name, ['bare'])!.default}.`,
    );
  }
  return bytes;
}
