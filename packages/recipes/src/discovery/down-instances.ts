/** Which instances are passed over, since they have failed too often of late. Nothing happens by time alone: what is too old is forgotten when it is looked at. */
import type { Clock, Millis } from '@tskeeper/client';
import type { ServiceInstance } from './service-instance.ts';

interface Failing {
  readonly sinceMs: Millis;
  errors: number;
}

export class DownInstances {
  readonly #clock: Clock;
  readonly #errorsMax: number;
  readonly #windowMs: Millis;
  /** In the order of their first errors, so what is too old stands ahead. */
  readonly #failing = new Map<string, Failing>();

  /** An instance is down from its `errorsMax`th error until `windowMs` after the first. */
  constructor(clock: Clock, errorsMax: number, windowMs: Millis) {
    this.#clock = clock;
    this.#errorsMax = errorsMax;
    this.#windowMs = windowMs;
  }

  note(instance: ServiceInstance): void {
    this.#forgetOld();
    const key = keyOf(instance);
    const failing = this.#failing.get(key);
    if (failing === undefined) this.#failing.set(key, { sinceMs: this.#clock.now().elapsedMs, errors: 1 });
    else failing.errors++;
  }

  isDown(instance: ServiceInstance): boolean {
    this.#forgetOld();
    return (this.#failing.get(keyOf(instance))?.errors ?? 0) >= this.#errorsMax;
  }

  #forgetOld(): void {
    const beforeMs = this.#clock.now().elapsedMs - this.#windowMs;
    for (const [key, { sinceMs }] of this.#failing) {
      if (sinceMs > beforeMs) return;
      this.#failing.delete(key);
    }
  }
}

/** One that was registered anew begins anew. */
function keyOf({ id, registrationTimeMs }: ServiceInstance): string {
  return `${registrationTimeMs} ${id}`;
}
