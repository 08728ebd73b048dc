/**
 * How much memory this process has and uses. Either of two kinds can run out, and that ends the
 * process.
 *
 * **The JavaScript heap** holds connections, requests in progress, ACLs and quotas. What counts is
 * the live part of the old space: V8 lets garbage accumulate there until it approaches the limit,
 * so a collection checks a figure that looks too large. V8 gives up long before the limit
 * ("Ineffective mark-compacts near heap limit", from four fifths on), and one long request needs
 * room for a moment; both are subtracted from the limit.
 *
 * **The whole process** also holds znodes, watches and buffers, outside of the JavaScript heap and
 * its limit. Its limit is set by the machine, the container or the operator.
 */
import { totalmem } from 'node:os';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MemoryProbe, MemoryUse } from '@tskeeper/runtime';

const mebibyte = 1024 * 1024;

/**
 * The share of the old space at which V8 starts to count collections that free little; after four
 * of them it ends the process.
 */
const v8GivesUpShare = 0.8;
/**
 * What a multi of a megabyte takes while it is validated, and about what V8 needs to have left:
 * with less than two new spaces below the limit it collects without end.
 */
const momentaryBytes = 32 * mebibyte;
/** The young part consists of three semispaces, each of this size by default. */
const semiSpaceMiB = 16;
/** Below this share of the limit the amount of garbage does not matter. */
const checkedFromShare = 0.8;
/**
 * Collections to check the figure may take a fifth of the time while it grows, and little when it
 * does not.
 */
const restPerCollection = 4;
const idleRestPerCollection = 20;
const idleRestMsMin = 5000;
/** A change by less than this share of the limit does not count as a change. */
const changeShare = 0.02;

export interface ProcessMemoryLimits {
  /** tskeeper.memoryLimitInMb, in bytes; undefined: the limit of the container or the machine. */
  readonly processBytes: number | undefined;
}

/**
 * `resident` asks the system how much this process holds, and throws when no file can be opened for
 * that.
 */
export function memoryProbe({ processBytes }: ProcessMemoryLimits, resident: () => number = () => process.memoryUsage.rss()): MemoryProbe {
  const nowMs = (): number => performance.now();
  const heapBytes = usableBytes(oldSpaceBytes());
  const heap = new LiveMemory({ limitBytes: heapBytes, usedBytes: usedOldBytes, collect, nowMs });
  const wholeBytes = processBytes ?? machineBytes();
  const held = new ResidentBytes(resident);
  const ownBytes = held.slackBytes();
  // Pages that the tree has released are garbage too, and a server that only refuses requests makes
  // no other garbage that would cause their collection.
  const wholeUsableBytes = wholeBytes - processReserve(wholeBytes);
  const whole = new LiveMemory({ limitBytes: wholeUsableBytes, usedBytes: () => held.usedBytes(), collect, nowMs });
  return (returnedBytes) => [
    heapUse(heap.usedBytes(0), heapBytes),
    processUse(whole.usedBytes(returnedBytes), wholeBytes, held.slackBytes() - ownBytes),
  ];
}

function heapUse(usedBytes: number, limitBytes: number): MemoryUse {
  return {
    what: 'the JavaScript heap',
    usedBytes,
    limitBytes,
    remedy: 'Close sessions, remove ACLs that are used once, or start the server with NODE_OPTIONS=--max-old-space-size=<more MB>.',
    holdsTree: false,
    slackBytes: 0,
    reserveBytes: 0,
  };
}

/**
 * Memory of this process. Asking the system takes a free file descriptor; without one the figure is
 * the sum of what was neither heap nor buffers at the last answer, and V8's own figures for heap
 * and buffers.
 */
class ResidentBytes {
  readonly #resident: () => number;
  #slackBytes = 0;

  constructor(resident: () => number) {
    this.#resident = resident;
  }

  usedBytes(): number {
    return this.slackBytes() + heapAndBufferBytes();
  }

  /** Neither heap nor buffers: the program itself, and freed memory that the allocator keeps. */
  slackBytes(): number {
    try {
      this.#slackBytes = this.#resident() - heapAndBufferBytes();
    } catch {
      // Use the previous figure.
    }
    return this.#slackBytes;
  }
}

function heapAndBufferBytes(): number {
  const { total_heap_size: heapBytes, external_memory: bufferBytes } = getHeapStatistics();
  return heapBytes + bufferBytes;
}

