/**
 * The sessions that a leader knows before their createSession has had its turn, and the fingerprint
 * of all sessions.
 */
import { describe, expect, it } from 'vitest';
import { SessionTracker } from '../../src/session/session-tracker.ts';

const owner = 7;
const [high, low] = [1, 2];

describe('a session whose createSession waits for its turn', () => {
  it('P21: has its whole timeout from that turn on, since its client cannot say anything before the answer', () => {
    const tracker = new SessionTracker(10);
    tracker.openAwaitingCreate(owner, high, low, 400, 1000);
    // Times are rounded up to the next tick.
    expect(tracker.expiry.deadline()).toBe(1410);
    tracker.endAwaitingCreate(high, low, 1255);
    expect(tracker.expiry.deadline()).toBe(1660);
    // No later createSession with this id lengthens it.
    tracker.endAwaitingCreate(high, low, 1500);
    expect(tracker.expiry.deadline()).toBe(1660);
  });

  it('P21: does not expire before', () => {
    const tracker = new SessionTracker(10);
    tracker.openAwaitingCreate(owner, high, low, 400, 1000);
    const slot = tracker.findLive(high, low);
    expect([tracker.isAwaitingCreate(slot), tracker.maybeExtendAwaitingCreate(slot, 1400)]).toEqual([true, true]);
    tracker.endAwaitingCreate(high, low, 1500);
    expect([tracker.isAwaitingCreate(slot), tracker.maybeExtendAwaitingCreate(slot, 1900)]).toEqual([false, false]);
  });
});

describe('the fingerprint', () => {
  const words = (tracker: SessionTracker, nowMs: number): unknown[] => {
    const written: unknown[] = [];
    tracker.fingerprint({ number: (value) => written.push(value), text: (value) => written.push(value) }, nowMs);
    return written;
  };

  it('contains where in a tick the clock is, which decides when the next session is due', () => {
    const leftMs = (nowMs: number): number => {
      const tracker = new SessionTracker(100);
      tracker.open(high, low, 400, nowMs);
      return tracker.expiry.deadline()! - nowMs;
    };
    expect([leftMs(1000), leftMs(1050), leftMs(1100)]).toEqual([500, 450, 500]);
    const empty = new SessionTracker(100);
    expect(words(empty, 1000)).not.toEqual(words(empty, 1050));
    expect(words(empty, 1000)).toEqual(words(empty, 1100));
  });
});
