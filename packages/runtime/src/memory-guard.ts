/**
 * Watches how close a server is to its memory limits, and logs it.
 *
 * New work is refused before memory runs out, in two stages (see `MemoryState` of the core). A
 * stage is left only when use has fallen a twentieth of the memory below the point of entry, and
 * after a second at least, so that a server at the limit does not alternate.
 */
import type { MemoryState } from '@tskeeper/core';
import type { Millis } from '@tskeeper/protocol';
import type { Logger } from './logger.ts';
import type { MemoryProbe, MemoryUse } from './memory-use.ts';
import { RateLimitedLog } from './ports/rate-limited-log.ts';

const tightShare = 0.85;
const fullShare = 0.9;
const hysteresis = 0.05;
/** Minimum duration of a stage. */
const stageMsMin = 1000;
/** The share of the memory that holds the tree which watches may take. */
const watchShare = 0.25;

/** The server's own figures of its memory. */
export interface OwnMemory {
  /** Free bytes within the pages of the tree. */
  readonly idleTreeBytes: number;
  /** Bytes that the tree has released since it was largest. */
  readonly returnedTreeBytes: number;
  readonly watchBytes: number;
}

export class MemoryGuard {
  readonly #probe: MemoryProbe;
  readonly #ownMemory: OwnMemory;
  readonly #logger: Logger;
  readonly #rateLimitedLog: RateLimitedLog;
  #enteredMs: Millis = -Infinity;
  /** The last call of the probe failed, and that has been logged. */
  #hasProbeFailed = false;
  state: MemoryState = 'ample';
  /** Whether more watches may be set; they have a share of their own. */
  watchesMayGrow = true;

  constructor(probe: MemoryProbe, own: OwnMemory, logger: Logger) {
    this.#probe = probe;
    this.#ownMemory = own;
    this.#logger = logger;
    this.#rateLimitedLog = new RateLimitedLog(logger);
  }

  /** Measures memory; returns whether a stage or the permission for watches has changed. */
  check(nowMs: Millis): boolean {
    const found = this.#probeMemory(nowMs);
    if (found === undefined) return false;
    const uses = found.map((use) => (use.holdsTree ? { ...use, usedBytes: this.#neededBytes(use) } : use));
    let worst = uses[0];
    for (const use of uses) if (worst === undefined || shareOf(use) > shareOf(worst)) worst = use;
    let state = worst === undefined ? 'ample' : nextState(this.state, shareOf(worst));
    if (rank[state] < rank[this.state] && nowMs - this.#enteredMs < stageMsMin) state = this.state;
    const watchesMayGrow = this.#watchesMayGrow(uses, nowMs);
    if (state === this.state && watchesMayGrow === this.watchesMayGrow) return false;
    if (state !== this.state) {
      this.#enteredMs = nowMs;
      this.#logState(state, worst!, nowMs);
    }
    this.state = state;
    this.watchesMayGrow = watchesMayGrow;
    return true;
  }

  /** undefined when the probe fails: then nothing changes. */
  #probeMemory(nowMs: Millis): readonly MemoryUse[] | undefined {
    try {
      const uses = this.#probe(this.#ownMemory.returnedTreeBytes);
      this.#hasProbeFailed = false;
      return uses;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.#hasProbeFailed) {
        this.#rateLimitedLog.warn(
          nowMs,
          `cannot read how much memory this server has left (${reason}); it continues, and refuses what it refused before`,
          { event: 'memory.unknown', reason },
        );
      }
      this.#hasProbeFailed = true;
      return undefined;
    }
  }

  /** Used bytes without those that the tree can use again. */
  #neededBytes({ usedBytes, limitBytes, slackBytes }: MemoryUse): number {
    const { idleTreeBytes, returnedTreeBytes } = this.#ownMemory;
    // At the limit, memory that the tree might use again does not count.
    const again = usedBytes >= limitBytes ? 0 : Math.max(0, Math.min(returnedTreeBytes, slackBytes));
    return usedBytes - idleTreeBytes - again;
  }

  #watchesMayGrow(uses: readonly MemoryUse[], nowMs: Millis): boolean {
    const { watchBytes } = this.#ownMemory;
    let may = true;
    for (const { holdsTree, limitBytes, what, remedy } of uses) {
      if (!holdsTree || watchBytes <= limitBytes * (this.watchesMayGrow ? watchShare : watchShare - hysteresis)) continue;
      may = false;
      if (this.watchesMayGrow) {
        this.#rateLimitedLog.warn(
          nowMs,
          `watches take ${mib(watchBytes)} and may take a quarter of the limit of ${what} (${mib(limitBytes)}): requests that set more watches are answered with ThrottledOp. ${remedy}`,
          { event: 'memory.watches-full', what, bytes: watchBytes, limitBytes },
        );
      }
    }
    if (may && !this.watchesMayGrow) {
      this.#logger.info(`watches take ${mib(watchBytes)}: more may be set again`, { event: 'memory.watches-free', bytes: watchBytes });
    }
    return may;
  }

  #logState(state: MemoryState, { what, usedBytes, limitBytes, remedy }: MemoryUse, nowMs: Millis): void {
    const figures = `${what} uses ${mib(usedBytes)} of its limit of ${mib(limitBytes)}`;
    const fields = { what, bytes: usedBytes, limitBytes };
    switch (state) {
      case 'ample':
        this.#logger.info(`memory pressure is over: ${figures}; accepting all requests`, { event: 'memory.ample', ...fields });
        return;
      case 'tight':
        this.#rateLimitedLog.warn(nowMs, `memory is getting tight: ${figures}. New sessions and long multis are refused. ${remedy}`, {
          event: 'memory.tight',
          ...fields,
        });
        return;
      case 'full':
        this.#rateLimitedLog.warn(
          nowMs,
          `memory is full: ${figures}. Creates, larger data and further watches are refused (ThrottledOp); reads, deletes and sessions continue. ${remedy}`,
          { event: 'memory.full', ...fields },
        );
        return;
      default:
        state satisfies never;
    }
  }
}

const rank: Readonly<Record<MemoryState, number>> = { ample: 0, tight: 1, full: 2 };

function shareOf({ usedBytes, limitBytes, reserveBytes }: MemoryUse): number {
  return usedBytes / (limitBytes - reserveBytes);
}

function nextState(state: MemoryState, share: number): MemoryState {
  const isFull = share >= (state === 'full' ? fullShare - hysteresis : fullShare);
  if (isFull) return 'full';
  return share >= (state === 'ample' ? tightShare : tightShare - hysteresis) ? 'tight' : 'ample';
}

function mib(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}
