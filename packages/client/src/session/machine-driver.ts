/**
 * Drives the session machine: passes it the time, wakes it at its deadline, and sends at the end of
 * each turn what the inputs of the turn have written.
 *
 * Every part that gives the machine an input calls `scheduleFlush` afterwards if the program made
 * the input, or `armTimer` if the network did: then the machine has sent what it had to.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Clock, TimerHandle } from '../clock.ts';
import type { PendingCall } from './pending-call.ts';
import type { SessionEnvironment } from './session-environment.ts';
import type { SessionMachine } from './session-machine.ts';

export class MachineDriver {
  readonly #clock: Clock;
  readonly #backgroundClock: Clock;
  #machine!: SessionMachine<PendingCall>;
  #timer: TimerHandle | undefined;
  #timerAtMs: Millis = 0;
  #isFlushScheduled = false;

  constructor({ clock, backgroundClock }: SessionEnvironment) {
    this.#clock = clock;
    this.#backgroundClock = backgroundClock;
  }

  get nowMs(): Millis {
    return this.#clock.now().elapsedMs;
  }

  get machine(): SessionMachine<PendingCall> {
    return this.#machine;
  }

  /**
   * Starts the machine. Called once: the machine is created after the receivers of its outputs, and
   * those know the driver.
   */
  drive(machine: SessionMachine<PendingCall>): void {
    this.#machine = machine;
    this.armTimer();
  }

  /**
   * Something was written, or a deadline has changed. All writes of one turn of the program are
   * sent together.
   */
  scheduleFlush(): void {
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    void Promise.resolve().then(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isFlushScheduled = false;
    this.#machine.flush(this.nowMs);
    this.armTimer();
  };

  /**
   * The machine's deadline may have changed. A timer that is early costs one needless wake; setting
   * it again for each request would cost more.
   */
  armTimer(): void {
    const deadline = this.#machine.deadline();
    if (this.#timer !== undefined) {
      if (deadline !== undefined && this.#timerAtMs <= deadline) return;
      this.#backgroundClock.cancel(this.#timer);
      this.#timer = undefined;
    }
    if (deadline === undefined) return;
    this.#timerAtMs = deadline;
    this.#timer = this.#backgroundClock.after(Math.max(0, deadline - this.nowMs), this.#wake);
  }

  readonly #wake = (): void => {
    this.#timer = undefined;
    this.#machine.wake(this.nowMs);
    this.armTimer();
  };
}
