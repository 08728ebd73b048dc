/**
 * Records of requests, for tests that need the length of a write and not its content.
 */
import { type MultiOp, operations, Writer } from '@tskeeper/protocol';

export function bytesOf(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  write(writer);
  return Buffer.from(writer.written());
}

/** The parts of a multi that check that the root exists. */
export function checksOf(parts: number): readonly MultiOp[] {
  return Array.from({ length: parts }, () => ({ kind: 'check', path: '/', version: -1 }));
}

export function multiOf(ops: readonly MultiOp[]): Buffer {
  return bytesOf((writer) => operations.multi.request.write(writer, { ops: [...ops] }));
}

/** A setData of one byte. */
export const shortWrite = bytesOf((writer) => operations.setData.request.write(writer, { path: '/', data: Buffer.alloc(1), version: -1 }));
