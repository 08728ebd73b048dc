/** Bytes of a server that a test plays itself. */
import { Writer } from '@tskeeper/protocol';
import { frameOf } from '@tskeeper/harness';

/** A reply without a body: of a delete, or of a request that failed with `err`. */
export function answerTo(xid: number, err = 0): Buffer {
  const writer = new Writer(16);
  writer.int32(xid);
  writer.int64(1);
  writer.int32(err);
  return frameOf(Buffer.from(writer.written()));
}

/** The reply to a handshake: session 1, with a timeout of 30 s. */
export function welcome(): Buffer {
  const writer = new Writer(64);
  writer.int32(0);
  writer.int32(30_000);
  writer.bigint64(1n);
  writer.buffer(Buffer.alloc(16));
  writer.boolean(false);
  return frameOf(Buffer.from(writer.written()));
}
