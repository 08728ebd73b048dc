import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { expect, test } from 'vitest';

test('timers fire in order of their due time, then of being set, each at its own instant', () => {
  const clock = new ManualClock(0, 100);
  const fired: string[] = [];
  const note = (name: string) => () => fired.push(`${name} at ${clock.now().elapsedMs}/${clock.now().wallMs}`);
  clock.after(20, note('late'));
  clock.after(10, note('first'));
  clock.after(10, note('second'));
  clock.cancel(clock.after(5, note('cancelled')));
  clock.after(10, () => clock.after(5, note('set by a timer')));
  clock.advance(9);
  expect(fired).toEqual([]);
  clock.advance(11);
  expect(fired).toEqual(['first at 10/110', 'second at 10/110', 'set by a timer at 15/115', 'late at 20/120']);
  expect([clock.now().elapsedMs, clock.timerCount]).toEqual([20, 0]);
});

test('the wall clock can be set without a change of monotonic time', () => {
  const clock = new ManualClock(5, 100);
  clock.setWall(7);
  clock.advance(1);
  expect(clock.now()).toEqual({ elapsedMs: 6, wallMs: 8 });
});

test('timers fire by time, and those of one time in the order they were set, while others are set and cancelled', () => {
  const clock = new ManualClock(0);
  const fired: string[] = [];
  const fires = (name: string) => () => void fired.push(`${name} ${clock.now().elapsedMs}`);
  clock.after(20, fires('d'));
  clock.after(10, () => {
    fires('a')();
    clock.after(0, fires('c'));
    clock.after(5, fires('e'));
    clock.cancel(late);
    clock.cancel(late);
  });
  clock.after(10, fires('b'));
  const late = clock.after(15, fires('never'));
  expect(clock.timerCount).toBe(4);
  clock.advance(15);
  expect([fired, clock.timerCount]).toEqual([['a 10', 'b 10', 'c 10', 'e 15'], 1]);
  clock.after(-1, fires('f'));
  clock.advance(100);
  expect([fired.slice(4), clock.timerCount]).toEqual([['f 15', 'd 20'], 0]);
});

test('setImmediate calls back after the running code, in order', async () => {
  const clock = new ManualClock();
  const order: number[] = [];
  clock.setImmediate(() => order.push(2));
  clock.setImmediate(() => order.push(3));
  order.push(1);
  await Promise.resolve();
  await Promise.resolve();
  expect(order).toEqual([1, 2, 3]);
});

test('one seed gives one random sequence, evenly distributed', () => {
  const take = (seed: number) => {
    const random = new SeededRandom(seed);
    return Array.from({ length: 1000 }, () => random.uint32());
  };
  expect(take(1)).toEqual(take(1));
  expect(take(1)).not.toEqual(take(2));
  expect(take(1)).not.toEqual(take(1 + 2 ** 32));
  const halves = take(3).filter((value) => value < 2 ** 31).length;
  expect(halves).toBeGreaterThan(450);
  expect(halves).toBeLessThan(550);
  const random = new SeededRandom(4);
  expect(new Set(Array.from({ length: 200 }, () => random.below(3)))).toEqual(new Set([0, 1, 2]));
});
