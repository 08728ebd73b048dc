import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/node/system-clock.ts';

const dayMs = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('the clock of the system', () => {
  it.each([1.5, 2 ** 31 - 1, 2 ** 31, 60 * dayMs])('calls back after %i ms, and not before, however long a timer of Node can wait', (ms) => {
    const called = vi.fn();
    systemClock.after(ms, called);
    vi.advanceTimersByTime(Math.ceil(ms) - 1);
    expect(called).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(called).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never calls back after an infinite time, nor when that is taken back', () => {
    const called = vi.fn();
    const endless = systemClock.after(Infinity, called);
    const taken = systemClock.after(60 * dayMs, called);
    vi.advanceTimersByTime(30 * dayMs);
    systemClock.cancel(taken);
    vi.advanceTimersByTime(365 * dayMs);
    expect(called).not.toHaveBeenCalled();
    systemClock.cancel(endless);
    expect(vi.getTimerCount()).toBe(0);
  });
});
