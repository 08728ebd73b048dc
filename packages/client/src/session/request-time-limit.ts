/**
 * The client's limit for each request without a time-out of its own (`requestTimeoutMs`). A server
 * that answers pings but no requests shows no other sign of failure.
 */
import type { Millis } from '@tskeeper/protocol';
import { type Clock, timerMsMax } from '../clock.ts';
import type { MachineDriver } from './machine-driver.ts';
import { type CurrentConnection, RequestTimer } from './request-timer.ts';
import type { SessionEnvironment } from './session-environment.ts';

export class RequestTimeLimit implements CurrentConnection {
  readonly clock: Clock;
  /** Infinity: none, or longer than a timer can wait. */
  readonly #ms: Millis;
  readonly #driver: MachineDriver;

  /** `ms`: undefined for no limit. */
  constructor(ms: Millis | undefined, { clock }: SessionEnvironment, driver: MachineDriver) {
    this.clock = clock;
    this.#ms = ms === undefined || ms > timerMsMax ? Infinity : ms;
    this.#driver = driver;
  }

  get isSet(): boolean {
    return this.#ms !== Infinity;
  }

  /**
   * Starts the limit of a request that is made now (see `RequestTimer`). Check `isSet` first.
   */
  start(isSent: () => boolean, onTimeout: (limitMs: Millis) => void): RequestTimer {
    return new RequestTimer(this, this.#ms, isSent, onTimeout);
  }

  get connectedAtMs(): Millis {
    return this.#driver.machine.connectedAtMs;
  }

  /** As ZooKeeper's Java client does after a request has timed out: another server may work. */
  abandonServer(what: string): void {
    this.#driver.machine.abandonCnxn(`${what} was not answered within ${this.#ms} ms`, this.#driver.nowMs);
    this.#driver.armTimer();
  }
}
