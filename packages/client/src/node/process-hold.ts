/**
 * Keeps the process running while a program waits for a client whose connection does not
 * (`keepProcessAlive: false`).
 */
import type { ProcessHold } from '../session/session.ts';

/** The longest interval of Node, 24 days. The timer only has to exist. */
const intervalMs = 0x7fffffff;

export class TimerHold implements ProcessHold {
  #held = 0;
  #timer: NodeJS.Timeout | undefined;

  hold(): void {
    if (this.#held++ === 0) this.#timer = setInterval(nothing, intervalMs);
  }

  release(): void {
    if (--this.#held === 0) clearInterval(this.#timer);
  }
}

function nothing(): void {}
