import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { HostList } from '../../src/session/host-list.ts';

const servers = ['a', 'b', 'c'].map((host) => ({ host, port: 2181 }));

describe('a host list', () => {
  it('C2-5: begins anywhere, equally often, in every order', () => {
    const orders = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const list = new HostList(servers, new SeededRandom(seed));
      const order = [list.next(), list.next(), list.next()].map(({ host }) => host).join('');
      orders.set(order, (orders.get(order) ?? 0) + 1);
    }
    expect(orders.size).toBe(6);
    for (const count of orders.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('goes round and round, and knows when a round is over', () => {
    const list = new HostList(servers, new SeededRandom(1));
    const seen: string[] = [];
    for (let attempt = 1; attempt <= 6; attempt++) {
      seen.push(list.next().host);
      expect(list.roundOver).toBe(attempt % 3 === 0);
    }
    expect(seen.slice(0, 3).toSorted()).toEqual(['a', 'b', 'c']);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
    list.next();
    list.connected();
    expect(list.roundOver).toBe(false);
    expect([list.next(), list.next()].map(() => list.roundOver)).toEqual([false, false]);
  });

  it('leaves the list it was given alone', () => {
    const given = [...servers];
    const list = new HostList(given, new SeededRandom(3));
    expect(list.size).toBe(3);
    expect(given).toEqual(servers);
  });
});
