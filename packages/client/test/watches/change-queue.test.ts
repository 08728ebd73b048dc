import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { expectIs } from '../../../../test/expect-is.ts';
import { ChangeQueue, type Reread, type ZnodeChange } from '../../src/watches/change-queue.ts';

const change = (zxid: number | undefined): ZnodeChange => ({
  type: 'NodeDataChanged',
  path: '/a',
  zxid: zxid === undefined ? undefined : BigInt(zxid),
});

/** Changes by their zxid, Rereads as `started 5 2`: since when, and how many were dropped. */
function drain(queue: ChangeQueue): string {
  const items: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(lineOf(item));
  return items.join(', ');
}

function lineOf(item: ZnodeChange | Reread): string {
  return item.type === 'Reread' ? `${item.cause} ${item.since ?? '?'} ${item.dropped}` : String(item.zxid ?? '?');
}

describe('a queue of changes', () => {
  it('keeps the order of changes and Rereads', () => {
    const queue = new ChangeQueue(10);
    queue.reread('started', undefined);
    queue.push(change(1));
    queue.reread('reconnected', 4n);
    queue.push(change(7));
    expect(queue.length).toBe(4);
    expect(drain(queue)).toBe('started ? 0, 1, reconnected 4 0, 7');
    expect(queue.shift()).toBe(undefined);
  });

  it('reports once what may be missing until it is taken', () => {
    const queue = new ChangeQueue(10);
    queue.push(change(1));
    queue.reread('reconnected', 1n);
    queue.reread('reconnected', 5n);
    expect(drain(queue)).toBe('1, reconnected 1 0');
    queue.reread('reconnected', 6n);
    expect(drain(queue)).toBe('reconnected 6 0');
  });

  it.each<[what: string, fill: (queue: ChangeQueue) => void, left: string]>([
    ['changes', (queue) => [1, 2, 3, 4, 5].forEach((zxid) => queue.push(change(zxid))), 'overflowed 0 5'],
    ['changes without a zxid', (queue) => [1, 2, 3, 4].forEach(() => queue.push(change(undefined))), 'overflowed ? 4'],
    [
      'changes after a Reread, which keeps its since',
      (queue) => {
        queue.reread('reconnected', 3n);
        for (const zxid of [5, 6, 7, 8]) queue.push(change(zxid));
      },
      'reconnected 3 4',
    ],
    [
      'a Reread',
      (queue) => {
        for (const zxid of [5, 6, 7]) queue.push(change(zxid));
        queue.reread('reconnected', 9n);
        queue.reread('reconnected', 9n);
        queue.push(change(10));
      },
      'overflowed 4 4',
    ],
  ])('that is full of %s keeps one Reread', (_, fill, left) => {
    const queue = new ChangeQueue(3);
    fill(queue);
    expect(queue.length).toBe(1);
    expect(drain(queue)).toBe(left);
    // And continues as before.
    queue.push(change(20));
    expect(drain(queue)).toBe('20');
  });

  it('never exceeds its limit, and delivers or counts each change', () => {
    for (const max of [1, 2, 3, 10]) {
      const queue = new ChangeQueue(max);
      const random = new SeededRandom(max);
      let upTo = 0n;
      const take = () => {
        const item = queue.shift();
        if (item === undefined) return;
        if (item.type === 'Reread') upTo += BigInt(item.dropped);
        else expectIs<bigint | undefined>(item.zxid, ++upTo);
        if (item.type === 'Reread' && item.since !== undefined) expectIs(item.since <= upTo, true);
      };
      let pushed = 0;
      while (pushed < 3000) {
        const dice = random.below(10);
        if (dice < 5) queue.push(change(++pushed));
        else if (dice < 6) queue.reread('reconnected', BigInt(pushed));
        else take();
        expectIs(queue.length <= max, true);
      }
      while (queue.length > 0) take();
      expect(upTo).toBe(BigInt(pushed));
    }
  });
});