function processUse(usedBytes: number, limitBytes: number, slackBytes: number): MemoryUse {
  return {
    what: 'this process',
    usedBytes,
    limitBytes,
    remedy: 'Delete znodes, or give the machine or container more memory (and raise tskeeper.memoryLimitInMb, if that is set).',
    holdsTree: true,
    slackBytes,
    reserveBytes: processReserve(limitBytes),
  };
}

/**
 * The young part of the heap and the requests grow within milliseconds, faster than the memory is
 * checked.
 */
function processReserve(limitBytes: number): number {
  return Math.min(momentaryBytes, limitBytes / 8);
}

/** The limit of the container if it has one, and of the machine. */
function machineBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** The memory to measure; an interface, so that the rules can be tested without filling memory. */
export interface MemoryReader {
  readonly limitBytes: number;
  /** Includes garbage that has not been collected. */
  usedBytes(): number;
  collect(): void;
  nowMs(): number;
}

/** How much of the used memory is live, measured exactly only when it matters. */
export class LiveMemory {
  readonly #memory: MemoryReader;
  /** As of the last collection made to check the figure. */
  #liveBytes = 0;
  /**
   * Used bytes are compared with this; Infinity as long as the figure was too small to be checked.
   */
  #seenBytes = Infinity;
  #nextCollectionMs = 0;
  #nextIdleCollectionMs = 0;
  /** The smallest value of `returnedBytes` since that collection. */
  #returnedBytes = 0;

  constructor(memory: MemoryReader) {
    this.#memory = memory;
  }

  /**
   * An upper limit of the live bytes: those of the last exact measurement, and all growth since. A
   * tree that releases memory, as `returnedBytes` says, makes garbage that the figure does not
   * show.
   */
  usedBytes(returnedBytes: number): number {
    const { limitBytes } = this.#memory;
    const seenBytes = this.#memory.usedBytes();
    if (seenBytes < limitBytes * checkedFromShare) {
      this.#seenBytes = Infinity;
      this.#returnedBytes = returnedBytes;
      return seenBytes;
    }
    const nowMs = this.#memory.nowMs();
    const changedBytes = limitBytes * changeShare;
    this.#returnedBytes = Math.min(this.#returnedBytes, returnedBytes);
    const hasChanged = seenBytes > this.#seenBytes + changedBytes || returnedBytes > this.#returnedBytes + changedBytes;
    const isDue = this.#seenBytes === Infinity || hasChanged;
    if (nowMs < (isDue ? this.#nextCollectionMs : this.#nextIdleCollectionMs)) {
      return Math.min(seenBytes, this.#liveBytes + Math.max(0, seenBytes - this.#seenBytes));
    }
    this.#memory.collect();
    this.#returnedBytes = returnedBytes;
    this.#liveBytes = this.#seenBytes = this.#memory.usedBytes();
    const endMs = this.#memory.nowMs();
    this.#nextCollectionMs = endMs + (endMs - nowMs) * restPerCollection;
    this.#nextIdleCollectionMs = endMs + Math.max(idleRestMsMin, (endMs - nowMs) * idleRestPerCollection);
    return this.#liveBytes;
  }
}

let collectAll: (() => void) | undefined;

/**
 * V8 has no other way to request a collection. It is looked up when it is first needed, which on
 * most servers is never.
 */
function collect(): void {
  if (collectAll === undefined) {
    setFlagsFromString('--expose-gc');
    collectAll = runInNewContext('gc') as () => void;
  }
  collectAll();
}

function usableBytes(oldBytes: number): number {
  return oldBytes * v8GivesUpShare - Math.min(momentaryBytes, oldBytes / 3);
}

/**
 * The limit of the old space, from flags where they set it: V8 itself reports only the sum of old
 * and young.
 */
function oldSpaceBytes(): number {
  const limitMiB = flagMiB('max-old-space-size');
  if (limitMiB !== undefined) return limitMiB * mebibyte;
  return getHeapStatistics().heap_size_limit - 3 * (flagMiB('max-semi-space-size') ?? semiSpaceMiB) * mebibyte;
}

function flagMiB(name: string): number | undefined {
  const flags = [...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/), ...process.execArgv];
  const pattern = new RegExp(`^--${name.replaceAll('-', '[-_]')}=(\\d+)$`);
  // Of two, the later one applies; those of the command line come last.
  for (const flag of flags.toReversed()) {
    const value = pattern.exec(flag)?.[1];
    if (value !== undefined) return Number(value);
  }
  return undefined;
}

function usedOldBytes(): number {
  let bytes = 0;
  for (const { space_name: name, space_used_size: used } of getHeapSpaceStatistics()) {
    if (!name.startsWith('new_') && !name.startsWith('read_only')) bytes += used;
  }
  return bytes;
}
