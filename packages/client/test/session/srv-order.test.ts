import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import type { SrvRecord } from '../../src/index.ts';
import { HostProvider } from '../../src/session/host-provider.ts';
import { orderSrvRecords } from '../../src/session/srv-order.ts';

function record(host: string, priority = 0, weight = 0, port = 2181): SrvRecord {
  return { host, port, priority, weight };
}

describe('B37: the servers of an SRV name', () => {
  it('are ordered by priority', () => {
    const groups = orderSrvRecords([record('c', 20), record('a', 10), record('d', 20), record('b', 10)], new SeededRandom(1));
    expect(groups.map((group) => group.map(({ host }) => host).toSorted())).toEqual([
      ['a', 'b'],
      ['c', 'd'],
    ]);
  });

  it('are each first in proportion to their weights', () => {
    const first = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const { host } = orderSrvRecords([record('a', 0, 10), record('b', 0, 20), record('c', 0, 30)], new SeededRandom(seed))[0]![0]!;
      first.set(host, (first.get(host) ?? 0) + 1);
    }
    expect(Math.abs(first.get('a')! - 1000)).toBeLessThan(150);
    expect(Math.abs(first.get('b')! - 2000)).toBeLessThan(150);
    expect(Math.abs(first.get('c')! - 3000)).toBeLessThan(150);
  });

  it('are in any order if all weights are 0, and one of weight 0 is hardly ever first', () => {
    let first = 0;
    let weightlessFirst = 0;
    for (let seed = 0; seed < 2000; seed++) {
      if (orderSrvRecords([record('a'), record('b')], new SeededRandom(seed))[0]![0]!.host === 'a') first++;
      const order = orderSrvRecords([record('a'), record('b', 0, 1)], new SeededRandom(seed))[0]!;
      expect(order).toHaveLength(2);
      if (order[0]!.host === 'a') weightlessFirst++;
    }
    expect(Math.abs(first - 1000)).toBeLessThan(150);
    expect(weightlessFirst).toBeLessThan(60);
    expect(weightlessFirst).toBeGreaterThan(0);
  });

  it('are none if the domain declares that there is no such service', () => {
    expect(orderSrvRecords([record('.', 0, 0, 0)], new SeededRandom(1))).toEqual([]);
    expect(orderSrvRecords([record('')], new SeededRandom(1))).toEqual([]);
  });

  it('of a later priority are tried after those of the first have failed, and again last after they are lost', () => {
    const list = new HostProvider([], new SeededRandom(1));
    expect(list.isRoundOver).toBe(true);
    list.replace([
      [
        { host: 'a', port: 1 },
        { host: 'b', port: 1 },
      ],
      [{ host: 'z', port: 1 }],
    ]);
    const [a, b, z] = [list.next(), list.next(), list.next()];
    expect([a.host, b.host, z.host]).toEqual(['a', 'b', 'z']);
    expect(list.isRoundOver).toBe(true);
    list.onConnected(z);
    expect([list.next(), list.next(), list.next()].map(({ host }) => host)).toEqual(['a', 'b', 'z']);
    list.onConnected(a);
    expect([list.next(), list.next(), list.next()].map(({ host }) => host)).toEqual(['b', 'a', 'z']);
  });
});
