/**
 * The three forms of a snapshot on the disk: plain, in a gzip stream, or in the stream of
 * snappy-java. The whole file is inside the stream, and the suffix of the name says which it is.
 *
 * Synchronous calls write it in slices, because a slice takes less than a millisecond and the
 * simulator must be able to repeat it. Reading happens at the start, where no heartbeat waits, and
 * uses Node's stream.
 */
// The whole module: an old Node lacks crc32, and would refuse the import before the server can
// report that it is too old.
import * as zlib from 'node:zlib';
import { gzipMagic, ProtocolError, snappyMagic, type Writer } from '@tskeeper/protocol';
import type { ReadableFile } from '../disk.ts';
import type { SnappyCodec } from '../world.ts';

export type SnapshotCompression = 'none' | 'gz' | 'snappy';

export const compressionSuffix: Readonly<Record<SnapshotCompression, string>> = { none: '', gz: '.gz', snappy: '.snappy' };

/** Any name without a known suffix is a plain file, as in ZooKeeper. */
export function compressionOfName(name: string): SnapshotCompression {
  if (name.endsWith('.gz')) return 'gz';
  return name.endsWith('.snappy') ? 'snappy' : 'none';
}

/** Encodes the plain bytes of a snapshot for the file. */
export interface SnapshotEncoder {
  begin(out: Writer): void;
  add(bytes: Buffer, out: Writer): void;
  end(out: Writer): void;
}

/** Bytes compressed at a time: snappy-java's own block, and about half a millisecond of deflate. */
const blockBytes = 32 * 1024;

/**
 * One gzip member whose deflate blocks are flushed slice by slice, so that each slice can be
 * compressed on its own.
 */
class GzipEncoder implements SnapshotEncoder {
  #crc = 0;
  #bytes = 0;

  begin(out: Writer): void {
    // Method 8 is deflate; no flags, no time, no extra flags, system unknown.
    out.raw(gzipMagic);
    out.raw(Uint8Array.of(8, 0, 0, 0, 0, 0, 0, 255));
  }

  add(bytes: Buffer, out: Writer): void {
    this.#crc = zlib.crc32(bytes, this.#crc);
    this.#bytes += bytes.length;
    for (let at = 0; at < bytes.length; at += blockBytes) {
      out.raw(zlib.deflateRawSync(bytes.subarray(at, at + blockBytes), { finishFlush: zlib.constants.Z_SYNC_FLUSH }));
    }
  }

  end(out: Writer): void {
    // An empty last block, then checksum and length, low byte first.
    const trailer = Buffer.alloc(10);
    trailer[0] = 3;
    trailer.writeUInt32LE(this.#crc, 2);
    trailer.writeUInt32LE(this.#bytes % 0x1_0000_0000, 6);
    out.raw(trailer);
  }
}

class SnappyEncoder implements SnapshotEncoder {
  readonly #codec: SnappyCodec;

  constructor(codec: SnappyCodec) {
    this.#codec = codec;
  }

  begin(out: Writer): void {
    out.raw(snappyMagic);
    // Version, and the oldest version that can read this.
    out.int32(1);
    out.int32(1);
  }

  add(bytes: Buffer, out: Writer): void {
    for (let at = 0; at < bytes.length; at += blockBytes) out.buffer(this.#codec.compress(bytes.subarray(at, at + blockBytes)));
  }

  end(): void {
    // The stream has no end mark.
  }
}

/** undefined for a plain file, which needs no encoding. */
export function encoderFor(compression: SnapshotCompression, snappy: SnappyCodec | undefined): SnapshotEncoder | undefined {
  switch (compression) {
    case 'none':
      return undefined;
    case 'gz':
      return new GzipEncoder();
    case 'snappy':
      return new SnappyEncoder(needSnappy(snappy));
    default:
      return compression satisfies never;
  }
}

function needSnappy(snappy: SnappyCodec | undefined): SnappyCodec {
  if (snappy === undefined) throw new ProtocolError('a snapshot that is not compressed with snappy, for which there is no codec here', 0);
  return snappy;
}

const pieceBytes = 256 * 1024;

async function* piecesOf(file: ReadableFile): AsyncGenerator<Buffer, void, undefined> {
  let at = 0;
  for (;;) {
    const piece = await file.read(at, pieceBytes);
    if (piece.length === 0) return;
    yield piece;
    at += piece.length;
  }
}

/**
 * Passes on the plain bytes of a snapshot, piece by piece; a piece is valid only during the call.
 * Rejects with what `visit` throws.
 */
export async function decodeSnapshot(
  file: ReadableFile,
  compression: SnapshotCompression,
  snappy: SnappyCodec | undefined,
  visit: (piece: Buffer) => void,
): Promise<void> {
  switch (compression) {
    case 'none':
      for await (const piece of piecesOf(file)) visit(piece);
      return;
    case 'gz':
      await decodeGzip(file, visit);
      return;
    case 'snappy':
      await decodeSnappy(file, needSnappy(snappy), visit);
      return;
    default:
      compression satisfies never;
  }
}

async function decodeGzip(file: ReadableFile, visit: (piece: Buffer) => void): Promise<void> {
  const gunzip = zlib.createGunzip();
  const feed = async () => {
    for await (const piece of piecesOf(file)) {
      if (gunzip.destroyed) return;
      if (gunzip.write(piece)) continue;
      await new Promise<void>((resolve) => {
        gunzip.once('drain', resolve);
        gunzip.once('close', resolve);
      });
    }
    gunzip.end();
  };
  // A failed read ends the stream, and with it the loop below, which then rejects with that error.
  const fed = feed().catch((error: unknown) => {
    gunzip.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  try {
    for await (const piece of gunzip as AsyncIterable<Buffer>) visit(piece);
  } finally {
    gunzip.destroy();
    await fed;
  }
}

const snappyHeaderBytes = 16;
/** Far above what any writer uses; a longer block is a corrupt length. */
const snappyBlockBytesMax = 64 * 1024 * 1024;

async function decodeSnappy(file: ReadableFile, snappy: SnappyCodec, visit: (piece: Buffer) => void): Promise<void> {
  const size = await file.size();
  const header = await file.read(0, snappyHeaderBytes);
  if (header.length < snappyHeaderBytes || !header.subarray(0, snappyMagic.length).equals(snappyMagic)) {
    throw new ProtocolError('the magic of a snappy stream', 0);
  }
  let offset = snappyHeaderBytes;
  let window = await file.read(offset, pieceBytes);
  let at = 0;
  const fill = async (count: number) => {
    if (window.length - at >= count) return;
    if (size - offset < count) throw new ProtocolError(`${count} bytes of a snappy stream`, offset);
    window = await file.read(offset, Math.max(count, pieceBytes));
    at = 0;
  };
  while (offset < size) {
    await fill(4);
    const length = window.readInt32BE(at);
    if (length < 0 || length > snappyBlockBytesMax) throw new ProtocolError(`a snappy block, not one of ${length} bytes`, offset);
    await fill(4 + length);
    const block = window.subarray(at + 4, at + 4 + length);
    let plain: Uint8Array;
    try {
      plain = snappy.uncompress(block, snappyBlockBytesMax);
    } catch (error) {
      throw new ProtocolError(`a snappy block (${error instanceof Error ? error.message : String(error)})`, offset);
    }
    visit(Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength));
    at += 4 + length;
    offset += 4 + length;
  }
}
