import { expect, it } from 'vitest';
import { SystemClock } from '../src/system-clock.ts';
import { SystemRandom } from '../src/system-random.ts';

it('a timer never fires before its time on the clock of the same turn', async () => {
  const clock = new SystemClock();
  for (const delayMs of [0, 1, 2, 3, 5]) {
    const begun = clock.now().elapsedMs;
    await new Promise<void>((resolve) => clock.after(delayMs, resolve));
    expect(clock.now().elapsedMs - begun).toBeGreaterThanOrEqual(delayMs);
  }
});

it('a cancelled timer does not fire', async () => {
  const clock = new SystemClock();
  const fired: string[] = [];
  clock.cancel(clock.after(1, () => fired.push('cancelled')));
  await new Promise<void>((resolve) => clock.after(5, resolve));
  expect(fired).toEqual([]);
});

it('elapsed time and wall clock are whole milliseconds', () => {
  const { elapsedMs, wallMs } = new SystemClock().now();
  expect([Number.isInteger(elapsedMs), Number.isInteger(wallMs)]).toEqual([true, true]);
});

it('random numbers are 32 bits wide and continue after the end of a block', () => {
  const random = new SystemRandom();
  const drawn = Array.from({ length: 1000 }, () => random.uint32());
  expect(drawn.every((value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32)).toBe(true);
  expect(drawn.some((value) => value >= 2 ** 31)).toBe(true);
  expect(new Set(drawn).size).toBeGreaterThan(990);
});
