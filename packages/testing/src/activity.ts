/**
 * Knows what servers in this process have under way: callbacks that wait for their turn, packets between servers, work of the disk. Whoever
 * waits for a server to come to something looks again after each of these, and whoever moves the clock waits until they are through: nothing
 * has to be guessed by waiting for a while.
 */
import { Loopback } from './loopback.ts';

/**
 * How often it must be quiet, with everything that was sent over TCP heard: what goes on outside is not seen from here, and a request of a client and
 * its answer are sent one after the other.
 */
const quietTimes = 2;
/** Clients that speak all the time are not waited for until they are silent: once to be heard, once to be answered, and again. */
const hearingsMax = 4;
/** So often nothing is waited for when nothing is under way. A turn of the event loop costs more than a tick of three servers. */
const unheardMax = 64;
/**
 * Each takes what was under way when it began to its end. From a timer to the answer of another server it takes eight; what is still under way after
 * more is no consequence of what is waited for, but others' business, as of clients that write all the time.
 */
const roundsMax = 12;
/** Turns that one settling may take in all. Only a disk that hangs is not through by then. */
const turnsMax = 10_000;

/** Something that has begun. */
export type Begun = number;

export class Activity {
  /** Of each round that something is still under way from, how much. */
  readonly #underWay = new Map<number, number>();
  #round = 0;
  #soon: (() => void)[] = [];
  #isSoonPlanned = false;
  /** Something outside of the process was spoken to, or may have been. */
  #wasOutside = false;
  /** How often it has settled without having listened outside. */
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
        // It goes where an error of a timer goes, and the others are called all the same.
        this.#soon.unshift(...soon.slice(index + 1));
        if (this.#soon.length > 0) this.#planSoon();
        throw error;
      }
    }
  }

  /** A client was spoken to, or has spoken. */
  outside(): void {
    this.#wasOutside = true;
    this.happened();
  }

  /** Something has happened that may have changed what somebody waits for. */
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

  /** Resolves with true when it is so, or with false when it is not after `timeoutMs` of real time. Looks whenever something has happened. */
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
   * Resolves when what is under way has come to its end, and what came of it. `thoroughly`: with what may be under way outside as well. Otherwise
   * clients are waited for only if they were spoken to, or have to be heard now because they have not been for some time.
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

  /** Everything that was sent over TCP by now has been heard, and told. */
  async #hearOutside(): Promise<void> {
    if (this.#isClosed) return;
    this.#loopback ??= Loopback.open();
    await (await this.#loopback).pass();
    await turn();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Nothing goes on any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.happened();
    (await this.#loopback)?.close();
  }

  /** Does what can be done without a turn of the event loop, which costs more than all the rest. Returns whether anything could. */
  async #goOn(): Promise<boolean> {
    // Whoever waits for a promise that has been kept goes on first, as between two turns.
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

/** One pass of the event loop: what has arrived has been read, and what was put off has been done. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Everything that follows from promises that have been kept has happened. */
function promisesKept(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
