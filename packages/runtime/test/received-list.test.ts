import { expect, test } from 'vitest';
import { ReceivedList } from '../src/internal.ts';

const contents = ({ count, streams, buffers, starts, ends }: ReceivedList): string[] =>
  Array.from({ length: count }, (_, at) => `${streams[at]}: ${buffers[at]!.toString('latin1', starts[at], ends[at])}`);

function listOf(...received: readonly (readonly [stream: number, text: string])[]): ReceivedList {
  const list = new ReceivedList();
  for (const [stream, text] of received) list.add(stream, Buffer.from(text));
  return list;
}

test('ReceivedList removes unwanted streams, and keeps the order of the rest', () => {
  const list = listOf([1, 'one'], [2, 'not this'], [1, 'two'], [3, 'three'], [2, 'nor this']);
  list.keepOnly((stream) => stream !== 2);
  expect(contents(list)).toEqual(['1: one', '1: two', '3: three']);
});

test('a cleared ReceivedList keeps no buffer, and can be filled again', () => {
  const list = listOf([1, 'one'], [2, 'two']);
  list.clear();
  expect([list.count, list.buffers.every(({ length }) => length === 0)]).toEqual([0, true]);
  list.add(3, Buffer.from('three'));
  expect(contents(list)).toEqual(['3: three']);
});
