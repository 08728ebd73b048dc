/**
 * Keeps the process running while a program waits for a client whose connection does not
 * (`keepProcessAlive: false`).
 */
import type { ProcessHold } from '../session/process-hold.ts';

/** The longest interval of Node, 24 days. The timer only has to exist. */
const intervalMs = 0x7fffffff;

export class TimerHold implements ProcessHold {
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  hold(): void {
    if (this.#count++ === 0) this.#timer = setInterval(noop, intervalMs);
  }

  release(): void {
    if (--this.#count === 0) clearInterval(this.#timer);
  }
}

function noop(): void {}
