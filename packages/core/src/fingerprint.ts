/**
 * Where a machine of the core writes down its state, for whoever explores all the states it can reach.
 *
 * Two machines that wrote the same will do the same for the same inputs. So everything that can influence behaviour is written, in an
 * order that does not depend on how the state came about (tables by ascending key), and nothing else: a state that differs only in what
 * nobody looks at would be explored twice. Points in time are written as distances from now, since nothing depends on when a clock began.
 */
import type { Millis } from '@tskeeper/protocol';

export interface Fingerprint {
  number(value: number): void;
  text(value: string): void;
}

/** How long ago something was, as far as anybody asks: beyond `limitMs` nobody does any more. */
export function age(sinceMs: Millis, nowMs: Millis, limitMs: Millis): Millis {
  return Math.min(nowMs - sinceMs, limitMs + 1);
}

/** How long it is until something is due; -1 when nothing is. */
export function distance(dueMs: Millis | undefined, nowMs: Millis): Millis {
  return dueMs === undefined ? -1 : Math.max(0, dueMs - nowMs);
}

/** Bytes, one character each. */
export function writeBytes(to: Fingerprint, bytes: Buffer, start = 0, end = bytes.length): void {
  to.text(bytes.toString('latin1', start, end));
}

/** Numbers without an order of their own. */
export function writeSet(to: Fingerprint, numbers: Iterable<number>): void {
  const ascending = [...numbers].sort((a, b) => a - b);
  to.number(ascending.length);
  for (const number of ascending) to.number(number);
}
