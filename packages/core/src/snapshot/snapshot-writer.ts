/**
 * Writes a snapshot, slice by slice, while the tree changes.
 *
 * It contains the state of the moment at which the source was created: sessions, ACLs and digest
 * are recorded then, and the tree writes a znode before it changes (`TreeSnapshots.begin`).
 * ZooKeeper's own snapshots are fuzzy and repaired by replaying the log; ours need no repair, and
 * any ZooKeeper reads them. The layout is in protocol/disk/snapshot-format.ts.
 *
 * A leader sends the middle part of it after a packet SNAP: sessions, ACLs and znodes, and then a
 * mark instead of the seal (protocol/ensemble/learner-records.ts). There is no header, checksum,
 * digest or zxid; the packet contains the zxid.
 *
 * Several snapshots may be in progress, each of its own moment (tree/snapshot-walk.ts).
 */
import {
  adler32,
  adler32Seed,
  type Millis,
  snapshotFileHeader,
  snapshotTerminator,
  writeFileHeader,
  type Writer,
  writeSeal,
  writeSnapshotDigest,
  writeSnapshotSignature,
  type Zxid,
} from '@tskeeper/protocol';
import type { AclId } from '../tree/acl-table.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { SnapshotWalk } from '../tree/snapshot-walk.ts';

/** The sessions to be written; `SessionTable` implements it. Timeouts are those at creation. */
export interface SessionList {
  readonly count: number;
  forEach(visit: (slot: number) => void): void;
  high(slot: number): number;
  low(slot: number): number;
  timeoutMs(slot: number): Millis;
}

const digestVersion = 2;
const sessionInts = 3;

export class SnapshotWriter {
  readonly #tree: DataTree;
  readonly #walk: SnapshotWalk;
  readonly #zxid: Zxid;
  readonly #writesDigest: boolean;
  readonly #writesLastZxid: boolean;
  readonly #isStream: boolean;
  readonly #hasDigest: boolean;
  readonly #digestHigh: number;
  readonly #digestLow: number;
  readonly #sessions: Int32Array;
  readonly #acls: AclId[];
  #stage: 'header' | 'sessions' | 'acls' | 'znodes' | 'end' = 'header';
  /** Sessions or ACLs written so far. */
  #written = 0;
  #checksum = adler32Seed;
  /** Offset in the current writer of the first byte that the checksum does not cover yet. */
  #checksummedTo = 0;

  /**
   * Begins a snapshot of this moment; `zxid` is the txn applied last. `writeDigest` is for servers
   * with digests enabled, ZooKeeper's default: they expect the section, even if it is empty because
   * we compute no digests. `writeLastZxid` adds the zxid at the end, as servers since 3.9 do.
   * Without `knowsDigest`, parts of the tree are later than `zxid`, and its digest is left out.
   * `isStream` writes a stream for a learner, which has neither: see `stream`. For `aheadBytesMax`
   * see `TreeSnapshots.begin`.
   */
  constructor(
    tree: DataTree,
    sessions: SessionList,
    zxid: Zxid,
    writeDigest: boolean,
    writeLastZxid = true,
    { isStream = false, knowsDigest = true, aheadBytesMax = Infinity } = {},
  ) {
    this.#walk = tree.snapshots.begin(aheadBytesMax);
    this.#tree = tree;
    this.#zxid = zxid;
    this.#writesDigest = writeDigest;
    this.#writesLastZxid = writeLastZxid;
    this.#isStream = isStream;
    this.#hasDigest = knowsDigest && tree.digestEnabled && zxid > 0;
    this.#digestHigh = tree.digestHigh;
    this.#digestLow = tree.digestLow;
    const noted = new Int32Array(sessions.count * sessionInts);
    let at = 0;
    sessions.forEach((slot) => {
      noted[at++] = sessions.high(slot);
      noted[at++] = sessions.low(slot);
      noted[at++] = sessions.timeoutMs(slot);
    });
    this.#sessions = noted;
    // Their references are held, so they do not change.
    this.#acls = [...tree.acls.ids()];
  }

