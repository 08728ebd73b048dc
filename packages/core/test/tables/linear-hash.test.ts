import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { LinearHash, mix } from '../../src/tables/linear-hash.ts';

describe('LinearHash', () => {
  it('finds exactly its items, while it grows and items are removed', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ item: fc.integer({ min: 1, max: 400 }), remove: fc.boolean() }), { maxLength: 1500 }), (steps) => {
        // Few distinct hashes, so that chains are long and many items share one.
        const hashOf = (item: number) => mix(item % 40);
        const index = new LinearHash(hashOf);
        const model = new Set<number>();
        for (const { item, remove } of steps) {
          if (remove) {
            if (model.delete(item)) index.delete(item, hashOf(item));
          } else if (!model.has(item)) {
            model.add(item);
            index.insert(item, hashOf(item));
          }
        }
        const found = new Set<number>();
        for (let hash = 0; hash < 40; hash++) {
          for (let item = index.first(mix(hash)); item !== 0; item = index.next(item)) {
            if (hashOf(item) !== mix(hash)) continue;
            expect(found.has(item)).toBe(false);
            found.add(item);
          }
        }
        expect(found).toEqual(model);
      }),
      { numRuns: breadth(6, 60) },
    );
  });

  it('keeps chains short as it grows', () => {
    const index = new LinearHash(mix);
    for (let item = 1; item <= 200_000; item++) index.insert(item, mix(item));
    let steps = 0;
    for (let item = 1; item <= 200_000; item++) {
      for (let at = index.first(mix(item)); at !== item; at = index.next(at)) steps++;
    }
    expect(steps / 200_000).toBeLessThan(2);
  });

  it('throws if an item to delete is not in it', () => {
    const index = new LinearHash(mix);
    index.insert(1, mix(1));
    expect(() => index.delete(2, mix(2))).toThrow('item 2 is not in the index under its hash');
  });
});
