/**
 * The sink to which a state machine of the core writes its state, for an explorer of all reachable
 * states.
 *
 * Two machines that wrote the same will behave the same for the same inputs. So everything that can
 * influence behaviour is written, in an order that does not depend on history (tables by ascending
 * key), and nothing else: states that differ only in unused details would be explored twice. Times
 * are written as distances from now, since no behaviour depends on when a clock began.
 */
import type { Millis } from '@tskeeper/protocol';

export interface Fingerprint {
  number(value: number): void;
  text(value: string): void;
}

/** The age of an event, limited to just above `limitMs`: no behaviour depends on a larger one. */
export function age(sinceMs: Millis, nowMs: Millis, limitMs: Millis): Millis {
  return Math.min(nowMs - sinceMs, limitMs + 1);
}

/** The time until something is due; -1 if nothing is. */
export function msUntil(dueMs: Millis | undefined, nowMs: Millis): Millis {
  return dueMs === undefined ? -1 : Math.max(0, dueMs - nowMs);
}

/** Bytes, one character each. */
export function fingerprintBytes(to: Fingerprint, bytes: Buffer, start = 0, end = bytes.length): void {
  to.text(bytes.toString('latin1', start, end));
}

/** Numbers without an order of their own. */
export function fingerprintSet(to: Fingerprint, numbers: Iterable<number>): void {
  const ascending = [...numbers].sort((a, b) => a - b);
  to.number(ascending.length);
  for (const number of ascending) to.number(number);
}
