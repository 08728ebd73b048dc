import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/node/system-clock.ts';

const dayMs = 86_400_000;

describe('the clock of the machine', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([1, 24, 25, 60])('calls back after %i days, and not before', (days) => {
    const called = vi.fn<() => void>();
    systemClock.after(days * dayMs, called);
    vi.advanceTimersByTime(days * dayMs - 1);
    expect(called).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(called).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(60 * dayMs);
    expect(called).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('never calls back after Infinity, for which Node uses one millisecond', () => {
    const called = vi.fn<() => void>();
    const timer = systemClock.after(Infinity, called);
    vi.advanceTimersByTime(100 * dayMs);
    expect(called).not.toHaveBeenCalled();
    systemClock.cancel(timer);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('cancels a timer of any length, and one that has fired', () => {
    const called = vi.fn<() => void>();
    const timers = [dayMs, 60 * dayMs].map((ms) => systemClock.after(ms, called));
    vi.advanceTimersByTime(30 * dayMs);
    for (const timer of timers) systemClock.cancel(timer);
    vi.advanceTimersByTime(60 * dayMs);
    expect(called).toHaveBeenCalledTimes(1);
  });
});
