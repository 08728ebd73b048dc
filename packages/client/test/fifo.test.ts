import { expect, it } from 'vitest';
import { expectIs } from '../../../test/expect-is.ts';
import { Fifo } from '../src/fifo.ts';

it('a fifo returns items in order, however long it grows in between', () => {
  const fifo = new Fifo<number>();
  const model: number[] = [];
  let next = 0;
  for (let round = 0; round < 20_000; round++) {
    // Grows for a while, then shrinks, and so on.
    if (Math.floor(round / 3000) % 2 === 0 || round % 3 === 0) {
      fifo.push(next);
      model.push(next++);
    } else {
      expectIs(fifo.peek(), model[0]);
      expectIs(fifo.shift(), model.shift());
    }
    expectIs(fifo.length, model.length);
  }
  fifo.clear();
  expect([fifo.length, fifo.peek(), fifo.shift(), fifo.length]).toEqual([0, undefined, undefined, 0]);
});
