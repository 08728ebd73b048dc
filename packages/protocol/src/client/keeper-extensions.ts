/**
 * Operations of ClickHouse Keeper that ZooKeeper does not have, from opcode 500 on, and how its
 * clients learn which of them a server has.
 *
 *     filteredList 500                  children, of which some may be left out
 *     checkNotExists 501                fails if a znode exists
 *     createIfNotExists 502             a create that accepts a znode that exists
 *     removeRecursive 503               deletes a znode and all below it
 *     checkStat 504                     compares the fields of a Stat
 *     tryRemove 505                     a delete that does nothing where it would fail
 *     filteredListWithStatsAndData 506  as 500, with what the children contain
 *     listRecursive 507                 the paths of all descendants
 *
 * 501 to 505 may be parts of a multi. The records of 501 and 505 are those of check and delete, that
 * of 502 is the one of create.
 *
 * Read from ClickHouse: `src/Common/ZooKeeper/ZooKeeperCommon.cpp` (records),
 * `KeeperFeatureFlags.h` (bits), `KeeperConstants.h` (paths), `KeeperStorageImpl.cpp` (rules).
 */
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';
import { readStringVector, writeStringVector } from '../jute/string-vector.ts';
import { readStat, type Stat, statBytes, writeStat } from '../znode/stat.ts';

/** Clients of Keeper read these before they use any of the operations. */
export const keeperPath = { apiVersion: '/keeper/api_version', featureFlags: '/keeper/feature_flags' } as const;

/** For clients that do not know the flags: 1 means filteredList, and nothing else. */
export const keeperApiVersion = 1;

/**
 * The numbers of the flags that a server of this project sets. Keeper has no flag for
 * listRecursive. The flags of operations that ZooKeeper has as well are left out: multi-read (1),
 * of which Keeper's has more parts, watches in it (5), persistent watches (7) and the Stat of a
 * created znode (8).
 */
const readFlags = { filteredList: 0, listWithStatsAndData: 10 } as const;
const writeFlags = { checkNotExists: 2, createIfNotExists: 3, removeRecursive: 4, checkStat: 6, tryRemove: 9 } as const;

/**
 * The data of `keeperPath.featureFlags`: flag n is the bit 7 - n % 8 of byte n / 8. `withWrites`:
 * whether the leader of the ensemble accepts the writes, and multis with checks of Keeper.
 */
export function keeperFeatureFlags(withWrites: boolean): Buffer {
  const numbers = [...Object.values(readFlags), ...(withWrites ? Object.values(writeFlags) : [])];
  const flags = Buffer.alloc(1 + Math.floor(Math.max(...numbers) / 8));
  for (const number of numbers) flags[number >>> 3]! |= 0x80 >>> (number & 7);
  return flags;
}

/** Which children a filteredList returns. Containers and TTL znodes are not ephemeral. */
export const ListFilter = { all: 0, notEphemeral: 1, ephemeral: 2 } as const;

export interface FilteredListRequest {
  readonly path: string;
  readonly watch: boolean;
  /** One of `ListFilter`; one byte on the wire. */
  readonly filter: number;
}

export function readFilteredListRequest(reader: Reader): FilteredListRequest {
  return { path: reader.text('a path'), watch: reader.boolean(), filter: reader.int8() };
}

export function writeFilteredListRequest(writer: Writer, request: FilteredListRequest): void {
  writer.ustring(request.path);
  writer.boolean(request.watch);
  writer.int8(request.filter);
}

export interface FilteredListWithStatsAndDataRequest extends FilteredListRequest {
  readonly withStat: boolean;
  readonly withData: boolean;
}

export function readFilteredListWithStatsAndDataRequest(reader: Reader): FilteredListWithStatsAndDataRequest {
  return { ...readFilteredListRequest(reader), withStat: reader.boolean(), withData: reader.boolean() };
}

export function writeFilteredListWithStatsAndDataRequest(writer: Writer, request: FilteredListWithStatsAndDataRequest): void {
  writeFilteredListRequest(writer, request);
  writer.boolean(request.withStat);
  writer.boolean(request.withData);
}

export interface FilteredListWithStatsAndDataReply {
  readonly children: readonly string[];
  /** Of the parent. */
  readonly stat: Stat;
  /** One for each child, in the same order; none if they were not requested. */
  readonly stats: readonly Stat[];
  /** One for each child, in the same order; none if they were not requested. */
  readonly data: readonly (Buffer | null)[];
}

const lengthBytes = 4;

export function readFilteredListWithStatsAndDataReply(reader: Reader): FilteredListWithStatsAndDataReply {
  return {
    children: readStringVector(reader),
    stat: readStat(reader),
    stats: reader.vector(statBytes, readStat) ?? [],
    data: reader.vector(lengthBytes, (each) => each.buffer()) ?? [],
  };
}

export function writeFilteredListWithStatsAndDataReply(writer: Writer, reply: FilteredListWithStatsAndDataReply): void {
  writeStringVector(writer, reply.children);
  writeStat(writer, reply.stat);
  writer.vector(reply.stats, writeStat);
  writer.vector(reply.data, (to, data) => to.buffer(data));
}

/** A removeRecursive or a listRecursive. */
export interface RecursiveRequest {
  readonly path: string | null;
  /**
   * The most znodes that are deleted or listed, an unsigned number. A removal of more fails; a list
   * ends there.
   */
  readonly limit: number;
}

export function readRecursiveRequest(reader: Reader): RecursiveRequest {
  return { path: reader.ustring(), limit: reader.int32() >>> 0 };
}

export function writeRecursiveRequest(writer: Writer, request: RecursiveRequest): void {
  writer.ustring(request.path);
  writer.int32(request.limit | 0);
}

export interface ListRecursiveReply {
  /** Whole paths; a znode comes before those below it. */
  readonly children: readonly string[];
}

export function readListRecursiveReply(reader: Reader): ListRecursiveReply {
  return { children: readStringVector(reader) };
}

export function writeListRecursiveReply(writer: Writer, reply: ListRecursiveReply): void {
  writeStringVector(writer, reply.children);
}

export interface CheckStatRequest {
  readonly path: string | null;
  readonly version: number;
  /** Each field that is not -1 is compared. */
  readonly stat: Stat;
}

export function readCheckStatRequest(reader: Reader): CheckStatRequest {
  return { path: reader.ustring(), version: reader.int32(), stat: readStat(reader) };
}

export function writeCheckStatRequest(writer: Writer, request: CheckStatRequest): void {
  writer.ustring(request.path);
  writer.int32(request.version);
  writeStat(writer, request.stat);
}
