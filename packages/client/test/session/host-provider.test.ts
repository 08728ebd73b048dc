import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { sample } from '../../../../test/breadth.ts';
import type { ServerAddress } from '../../src/index.ts';
import { HostProvider } from '../../src/session/host-provider.ts';

const named = (names: string): ServerAddress[] => names.split('').map((host) => ({ host, port: 2181 }));
const servers = named('abc');

/** A client of a list: connected to the first server it tries, as all of them answer. */
class Handle {
  readonly list: HostProvider;
  at: ServerAddress;

  constructor(from: readonly ServerAddress[], seed: number) {
    this.list = new HostProvider(from, new SeededRandom(seed));
    this.at = this.#connect();
  }

  /** Returns whether the client has moved. */
  update(to: readonly ServerAddress[]): boolean {
    const moves = this.list.updateServerList(to, this.at);
    if (moves) this.at = this.#connect();
    return moves;
  }

  #connect(): ServerAddress {
    const server = this.list.next();
    this.list.onConnected(server);
    return server;
  }
}

function countBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(keyOf(item), (counts.get(keyOf(item)) ?? 0) + 1);
  return counts;
}

/** Pearson's statistic for the hypothesis that all `names` are equally likely. */
function chiSquare(counts: ReadonlyMap<string, number>, names: readonly string[]): number {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const expected = total / names.length;
  return names.reduce((sum, name) => sum + ((counts.get(name) ?? 0) - expected) ** 2 / expected, 0);
}

/**
 * A random sample exceeds this about once in 100,000 times: Wilson and Hilferty's approximation.
 */
function chiSquareMax(degrees: number): number {
  const part = 2 / (9 * degrees);
  return degrees * (1 - part + 4.27 * Math.sqrt(part)) ** 3;
}

