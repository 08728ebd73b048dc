import { digestAlgorithmDefault, type Millis } from '@tskeeper/protocol';
import type { AuthProvider } from './auth/auth-provider.ts';
import { stepUnitsDefault } from './request/budget.ts';

/** Everything an operator can set that changes what the core decides. Parsed once, before the core is built. Defaults are ZooKeeper's. */
export interface CoreOptions {
  /** Goes into the top byte of session ids; 1 on a standalone server. At most 254 while extended types are on. */
  readonly serverId: number;
  readonly tickTimeMs: Millis;
  readonly minSessionTimeoutMs: Millis;
  readonly maxSessionTimeoutMs: Millis;
  /** jute.maxbuffer: the largest frame accepted, in bytes. */
  readonly juteMaxBuffer: number;
  /** jute.maxbuffer.extrasize: how much longer a single buffer or text may be than a frame, so that disk can hold what the wire brought. */
  readonly juteMaxBufferExtra: number;
  /** zookeeper.extendedTypesEnabled: TTL znodes. */
  readonly extendedTypesEnabled: boolean;
  /** zookeeper.emulate353TTLNodes: read TTLs in the layout of 3.5.3. */
  readonly emulate353TtlNodes: boolean;
  /** zookeeper.enforceQuota: hard limits refuse with QuotaExceeded. */
  readonly enforceQuota: boolean;
  /** zookeeper.skipACL */
  readonly skipAcl: boolean;
  /** zookeeper.DigestAuthenticationProvider.enabled */
  readonly digestAuthEnabled: boolean;
  /** zookeeper.DigestAuthenticationProvider.superDigest, `super:base64`. */
  readonly superDigest: string | undefined;
  /** zookeeper.DigestAuthenticationProvider.digestAlg, one of those `isDigestAlgorithm` knows: `SHA1`, `SHA-256` ... */
  readonly digestAlgorithm: string;
  /** zookeeper.digest.enabled: the tree digest in txns and snapshots. */
  readonly treeDigestEnabled: boolean;
  /** zookeeper.closeSessionTxn.enabled: closeSession txns carry the paths they delete. */
  readonly closeSessionTxnEnabled: boolean;
  /**
   * reconfigEnabled: a standalone server answers reconfig with ReconfigDisabled (off) or Unimplemented (on). Servers of an ensemble answer
   * ReconfigDisabled either way; where it is on they exchange the version of their configuration, as ZooKeeper's do.
   */
  readonly reconfigEnabled: boolean;
  /** znode.container.checkIntervalMs; 0 turns the sweeps of containers and TTL znodes off. */
  readonly containerCheckIntervalMs: Millis;
  /** znode.container.maxPerMinute */
  readonly containerMaxPerMinute: number;
  /** znode.container.maxNeverUsedIntervalMs; 0 keeps a container that never had a child for ever. */
  readonly containerMaxNeverUsedIntervalMs: Millis;
  /**
   * zookeeper.globalOutstandingLimit: with more requests than this under way, a connection that has one of its own is not read from, unless its
   * address has less than an equal share.
   */
  readonly globalOutstandingLimit: number;
  /** With more bytes than this held for requests under way, such a connection is not read from; at eight times as much, nothing may grow. */
  readonly inFlightBytesMax: number;
  /** Watches of one connection. */
  readonly watchesPerCnxnMax: number;
  /** Identities of one connection, its address included. */
  readonly identitiesPerCnxnMax: number;
  /** How long these may be as `vector<Id>`, in bytes; never more than servers take from each other (jute.maxbuffer with its extra). */
  readonly identityBytesPerCnxnMax: number;
  /**
   * Identities on their way from a learner to its leader for the connections of one address, in bytes; with more, a connection is not read from that has
   * more than `fewIdentityBytes` of its own. What others ask of this learner stands behind them in the stream, and a connection may send all it has with
   * each request.
   */
  readonly identityBytesPerAddressMax: number;
  /** A connection with at most so many bytes of identities under way is read, whatever its address has. */
  readonly fewIdentityBytes: number;
  /** An ACL with more entries has an index, in which what matches is looked up. 0: each that has any. */
  readonly shortAclEntriesMax: number;
  /** zookeeper.request_throttle_max_requests: requests in flight before new ones wait; 0 = no limit. */
  readonly requestThrottleLimit: number;
  /** zookeeper.request_throttle_stall_time: how long a waiting request waits before it is looked at again. */
  readonly requestThrottleStallMs: Millis;
  /** zookeeper.request_throttle_drop_stale: drop waiting requests whose connection is gone. */
  readonly requestThrottleDropStale: boolean;
  /** zookeeper.throttled_op_wait_time: a request that waited longer is answered ThrottledOp; 0 = never. */
  readonly throttledOpWaitMs: Millis;
  /** zookeeper.enforce.auth.schemes while zookeeper.enforce.auth.enabled; empty = anyone may work. */
  readonly enforcedAuthSchemes: readonly string[];
  /** Units of work (request/budget.ts) of one step, after which others are heard. A simulator makes it small, so that much is left over. */
  readonly turnUnits: number;
  /** Schemes beside `ip` and `digest`, or in their place; for a program that builds a server itself. */
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
  skipAcl: false,
  digestAuthEnabled: true,
  superDigest: undefined,
  digestAlgorithm: digestAlgorithmDefault,
  treeDigestEnabled: true,
  closeSessionTxnEnabled: true,
  reconfigEnabled: false,
  containerCheckIntervalMs: 60_000,
  containerMaxPerMinute: 10_000,
  containerMaxNeverUsedIntervalMs: 0,
  globalOutstandingLimit: 1000,
  inFlightBytesMax: 64 * 1024 ** 2,
  watchesPerCnxnMax: 1_000_000,
  identitiesPerCnxnMax: 1000,
  identityBytesPerCnxnMax: 64 * 1024,
  identityBytesPerAddressMax: 512 * 1024,
  fewIdentityBytes: 32 * 1024,
  shortAclEntriesMax: 16,
  requestThrottleLimit: 0,
  requestThrottleStallMs: 100,
  requestThrottleDropStale: true,
  throttledOpWaitMs: 0,
  enforcedAuthSchemes: [],
  turnUnits: stepUnitsDefault,
  authProviders: [],
};
