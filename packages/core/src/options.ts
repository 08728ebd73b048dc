import { digestAlgorithmDefault, type Millis } from '@tskeeper/protocol';
import type { AuthProvider } from './auth/auth-provider.ts';
import type { SaslNames } from './auth/sasl-names.ts';
import { stepUnitsDefault } from './step-budget.ts';

/**
 * `disabled`: every session is global, created and ended by txns. `enabled`: a new session is known
 * to its server only, and may not own ephemerals. `upgradable`: it becomes global when it creates
 * its first ephemeral.
 */
export type LocalSessionMode = 'disabled' | 'enabled' | 'upgradable';

/** SASL at the client port: the mechanism that the JAAS section selects. */
export interface SaslOptions {
  readonly mechanism: 'DIGEST-MD5';
  /** Passwords by user name: the options `user_<name>` of the section. */
  readonly passwords: ReadonlyMap<string, string>;
  readonly names: SaslNames;
}

/**
 * Everything an operator can set that changes the core's decisions. Parsed once, before the core is
 * created. Defaults are ZooKeeper's.
 */
export interface CoreOptions {
  /**
   * The top byte of session ids; 1 on a standalone server. At most 254 with extended types enabled.
   */
  readonly serverId: number;
  readonly tickTimeMs: Millis;
  readonly minSessionTimeoutMs: Millis;
  readonly maxSessionTimeoutMs: Millis;
  /** jute.maxbuffer: the largest frame accepted, in bytes. */
  readonly juteMaxBuffer: number;
  /**
   * jute.maxbuffer.extrasize: how much longer than a frame a single buffer or string may be, so
   * that the disk can hold everything the wire can.
   */
  readonly juteMaxBufferExtra: number;
  /** zookeeper.extendedTypesEnabled: TTL znodes. */
  readonly extendedTypesEnabled: boolean;
  /** zookeeper.emulate353TTLNodes: read TTLs in the layout of 3.5.3. */
  readonly emulate353TtlNodes: boolean;
  /** zookeeper.enforceQuota: hard limits refuse with QuotaExceeded. */
  readonly enforceQuota: boolean;
  /** tskeeper.keeperExtensions: operations of ClickHouse Keeper. */
  readonly keeperExtensions: boolean;
  /** tskeeper.wideSequences: numbers of sequential znodes do not end at 2147483647. */
  readonly wideSequences: boolean;
  /** zookeeper.skipACL */
  readonly skipAcl: boolean;
  /** zookeeper.DigestAuthenticationProvider.enabled */
  readonly digestAuthEnabled: boolean;
  /** zookeeper.DigestAuthenticationProvider.superDigest, `super:base64`. */
  readonly superDigest: string | undefined;
  /**
   * zookeeper.DigestAuthenticationProvider.digestAlg, one for which `isDigestAlgorithm` is true:
   * `SHA1`, `SHA-256` ...
   */
  readonly digestAlgorithm: string;
  /** zookeeper.digest.enabled: the tree digest in txns and snapshots. */
  readonly treeDigestEnabled: boolean;
  /** zookeeper.closeSessionTxn.enabled: closeSession txns contain the paths they delete. */
  readonly closeSessionTxnEnabled: boolean;
  /**
   * reconfigEnabled: clients may change the membership of an ensemble while it runs, and servers
   * follow the configurations of others. Off, reconfig fails with ReconfigDisabled; a standalone
   * server with it on answers Unimplemented.
   */
  readonly reconfigEnabled: boolean;
  /**
   * localSessionsEnabled and localSessionsUpgradingEnabled, for a server of an ensemble. A
   * standalone server has no other server to save work for: `disabled`. In read-only mode a server
   * that is `disabled` answers a client that asks for a new session NotReadOnly.
   */
  readonly localSessions: LocalSessionMode;
  /** znode.container.checkIntervalMs; 0 disables the sweeps of containers and TTL znodes. */
  readonly containerCheckIntervalMs: Millis;
  /** znode.container.maxPerMinute */
  readonly containerMaxPerMinute: number;
  /**
   * znode.container.maxNeverUsedIntervalMs; 0 keeps a container that never had a child forever.
   */
  readonly containerMaxNeverUsedIntervalMs: Millis;
  /**
   * zookeeper.globalOutstandingLimit: above this number of outstanding requests, a connection with
   * one of its own is not read, unless its address has less than an equal share.
   */
  readonly globalOutstandingLimit: number;
  /**
   * Above this number of bytes of outstanding requests, such a connection is not read; above eight
   * times as much, nothing may grow.
   */
  readonly inFlightBytesMax: number;
  /** Maximum number of watches of one connection. */
  readonly watchesPerCnxnMax: number;
  /** Maximum number of identities of one connection, including its address. */
  readonly identitiesPerCnxnMax: number;
  /**
   * Maximum size of these as `vector<Id>`, in bytes; never more than servers accept from each other
   * (jute.maxbuffer with its extra).
   */
  readonly identityBytesPerCnxnMax: number;
  /**
   * Bytes of identities that a learner is forwarding to its leader for the connections of one
   * address; above it, a connection with more than `exemptIdentityBytes` of its own is not read.
   * Requests of others are sent after them, and a connection may send all its identities with each
   * request.
   */
  readonly identityBytesPerAddressMax: number;
  /**
   * A connection with at most this many bytes of identities outstanding is read, whatever its
   * address has.
   */
  readonly exemptIdentityBytes: number;
  /** An ACL with more entries gets an index for look-ups. 0: every ACL with entries. */
  readonly shortAclEntriesMax: number;
  /**
   * zookeeper.request_throttle_max_requests: outstanding requests above which new ones wait; 0 = no
   * limit.
   */
  readonly requestThrottleLimit: number;
  /**
   * zookeeper.request_throttle_stall_time: how long a waiting request waits before it is checked
   * again.
   */
  readonly requestThrottleStallMs: Millis;
  /** zookeeper.request_throttle_drop_stale: drop waiting requests whose connection is closed. */
  readonly requestThrottleDropStale: boolean;
  /**
   * zookeeper.throttled_op_wait_time: a request that waited longer is answered ThrottledOp; 0 =
   * never.
   */
  readonly throttledOpWaitMs: Millis;
  /**
   * zookeeper.enforce.auth.schemes if zookeeper.enforce.auth.enabled; empty = every client may send
   * requests.
   */
  readonly enforcedAuthSchemes: readonly string[];
  /**
   * How clients prove an identity by SASL; undefined if the server has no JAAS section for them, and
   * then it answers their tokens with an empty one.
   */
  readonly sasl: SaslOptions | undefined;
  /**
   * zookeeper.allowSaslFailedClients: a client whose SASL exchange fails is served without an
   * identity, unless the server requires one.
   */
  readonly allowsFailedSasl: boolean;
  /**
   * Clients may name the ensemble that they mean (auth/ensemble-provider.ts); undefined without the
   * provider. `names`: zookeeper.ensembleAuthName; undefined: every name is right.
   */
  readonly ensembleAuth: { readonly names: readonly string[] | undefined } | undefined;
  /**
   * Units of work (step-budget.ts) of one step, after which other input is processed. A
   * simulator sets it small, to interrupt work often.
   */
  readonly stepUnits: number;
  /**
   * Schemes in addition to `ip` and `digest`, or replacing them; for a program that creates a
   * server itself.
   */
  readonly authProviders: readonly AuthProvider[];
}

