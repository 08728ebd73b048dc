/**
 * Callers that wait until a server has accepted their identity. The session keeps each identity and
 * proves it on every connection, so a caller that stops waiting ends only its own call.
 */
import { ErrorCode, type Millis } from '@tskeeper/protocol';
import type { AuthCall, Credentials } from '../auth/credentials.ts';
import { type TimerHandle, timerMsMax } from '../clock.ts';
import { RequestFailure } from '../keeper-error.ts';
import type { MachineDriver } from './machine-driver.ts';
import { holdUntilSettled } from './process-hold.ts';
import type { RequestLimits } from './request-limits.ts';
import type { RequestTimeLimit } from './request-time-limit.ts';
import type { RequestTimer } from './request-timer.ts';
import type { AuthOutput } from './session-auth.ts';
import type { SessionEnvironment } from './session-environment.ts';

export class PendingAuths implements AuthOutput {
  readonly #environment: SessionEnvironment;
  readonly #driver: MachineDriver;
  readonly #timeLimit: RequestTimeLimit;
  readonly #waiting = new Map<AuthCall, { resolve(): void; reject(reason: unknown): void }>();

  constructor(environment: SessionEnvironment, driver: MachineDriver, timeLimit: RequestTimeLimit) {
    this.#environment = environment;
    this.#driver = driver;
    this.#timeLimit = timeLimit;
  }

  /** The result for an identity that the session has from its start. */
  resultOf(call: AuthCall): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve, reject });
    });
  }

  /** Adds an identity. Rejects like a request. */
  authenticate(credentials: Credentials, { signal, timeoutMs }: RequestLimits): Promise<void> {
    const call: AuthCall = { credentials };
    const { clock, processHold } = this.#environment;
    let timer: TimerHandle | undefined;
    let requestTimer: RequestTimer | undefined;
    let onAbort: (() => void) | undefined;
    const result = new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason);
        return;
      }
      this.#driver.machine.authenticate(call);
      this.#waiting.set(call, { resolve, reject });
      this.#driver.scheduleFlush();
      const rejectAsTimedOut = (limitMs: Millis) =>
        reject(new RequestFailure(ErrorCode.RequestTimeout, 'unknown', `no answer within ${limitMs} ms`));
      if (timeoutMs !== undefined) {
        if (timeoutMs <= timerMsMax) timer = clock.after(timeoutMs, () => rejectAsTimedOut(timeoutMs));
      } else if (this.#timeLimit.isSet) {
        requestTimer = this.#timeLimit.start(
          () => this.#driver.machine.isConnected,
          (limitMs) => {
            rejectAsTimedOut(limitMs);
            this.#timeLimit.abandonServer('auth');
          },
        );
      }
      onAbort = () => reject(signal!.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
    return holdUntilSettled(processHold, result).finally(() => {
      if (timer !== undefined) clock.cancel(timer);
      requestTimer?.cancel();
      if (onAbort !== undefined) signal?.removeEventListener('abort', onAbort);
    });
  }

  authenticated(call: AuthCall): void {
    this.#waiting.get(call)?.resolve();
    this.#waiting.delete(call);
  }

  authFailed(call: AuthCall, refusal: RequestFailure): void {
    this.#waiting.get(call)?.reject(refusal);
    this.#waiting.delete(call);
  }
}
