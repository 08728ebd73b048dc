import type { SnappyCodec } from '@tskeeper/runtime';
import { compress, uncompress } from 'snappyjs';

/** Raw snappy blocks, for snapshots written and read with `snapshot.compression.method=snappy`. */
export const snappy: SnappyCodec = {
  compress: (bytes) => compress(asBuffer(bytes)),
  uncompress: (bytes, maxBytes) => uncompress(asBuffer(bytes), maxBytes),
};

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
