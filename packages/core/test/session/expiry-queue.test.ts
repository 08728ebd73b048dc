import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { ExpiryQueue } from '../../src/session/expiry-queue.ts';

function take(queue: ExpiryQueue, elapsedMs: number, max = Number.POSITIVE_INFINITY): number[] {
  const slots: number[] = [];
  queue.takeDue(elapsedMs, max, (slot) => slots.push(slot));
  return slots;
}

describe('ExpiryQueue', () => {
  it.each([
    // now, timeout, due with a tick of 3000
    [0, 6000, 9000],
    [0, 5999, 6000],
    [1, 6000, 9000],
    [2999, 6000, 9000],
    [3000, 6000, 12_000],
    [12_345, 10_000, 24_000],
  ])('at time %i a timeout of %i puts a slot into the bucket due at %i', (now, timeout, due) => {
    const queue = new ExpiryQueue(3000);
    queue.touch(0, now, timeout);
    expect(queue.deadline()).toBe(due);
    expect(take(queue, due - 1)).toEqual([]);
    expect(take(queue, due)).toEqual([0]);
    expect(queue.deadline()).toBeUndefined();
  });

  it('A32, C2-15: expires a slot between its timeout and one tick more after the last touch, and no other', () => {
    const step = fc.record({ slot: fc.nat(20), passes: fc.nat(700), timeout: fc.integer({ min: 1, max: 4000 }), remove: fc.nat(9) });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 900 }), fc.array(step, { maxLength: 300 }), (tick, steps) => {
        const queue = new ExpiryQueue(tick);
        const lives = new Map<number, number>();
        let now = 0;
        for (const { slot, passes, timeout, remove } of steps) {
          now += passes;
          expect(
            queue.takeDue(now, 1000, (due) => {
              const until = lives.get(due);
              expect(until).toBeLessThanOrEqual(now);
              lives.delete(due);
            }),
          ).toBe(false);
          for (const until of lives.values()) expect(until + tick).toBeGreaterThan(now);
          if (remove === 0) {
            queue.remove(slot);
            lives.delete(slot);
          } else {
            queue.touch(slot, now, timeout);
            lives.set(slot, now + timeout);
          }
          const dues = [...lives.values()].map((until) => (Math.floor(until / tick) + 1) * tick);
          expect(queue.deadline()).toBe(dues.length === 0 ? undefined : Math.min(...dues));
        }
        const listed = [...queue.buckets()];
        expect(new Set(listed.flatMap((bucket) => bucket.slots))).toEqual(new Set(lives.keys()));
        expect(listed.map((bucket) => bucket.dueMs)).toEqual(listed.map((bucket) => bucket.dueMs).sort((a, b) => a - b));
        for (const { dueMs, slots } of listed) {
          for (const slot of slots) expect((Math.floor(lives.get(slot)! / tick) + 1) * tick).toBe(dueMs);
        }
      }),
      { numRuns: breadth(10, 100) },
    );
  });

  it('moves a slot back when a later touch grants less', () => {
    const queue = new ExpiryQueue(1000);
    queue.touch(4, 0, 40_000);
    queue.touch(4, 10, 2000);
    expect(queue.deadline()).toBe(3000);
    expect([...queue.buckets()]).toEqual([{ dueMs: 3000, slots: [4] }]);
  });

  it('takes due slots in order of insertion, no more at once than allowed', () => {
    const queue = new ExpiryQueue(1000);
    for (const slot of [5, 1, 9]) queue.touch(slot, 0, 500);
    for (const slot of [7, 3]) queue.touch(slot, 0, 1500);
    queue.touch(8, 0, 9000);
    const seen: number[] = [];
    expect(queue.takeDue(2500, 2, (slot) => seen.push(slot))).toBe(true);
    expect(seen).toEqual([5, 1]);
    expect(queue.takeDue(2500, 3, (slot) => seen.push(slot))).toBe(false);
    expect(seen).toEqual([5, 1, 9, 7, 3]);
    expect(queue.deadline()).toBe(10_000);
  });

  it('lets the visitor queue the slot again and remove others', () => {
    const queue = new ExpiryQueue(10);
    for (const slot of [1, 2, 3]) queue.touch(slot, 0, 5);
    const seen: number[] = [];
    queue.takeDue(10, 100, (slot) => {
      seen.push(slot);
      queue.remove(2);
      if (slot === 1) queue.touch(1, 10, 5);
    });
    expect(seen).toEqual([1, 3]);
    expect([...queue.buckets()]).toEqual([{ dueMs: 20, slots: [1] }]);
  });

  it('ignores the removal of an unqueued slot', () => {
    const queue = new ExpiryQueue(10);
    queue.remove(100_000);
    queue.touch(1, 0, 5);
    queue.remove(1);
    queue.remove(1);
    expect(queue.deadline()).toBeUndefined();
    expect([...queue.buckets()]).toEqual([]);
  });

  it('handles a million touches within one bucket without moving anything', () => {
    const queue = new ExpiryQueue(3000);
    for (let slot = 0; slot < 1000; slot++) queue.touch(slot, 0, 6000);
    const before = [...queue.buckets()];
    for (let i = 0; i < 1_000_000; i++) queue.touch(i % 1000, i % 3000, 6000);
    expect([...queue.buckets()]).toEqual(before);
  });
});
