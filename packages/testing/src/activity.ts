/**
 * Knows what servers in this process have under way: callbacks that wait for their turn, packets between servers, work of the disk. Whoever
 * waits for a server to come to something looks again after each of these, and whoever moves the clock waits until they are through: nothing
 * has to be guessed by waiting for a while.
 */

/** Turns of the event loop without anything under way after which it has become quiet. A request of a client and its answer take two. */
const quietTurns = 4;
/** Each takes what was under way when it began to its end. An exchange of packets between servers takes five, so more is no consequence. */
const roundsMax = 20;
/** Real time that one moment may take. Only a disk that hangs is not through by then. */
const settleMsMax = 5000;

/** Something that has begun. */
export type Begun = number;

export class Activity {
  /** Of each round that something is still under way from, how much. */
  readonly #underWay = new Map<number, number>();
  #round = 0;
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

  /** Resolves when what is under way has come to its end, and what came of it. */
  async settle(): Promise<void> {
    const startMs = performance.now();
    let quiet = 0;
    for (let rounds = 0; rounds < roundsMax && quiet < quietTurns; rounds++) {
      this.#round++;
      do await turn();
      while (this.#isEarlierUnderWay() && performance.now() - startMs < settleMsMax);
      quiet = this.#underWay.size === 0 ? quiet + 1 : 0;
    }
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
