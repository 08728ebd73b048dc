/**
 * Tracks the work in progress of the servers in this process: callbacks waiting for their turn,
 * packets between servers, disk operations. A caller that waits for a server's state checks the
 * condition after each of these, and the clock advances only when all of them are done, so no test
 * has to guess a waiting time.
 */
import { Loopback } from './loopback.ts';

/**
 * How often the process must be quiet, after everything sent over TCP has arrived: other processes
 * are not visible here, and a client sends a request and receives its reply one after the other.
 */
const quietTimes = 2;
/**
 * Clients that send all the time are not awaited until they are silent: one round to receive their
 * requests, one to answer, and one more.
 */
const loopbackPassesMax = 4;
/**
 * How often to skip the wait for TCP when nothing is in progress. A turn of the event loop costs
 * more than a tick of three servers.
 */
const settlesWithoutExternalMax = 64;
/**
 * Each round completes the work that was in progress when it began. From a timer to the answer of
 * another server it takes eight rounds; work that remains after more rounds does not follow from
 * the awaited event, for example that of clients that write all the time.
 */
const roundsMax = 12;
/** Maximum time for one settling, in real ms. Only a hanging disk needs more. */
const settlingMsMax = 10_000;

/** The round in which an operation began. */
export type ActivityToken = number;

export class ActivityTracker {
  /** For each round, the number of its operations still in progress. */
  readonly #pendingByRound = new Map<number, number>();
  #round = 0;
  #nextTurnCallbacks: (() => void)[] = [];
  #isTurnScheduled = false;
  /** Whether bytes were, or may have been, sent to another process. */
  #hadExternalTraffic = false;
  /** How often it has settled without waiting for TCP. */
  #settlesWithoutExternal = 0;
  #loopback: Promise<Loopback> | undefined;
  #isClosed = false;
  #waiters: (() => void)[] = [];
  #isNotifying = false;

  begin(): ActivityToken {
    this.#pendingByRound.set(this.#round, (this.#pendingByRound.get(this.#round) ?? 0) + 1);
    return this.#round;
  }

  end(token: ActivityToken): void {
    const left = this.#pendingByRound.get(token)! - 1;
    if (left === 0) this.#pendingByRound.delete(token);
    else this.#pendingByRound.set(token, left);
    this.notifyChange();
  }

  /** Calls back once, in the next turn of the event loop. */
  nextTurn(callback: () => void): void {
    const token = this.begin();
    this.#nextTurnCallbacks.push(() => {
      try {
        callback();
      } finally {
        this.end(token);
      }
    });
    this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    setImmediate(() => {
      this.#isTurnScheduled = false;
      this.#runNextTurnCallbacks();
    });
  }

  #runNextTurnCallbacks(): void {
    const callbacks = this.#nextTurnCallbacks;
    this.#nextTurnCallbacks = [];
    for (let index = 0; index < callbacks.length; index++) {
      try {
        callbacks[index]!();
      } catch (error) {
        // Throws the error as a timer would, and calls the remaining callbacks nevertheless.
        this.#nextTurnCallbacks.unshift(...callbacks.slice(index + 1));
        if (this.#nextTurnCallbacks.length > 0) this.#scheduleTurn();
        throw error;
      }
    }
  }

  /** A client has received or sent bytes. */
  notifyExternalTraffic(): void {
    this.#hadExternalTraffic = true;
    this.notifyChange();
  }

  /** The state of a server may have changed; checks the conditions of `until`. */
  notifyChange(): void {
    if (this.#isNotifying || this.#waiters.length === 0) return;
    this.#isNotifying = true;
    setImmediate(() => {
      this.#isNotifying = false;
      const waiters = this.#waiters;
      this.#waiters = [];
      for (const each of waiters) each();
    });
  }

  /**
   * Resolves with true when `condition` returns true, or with false after `timeoutMs` of real time.
   * Checks it after each change.
   */
  async until(condition: () => boolean, timeoutMs: number): Promise<boolean> {
    let isTimedOut = false;
    let wake = (): void => undefined;
    const timer = setTimeout(() => {
      isTimedOut = true;
      wake();
    }, timeoutMs);
    try {
      while (!condition()) {
        if (isTimedOut) return false;
        await new Promise<void>((resolve) => {
          wake = resolve;
          this.#waiters.push(resolve);
        });
      }
      return true;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Resolves when the work in progress and everything that follows from it is done.
   * `includesExternal`: including work of clients, over TCP. Otherwise clients are awaited only if
   * they received bytes, or have not been awaited for some time.
   */
  async settle(includesExternal: boolean): Promise<void> {
    if (includesExternal || ++this.#settlesWithoutExternal >= settlesWithoutExternalMax) this.#hadExternalTraffic = true;
    let [quiet, loopbackPasses] = [0, 0];
    const endsMs = performance.now() + settlingMsMax;
    for (let rounds = 0; rounds < roundsMax && performance.now() < endsMs;) {
      if (this.#hadExternalTraffic && loopbackPasses < loopbackPassesMax) {
        await this.#receiveExternal();
        loopbackPasses++;
        quiet = this.#pendingByRound.size === 0 ? quiet + 1 : 0;
        if (quiet >= quietTimes) break;
      } else if (this.#pendingByRound.size === 0) {
        break;
      }
      this.#round++;
      rounds++;
      while (this.#hasEarlierPending() && performance.now() < endsMs) if (!(await this.#runPending())) await eventLoopTurn();
    }
    this.#hadExternalTraffic = false;
    if (loopbackPasses > 0) this.#settlesWithoutExternal = 0;
  }

  /** Everything sent over TCP so far has arrived and been delivered. */
  async #receiveExternal(): Promise<void> {
    if (this.#isClosed) return;
    this.#loopback ??= Loopback.open();
    await (await this.#loopback).roundTrip();
    await eventLoopTurn();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Closes the loopback connection and stops. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.notifyChange();
    (await this.#loopback)?.close();
  }

  /**
   * Does what needs no turn of the event loop, which costs more than all the rest. Returns whether
   * there was any work.
   */
  async #runPending(): Promise<boolean> {
    // Callers that await a settled promise continue first, as between two turns.
    await microtasksDone();
    if (!this.#hasEarlierPending()) return true;
    if (this.#nextTurnCallbacks.length === 0) return false;
    this.#runNextTurnCallbacks();
    return true;
  }

  #hasEarlierPending(): boolean {
    for (const round of this.#pendingByRound.keys()) if (round < this.#round) return true;
    return false;
  }
}

/** One pass of the event loop: input that has arrived is read, and deferred callbacks have run. */
function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Everything that follows from settled promises has happened. */
function microtasksDone(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
