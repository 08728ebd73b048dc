import { expect, it } from 'vitest';
import { bothSettled } from '../../src/waiting/promises.ts';

it('bothSettled keeps no earlier results, so that a long chain of puts does not stay in memory', async () => {
  expect(await bothSettled(Promise.resolve('much'), Promise.reject(new Error('no')))).toBe(undefined);
});

it('bothSettled waits until both promises have settled', async () => {
  const order: string[] = [];
  let end!: () => void;
  const one = new Promise<void>((resolve) => (end = resolve));
  const both = bothSettled(one, Promise.resolve()).then(() => order.push('both'));
  await Promise.resolve();
  order.push('one');
  end();
  await both;
  expect(order).toEqual(['one', 'both']);
});
