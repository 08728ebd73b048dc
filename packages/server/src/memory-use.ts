/**
 * How much memory this process has and uses. Two kinds can run out, and the process dies of either.
 *
 * **The JavaScript heap** holds connections, requests under way, ACLs and quotas. What counts is what lives in its old part: V8 lets garbage
 * pile up there until it gets near the limit, so a figure that looks like too much is checked by a collection. Long before the limit
 * V8 gives up ("Ineffective mark-compacts near heap limit", from four fifths on), and one long request needs room for a moment; both are
 * taken off the limit.
 *
 * **The process as a whole** holds znodes, watches and buffers besides, outside of the JavaScript heap and of its limit. Where its end is,
 * the machine says, or the container, or the operator.
 */
import { totalmem } from 'node:os';
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { MemoryProbe, MemoryUse } from '@tskeeper/runtime';

const mebibyte = 1024 * 1024;

/** Where V8 begins to count collections that gain little, as a share of the old part; after four of them it ends the process. */
const v8GivesUpShare = 0.8;
/**
 * What a multi of a megabyte takes while it is judged, and about what V8 wants to have left: with less than two new spaces below the limit it
 * collects without end.
 */
const momentaryBytes = 32 * mebibyte;
/** The young part is as large as three semispaces, and each of these this large unless told otherwise. */
const semiSpaceMiB = 16;
/** Below this share of the limit nobody cares how much of it is garbage. */
const checkedFromShare = 0.8;
/** Collections to check the figure may take a fifth of the time while it grows, and little when it does not. */
const restPerCollection = 4;
const idleRestPerCollection = 20;
const idleRestMsMin = 5000;
/** A figure that has changed by less than this share of the limit has not changed. */
const changeShare = 0.02;

export interface MemoryLimits {
  /** tskeeper.memoryLimitInMb, in bytes; undefined: what the container or the machine has. */
  readonly processBytes: number | undefined;
}

/** `resident` asks the system for what this process holds, and throws where no file can be opened to ask it. */
export function memoryProbe({ processBytes }: MemoryLimits, resident: () => number = () => process.memoryUsage.rss()): MemoryProbe {
  const nowMs = (): number => performance.now();
  const heapBytes = usableBytes(oldSpaceBytes());
  const heap = new LiveMemory({ limitBytes: heapBytes, usedBytes: usedOldBytes, collect, nowMs });
  const wholeBytes = processBytes ?? machineBytes();
  const held = new ResidentBytes(resident);
  const ownBytes = held.slackBytes();
  // Pages that the tree has given back are garbage as well, and a server that only refuses makes no other that would have it collected.
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
 * What this process holds. To ask the system takes a free file descriptor; without one the figure is what was neither heap nor buffers when it
 * last answered, and what V8 knows of heap and buffers by itself.
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

  /** What is neither heap nor buffers: the program itself, and what the allocator keeps of what was freed. */
  slackBytes(): number {
    try {
      this.#slackBytes = this.#resident() - heapAndBufferBytes();
    } catch {
      // The figure of before has to do.
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
    remedy: 'Delete znodes, or give the machine or container more memory (and tskeeper.memoryLimitInMb, if that is set).',
    holdsTree: true,
    slackBytes,
    reserveBytes: processReserve(limitBytes),
  };
}

/** The young part of the heap grows within milliseconds, and requests with it: sooner than anyone looks. */
function processReserve(limitBytes: number): number {
  return Math.min(momentaryBytes, limitBytes / 8);
}

/** Of the container if it has a limit, and of the machine. */
function machineBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** What memory is asked, so that the rules can be tried without filling it. */
export interface MemoryReader {
  readonly limitBytes: number;
  /** Garbage that has not been collected included. */
  usedBytes(): number;
  collect(): void;
  nowMs(): number;
}

/** How much of what is used is no garbage, looked at closely only when it matters. */
export class LiveMemory {
  readonly #memory: MemoryReader;
  /** As of the last collection made to check the figure. */
  #liveBytes = 0;
  /** What is used is judged against this; Infinity as long as the figure was too small to be checked. */
  #seenBytes = Infinity;
  #restUntilMs = 0;
  #idleUntilMs = 0;
  /** The least that had been given back, at any time since that collection. */
  #returnedBytes = 0;

  constructor(memory: MemoryReader) {
    this.#memory = memory;
  }

  /**
   * At most so much lives: what lived when it was last known exactly, and all that has come since. Whoever gives back what he had, which is
   * told by `returnedBytes`, makes garbage that the figure does not show.
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
    if (nowMs < (isDue ? this.#restUntilMs : this.#idleUntilMs)) {
      return Math.min(seenBytes, this.#liveBytes + Math.max(0, seenBytes - this.#seenBytes));
    }
    this.#memory.collect();
    this.#returnedBytes = returnedBytes;
    this.#liveBytes = this.#seenBytes = this.#memory.usedBytes();
    const endMs = this.#memory.nowMs();
    this.#restUntilMs = endMs + (endMs - nowMs) * restPerCollection;
    this.#idleUntilMs = endMs + Math.max(idleRestMsMin, (endMs - nowMs) * idleRestPerCollection);
    return this.#liveBytes;
  }
}

let collectAll: (() => void) | undefined;

/** V8 has no other way to be asked for a collection. It is looked for when it is first needed, which on most servers is never. */
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

/** The limit of the old part, from flags where they say it: V8 itself tells only the sum of old and young. */
function oldSpaceBytes(): number {
  const told = flagMiB('max-old-space-size');
  if (told !== undefined) return told * mebibyte;
  return getHeapStatistics().heap_size_limit - 3 * (flagMiB('max-semi-space-size') ?? semiSpaceMiB) * mebibyte;
}

function flagMiB(name: string): number | undefined {
  const flags = [...(process.env['NODE_OPTIONS'] ?? '').split(/\s+/), ...process.execArgv];
  const pattern = new RegExp(`^--${name.replaceAll('-', '[-_]')}=(\\d+)$`);
  // Of two, the later counts; those of the command line come last.
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