  /**
   * Begins a snapshot of this moment for a learner. `zxid` must be sent in the packet SNAP, and is
   * not in the bytes.
   */
  static stream(tree: DataTree, sessions: SessionList, zxid: Zxid, preservedBytesMax = Infinity): SnapshotWriter {
    return new SnapshotWriter(tree, sessions, zxid, false, false, { isStream: true, aheadBytesMax: preservedBytesMax });
  }

  /** The txn applied last when the snapshot began. */
  get zxid(): Zxid {
    return this.#zxid;
  }

  /**
   * The tree has changed by more than is kept for this snapshot, which cannot be finished: see
   * `TreeSnapshots.begin`.
   */
  get isAborted(): boolean {
    return this.#stage !== 'end' && !this.#tree.snapshots.isActive(this.#walk);
  }

  /** Appends about `bytesTarget` further bytes. Returns true after the last of them. */
  next(writer: Writer, bytesTarget: number): boolean {
    if (this.isAborted) throw new Error('an abandoned snapshot cannot be continued');
    const end = writer.offset + bytesTarget;
    this.#checksummedTo = writer.offset;
    let done = false;
    while (!done && writer.offset < end) {
      if (this.#stage === 'znodes') {
        const finished = this.#tree.snapshots.slice(this.#walk, writer, end - writer.offset);
        if (!finished) break;
        this.#tree.snapshots.end(this.#walk);
        this.#stage = 'end';
      } else {
        done = this.#write(this.#stage, writer, end);
      }
    }
    this.#addToChecksum(writer);
    return done;
  }

  /** Abandons an unfinished snapshot, so that nothing more is kept for it. */
  abandon(): void {
    this.#tree.snapshots.end(this.#walk);
    this.#stage = 'end';
  }

  #write(stage: 'header' | 'sessions' | 'acls' | 'end', writer: Writer, end: number): boolean {
    switch (stage) {
      case 'header':
        if (!this.#isStream) writeFileHeader(writer, snapshotFileHeader);
        writer.int32(this.#sessions.length / sessionInts);
        this.#stage = 'sessions';
        return false;
      case 'sessions':
        this.#writeSessions(writer, end);
        return false;
      case 'acls':
        this.#writeAcls(writer, end);
        return false;
      case 'end':
        this.#writeEnd(writer);
        return true;
      default:
        return stage satisfies never;
    }
  }

  #writeSessions(writer: Writer, end: number): void {
    const sessions = this.#sessions;
    let at = this.#written;
    for (; at < sessions.length && writer.offset < end; at += sessionInts) {
      writer.int64Halves(sessions[at]!, sessions[at + 1]!);
      writer.int32(sessions[at + 2]!);
    }
    this.#written = at;
    if (at < sessions.length) return;
    writer.int32(this.#acls.length);
    this.#written = 0;
    this.#stage = 'acls';
  }

  #writeAcls(writer: Writer, end: number): void {
    const acls = this.#acls;
    let at = this.#written;
    for (; at < acls.length && writer.offset < end; at++) {
      writer.int64(acls[at]!);
      this.#tree.acls.write(acls[at]!, writer);
    }
    this.#written = at;
    if (at === acls.length) this.#stage = 'znodes';
  }

  #writeEnd(writer: Writer): void {
    writer.ustring(snapshotTerminator);
    if (this.#isStream) {
      writeSnapshotSignature(writer);
      return;
    }
    this.#writeSeal(writer);
    if (this.#writesDigest) {
      // ZooKeeper takes a digest of zxid 0 for "none", and writes none before the first txn.
      const digest = this.#hasDigest ? { zxid: this.#zxid, high: this.#digestHigh, low: this.#digestLow } : { zxid: 0, high: 0, low: 0 };
      writeSnapshotDigest(writer, { ...digest, version: digestVersion });
      this.#writeSeal(writer);
    }
    if (!this.#writesLastZxid) return;
    writer.int64(this.#zxid);
    this.#writeSeal(writer);
  }

  #writeSeal(writer: Writer): void {
    this.#addToChecksum(writer);
    writeSeal(writer, this.#checksum);
  }

  #addToChecksum(writer: Writer): void {
    if (this.#isStream) return;
    this.#checksum = adler32(writer.bytes, this.#checksummedTo, writer.offset, this.#checksum);
    this.#checksummedTo = writer.offset;
  }
}
