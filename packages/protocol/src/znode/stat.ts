/**
 * The metadata of a znode: Stat as clients see it, StatPersisted as in snapshots.
 *
 * The two differ in more than two fields. `cversion` in a StatPersisted counts the creates below
 * the znode and names its sequential children; in a Stat it counts creates and deletes.
 * `ephemeralOwner` in a StatPersisted also marks containers and TTL nodes; in a Stat it is 0 for
 * both.
 */
import type { Millis, SessionId, Zxid } from '../jute/numbers.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

export interface Stat {
  /** The txn that created the znode. */
  readonly czxid: Zxid;
  /** The txn that last changed its data. */
  readonly mzxid: Zxid;
  readonly ctime: Millis;
  readonly mtime: Millis;
  /** Number of changes of the data. */
  readonly version: number;
  /** Number of creates and deletes of children. */
  readonly cversion: number;
  /** Number of changes of the ACL. */
  readonly aversion: number;
  /** The session that owns an ephemeral; 0 for every other kind. */
  readonly ephemeralOwner: SessionId;
  readonly dataLength: number;
  readonly numChildren: number;
  /** The txn that last created or deleted a child. */
  readonly pzxid: Zxid;
}

export const statBytes = 68;

export function readStat(reader: Reader): Stat {
  return {
    czxid: reader.int64(),
    mzxid: reader.int64(),
    ctime: reader.int64(),
    mtime: reader.int64(),
    version: reader.int32(),
    cversion: reader.int32(),
    aversion: reader.int32(),
    ephemeralOwner: reader.bigint64(),
    dataLength: reader.int32(),
    numChildren: reader.int32(),
    pzxid: reader.int64(),
  };
}

export function writeStat(writer: Writer, stat: Stat): void {
  writer.int64(stat.czxid);
  writer.int64(stat.mzxid);
  writer.int64(stat.ctime);
  writer.int64(stat.mtime);
  writer.int32(stat.version);
  writer.int32(stat.cversion);
  writer.int32(stat.aversion);
  writer.bigint64(stat.ephemeralOwner);
  writer.int32(stat.dataLength);
  writer.int32(stat.numChildren);
  writer.int64(stat.pzxid);
}

/**
 * A snapshot contains one for each znode, so the owner is stored as two int32 instead of a bigint.
 */
export interface StatPersisted {
  readonly czxid: Zxid;
  readonly mzxid: Zxid;
  readonly ctime: Millis;
  readonly mtime: Millis;
  readonly version: number;
  /** Number of creates below this znode. */
  readonly cversion: number;
  readonly aversion: number;
  /** The raw value: a session id, or one of the values that mark containers and TTL nodes. */
  readonly ephemeralOwnerHigh: number;
  readonly ephemeralOwnerLow: number;
  readonly pzxid: Zxid;
}

export const statPersistedBytes = 60;

export function readStatPersisted(reader: Reader): StatPersisted {
  return {
    czxid: reader.int64(),
    mzxid: reader.int64(),
    ctime: reader.int64(),
    mtime: reader.int64(),
    version: reader.int32(),
    cversion: reader.int32(),
    aversion: reader.int32(),
    ephemeralOwnerHigh: reader.int32(),
    ephemeralOwnerLow: reader.int32(),
    pzxid: reader.int64(),
  };
}

export function writeStatPersisted(writer: Writer, stat: StatPersisted): void {
  writer.int64(stat.czxid);
  writer.int64(stat.mzxid);
  writer.int64(stat.ctime);
  writer.int64(stat.mtime);
  writer.int32(stat.version);
  writer.int32(stat.cversion);
  writer.int32(stat.aversion);
  writer.int64Halves(stat.ephemeralOwnerHigh, stat.ephemeralOwnerLow);
  writer.int64(stat.pzxid);
}
