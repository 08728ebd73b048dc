/**
 * Compares a queue with an array.
 */
import { describe, expect, it } from 'vitest';
import { Fifo } from '../src/fifo.ts';

describe('a fifo', () => {
  it('adds items at both ends and removes them from the front, for any number of items', () => {
    const fifo = new Fifo<number>();
    const plain: number[] = [];
    const differs: number[] = [];
    let state = 1;
    for (let step = 0; step < 20_000; step++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      // Long runs of the same operation, so that it grows and shrinks.
      const choice = (state >>> 16) % 10 < 6 ? (step >>> 10) % 3 : (state >>> 20) % 3;
      if (choice === 0) {
        fifo.push(step);
        plain.push(step);
      } else if (choice === 1) {
        fifo.unshift(step);
        plain.unshift(step);
      } else {
        if (fifo.shift() !== plain.shift()) differs.push(step);
      }
      if (fifo.length !== plain.length || fifo.peek() !== plain[0]) differs.push(step);
    }
    expect(differs).toEqual([]);
    expect(fifo.takeAll()).toEqual(plain);
    expect(fifo.length).toBe(0);
  });
});
