import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PathHash } from '../../src/tree/path-hash.ts';
import { PathIndex } from '../../src/tree/path-index.ts';

function candidates(index: PathIndex, hash: number): number[] {
  const found: number[] = [];
  for (let node = index.first(hash); node !== 0; node = index.next()) found.push(node);
  return found.sort((a, b) => a - b);
}

describe('PathIndex', () => {
  it('returns every znode of a hash and no other, even if hashes collide', () => {
    // Few shards, few slots within them, and hashes that are equal.
    const hash = fc.tuple(fc.constantFrom(0, 0x7f000000, -0x1000000), fc.integer({ min: 0, max: 40 })).map(([top, low]) => top + low);
    fc.assert(
      fc.property(fc.array(fc.tuple(hash, fc.boolean()), { maxLength: 200 }), (steps) => {
        const index = new PathIndex();
        const expected = new Map<number, number[]>();
        let node = 0;
        for (const [at, adds] of steps) {
          const held = expected.get(at) ?? [];
          if (adds) {
            index.insert(at, ++node);
            expected.set(at, [...held, node]);
          } else if (held.length > 0) {
            index.remove(at, held[0]!);
            expected.set(at, held.slice(1));
          }
        }
        for (const [at, held] of expected) expect(candidates(index, at)).toEqual(held);
        for (const [at, held] of expected) for (const each of held) index.remove(at, each);
        for (const at of expected.keys()) expect(index.first(at)).toBe(0);
      }),
    );
  });

  it('releases memory, and throws for a znode it does not contain', () => {
    const index = new PathIndex();
    for (let i = 1; i <= 100_000; i++) index.insert(Math.imul(i, 0x9e3779b1), i);
    const full = index.memoryBytes;
    for (let i = 1; i <= 100_000; i++) index.remove(Math.imul(i, 0x9e3779b1), i);
    expect(index.memoryBytes).toBeLessThan(full / 10);
    expect(() => index.remove(5, 1)).toThrow('znode 1 is not in the path index');
  });
});

describe('PathHash', () => {
  const bytesOf = (text: string): Buffer => Buffer.from(text);

  it('depends on every byte, on the length, and on nothing else', () => {
    const hash = new PathHash(42);
    const text = bytesOf('xx/bench/n0000001yy');
    const base = hash.of(text, 2, 17);
    expect(hash.of(bytesOf('/bench/n0000001'), 0, 15)).toBe(base);
    for (let at = 2; at < 17; at++) {
      const other = Buffer.from(text);
      other[at]! ^= 1;
      expect(hash.of(other, 2, 17)).not.toBe(base);
    }
    expect(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((length) => hash.of(Buffer.alloc(10), 0, length))).size).toBe(10);
  });

  it('depends on both halves of its seed', () => {
    const path = bytesOf('/a');
    const seeds = [0, 1, 4294967296, 4294967297, 0x1fffffffffffff];
    expect(new Set(seeds.map((seed) => new PathHash(seed).of(path, 0, 2))).size).toBe(seeds.length);
  });

  it('spreads paths that differ in a digit evenly over the shards', () => {
    const hash = new PathHash(7);
    const counts = new Int32Array(256);
    const count = 100_000;
    for (let i = 0; i < count; i++) {
      const path = bytesOf(`/bench/n${String(i).padStart(7, '0')}`);
      counts[hash.of(path, 0, path.length) >>> 24]!++;
    }
    // Six standard deviations of a uniform distribution.
    const fair = count / 256;
    for (const each of counts) expect(Math.abs(each - fair)).toBeLessThan(6 * Math.sqrt(fair));
  });
});
