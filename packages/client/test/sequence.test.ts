import { sequenceSuffix } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { expectIs } from '../../../test/expect-is.ts';
import { compareSequences, sequenceOf } from '../src/index.ts';

describe('B57: the number of a sequential znode', () => {
  it.each([
    ['lock-0000000000', 'lock-', 0],
    ['lock-2147483647', 'lock-', 2147483647],
    ['lock--2147483648', 'lock-', -2147483648],
    ['lock--000000001', 'lock-', -1],
    ['/locks/a-1/lock-0000000012', 'lock-', 12],
    ['/locks/0000000007', '', 7],
    ['-2147483648', '', -2147483648],
    ['_c_01234567-89ab-4def-8123-456789abcdef-lock-0000000003', 'lock-', 3],
    // The hyphen belongs to the prefix or to the number.
    ['lock-2000000000', 'lock-', 2000000000],
    ['lock-2000000000', 'lock', -2000000000],
    ['lock-000000005', 'lock', -5],
    // With tskeeper.wideSequences.
    ['lock-2147483648', 'lock-', 2147483648],
    ['lock-9999999999', 'lock-', 9999999999],
    ['lock-10000000000', 'lock-', 10000000000],
    ['lock-9007199254740991', 'lock-', Number.MAX_SAFE_INTEGER],
  ])('of %s after the prefix "%s" is %i', (name, prefix, number) => {
    expect(sequenceOf(name, prefix)).toBe(number);
  });

  it.each([
    ['lock-0000000001', 'read-'],
    ['lock-', 'lock-'],
    ['lock-1', 'lock-'],
    ['lock-00000000001', 'lock-'],
    ['lock-000000005', 'lock-'],
    ['lock-9007199254740992', 'lock-'],
    ['lock--2147483649', 'lock-'],
    ['lock--0000000001', 'lock-'],
    ['lock--000000000', 'lock-'],
    ['lock-00000000x1', 'lock-'],
    ['lock-0000000001-', 'lock-'],
    ['', ''],
  ])('does not exist in %s after the prefix "%s"', (name, prefix) => {
    expect(sequenceOf(name, prefix)).toBe(undefined);
  });

  it('is what a server writes, over the whole range', () => {
    for (let step = 0; step < 20_000; step++) {
      const number = Math.imul(step, 0x9e37_79b1) | 0;
      expectIs(sequenceOf(`n${sequenceSuffix(number)}`, 'n'), number);
    }
  });
});

describe('B57: compareSequences', () => {
  it('E7: is correct across the overflow, where text and numbers sort wrongly', () => {
    const names = [2147483646, 2147483647, -2147483648, -2147483647, -1, 0, 1].map((number) => `n-${sequenceSuffix(number)}`);
    const around = names.slice(0, 4);
    const inOrder = (list: readonly string[]) => [...list].sort((a, b) => compareSequences(sequenceOf(a, 'n-')!, sequenceOf(b, 'n-')!));
    expect(inOrder(around.toReversed())).toEqual(around);
    expect(around.toSorted()).not.toEqual(around);
    // And where the counter returns to 0.
    expect(inOrder(names.slice(4).toReversed())).toEqual(names.slice(4));
  });

  it('D17: is correct for wide numbers, and between those and the ones before', () => {
    for (const [first, second] of [
      [2 ** 31 - 1, 2 ** 31],
      [2 ** 31 - 1, -(2 ** 31)],
      [-(2 ** 31), 2 ** 31 + 1],
      [2 ** 32 - 1, 2 ** 32],
      [5 * 2 ** 32 - 7, 5 * 2 ** 32 + 2 ** 30],
    ] as const) {
      expect(compareSequences(first, second)).toBeLessThan(0);
      expect(compareSequences(second, first)).toBeGreaterThan(0);
    }
  });

  it('is correct for any two znodes with fewer than 2^31 creates between them', () => {
    for (const apart of [1, 2, 1000, 2 ** 30, 2 ** 31 - 1]) {
      for (let step = 0; step < 1000; step++) {
        const first = Math.imul(step, 0x9e37_79b1) | 0;
        const second = (first + apart) | 0;
        expectIs(compareSequences(first, second) < 0, true, `${first}, ${second}`);
        expectIs(compareSequences(second, first) > 0, true, `${second}, ${first}`);
      }
    }
    expect(compareSequences(-5, -5)).toBe(0);
  });
});
