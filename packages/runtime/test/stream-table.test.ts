import { expect, test } from 'vitest';
import { StreamTable } from '../src/internal.ts';

const named = (name: string) => (stream: number) => `${name}${stream}`;

test('StreamTable assigns the numbers of deleted streams again, the latest first', () => {
  const table = new StreamTable<string>();
  expect([table.add(named('a')), table.add(named('b')), table.add(named('c'))]).toEqual(['a0', 'b1', 'c2']);
  table.delete(0);
  table.delete(2);
  expect([table.get(0), table.get(1), table.get(2), table.get(3)]).toEqual([undefined, 'b1', undefined, undefined]);
  expect([table.add(named('d')), table.add(named('e')), table.add(named('f'))]).toEqual(['d2', 'e0', 'f3']);
});

test('StreamTable assigns a number that was deleted twice only once', () => {
  const table = new StreamTable<string>();
  table.add(named('a'));
  table.delete(0);
  table.delete(0);
  expect([table.add(named('b')), table.add(named('c'))]).toEqual(['b0', 'c1']);
});

test('StreamTable counts its streams, and lists them by number', () => {
  const table = new StreamTable<string>();
  for (const name of ['a', 'b', 'c']) table.add(named(name));
  table.delete(1);
  expect([table.count, [...table.values()]]).toEqual([2, ['a0', 'c2']]);
});
