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
const hearingsMax = 4;
/**
 * How often to skip the wait for TCP when nothing is in progress. A turn of the event loop costs
 * more than a tick of three servers.
 */
const unheardMax = 64;
/**
 * Each round completes the work that was in progress when it began. From a timer to the answer of
 * another server it takes eight rounds; work that remains after more rounds does not follow from
 * the awaited event, for example that of clients that write all the time.
 */
const roundsMax = 12;
/** Maximum number of turns for one settling. Only a hanging disk needs more. */
const turnsMax = 10_000;

/** The round in which an operation began. */
export type Begun = number;

export class Activity {
  /** For each round, the number of its operations still in progress. */
  readonly #underWay = new Map<number, number>();
  #round = 0;
  #soon: (() => void)[] = [];
  #isSoonPlanned = false;
  /** Whether bytes were, or may have been, sent to another process. */
  #wasOutside = false;
  /** How often it has settled without waiting for TCP. */
  #unheard = 0;
  #loopback: Promise<Loopback> | undefined;
  #isClosed = false;
  #waiting: (() => void)[] = [];
  #isTelling = false;

  begin(): Begun {
    this.#underWay.set(this.#round, (this.#underWay.get(this.#round) ?? 0) + 1);
    return this.#round;
  }

  end(begun: Begun): void {
    const left = this.#underWay.get(begun)! - 1;
    if (left === 0) this.#underWay.delete(begun);
    else this.#underWay.set(begun, left);
    this.happened();
  }

  /** Calls back once, in the next turn of the event loop. */
  soon(callback: () => void): void {
    const begun = this.begin();
    this.#soon.push(() => {
      try {
        callback();
      } finally {
        this.end(begun);
      }
    });
    this.#planSoon();
  }

  #planSoon(): void {
    if (this.#isSoonPlanned) return;
    this.#isSoonPlanned = true;
    setImmediate(() => {
      this.#isSoonPlanned = false;
      this.#doSoon();
    });
  }

  #doSoon(): void {
    const soon = this.#soon;
    this.#soon = [];
    for (let index = 0; index < soon.length; index++) {
      try {
        soon[index]!();
      } catch (error) {
        // Throws the error as a timer would, and calls the remaining callbacks all the same.
        this.#soon.unshift(...soon.slice(index + 1));
        if (this.#soon.length > 0) this.#planSoon();
        throw error;
      }
    }
  }

  /** A client has received or sent bytes. */
  outside(): void {
    this.#wasOutside = true;
    this.happened();
  }

  /** The state of a server may have changed; checks the conditions of `until`. */
  happened(): void {
    if (this.#isTelling || this.#waiting.length === 0) return;
    this.#isTelling = true;
    setImmediate(() => {
      this.#isTelling = false;
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const each of waiting) each();
    });
  }

  /**
   * Resolves with true when `isSo` returns true, or with false after `timeoutMs` of real time.
   * Checks it after each change.
   */
  async until(isSo: () => boolean, timeoutMs: number): Promise<boolean> {
    let isLate = false;
    let wake = (): void => undefined;
    const timer = setTimeout(() => {
      isLate = true;
      wake();
    }, timeoutMs);
    try {
      while (!isSo()) {
        if (isLate) return false;
        await new Promise<void>((resolve) => {
          wake = resolve;
          this.#waiting.push(resolve);
        });
      }
      return true;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Resolves when the work in progress and everything that follows from it is done. `thoroughly`:
   * including work of clients, over TCP. Otherwise clients are awaited only if they received bytes,
   * or have not been awaited for some time.
   */
  async settle(thoroughly: boolean): Promise<void> {
    if (thoroughly || ++this.#unheard >= unheardMax) this.#wasOutside = true;
    let [quiet, heard] = [0, 0];
    for (let rounds = 0, turns = 0; rounds < roundsMax && turns < turnsMax; turns++) {
      if (this.#wasOutside && heard < hearingsMax) {
        await this.#hearOutside();
        heard++;
        quiet = this.#underWay.size === 0 ? quiet + 1 : 0;
        if (quiet >= quietTimes) break;
      } else if (this.#underWay.size === 0) {
        break;
      }
      this.#round++;
      rounds++;
      while (this.#isEarlierUnderWay() && turns < turnsMax) {
        turns++;
        if (!(await this.#goOn())) await turn();
      }
    }
    this.#wasOutside = false;
    if (heard > 0) this.#unheard = 0;
  }

  /** Everything sent over TCP so far has arrived and been delivered. */
  async #hearOutside(): Promise<void> {
    if (this.#isClosed) return;
    this.#loopback ??= Loopback.open();
    await (await this.#loopback).pass();
    await turn();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Closes the loopback connection and stops. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.happened();
    (await this.#loopback)?.close();
  }

  /**
   * Does what needs no turn of the event loop, which costs more than all the rest. Returns whether
   * there was any work.
   */
  async #goOn(): Promise<boolean> {
    // Callers that await a settled promise continue first, as between two turns.
    await promisesKept();
    if (!this.#isEarlierUnderWay()) return true;
    if (this.#soon.length === 0) return false;
    this.#doSoon();
    return true;
  }

  #isEarlierUnderWay(): boolean {
    for (const round of this.#underWay.keys()) if (round < this.#round) return true;
    return false;
  }
}

/** One pass of the event loop: what has arrived is read, and deferred callbacks have run. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Everything that follows from settled promises has happened. */
function promisesKept(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
