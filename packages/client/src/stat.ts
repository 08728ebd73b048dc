/** A znode's metadata, as the client returns it. */
import { formatSessionId, formatZxid, type Millis, type SessionId, type Stat as WireStat } from '@tskeeper/protocol';

/**
 * ZooKeeper's Stat. zxids are bigints, as they have 64 bits; `formatZxid` prints them as ZooKeeper
 * does. JSON has no bigints: `JSON.stringify` writes zxids and `ephemeralOwner` as ZooKeeper prints
 * them, `"0x100000001"`, and `BigInt` parses that (for a session id, `BigInt.asIntN(64, ...)`).
 */
export interface Stat {
  /** The txn that created the znode. */
  readonly czxid: bigint;
  /** The txn that last changed its data. */
  readonly mzxid: bigint;
  /** The txn that last created or deleted a child. */
  readonly pzxid: bigint;
  /** Creation time by the leader's wall clock, in ms since 1970. */
  readonly ctime: Millis;
  /** Time of the last change of the data, in ms since 1970. */
  readonly mtime: Millis;
  /** Number of changes of the data; `setData` and `delete` compare it. */
  readonly version: number;
  /** Number of creates and deletes of children. */
  readonly cversion: number;
  /** Number of changes of the ACL; `setACL` compares it. */
  readonly aversion: number;
  /** The session that an ephemeral belongs to; 0n for other znodes. */
  readonly ephemeralOwner: SessionId;
  /** Length of the data in bytes. */
  readonly dataLength: number;
  /** Number of children, without their descendants. */
  readonly numChildren: number;
}

/**
 * A Stat from a server. Its fields are own properties, so it can be spread; `toJSON` is not, so it
 * is not copied with them.
 */
class ServerStat implements Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly pzxid: bigint;
  readonly ctime: Millis;
  readonly mtime: Millis;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: SessionId;
  readonly dataLength: number;
  readonly numChildren: number;

  constructor(stat: WireStat) {
    this.czxid = BigInt(stat.czxid);
    this.mzxid = BigInt(stat.mzxid);
    this.pzxid = BigInt(stat.pzxid);
    this.ctime = stat.ctime;
    this.mtime = stat.mtime;
    this.version = stat.version;
    this.cversion = stat.cversion;
    this.aversion = stat.aversion;
    this.ephemeralOwner = stat.ephemeralOwner;
    this.dataLength = stat.dataLength;
    this.numChildren = stat.numChildren;
  }

  toJSON(): object {
    return {
      czxid: formatZxid(this.czxid),
      mzxid: formatZxid(this.mzxid),
      pzxid: formatZxid(this.pzxid),
      ctime: this.ctime,
      mtime: this.mtime,
      version: this.version,
      cversion: this.cversion,
      aversion: this.aversion,
      ephemeralOwner: formatSessionId(this.ephemeralOwner),
      dataLength: this.dataLength,
      numChildren: this.numChildren,
    };
  }
}
// `console.log` prints the name of the class, and programs know it as Stat.
Object.defineProperty(ServerStat, 'name', { value: 'Stat' });

/**
 * Exact: the session closes a connection that sends zxids above 2^53
 * (docs/decisions/zxid-as-number.md).
 */
export function toClientStat(stat: WireStat): Stat {
  return new ServerStat(stat);
}
