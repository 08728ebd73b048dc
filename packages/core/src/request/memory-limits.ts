/**
 * Refuses requests for lack of memory.
 *
 * A server that runs out of memory is killed with all its sessions; a server that refuses requests
 * that would make it grow continues to serve the rest. Requests that free memory or keep a session
 * alive are never refused: reads, deletes, checks, data no longer than the data it replaces,
 * closing a session. A refused request gets ThrottledOp, which means that nothing was done and that
 * it may be retried.
 *
 * The runtime measures how much memory there is. See docs/decisions/memory.md.
 */
import { ErrorCode, OpCode, ProtocolError, type Reader, readMultiHeader, readStat } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import type { Load } from '../pending/load.ts';

/**
 * - `ample`: nothing is refused.
 * - `tight`: requests that take much memory at once are refused: long multis here, new sessions at
 *   the ports.
 * - `full`: neither the tree nor the watches may grow.
 */
export type MemoryState = 'ample' | 'tight' | 'full';

/**
 * A pending part of a multi takes fifty times its bytes. Deletes in batches of a thousand are
 * shorter than this.
 */
const longMultiBytes = 64 * 1024;
/** Limit of a request that still enters a full queue: closing a session, a delete. */
const longQueuedBytes = 4096;

/** Added to the limit of restored watches, for a small `watchesPerCnxnMax`. */
const watchesRestoredExtra = 64;

/**
 * Above this multiple of `inFlightBytesMax`, requests that would grow the tree are refused, not
 * delayed.
 */
const rejectAboveFactor = 8;

export class MemoryLimits {
  readonly #tree: DataTree;
  readonly #watches: WatchTable;
  readonly #load: Load;
  readonly #observer: Observer;
  readonly #watchesPerCnxnMax: number;
  readonly #inFlightBytesMax: number;
  #state: MemoryState = 'ample';
  #watchesMax = Infinity;

  constructor(options: CoreOptions, tree: DataTree, watches: WatchTable, load: Load, observer: Observer) {
    this.#tree = tree;
    this.#watches = watches;
    this.#load = load;
    this.#observer = observer;
    this.#watchesPerCnxnMax = options.watchesPerCnxnMax;
    this.#inFlightBytesMax = options.inFlightBytesMax;
  }

  /**
   * Sets the state of the memory. When watches may not grow in number, new ones may still replace
   * watches that have fired or were removed.
   */
  setState(state: MemoryState, watchesMayGrow: boolean): void {
    this.#state = state;
    if (watchesMayGrow && state !== 'full') this.#watchesMax = Infinity;
    else if (this.#watchesMax === Infinity) this.#watchesMax = this.#watches.count;
  }

  /**
   * Whether a write is refused. `reader` is placed over its record and is not moved. `queuedBytes`
   * is the size of requests waiting to be forwarded. Those of disconnected clients are counted
   * nowhere else, so while there are too many, no long request is added, whatever it does.
   */
  rejects(opCode: number, reader: Reader, queuedBytes = 0): boolean {
    if (queuedBytes > rejectAboveFactor * this.#inFlightBytesMax && reader.remaining > longQueuedBytes) return true;
    // Every connection may have one outstanding request, whatever its size; but not thousands of
    // them while the disk is slow.
    const isBlocked = this.#state === 'full' || this.#load.bytes > rejectAboveFactor * this.#inFlightBytesMax;
    if (!isBlocked && this.#state === 'ample') return false;
    if (opCode === OpCode.multi && reader.remaining > longMultiBytes) return true;
    if (!isBlocked) return false;
    const { offset } = reader;
    try {
      return this.#grows(opCode, reader);
    } catch (error) {
      // Validation will report the error.
      if (error instanceof ProtocolError) return false;
      throw error;
    } finally {
      reader.offset = offset;
    }
  }

  /** Whether a connection may set one more watch. */
  canAddWatch(cnxn: Cnxn): boolean {
    return this.#watches.count < this.#watchesMax && this.#watches.countOf(cnxn.id) < this.#watchesPerCnxnMax;
  }

  /**
   * Whether a connection may keep the watches that it has restored. A client may restore more than
   * `watchesPerCnxnMax`: its last watch may count twice, once in each table; and the server removes
   * a one-shot watch without an event when the client may not read the znode, as ZooKeeper does. If
   * that closed the connection, it would be closed again at each reconnect. So the limit is twice
   * as high here, plus 64.
   */
  canKeepWatches(cnxn: Cnxn): boolean {
    const max = 2 * this.#watchesPerCnxnMax + watchesRestoredExtra;
    return this.#watches.count <= this.#watchesMax && this.#watches.countOf(cnxn.id) <= max;
  }

  /** Like `canAddWatch`, and counts the refusal of a request that is then answered ThrottledOp. */
  admitsWatch(cnxn: Cnxn, opCode: number): boolean {
    if (this.canAddWatch(cnxn)) return true;
    this.#observer.requestRejected(cnxn.id, opCode, ErrorCode.ThrottledOp);
    return false;
  }

  #grows(opCode: number, reader: Reader): boolean {
    switch (opCode) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
      case OpCode.createIfNotExists:
      case OpCode.setACL:
        return true;
      case OpCode.setData:
        return this.#setDataGrows(reader);
      case OpCode.multi:
        return this.#multiGrows(reader);
      default:
        return false;
    }
  }

  /**
   * Computed from the tree without the outstanding changes: pipelined writes may be off by the size
   * that one znode had a moment ago.
   */
  #setDataGrows(reader: Reader): boolean {
    if (!reader.range('a path')) return false;
    const node = this.#tree.lookup(reader.bytes, reader.rangeStart, reader.rangeEnd);
    reader.range('data');
    const bytes = reader.rangeEnd - reader.rangeStart;
    reader.int32();
    return node !== 0 && bytes > Math.max(0, this.#tree.dataLengthOf(node));
  }

  #multiGrows(reader: Reader): boolean {
    for (;;) {
      const { type, done } = readMultiHeader(reader);
      if (done) return false;
      if (type === OpCode.delete || type === OpCode.check || isKeeperPart(type)) {
        reader.range('a path');
        reader.int32();
        if (type === OpCode.checkStat) readStat(reader);
      } else if (this.#grows(type, reader)) {
        return true;
      } else if (type !== OpCode.setData) {
        return false;
      }
    }
  }
}

/** A part with a path and a number, except for a checkStat; it makes nothing grow. */
function isKeeperPart(type: number): boolean {
  return type === OpCode.checkNotExists || type === OpCode.tryRemove || type === OpCode.removeRecursive || type === OpCode.checkStat;
}
