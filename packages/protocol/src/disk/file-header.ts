/**
 * The header of log and snapshot files.
 */
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

export interface FileHeader {
  /** Four letters: the type of the file. */
  readonly magic: number;
  /** 2; written by every version of ZooKeeper, and checked by none. */
  readonly version: number;
  readonly dbid: number;
}

export const fileHeaderBytes = 16;

export function readFileHeader(reader: Reader): FileHeader {
  return { magic: reader.int32(), version: reader.int32(), dbid: reader.int64() };
}

export function writeFileHeader(writer: Writer, header: FileHeader): void {
  writer.int32(header.magic);
  writer.int32(header.version);
  writer.int64(header.dbid);
}