describe('a host list', () => {
  it('C2-5: starts at any server, equally often, in every order', () => {
    const orders = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const list = new HostProvider(servers, new SeededRandom(seed));
      const order = [list.next(), list.next(), list.next()].map(({ host }) => host).join('');
      orders.set(order, (orders.get(order) ?? 0) + 1);
    }
    expect(orders.size).toBe(6);
    for (const count of orders.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('is used round robin, and reports the end of each round', () => {
    const list = new HostProvider(servers, new SeededRandom(1));
    const seen: string[] = [];
    for (let attempt = 1; attempt <= 6; attempt++) {
      seen.push(list.next().host);
      expect(list.isRoundOver).toBe(attempt % 3 === 0);
    }
    expect(seen.slice(0, 3).toSorted()).toEqual(['a', 'b', 'c']);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
    list.onConnected(list.next());
    expect(list.isRoundOver).toBe(false);
    expect([list.next(), list.next()].map(() => list.isRoundOver)).toEqual([false, false]);
  });

  it('B35: continues with the others in turn when a server is lost, and returns to it last', () => {
    for (let seed = 0; seed < 50; seed++) {
      const list = new HostProvider(named('abcd'), new SeededRandom(seed));
      const first = list.next();
      list.onConnected(first);
      const order = [list.next(), list.next(), list.next(), list.next()].map(({ host }) => host);
      expect(order.toSorted()).toEqual(['a', 'b', 'c', 'd']);
      expect(order.at(-1)).toBe(first.host);
    }
  });

  it('merges a server that is named twice, but not two ports of one host', () => {
    const list = new HostProvider([...named('aab'), { host: 'a', port: 2182 }], new SeededRandom(1));
    expect(list.size).toBe(3);
  });

  it('does not change the array it was given', () => {
    const given = [...servers];
    const list = new HostProvider(given, new SeededRandom(3));
    list.onConnected(list.next());
    list.updateServerList(given, list.next());
    expect(list.size).toBe(3);
    expect(given).toEqual(servers);
  });
});

describe('a changed list', () => {
  it('C2-25: drops a client whose server is not in it under the same name', () => {
    for (let seed = 0; seed < 100; seed++) {
      const handle = new Handle(named('a'), seed);
      expect(handle.update([{ host: 'A', port: 2181 }])).toBe(true);
      expect(handle.at).toEqual({ host: 'A', port: 2181 });
      expect(handle.update([{ host: 'A', port: 2182 }])).toBe(true);
      expect(handle.at.port).toBe(2182);
    }
  });

  it('C2-26: of 10,000 clients of three servers 40 % +- 1 % move when there are five, all to the new two, half to each', () => {
    const handles = Array.from({ length: 10_000 }, (_, seed) => new Handle(named('abc'), seed));
    const before = new Map(handles.map((handle) => [handle, handle.at.host]));
    const moved = handles.filter((handle) => handle.update(named('abcde')));
    expect(Math.abs(moved.length / handles.length - 0.4)).toBeLessThan(0.01);
    const halves = countBy(moved, ({ at }) => at.host);
    expect([...halves.keys()].toSorted()).toEqual(['d', 'e']);
    expect(chiSquare(halves, ['d', 'e'])).toBeLessThan(chiSquareMax(1));
    // Equally many from each of the three.
    const left = countBy(moved, (handle) => before.get(handle)!);
    expect(chiSquare(left, ['a', 'b', 'c'])).toBeLessThan(chiSquareMax(2));
    for (const handle of handles) if (!moved.includes(handle)) expect(handle.at.host).toBe(before.get(handle));
  });

  it('C2-27: clients of kept servers stay when five become three, and the others spread randomly over the three', () => {
    const handles = Array.from({ length: 10_000 }, (_, seed) => new Handle(named('abcde'), seed));
    const stranded = handles.filter(({ at }) => 'de'.includes(at.host));
    for (const handle of handles) {
      const { host } = handle.at;
      expect(handle.update(named('abc'))).toBe(stranded.includes(handle));
      if (!stranded.includes(handle)) expect(handle.at.host).toBe(host);
    }
    const taken = countBy(stranded, ({ at }) => at.host);
    expect(taken.size).toBe(3);
    expect(chiSquare(taken, ['a', 'b', 'c'])).toBeLessThan(chiSquareMax(2));
  });

  const letters = 'abcdefghijkl';
  const changes: [before: number, kept: number, fresh: number][] = [];
  for (const before of [1, 2, 3, 5, 7]) {
    for (const kept of [0, 1, 2, 3, 5, 7]) {
      for (const fresh of [0, 1, 2, 4]) if (kept <= before && kept + fresh > 0) changes.push([before, kept, fresh]);
    }
  }

  it.each(sample(changes, 8))('C2-28, A89: load stays uniform from %i servers to the same %i with %i more', (before, kept, fresh) => {
    const from = letters.slice(0, before);
    const to = letters.slice(0, kept) + letters.slice(before, before + fresh);
    const handles = Array.from({ length: 3000 }, (_, seed) => new Handle(named(from), seed * 1000 + before * 100 + kept * 10 + fresh));
    for (const handle of handles) handle.update(named(to));
    const load = countBy(handles, ({ at }) => at.host);
    expect(chiSquare(load, to.split(''))).toBeLessThan(chiSquareMax(Math.max(1, to.length - 1)));
  });

  it('C2-28: load stays uniform over a history of changes, with clients connected, trying, and between two attempts', () => {
    const history = ['abc', 'abcde', 'cdefg', 'cg', 'cghijk', 'hij', 'abchij', 'a', 'bcdefg'];
    for (const kind of ['connected', 'trying', 'between'] as const) {
      const landed: string[] = [];
      for (let seed = 0; seed < 3000; seed++) {
        const list = new HostProvider(named(history[0]!), new SeededRandom(seed));
        let inUse: ServerAddress | undefined;
        const go = () => {
          if (kind !== 'between') inUse = list.next();
          if (kind === 'connected') list.onConnected(inUse!);
        };
        go();
        for (const names of history.slice(1)) if (list.updateServerList(named(names), inUse)) go();
        landed.push((inUse ?? list.next()).host);
      }
      const last = history.at(-1)!.split('');
      expect(chiSquare(countBy(landed, String), last)).toBeLessThan(chiSquareMax(last.length - 1));
    }
  });

  it('C2-29: a client that moves tries the new servers first, and old ones only if no new one answers', () => {
    let moves = 0;
    for (let seed = 0; seed < 500; seed++) {
      const list = new HostProvider(named('abc'), new SeededRandom(seed));
      const at = list.next();
      list.onConnected(at);
      if (!list.updateServerList(named('abcde'), at)) continue;
      moves++;
      const trace = Array.from({ length: 5 }, () => list.next().host);
      expect(trace.slice(0, 2).toSorted()).toEqual(['d', 'e']);
      expect(trace.slice(2).toSorted()).toEqual(['a', 'b', 'c']);
      expect(list.isRoundOver).toBe(true);
    }
    expect(moves).toBeGreaterThan(150);
  });

  it('C2-29: a client that must move when a list shrinks chooses randomly between new and old servers, each once', () => {
    const first = new Map<string, number>();
    for (let seed = 0; seed < 4000; seed++) {
      const list = new HostProvider(named('abcd'), new SeededRandom(seed));
      list.onConnected({ host: 'd', port: 2181 });
      expect(list.updateServerList(named('abx'), { host: 'd', port: 2181 })).toBe(true);
      const trace = Array.from({ length: 3 }, () => list.next().host);
      expect(trace.toSorted()).toEqual(['a', 'b', 'x']);
      first.set(trace[0]!, (first.get(trace[0]!) ?? 0) + 1);
    }
    // S = 4, N = 3, K = 2: the two of four that must move put 1/6 on the kept ones, 1/12 each, and
    // 1/3 on x.
    expect((first.get('x') ?? 0) / 4000).toBeCloseTo(2 / 3, 1);
    expect((first.get('a') ?? 0) / 4000).toBeCloseTo(1 / 6, 1);
    expect((first.get('b') ?? 0) / 4000).toBeCloseTo(1 / 6, 1);
  });

  it('C2-30: after all have failed, a client iterates over the shuffled list from a random server', () => {
    const orders = new Set<string>();
    for (let seed = 0; seed < 200; seed++) {
      const list = new HostProvider(named('z'), new SeededRandom(seed));
      const at = list.next();
      list.onConnected(at);
      list.updateServerList(named('abcd'), at);
      for (let attempt = 0; attempt < 4; attempt++) list.next();
      const rounds = Array.from({ length: 8 }, () => list.next().host);
      expect(rounds.slice(4)).toEqual(rounds.slice(0, 4));
      orders.add(rounds.slice(0, 4).join(''));
    }
    expect(orders.size).toBe(24);
  });

  it('C2-30: after one has answered, a client iterates over the list from there, no longer at random', () => {
    for (let seed = 0; seed < 100; seed++) {
      const list = new HostProvider(named('abc'), new SeededRandom(seed));
      list.onConnected({ host: 'a', port: 2181 });
      list.updateServerList(named('bcd'), { host: 'a', port: 2181 });
      const at = list.next();
      list.onConnected(at);
      const rounds = Array.from({ length: 6 }, () => list.next().host);
      expect(rounds.slice(3)).toEqual(rounds.slice(0, 3));
      expect(rounds[2]).toBe(at.host);
    }
  });

  it('counts an attempt in progress as part of the new round', () => {
    const list = new HostProvider(named('a'), new SeededRandom(1));
    const trying = list.next();
    let stays = false;
    for (let seed = 1; !stays; seed++) stays = !list.updateServerList(named('ab'), trying);
    expect(list.isRoundOver).toBe(false);
    expect(list.next().host).toBe('b');
    expect(list.isRoundOver).toBe(true);
  });
});
