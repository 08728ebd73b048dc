/**
 * The parts of a snapshot:
 *
 *     file header
 *     sessions   int count, then each: long id, int timeout
 *     ACLs       int count, then each: long key, vector<ACL>
 *     znodes     one after the other, parents first, until the path "/"
 *     seal
 *     digest     of the tree, and seal: since 3.6, if configured
 *     last zxid  and seal: since 3.9, if configured
 *
 * A seal is the Adler-32 of everything before it, and the text "/". The root's own path is the
 * empty text, so "/" can never be a znode's. The last two parts have no tag, and ZooKeeper itself
 * takes one for the other when its settings have changed; we distinguish them by the number of
 * bytes left.
 */
import { type Acl, readAclList, writeAclList } from '../znode/acl.ts';
import type { FileHeader } from './file-header.ts';
import type { Millis, Zxid } from '../jute/numbers.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import type { Reader } from '../jute/reader.ts';
import { readStatPersisted, type StatPersisted, writeStatPersisted } from '../znode/stat.ts';
import type { Writer } from '../jute/writer.ts';

/** "ZKSN" */
export const snapshotMagic = 0x5a4b534e;
export const snapshotFileHeader: FileHeader = Object.freeze({ magic: snapshotMagic, version: 2, dbid: -1 });

/** Ends the znodes, and every seal. */
export const snapshotTerminator = '/';
export const sealBytes = 13;
/** The last five bytes of a complete snapshot: the text of its last seal. */
export const snapshotEnding: Uint8Array = Uint8Array.of(0, 0, 0, 1, 0x2f);
/**
 * The key of the ACL that grants everything to every client, for znodes that ZooKeeper creates
 * itself. No table contains it.
 */
export const openAclKey = -1;

/** The first bytes of a compressed snapshot. */
export const gzipMagic: Uint8Array = Uint8Array.of(0x1f, 0x8b);
/**
 * The framing of snappy-java: these eight bytes, int 1, int 1, then blocks of int length and raw
 * snappy.
 */
export const snappyMagic: Uint8Array = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00);

export interface SnapshotSession {
  readonly high: number;
  readonly low: number;
  readonly timeOut: Millis;
}

export interface SnapshotAcl {
  readonly key: number;
  readonly acl: readonly Acl[];
}

export interface SnapshotNode {
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly aclKey: number;
  readonly stat: StatPersisted;
}

export interface SnapshotDigest {
  /** The txn after which the tree has this digest; it may be later than the snapshot's name. */
  readonly zxid: Zxid;
  readonly version: number;
  /** Two int32; both 0 for a version before 2, whose digests cannot be compared. */
  readonly high: number;
  readonly low: number;
}

const sessionBytes = 12;
const snapshotAclBytesMin = 12;
const lastZxidBytes = 8;

export function readSnapshotSession(reader: Reader): SnapshotSession {
  return { high: reader.int32(), low: reader.int32(), timeOut: reader.int32() };
}

export function writeSnapshotSession(writer: Writer, session: SnapshotSession): void {
  writer.int64Halves(session.high, session.low);
  writer.int32(session.timeOut);
}

export function readSnapshotSessions(reader: Reader): SnapshotSession[] {
  return reader.vector(sessionBytes, readSnapshotSession) ?? [];
}

export function readSnapshotAcl(reader: Reader): SnapshotAcl {
  return { key: reader.int64(), acl: readAclList(reader) };
}

export function writeSnapshotAcl(writer: Writer, entry: SnapshotAcl): void {
  writer.int64(entry.key);
  writeAclList(writer, entry.acl);
}

export function readSnapshotAcls(reader: Reader): SnapshotAcl[] {
  return reader.vector(snapshotAclBytesMin, readSnapshotAcl) ?? [];
}

/** The next znode, or undefined at the terminator. */
export function readSnapshotNode(reader: Reader): SnapshotNode | undefined {
  const path = reader.text('the path of a znode');
  if (path === snapshotTerminator) return undefined;
  return { path, data: reader.buffer(), aclKey: reader.int64(), stat: readStatPersisted(reader) };
}

export function writeSnapshotNode(writer: Writer, node: SnapshotNode): void {
  writer.ustring(node.path);
  writer.buffer(node.data);
  writer.int64(node.aclKey);
  writeStatPersisted(writer, node.stat);
}

/** Returns the checksum that the file contains here. */
export function readSeal(reader: Reader): number {
  const at = reader.offset;
  const checksum = reader.int64();
  if (reader.ustring() !== snapshotTerminator) throw new ProtocolError('a seal, which ends in "/"', at);
  return checksum;
}

export function writeSeal(writer: Writer, checksum: number): void {
  writer.int64Halves(0, checksum);
  writer.ustring(snapshotTerminator);
}

/** The part of a snapshot after a seal, by the number of bytes left. */
export function snapshotPartAfterSeal(bytesLeft: number): 'end' | 'digest' | 'lastZxid' {
  if (bytesLeft === 0) return 'end';
  return bytesLeft === lastZxidBytes + sealBytes ? 'lastZxid' : 'digest';
}

export function readSnapshotDigest(reader: Reader): SnapshotDigest {
  const zxid = reader.int64();
  const version = reader.int32();
  if (version < 2) {
    // Hexadecimal text in these versions; read to skip it.
    reader.ustring();
    return { zxid, version, high: 0, low: 0 };
  }
  return { zxid, version, high: reader.int32(), low: reader.int32() };
}

export function writeSnapshotDigest(writer: Writer, digest: SnapshotDigest): void {
  writer.int64(digest.zxid);
  writer.int32(digest.version);
  writer.int64Halves(digest.high, digest.low);
}
