/** What is known of a znode besides its data, as the client shows it. */
import type { Millis, SessionId, Stat as WireStat } from '@tskeeper/protocol';

/** ZooKeeper's Stat. zxids are bigints, since they are 64-bit numbers; `formatZxid` prints them as ZooKeeper does. */
export interface Stat {
  /** The txn that created the znode. */
  readonly czxid: bigint;
  /** The txn that last changed its data. */
  readonly mzxid: bigint;
  /** The txn that last created or deleted a child. */
  readonly pzxid: bigint;
  /** Wall clock of the leader, in ms since 1970, when the znode was created. */
  readonly ctime: Millis;
  /** The same for the last change of its data, in ms as well. */
  readonly mtime: Millis;
  /** Changes of the data: what `setData` and `delete` compare. */
  readonly version: number;
  /** Creates and deletes of children. */
  readonly cversion: number;
  /** Changes of the ACL: what `setACL` compares. */
  readonly aversion: number;
  /** The session an ephemeral lives as long as; 0n for every other kind. */
  readonly ephemeralOwner: SessionId;
  /** Bytes of data. */
  readonly dataLength: number;
  /** Children there are, not those below them. */
  readonly numChildren: number;
}

/** Exact: a connection that speaks of zxids beyond 2^53 is refused by the session (docs/decisions/zxid-as-number.md). */
export function toStat(stat: WireStat): Stat {
  return {
    czxid: BigInt(stat.czxid),
    mzxid: BigInt(stat.mzxid),
    pzxid: BigInt(stat.pzxid),
    ctime: stat.ctime,
    mtime: stat.mtime,
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: stat.ephemeralOwner,
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  };
}
