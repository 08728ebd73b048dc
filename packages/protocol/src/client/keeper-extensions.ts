/**
 * Operations of ClickHouse Keeper that ZooKeeper does not have, from opcode 500 on, and how its
 * clients learn which of them a server has.
 *
 * Read from ClickHouse: `src/Common/ZooKeeper/ZooKeeperCommon.cpp` (records),
 * `KeeperFeatureFlags.cpp` (bits), `KeeperConstants.h` (paths), `KeeperStorage.cpp` (rules).
 */
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/** Clients of Keeper read these before they use any of the operations. */
export const keeperPath = { apiVersion: '/keeper/api_version', featureFlags: '/keeper/feature_flags' } as const;

/** For clients that do not know the flags: 1 means filteredList, and nothing else. */
export const keeperApiVersion = 1;

/** The number of each flag that is set by a server of this project. */
const flagNumbers = { filteredList: 0 } as const;

/** The data of `keeperPath.featureFlags`: flag n is the bit 7 - n % 8 of byte n / 8. */
export function keeperFeatureFlags(): Buffer {
  const numbers = Object.values(flagNumbers);
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
