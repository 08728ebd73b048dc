/**
 * Writes a snapshot, slice by slice, while the tree goes on changing.
 *
 * Everything in it is as it was when the source was made: sessions, ACLs and digest are noted then, and the tree sees to it that a znode
 * is written before it changes (`DataTree.beginSnapshot`). ZooKeeper's own snapshots mix moments and are repaired by replaying the log;
 * ours need no repair, and any ZooKeeper reads them. The layout is in protocol/snapshot-format.ts.
 *
 * What a leader sends behind a packet SNAP is the middle of that: sessions, ACLs and znodes, and then a mark in the place of the seal
 * (protocol/learner-records.ts). There is no header, no checksum, digest or zxid; the packet itself has told the zxid.
 *
 * Several may be under way, each of its own moment (tree/snapshot-walk.ts).
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
  writeSnapshotMark,
  type Zxid,
} from '@tskeeper/protocol';
import type { AclId } from '../tree/acl-table.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { SnapshotWalk } from '../tree/snapshot-walk.ts';

/** The sessions to be written; a SessionTable is one. Timeouts are those the sessions were created with. */
export interface SessionList {
  readonly count: number;
  forEach(visit: (slot: number) => void): void;
  high(slot: number): number;
  low(slot: number): number;
  timeoutMs(slot: number): Millis;
}

const digestVersion = 2;
const sessionInts = 3;

export class SnapshotSource {
  readonly #tree: DataTree;
  readonly #walk: SnapshotWalk;
  readonly #zxid: Zxid;
  readonly #writesDigest: boolean;
  readonly #writesLastZxid: boolean;
  readonly #isStream: boolean;
  readonly #knowsDigest: boolean;
  readonly #digestHigh: number;
  readonly #digestLow: number;
  readonly #sessions: Int32Array;
  readonly #acls: AclId[];
  #stage: 'header' | 'sessions' | 'acls' | 'znodes' | 'end' = 'header';
  /** Sessions or ACLs written so far. */
  #written = 0;
  #checksum = adler32Seed;
  /** Where in the writer at hand the bytes begin that the checksum does not cover yet. */
  #unsummed = 0;

  /**
   * Begins a snapshot of this moment, `zxid` being the txn applied last. `writeDigest` is for peers whose digest setting is on, which is
   * ZooKeeper's default: such a peer expects the section, even if it says nothing because we compute no digests. `writeLastZxid` adds
   * the zxid at the end, as servers from 3.9 on do. Without `knowsDigest` the tree is in parts of a later moment than `zxid`, and its digest
   * is left open. `isStream` makes it one for a learner, which has neither: see `stream`. For `aheadBytesMax` see `DataTree.beginSnapshot`.
   */
  constructor(
    tree: DataTree,
    sessions: SessionList,
    zxid: Zxid,
    writeDigest: boolean,
    writeLastZxid = true,
    { isStream = false, knowsDigest = true, aheadBytesMax = Infinity } = {},
  ) {
    this.#walk = tree.beginSnapshot(aheadBytesMax);
    this.#tree = tree;
    this.#zxid = zxid;
    this.#writesDigest = writeDigest;
    this.#writesLastZxid = writeLastZxid;
    this.#isStream = isStream;
    this.#knowsDigest = knowsDigest && tree.digestEnabled && zxid > 0;
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
    // They are held, so they stay what they are.
    this.#acls = [...tree.acls.ids()];
  }

  /** Begins a snapshot of this moment for a learner. `zxid` is what the packet SNAP has to say, and is not in the bytes. */
  static stream(tree: DataTree, sessions: SessionList, zxid: Zxid, aheadBytesMax = Infinity): SnapshotSource {
    return new SnapshotSource(tree, sessions, zxid, false, false, { isStream: true, aheadBytesMax });
  }

  /** The txn applied last when the snapshot began. */
  get zxid(): Zxid {
    return this.#zxid;
  }

  /** The tree has changed more than is kept for this snapshot, which cannot be finished: see `DataTree.beginSnapshot`. */
  get isGivenUp(): boolean {
    return this.#stage !== 'end' && !this.#tree.isWalked(this.#walk);
  }

  /** Appends about `bytesTarget` further bytes. Returns true when that was the last of them. */
  next(writer: Writer, bytesTarget: number): boolean {
    if (this.isGivenUp) throw new Error('a snapshot that was given up cannot go on');
    const end = writer.offset + bytesTarget;
    this.#unsummed = writer.offset;
    let done = false;
    while (!done && writer.offset < end) {
      if (this.#stage === 'znodes') {
        const finished = this.#tree.snapshotSlice(this.#walk, writer, end - writer.offset);
        if (!finished) break;
        this.#tree.endSnapshot(this.#walk);
        this.#stage = 'end';
      } else {
        done = this.#write(this.#stage, writer, end);
      }
    }
    this.#sum(writer);
    return done;
  }

  /** Gives up a snapshot that has not been written to its end, so that nothing is kept for it any more. */
  abandon(): void {
    this.#tree.endSnapshot(this.#walk);
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
      writer.halves(sessions[at]!, sessions[at + 1]!);
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
      writeSnapshotMark(writer);
      return;
    }
    this.#writeSeal(writer);
    if (this.#writesDigest) {
      // ZooKeeper takes a digest of zxid 0 for "none", and writes none before the first txn.
      const digest = this.#knowsDigest ? { zxid: this.#zxid, high: this.#digestHigh, low: this.#digestLow } : { zxid: 0, high: 0, low: 0 };
      writeSnapshotDigest(writer, { ...digest, version: digestVersion });
      this.#writeSeal(writer);
    }
    if (!this.#writesLastZxid) return;
    writer.int64(this.#zxid);
    this.#writeSeal(writer);
  }

  #writeSeal(writer: Writer): void {
    this.#sum(writer);
    writeSeal(writer, this.#checksum);
  }

  #sum(writer: Writer): void {
    if (this.#isStream) return;
    this.#checksum = adler32(writer.bytes, this.#unsummed, writer.offset, this.#checksum);
    this.#unsummed = writer.offset;
  }
}
