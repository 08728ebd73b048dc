import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  counterOf,
  epochMax,
  epochOf,
  formatSessionId,
  formatZxid,
  highHalf,
  int64,
  lowHalf,
  makeZxid,
  sessionHigh,
  sessionIdOf,
  sessionLow,
} from '../../src/index.ts';
import { bigLong, int32, long } from '../arbitraries.ts';

test('int64 joins the two halves of any number from -2^53 to 2^53', () => {
  fc.assert(
    fc.property(long, (value) => {
      expect(int64(highHalf(value), lowHalf(value))).toBe(value);
      expect(BigInt.asIntN(64, (BigInt(highHalf(value)) << 32n) | BigInt(lowHalf(value) >>> 0))).toBe(BigInt(value));
    }),
  );
});

test('C2-7: sessionIdOf joins the two halves of any session id', () => {
  fc.assert(
    fc.property(bigLong, int32, int32, (id, high, low) => {
      expect(sessionIdOf(sessionHigh(id), sessionLow(id))).toBe(id);
      expect([sessionHigh(sessionIdOf(high, low)), sessionLow(sessionIdOf(high, low))]).toEqual([high, low]);
    }),
  );
});

describe('a zxid', () => {
  test.each([
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 0xffffffff],
    [epochMax, 0xffffffff],
  ])('of epoch %i and counter %i returns both', (epoch, counter) => {
    const zxid = makeZxid(epoch, counter);
    expect(Number.isSafeInteger(zxid)).toBe(true);
    expect([epochOf(zxid), counterOf(zxid)]).toEqual([epoch, counter]);
  });

  test('is not exact beyond the last exact epoch', () => {
    expect(Number.isSafeInteger(makeZxid(epochMax + 1, 1))).toBe(false);
  });

  test('beyond the exact range keeps its order in comparisons', () => {
    expect(int64(0x7fffffff, -1)).toBeGreaterThan(makeZxid(epochMax, 0xffffffff));
    expect(int64(0x00200000, 2)).toBeGreaterThan(int64(0x00200000, 0));
  });

  test.each([
    [0, '0x0'],
    [0x10000002a, '0x10000002a'],
    [-1, '0xffffffffffffffff'],
  ])('%i is written %s', (zxid, text) => {
    expect(formatZxid(zxid)).toBe(text);
  });
});

test('a session id is written unsigned and without padding', () => {
  expect(formatSessionId(0x100000ceb4c0000n)).toBe('0x100000ceb4c0000');
  expect(formatSessionId(-1n)).toBe('0xffffffffffffffff');
  expect(formatSessionId(0n)).toBe('0x0');
});
