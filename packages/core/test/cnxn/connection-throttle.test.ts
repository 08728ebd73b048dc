import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { ConnectionThrottle, type ConnectionThrottleOptions, connectionThrottleDefaults } from '../../src/cnxn/connection-throttle.ts';

function throttle(options: Partial<ConnectionThrottleOptions>, draw = 0): ConnectionThrottle {
  return new ConnectionThrottle({ ...connectionThrottleDefaults, ...options }, { uint32: () => draw });
}

describe('ConnectionThrottle', () => {
  it('admits every client by default', () => {
    const open = throttle({});
    for (let i = 0; i < 1000; i++) expect(open.admit('global', 0)).toBe(true);
    expect(open.deficit).toBe(0);
  });

  it("admits a burst of the bucket's size, then clients at the configured rate", () => {
    const limited = throttle({ tokens: 5, fillTimeMs: 100, fillCount: 2 });
    const admittedAt = (ms: number) => Array.from({ length: 10 }, () => limited.admit('global', ms)).filter(Boolean).length;
    expect(admittedAt(0)).toBe(5);
    expect(limited.deficit).toBe(5);
    expect(admittedAt(100)).toBe(0);
    expect(admittedAt(150)).toBe(3);
    expect(admittedAt(1_000_000)).toBe(5);
  });

  it('keeps the configured rate however often it is called', () => {
    const limited = throttle({ tokens: 10, fillTimeMs: 1000, fillCount: 7 });
    let admitted = 0;
    for (let ms = 0; ms <= 100_000; ms += 13) {
      if (limited.admit('global', ms)) admitted++;
    }
    expect(admitted).toBeGreaterThanOrEqual(10 + 690);
    expect(admitted).toBeLessThanOrEqual(10 + 700);
  });

  it('charges each session its weight if enabled, and sizes its bucket in global sessions', () => {
    const weighed = throttle({ tokens: 2, fillTimeMs: 1000, fillCount: 1, weightEnabled: true });
    expect(weighed.admit('global', 0)).toBe(true);
    expect(weighed.deficit).toBe(3);
    expect(weighed.admit('renew', 0)).toBe(true);
    expect(weighed.admit('renew', 0)).toBe(false);
    expect(weighed.admit('local', 0)).toBe(true);
    expect(weighed.admit('local', 0)).toBe(false);
    expect(weighed.deficit).toBe(6);
  });

  it.each([
    ['charges a global session no less than a local one', { globalSessionWeight: 2, localSessionWeight: 5 }, [5, 5, 5]],
    ['charges a resumed session no less than a local one', { renewSessionWeight: 1, localSessionWeight: 2 }, [3, 2, 2]],
    ['replaces weights of 0 or less by the defaults', { globalSessionWeight: 0, localSessionWeight: -1, renewSessionWeight: 0 }, [3, 1, 2]],
  ])('%s', (_title, weights, [global, local, renew]) => {
    const cost = (kind: 'global' | 'local' | 'renew') => {
      const weighed = throttle({ tokens: 100, weightEnabled: true, ...weights });
      weighed.admit(kind, 0);
      return weighed.deficit;
    };
    expect([cost('global'), cost('local'), cost('renew')]).toEqual([global, local, renew]);
  });

  it('drops at random more often while the bucket is empty, and less often after it has recovered', () => {
    let draw = 0xffffffff;
    const blue = new ConnectionThrottle(
      {
        ...connectionThrottleDefaults,
        tokens: 1,
        fillTimeMs: 1000,
        freezeTimeMs: 10,
        dropIncrease: 0.4,
        dropDecrease: 0.3,
        decreaseRatio: 0,
      },
      { uint32: () => draw },
    );
    expect(blue.admit('global', 0)).toBe(true);
    for (const [ms, chance] of [
      [10, 0],
      [11, 0.4],
      [21, 0.4],
      [22, 0.8],
      [33, 1],
      [44, 1],
    ] as const) {
      expect(blue.admit('global', ms)).toBe(false);
      expect(blue.dropChance).toBeCloseTo(chance);
    }
    // The bucket is full again: the probability falls, and a draw below it still drops without
    // taking a token.
    draw = 0;
    expect(blue.admit('global', 5000)).toBe(false);
    expect(blue.dropChance).toBeCloseTo(0.7);
    expect(blue.deficit).toBe(0);
    draw = 0xffffffff;
    expect(blue.admit('global', 5000)).toBe(true);
    for (const ms of [10_000, 15_000, 20_000, 25_000]) blue.admit('global', ms);
    expect(blue.dropChance).toBe(0);
  });

  it("keeps its tokens between zero and the bucket's size, and its probability between 0 and 1, for any options and times", () => {
    const wild = fc.oneof(fc.integer({ min: -5, max: 20 }), fc.constantFrom(2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 53 - 1));
    const options = fc.record({
      tokens: wild,
      fillTimeMs: wild,
      fillCount: wild,
      freezeTimeMs: fc.oneof(fc.constant(-1), wild),
      dropIncrease: fc.double({ min: 0, max: 2, noNaN: true }),
      dropDecrease: fc.double({ min: 0, max: 2, noNaN: true }),
      decreaseRatio: fc.double({ min: 0, max: 1, noNaN: true }),
      weightEnabled: fc.boolean(),
      globalSessionWeight: wild,
      localSessionWeight: wild,
      renewSessionWeight: wild,
    });
    const newcomer = fc.record({
      kind: fc.constantFrom('global' as const, 'local' as const, 'renew' as const),
      passes: fc.oneof(fc.nat(50), fc.constantFrom(2 ** 31, 2 ** 40, 2 ** 52)),
      draw: fc.nat(0xffffffff),
    });
    fc.assert(
      fc.property(options, fc.array(newcomer, { maxLength: 60 }), (chosen, newcomers) => {
        let draw = 0;
        const any = new ConnectionThrottle(chosen, { uint32: () => draw });
        const full = throttle({ ...chosen, freezeTimeMs: -1 });
        const size = full.deficit;
        expect(size).toBe(0);
        let now = 0;
        let most = 0;
        for (const { kind, passes, draw: drawn } of newcomers) {
          now += passes;
          draw = drawn;
          const before = any.deficit;
          const admitted = any.admit(kind, now);
          most = Math.max(most, any.deficit);
          expect(any.deficit).toBeGreaterThanOrEqual(0);
          expect(admitted || any.deficit <= before).toBe(true);
          expect(any.dropChance).toBeGreaterThanOrEqual(0);
          expect(any.dropChance).toBeLessThanOrEqual(1);
        }
        const weight = chosen.weightEnabled ? Math.max(chosen.globalSessionWeight, chosen.localSessionWeight, 3) : 1;
        expect(most).toBeLessThanOrEqual(Math.max(0, chosen.tokens) * weight);
      }),
      { numRuns: breadth(30, 300) },
    );
  });

  it('admits no more than one full bucket after years of silence', () => {
    const limited = throttle({ tokens: 3, fillTimeMs: 1, fillCount: 2 ** 31 - 1 });
    limited.admit('global', 0);
    const later = 2 ** 52;
    expect([1, 2, 3, 4].map(() => limited.admit('global', later))).toEqual([true, true, true, false]);
  });
});
