import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/node/system-clock.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const dayMs = 24 * 60 * 60 * 1000;

it.each([
  [30, 30],
  [24, 24],
  [100, 100],
  [Infinity, undefined],
])('the clock of the machine calls back once after %s days, which is more than a timer of Node can wait', (days, expected) => {
  const called: number[] = [];
  let day = 0;
  systemClock.after(days * dayMs, () => called.push(day));
  for (; day < 120;) {
    day++;
    vi.advanceTimersByTime(dayMs);
  }
  expect(called).toEqual(expected === undefined ? [] : [expected]);
});

it.each([30, Infinity])('a timer of %s days can be taken back, at any time and when it has fired', (days) => {
  for (const waitedDays of [0, 26, 40]) {
    let called = 0;
    const timer = systemClock.after(days * dayMs, () => called++);
    vi.advanceTimersByTime(waitedDays * dayMs);
    systemClock.cancel(timer);
    vi.advanceTimersByTime(100 * dayMs);
    expect(called).toBe(days < waitedDays ? 1 : 0);
    expect(vi.getTimerCount()).toBe(0);
  }
});
