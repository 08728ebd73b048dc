/** A clock that advances with real time and on request, and not while the process is paused. */
import { describe, expect, it, vi } from 'vitest';
import { ActivityTracker } from '../src/activity-tracker.ts';
import { throttleProbe, ProcessClock, TestClock } from '../src/test-clock.ts';

const clockOf = (tickMs = 200): TestClock => new TestClock(new ActivityTracker(), tickMs);
const standStill = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

/** The machine's clock does not advance in the meantime, and none of its timers fires. */
async function whileMachineStops(run: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
  try {
    await run();
  } finally {
    vi.useRealTimers();
  }
}

describe('a test clock', () => {
  it('advances by itself, and calls back in time', async () => {
    const clock = clockOf();
    const start = clock.now();
    await new Promise<void>((resolve) => void clock.after(20, resolve));
    expect(clock.now().elapsedMs - start.elapsedMs).toBeGreaterThanOrEqual(20);
    expect(clock.now().wallMs - start.wallMs).toBeGreaterThanOrEqual(20);
  });

  it('advance calls timers in order, each at its own time', async () => {
    const clock = clockOf();
    const start = clock.now().elapsedMs;
    const called: number[] = [];
    const note = (): void => void called.push(Math.round((clock.now().elapsedMs - start) / 1000));
    clock.after(3000, note);
    clock.after(1000, () => {
      note();
      clock.after(1000, note);
    });
    clock.after(1000, note);
    const { wallMs } = clock.now();
    await whileMachineStops(() => clock.advance(4000));
    expect(called).toEqual([1, 1, 2, 3]);
    expect(clock.now().elapsedMs - start).toBeGreaterThanOrEqual(4000);
    expect(clock.now().wallMs - wallMs).toBeGreaterThanOrEqual(4000);
  });

  it('advance completes all consequences of one half tick before it begins the next', async () => {
    const activity = new ActivityTracker();
    const clock = new TestClock(activity, 100);
    const start = clock.now().elapsedMs;
    const heard: number[] = [];
    const ping = (): void => {
      activity.nextTurn(() => activity.nextTurn(() => heard.push(clock.now().elapsedMs - start)));
      clock.after(50, ping);
    };
    await whileMachineStops(async () => {
      ping();
      await clock.advance(1000);
    });
    expect(heard.length).toBeGreaterThanOrEqual(20);
    // The answer to a ping comes before the next ping is sent.
    const latest = heard.map((ms, index) => ms - 50 * index);
    expect(Math.max(...latest)).toBeLessThan(100);
  });

  it('does not call a cancelled timer', async () => {
    const clock = clockOf();
    let isCalled = false;
    clock.cancel(clock.after(100, () => (isCalled = true)));
    await clock.advance(1000);
    expect(isCalled).toBe(false);
  });

  it('runs two concurrent calls of advance one after the other', async () => {
    const clock = clockOf();
    const start = clock.now().elapsedMs;
    await Promise.all([clock.advance(1000), clock.advance(2000)]);
    expect(clock.now().elapsedMs - start).toBeGreaterThanOrEqual(3000);
  });

  it('advances by at most half a tick while the process is paused, if a timer is waiting', async () => {
    const clock = clockOf(100);
    const start = clock.now().elapsedMs;
    const called = new Promise<number>((resolve) => void clock.after(10, () => resolve(clock.now().elapsedMs - start)));
    standStill(300);
    expect(clock.now().elapsedMs - start).toBeLessThan(70);
    const calledMs = await called;
    expect(calledMs).toBeGreaterThanOrEqual(10);
    expect(calledMs).toBeLessThan(70);
  });

  it('never decreases, whether it advances by itself, by a call or over a pause', async () => {
    const clock = clockOf(10);
    let last = clock.now().elapsedMs;
    const look = (): void => {
      const { elapsedMs } = clock.now();
      expect(elapsedMs).toBeGreaterThanOrEqual(last);
      last = elapsedMs;
    };
    for (let round = 0; round < 20; round++) {
      clock.after(round % 7, look);
      if (round % 5 === 0) standStill(10);
      await clock.advance(round);
      look();
    }
  });
});

describe('the clock of a process', () => {
  it('calls no timers after the process has ended', async () => {
    const clock = clockOf();
    const process = new ProcessClock(clock);
    const called: string[] = [];
    process.after(10, () => called.push('timer'));
    process.setImmediate(() => called.push('soon'));
    process.end();
    process.after(10, () => called.push('late timer'));
    await clock.advance(100);
    expect(called).toEqual([]);
  });
});

it('throttleProbe measures memory at intervals of real time, not of calls', async () => {
  let looks = 0;
  await whileMachineStops(async () => {
    const probe = throttleProbe(() => (looks++, []));
    for (let look = 0; look < 1000; look++) probe(0);
  });
  expect(looks).toBe(1);
});
