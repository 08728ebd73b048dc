import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { timerMsMax } from '../../src/clock.ts';
import { systemClock } from '../../src/node/system-clock.ts';

const dayMs = 86_400_000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

it('waits for longer than one timer of Node can, as whoever sets a time-out of weeks means it', async () => {
  const fired = vi.fn();
  systemClock.after(60 * dayMs, fired);
  await vi.advanceTimersByTimeAsync(60 * dayMs - 1);
  expect(fired).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(fired).toHaveBeenCalledTimes(1);
});

it('waits for ever when it is told to, and such a timer can be taken back as well', async () => {
  const fired = vi.fn();
  const timer = systemClock.after(Infinity, fired);
  await vi.advanceTimersByTimeAsync(100 * dayMs);
  expect(fired).not.toHaveBeenCalled();
  systemClock.cancel(timer);
  expect(vi.getTimerCount()).toBe(0);
});

it('is as exact as Node is with what one timer can wait', async () => {
  const fired = vi.fn();
  systemClock.after(timerMsMax, fired);
  expect(vi.getTimerCount()).toBe(1);
  await vi.advanceTimersByTimeAsync(timerMsMax);
  expect(fired).toHaveBeenCalledTimes(1);
});