export const coreDefaults: CoreOptions = {
  serverId: 1,
  tickTimeMs: 3000,
  minSessionTimeoutMs: 6000,
  maxSessionTimeoutMs: 60_000,
  juteMaxBuffer: 0xfffff,
  juteMaxBufferExtra: 0xfffff,
  extendedTypesEnabled: false,
  emulate353TtlNodes: false,
  enforceQuota: false,
  keeperExtensions: false,
  wideSequences: false,
  skipAcl: false,
  digestAuthEnabled: true,
  superDigest: undefined,
  digestAlgorithm: digestAlgorithmDefault,
  treeDigestEnabled: true,
  closeSessionTxnEnabled: true,
  reconfigEnabled: false,
  localSessions: 'disabled',
  containerCheckIntervalMs: 60_000,
  containerMaxPerMinute: 10_000,
  containerMaxNeverUsedIntervalMs: 0,
  globalOutstandingLimit: 1000,
  inFlightBytesMax: 64 * 1024 ** 2,
  watchesPerCnxnMax: 1_000_000,
  identitiesPerCnxnMax: 1000,
  identityBytesPerCnxnMax: 64 * 1024,
  identityBytesPerAddressMax: 512 * 1024,
  exemptIdentityBytes: 32 * 1024,
  shortAclEntriesMax: 16,
  requestThrottleLimit: 0,
  requestThrottleStallMs: 100,
  requestThrottleDropStale: true,
  throttledOpWaitMs: 0,
  enforcedAuthSchemes: [],
  sasl: undefined,
  allowsFailedSasl: false,
  ensembleAuth: undefined,
  stepUnits: stepUnitsDefault,
  authProviders: [],
};
