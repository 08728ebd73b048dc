/**
 * Snapshots on the disk: writing one without blocking the server, choosing one, and checking
 * whether it is complete.
 *
 * A snapshot gets its name last. Content, sync, rename, sync of the folder: a crash at any point
 * leaves either a complete snapshot or a file that no start reads.
 */
import {
  adler32,
  adler32Seed,
  gzipMagic,
  ProtocolError,
  sealBytes,
  snappyMagic,
  snapshotEnding,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import { type Disk, DiskError, type DiskFile } from '../disk.ts';
import type { SnappyCodec } from '../world.ts';
import { syncFile, withFile } from './disk-helpers.ts';
import { numberedFiles, type NumberedFile, snapshotName, snapshotPrefix, unfinishedPrefix } from './file-names.ts';
import { compressionOfName, compressionSuffix, decodeSnapshot, encoderFor, type SnapshotCompression } from './snapshot-codec.ts';

/** The source of the content of a snapshot. */
export interface SnapshotSource {
  /** Adds about `bytesTarget` bytes; returns true when these were the last. */
  next(writer: Writer, bytesTarget: number): boolean;
}

/** The same, where the content may have to be waited for, as when it comes from another server. */
export interface AsyncSnapshotSource {
  /** Rejects when no more will arrive; then nothing of the snapshot is kept. */
  next(writer: Writer, bytesTarget: number): boolean | Promise<boolean>;
}

/**
 * Receives the content of a snapshot when it is loaded. Both methods throw on content that is not a
 * snapshot.
 */
export interface SnapshotSink {
  feed(piece: Buffer): void;
  finish(): void;
  /**
   * The last txn whose changes are in the content, if the content says so: snapshots of ZooKeeper
   * may contain more than their names say.
   */
  contentZxid?(): Zxid | undefined;
}

/**
 * What the tree writes in one slice: well below two milliseconds, the longest delay for other work.
 */
const sliceBytesDefault = 64 * 1024;
/**
 * Slices written before a sync is awaited, 1 MiB of the usual size: small syncs keep those of the
 * log short.
 */
const slicesPerSync = 16;
const sizeMin = 10;

export interface SnapshotJob {
  readonly folder: string;
  readonly zxid: Zxid;
  readonly source: AsyncSnapshotSource;
  readonly compression: SnapshotCompression;
  readonly snappy: SnappyCodec | undefined;
  /** What the tree writes in one slice. */
  readonly sliceBytes?: number | undefined;
  /** Checked between slices; true abandons the job. */
  readonly isCancelled: () => boolean;
}

/**
 * The content read back differs from what was written, so the file gets no name. Nothing has
 * changed, and it can be written again.
 */
export class SnapshotReadBackFailed extends Error {
  override readonly name = 'SnapshotReadBackFailed';
  readonly path: string;

  constructor(path: string) {
    super(`${path} was written, but is not a complete snapshot when read back`);
    this.path = path;
  }
}

/**
 * A snapshot that is complete and durable, and does not have the name yet by which a start would
 * find it.
 */
export interface UnnamedSnapshot {
  readonly folder: string;
  readonly name: string;
  readonly unfinishedPath: string;
  readonly bytes: number;
}

/**
 * Returns the size of the file, or undefined when the job was abandoned. Rejects when the disk
 * fails; no partial file is left.
 */
export async function writeSnapshot(disk: Disk, clock: Clock, job: SnapshotJob): Promise<number | undefined> {
  const unnamed = await writeUnnamedSnapshot(disk, clock, job);
  if (unnamed === undefined) return undefined;
  await nameOrRemoveSnapshot(disk, unnamed);
  return unnamed.bytes;
}

/** Rejects when the disk fails; no partial file is left. */
export async function nameOrRemoveSnapshot(disk: Disk, unnamed: UnnamedSnapshot): Promise<void> {
  try {
    await nameSnapshot(disk, unnamed);
  } catch (error) {
    await removeIfThere(disk, unnamed.unfinishedPath);
    throw error;
  }
}

export async function nameSnapshot(disk: Disk, { folder, name, unfinishedPath }: UnnamedSnapshot): Promise<void> {
  await disk.rename(unfinishedPath, `${folder}/${name}`);
  await disk.syncFolder(folder);
}

/**
 * Returns undefined when the job was abandoned. Rejects when the disk or the source fails; no
 * partial file is left.
 */
export async function writeUnnamedSnapshot(disk: Disk, clock: Clock, job: SnapshotJob): Promise<UnnamedSnapshot | undefined> {
  const { folder } = job;
  const name = snapshotName(job.zxid, compressionSuffix[job.compression]);
  const unfinishedPath = `${folder}/${unfinishedPrefix}${name}`;
  let bytes: number | undefined;
  try {
    const file = await disk.open(unfinishedPath, 'replace');
    try {
      bytes = await writeContent(file, clock, job);
    } finally {
      await file.close();
    }
  } catch (error) {
    await removeIfThere(disk, unfinishedPath);
    throw error;
  }
  if (bytes !== undefined) return { folder, name, unfinishedPath, bytes };
  await removeIfThere(disk, unfinishedPath);
  return undefined;
}

async function writeContent(file: DiskFile, clock: Clock, job: SnapshotJob): Promise<number | undefined> {
  const encoder = encoderFor(job.compression, job.snappy);
  const { sliceBytes = sliceBytesDefault } = job;
  const plain = new Writer(sliceBytes * 2);
  // The disk may use the bytes it was given until the sync is complete, and until then nothing is
  // added.
  const out = encoder === undefined ? plain : new Writer(sliceBytes * 2);
  let position = 0;
  encoder?.begin(out);
  for (let done = false; !done;) {
    if (job.isCancelled()) return undefined;
    const outcome = job.source.next(plain, sliceBytes);
    done = typeof outcome === 'boolean' ? outcome : await outcome;
    if (encoder !== undefined) {
      encoder.add(plain.written(), out);
      plain.clear();
      if (done) encoder.end(out);
    }
    if (done || out.offset >= sliceBytes * slicesPerSync) {
      file.write(position, out.written());
      await syncFile(file);
      position += out.offset;
      out.clear();
    } else {
      await new Promise<void>((resolve) => {
        clock.setImmediate(resolve);
      });
    }
  }
  return position;
}

export async function removeIfThere(disk: Disk, path: string): Promise<void> {
  try {
    await disk.remove(path);
  } catch {
    // Never created, or the disk fails here too; the next start removes it.
  }
}

/** Newest first. */
export async function listSnapshots(disk: Disk, folder: string): Promise<NumberedFile[]> {
  return numberedFiles(await disk.list(folder), snapshotPrefix).toReversed();
}

/** ZooKeeper's check for candidates: it only looks at the ends of the file. */
export async function looksComplete(disk: Disk, path: string): Promise<boolean> {
  return await withFile(disk, path, async (file) => {
    const size = await file.size();
    if (size < sizeMin) return false;
    const compression = compressionOfName(path);
    const expected = compression === 'none' ? snapshotEnding : compression === 'gz' ? gzipMagic : snappyMagic;
    const at = compression === 'none' ? size - expected.length : 0;
    return (await file.read(at, expected.length)).equals(expected);
  });
}

export async function loadSnapshot(disk: Disk, path: string, snappy: SnappyCodec | undefined, sink: SnapshotSink): Promise<void> {
  await withFile(disk, path, async (file) => {
    await decodeSnapshot(file, compressionOfName(path), snappy, (piece) => sink.feed(piece));
    sink.finish();
    // It may be left from a process that was killed before its sync; from here on the state builds
    // on it.
    await syncFile(file);
  });
}

/**
 * Whether every byte of a snapshot is as written. The last seal covers everything before it, so the
 * check need not decode the file. Any failure to read counts as no.
 */
export async function verifySnapshot(disk: Disk, path: string, snappy: SnappyCodec | undefined): Promise<boolean> {
  let checksum = adler32Seed;
  // The end of the bytes seen so far, held back because the last seal does not cover itself.
  let tail: Buffer = Buffer.alloc(0);
  let length = 0;
  try {
    await withFile(disk, path, (file) =>
      decodeSnapshot(file, compressionOfName(path), snappy, (piece) => {
        length += piece.length;
        const joined = tail.length === 0 ? piece : Buffer.concat([tail, piece]);
        const covered = Math.max(0, joined.length - sealBytes);
        checksum = adler32(joined, 0, covered, checksum);
        tail = Buffer.from(joined.subarray(covered));
      }),
    );
  } catch {
    return false;
  }
  if (length < sizeMin + sealBytes || tail.length < sealBytes) return false;
  return tail.readInt32BE(0) === 0 && tail.readUInt32BE(4) === checksum && tail.subarray(8).equals(snapshotEnding);
}

/**
 * What a damaged snapshot, or the disk below it, may throw. Any other error is a bug and must not
 * be hidden.
 */
export function isUnreadable(error: unknown): error is Error {
  if (error instanceof ProtocolError || error instanceof DiskError) return true;
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_');
}
