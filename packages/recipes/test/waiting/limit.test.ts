import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { systemClock } from '../../../client/src/node/system-clock.ts';
import { Limit } from '../../src/waiting/limit.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const dayMs = 24 * 60 * 60 * 1000;

it('by the clock of the machine, a wait of 30 days lasts 30 days, and one without end never ends', () => {
  using month = new Limit({ clock: systemClock }, { timeoutMs: 30 * dayMs }, 'the lock /a');
  using endless = new Limit({ clock: systemClock }, { timeoutMs: Infinity }, 'the lock /a');
  vi.advanceTimersByTime(29 * dayMs);
  expect([month.signal.aborted, endless.signal.aborted]).toEqual([false, false]);
  vi.advanceTimersByTime(dayMs);
  expect(month.signal.reason).toMatchObject({ code: 'TimedOut' });
  vi.advanceTimersByTime(1000 * dayMs);
  expect(endless.signal.aborted).toBe(false);
});
