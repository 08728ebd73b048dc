/**
 * A voluntary move to another server. It must not lose calls: the client leaves as soon as pending
 * requests are answered, or after a second. Later requests wait for the next server.
 */
import type { Millis } from '@tskeeper/protocol';
import { type CnxnLimit, GraceDeadline } from './grace-deadline.ts';
import type { Outbox } from './outbox.ts';
import type { Request } from './request.ts';
import { drainMsMax } from './timings.ts';

export class Drain implements CnxnLimit {
  readonly #outbox: Outbox<Request>;
  readonly #deadline = new GraceDeadline();
  #reason: string | undefined;

  constructor(outbox: Outbox<Request>) {
    this.#outbox = outbox;
  }

  /** The client is leaving its server. */
  get isActive(): boolean {
    return this.#reason !== undefined;
  }

  /** Why the client leaves, once no request is pending; undefined before. */
  get reasonToLeave(): string | undefined {
    return this.#outbox.pendingCount === 0 ? this.#reason : undefined;
  }

  start(reason: string, nowMs: Millis): void {
    this.#reason = reason;
    this.#deadline.set(nowMs + drainMsMax);
  }

  /** The client stays, or has left. */
  stop(): void {
    this.#reason = undefined;
    this.#deadline.set(Infinity);
  }

  // --- The limit

  get deadlineMs(): Millis {
    return this.#deadline.dueMs;
  }

  isDue(nowMs: Millis): boolean {
    return this.#deadline.isDue(nowMs);
  }

  maybeExtend(nowMs: Millis): boolean {
    return this.#deadline.maybeExtend(nowMs);
  }

  get overdueReason(): string {
    return this.#reason!;
  }
}
