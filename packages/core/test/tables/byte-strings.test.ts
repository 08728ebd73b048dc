import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { ByteStrings } from '../../src/tables/byte-strings.ts';

describe('ByteStrings', () => {
  it('returns each string unchanged, whatever else was added and freed meanwhile', () => {
    const length = fc.oneof(fc.nat(40), fc.constantFrom(505, 509, 510, 511, 512), fc.nat(3000));
    const step = fc.record({ length, fill: fc.nat(127), free: fc.nat(10) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const strings = new ByteStrings();
        const held: { address: number; bytes: Buffer }[] = [];
        for (const { length: size, fill, free } of steps) {
          const bytes = Buffer.alloc(size + 4, fill);
          held.push({ address: strings.put(bytes, 2, size + 2), bytes });
          const gone = free < 5 ? held.splice(Math.floor((held.length * free) / 5), 1)[0] : undefined;
          if (gone !== undefined) strings.free(gone.address);
        }
        for (const { address, bytes } of held) {
          expect(strings.equals(address, bytes, 2, bytes.length - 2)).toBe(true);
          expect(strings.equals(address, bytes, 2, bytes.length - 1)).toBe(false);
          expect(strings.text(address)).toBe(bytes.toString('utf8', 2, bytes.length - 2));
        }
        expect(new Set(held.map((one) => one.address)).size).toBe(held.length);
      }),
      { numRuns: breadth(6, 60) },
    );
  });

  it('releases memory when strings of one length are replaced by strings of another', () => {
    const strings = new ByteStrings();
    let most = 0;
    for (let length = 10; length < 500; length += 30) {
      const bytes = Buffer.alloc(length);
      const addresses = Array.from({ length: 5000 }, () => strings.put(bytes, 0, length));
      most = Math.max(most, strings.bytes);
      for (const address of addresses) strings.free(address);
    }
    // One chunk of each cell size may remain.
    expect(strings.bytes).toBeLessThanOrEqual(17 * 65536);
    expect(most).toBeLessThan(5000 * 520 + 20 * 65536);
  });

  it('keeps one chunk while a single string is added and freed', () => {
    const strings = new ByteStrings();
    const bytes = Buffer.from('/a');
    for (let i = 0; i < 1000; i++) strings.free(strings.put(bytes, 0, 2));
    expect(strings.bytes).toBe(65536);
  });

  it('does not count a long string after it was freed', () => {
    const strings = new ByteStrings();
    const bytes = Buffer.alloc(100_000);
    strings.free(strings.put(bytes, 0, bytes.length));
    expect(strings.bytes).toBe(0);
    const again = strings.put(bytes, 0, bytes.length);
    expect(strings.equals(again, bytes, 0, bytes.length)).toBe(true);
  });
});
