/**
 * What is not taken on for want of memory.
 *
 * A server that runs out of memory is killed with everything it holds, sessions included; one that refuses what would make it grow goes on
 * serving the rest. Whatever frees memory or keeps a session alive is never refused: reads, deletes, checks, data no longer than what it
 * replaces, closing a session. What is refused is answered ThrottledOp, which says that nothing was done and that it may be tried again.
 *
 * How much memory there is, is the runtime's to know. See docs/decisions/memory.md.
 */
import { ErrorCode, OpCode, ProtocolError, type Reader, readMultiHeader } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import type { Observer } from '../observer.ts';
import type { CoreOptions } from '../options.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { WatchTable } from '../tree/watch-table.ts';
import type { Load } from './load.ts';

/**
 * - `ample`: nothing is refused.
 * - `tight`: what takes much at once is refused: long multis here, new sessions at the ports.
 * - `full`: nothing may grow any more, neither the tree nor the watches.
 */
export type MemoryState = 'ample' | 'tight' | 'full';

/** A part of a multi takes fifty times its bytes while it is under way. Deletes in batches of a thousand are shorter than this. */
const longMultiBytes = 64 * 1024;
/** Of what still goes into a queue that is full: a session that ends, a delete. */
const longQueuedBytes = 4096;

/** Added to the limit of watches that a client sets again, for where `watchesPerCnxnMax` is small. */
const watchesRestoredExtra = 64;

/** Times `inFlightBytesMax` under way: beyond it, requests that would grow the tree are refused rather than kept waiting. */
const refusedAbove = 8;

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

  /** Tells how things are. Watches that may not become more may still be set anew where others have fired or gone. */
  set(state: MemoryState, watchesMayGrow: boolean): void {
    this.#state = state;
    if (watchesMayGrow && state !== 'full') this.#watchesMax = Infinity;
    else if (this.#watchesMax === Infinity) this.#watchesMax = this.#watches.count;
  }

  /**
   * Whether a write is refused. `reader` is placed over its record, and stays where it is. `queuedBytes`: of requests that wait to be passed on; those
   * of clients that have gone count nowhere else, so while there are that many, no long one is added, whatever it does.
   */
  refuses(opCode: number, reader: Reader, queuedBytes = 0): boolean {
    if (queuedBytes > refusedAbove * this.#inFlightBytesMax && reader.remaining > longQueuedBytes) return true;
    // Every connection may have one request under way, whatever it holds; but not thousands of them while the disk stands still.
    const isBlocked = this.#state === 'full' || this.#load.bytes > refusedAbove * this.#inFlightBytesMax;
    if (!isBlocked && this.#state === 'ample') return false;
    if (opCode === OpCode.multi && reader.remaining > longMultiBytes) return true;
    if (!isBlocked) return false;
    const { offset } = reader;
    try {
      return this.#grows(opCode, reader);
    } catch (error) {
      // Whoever judges it will say what is wrong with it.
      if (error instanceof ProtocolError) return false;
      throw error;
    } finally {
      reader.offset = offset;
    }
  }

  /** Whether a connection may set one more watch. */
  mayWatch(cnxn: Cnxn): boolean {
    return this.#watches.count < this.#watchesMax && this.#watches.countOf(cnxn.id) < this.#watchesPerCnxnMax;
  }

  /**
   * Whether a connection may keep the watches that it has set again. A client may set more of them than `watchesPerCnxnMax`: its last watch may count
   * twice, once in each table; and the server removes a one-shot watch without an event when the client may not read the znode, as ZooKeeper does.
   * A server that closed the connection for that would close it at each reconnect. So the limit is twice as high here, plus 64.
   */
  mayKeepWatches(cnxn: Cnxn): boolean {
    const max = 2 * this.#watchesPerCnxnMax + watchesRestoredExtra;
    return this.#watches.count <= this.#watchesMax && this.#watches.countOf(cnxn.id) <= max;
  }

  /** As `mayWatch`, for a request that is answered ThrottledOp if not. */
  admitsWatch(cnxn: Cnxn, opCode: number): boolean {
    if (this.mayWatch(cnxn)) return true;
    this.#observer.refused(cnxn.id, opCode, ErrorCode.ThrottledOp);
    return false;
  }

  #grows(opCode: number, reader: Reader): boolean {
    switch (opCode) {
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
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

  /** Judged by the tree, without what is outstanding: pipelined writes may be off by what one znode held a moment ago. */
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
      if (type === OpCode.delete || type === OpCode.check) {
        reader.range('a path');
        reader.int32();
      } else if (this.#grows(type, reader)) {
        return true;
      } else if (type !== OpCode.setData) {
        return false;
      }
    }
  }
}
