/** The configuration of the modelled server: ZooKeeper's settings, limits and compatibility. */

import { juteMaxBufferDefault } from '@tskeeper/protocol';
import type { SaslUsers } from './sasl-rules.ts';

export interface ModelOptions {
  readonly extendedTypesEnabled: boolean;
  readonly enforceQuota: boolean;
  readonly skipAcl: boolean;
  readonly digestAuthEnabled: boolean;
  readonly superDigest: string | undefined;
  /** Undefined without SASL: then an empty token ends the exchange. */
  readonly saslUsers: SaslUsers | undefined;
  readonly reconfigEnabled: boolean;
  /** Sessions that were not opened by `openSession` exist as well, and may not own ephemerals. */
  readonly localSessions: boolean;
  readonly minSessionTimeoutMs: number;
  readonly maxSessionTimeoutMs: number;
  /** znode.container.maxNeverUsedIntervalMs */
  readonly containerMaxNeverUsedIntervalMs: number;
  /**
   * Maximum watches of one connection: paths in its two tables, whatever the modes. A request for
   * more gets ThrottledOp.
   */
  readonly watchesPerCnxnMax: number;
  /** Operations of ClickHouse Keeper. */
  readonly keeperExtensions: boolean;
  /** Numbers of sequential znodes do not end at 2147483647. */
  readonly wideSequences: boolean;
  /** jute.maxbuffer: the most bytes of a page of children. */
  readonly juteMaxBuffer: number;
  /**
   * Maximum number of identities of one connection, including its address, and their length as
   * `vector<Id>` without the count.
   */
  readonly identitiesPerCnxnMax: number;
  readonly identityBytesPerCnxnMax: number;
  /**
   * Whether to answer as Apache ZooKeeper 3.9.5 where this project deliberately differs:
   * deleteContainer accepted from clients, the zxid of an undecodable write, the counter of
   * sequential znodes that stops at 2147483647, half a reply to a multiRead with a null path, and
   * the descendants of ''.
   */
  readonly javaCompatible: boolean;
}

export const modelDefaults: ModelOptions = {
  extendedTypesEnabled: false,
  enforceQuota: false,
  skipAcl: false,
  digestAuthEnabled: true,
  superDigest: undefined,
  saslUsers: undefined,
  reconfigEnabled: false,
  localSessions: false,
  minSessionTimeoutMs: 6000,
  maxSessionTimeoutMs: 60_000,
  watchesPerCnxnMax: Infinity,
  keeperExtensions: false,
  wideSequences: false,
  juteMaxBuffer: juteMaxBufferDefault,
  identitiesPerCnxnMax: Infinity,
  identityBytesPerCnxnMax: Infinity,
  containerMaxNeverUsedIntervalMs: 0,
  javaCompatible: false,
};
