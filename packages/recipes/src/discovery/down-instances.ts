/**
 * Instances that have failed too often recently, and are skipped. There is no timer: old errors are
 * removed when the list is read.
 */
import type { Clock, Millis } from '@tskeeper/client';
import type { ServiceInstance } from './service-instance.ts';

interface ErrorCount {
  readonly sinceMs: Millis;
  errors: number;
}

export class DownInstances {
  readonly #clock: Clock;
  readonly #errorsMax: number;
  readonly #windowMs: Millis;
  /** In the order of their first errors, so the oldest come first. */
  readonly #errorCounts = new Map<string, ErrorCount>();

  /** An instance is down from its `errorsMax`th error until `windowMs` after the first. */
  constructor(clock: Clock, errorsMax: number, windowMs: Millis) {
    this.#clock = clock;
    this.#errorsMax = errorsMax;
    this.#windowMs = windowMs;
  }

  recordError(instance: ServiceInstance): void {
    this.#removeOld();
    const key = keyOf(instance);
    const failing = this.#errorCounts.get(key);
    if (failing === undefined) this.#errorCounts.set(key, { sinceMs: this.#clock.now().elapsedMs, errors: 1 });
    else failing.errors++;
  }

  isDown(instance: ServiceInstance): boolean {
    this.#removeOld();
    return (this.#errorCounts.get(keyOf(instance))?.errors ?? 0) >= this.#errorsMax;
  }

  #removeOld(): void {
    const beforeMs = this.#clock.now().elapsedMs - this.#windowMs;
    for (const [key, { sinceMs }] of this.#errorCounts) {
      if (sinceMs > beforeMs) return;
      this.#errorCounts.delete(key);
    }
  }
}

/** An instance that was registered again counts as a new one. */
function keyOf({ id, registrationTimeMs }: ServiceInstance): string {
  return `${registrationTimeMs} ${id}`;
}
