/** What is known of a znode besides its data, as the client shows it. */
import { formatSessionId, formatZxid, type Millis, type SessionId, type Stat as WireStat } from '@tskeeper/protocol';

/**
 * ZooKeeper's Stat. zxids are bigints, since they are 64-bit numbers; `formatZxid` prints them as ZooKeeper does. JSON has no bigints:
 * `JSON.stringify` writes zxids and `ephemeralOwner` as ZooKeeper prints them, `"0x100000001"`, and `BigInt` reads that again (a session id by `BigInt.asIntN(64, ...)`).
 */
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

/** A Stat from a server. Its fields are its own, so it can be spread; `toJSON` is not, so it does not show among them. */
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
// `console.log` names a value by its class, and the program knows it as a Stat.
Object.defineProperty(ServerStat, 'name', { value: 'Stat' });

/** Exact: a connection that speaks of zxids beyond 2^53 is refused by the session (docs/decisions/zxid-as-number.md). */
export function toStat(stat: WireStat): Stat {
  return new ServerStat(stat);
}
