/**
 * Writing and loading whole snapshots, for the tests of both.
 */
import { type LoadedSnapshot, SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { type SessionList, SnapshotWriter } from '../../src/snapshot/snapshot-writer.ts';
import type { DataTree, DataTreeOptions } from '../../src/tree/data-tree.ts';
import { Writer } from '@tskeeper/protocol';
import { treeOptions } from '../tree/tree-and-model.ts';

export function sessionList(sessions: readonly (readonly [high: number, low: number, timeoutMs: number])[]): SessionList {
  return {
    count: sessions.length,
    forEach: (visit) => sessions.forEach((_, slot) => visit(slot)),
    high: (slot) => sessions[slot]![0],
    low: (slot) => sessions[slot]![1],
    timeoutMs: (slot) => sessions[slot]![2],
  };
}

export function drain(source: Pick<SnapshotWriter, 'next'>, bytesTarget = 1 << 20): Buffer {
  const writer = new Writer();
  while (!source.next(writer, bytesTarget));
  return Buffer.from(writer.written());
}

export function snapshotOf(tree: DataTree, zxid: number, sessions: SessionList = sessionList([]), writeDigest = true): Buffer {
  return drain(new SnapshotWriter(tree, sessions, zxid, writeDigest));
}

/** Feeds the bytes in pieces of the given sizes, the last one repeated. */
export function load(bytes: Buffer, sizes: readonly number[] = [bytes.length], options: DataTreeOptions = treeOptions): LoadedSnapshot {
  const loader = new SnapshotLoader(options);
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[Math.min(i, sizes.length - 1)]!;
    // A piece of its own that is overwritten afterwards, like a read buffer.
    const piece = Buffer.from(bytes.subarray(at, at + size));
    loader.feed(piece);
    piece.fill(0xee);
    at += size;
  }
  return loader.finish();
}
