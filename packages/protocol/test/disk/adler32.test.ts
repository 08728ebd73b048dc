import * as fc from 'fast-check';
import { deflateSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { adler32, adler32Seed } from '../../src/index.ts';

/** A zlib stream ends with the Adler-32 of its content. */
function byZlib(bytes: Uint8Array): number {
  return deflateSync(bytes, { level: 0 }).readUInt32BE(deflateSync(bytes, { level: 0 }).length - 4);
}

test.each([
  ['', 0x00000001],
  ['a', 0x00620062],
  ['abc', 0x024d0127],
  ['Wikipedia', 0x11e60398],
  ['message digest', 0x29750586],
])('the checksum of "%s" is the published one', (text, checksum) => {
  expect(adler32(Buffer.from(text))).toBe(checksum);
});

test.each([1, 7, 8, 9, 3799, 3800, 3801, 7600, 65521, 100_003, 1 << 20])(
  'the checksum of %i bytes of 0xff, which grow the sums fastest, is that of zlib',
  (length) => {
    const bytes = Buffer.alloc(length, 0xff);
    expect(adler32(bytes)).toBe(byZlib(bytes));
    // Also with the largest sums as the seed.
    const halfway = adler32(bytes, 0, length >> 1);
    expect(adler32(bytes, length >> 1, length, halfway)).toBe(byZlib(bytes));
  },
);

test('the checksum of any bytes, in one call or in pieces, is that of zlib', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 9_000, size: 'max' }), fc.array(fc.nat(9_000), { maxLength: 5 }), (bytes, cuts) => {
      const ends = [...cuts.filter((cut) => cut < bytes.length).toSorted((a, b) => a - b), bytes.length];
      let checksum = adler32Seed;
      let start = 0;
      for (const end of ends) {
        checksum = adler32(bytes, start, end, checksum);
        start = end;
      }
      expect(checksum).toBe(byZlib(bytes));
      expect(adler32(bytes)).toBe(checksum);
    }),
    { numRuns: breadth(5, 50) },
  );
});
