import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { ByteArena } from '../../src/tree/byte-arena.ts';

describe('ByteArena', () => {
  it('keeps its content, whatever else is added and freed', () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 600 }), fc.integer({ min: 600, max: 40_000 }));
    const step = fc.oneof(size, fc.record({ free: fc.nat() }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const arena = new ByteArena();
        const stored: { at: number; bytes: number; mark: number }[] = [];
        const check = ({ at, bytes, mark }: (typeof stored)[number]): void => {
          const found = arena.bufferOf(at).subarray(arena.offsetOf(at), arena.offsetOf(at) + bytes);
          expect(found.length).toBe(bytes);
          expect(found.every((byte) => byte === mark)).toBe(true);
        };
        for (const [i, each] of steps.entries()) {
          if (typeof each === 'number') {
            const at = arena.alloc(each);
            arena.bufferOf(at).fill(i, arena.offsetOf(at), arena.offsetOf(at) + each);
            stored.push({ at, bytes: each, mark: i & 0xff });
            expect(arena.fits(at, each)).toBe(true);
          } else if (stored.length > 0) {
            const [gone] = stored.splice(each.free % stored.length, 1);
            check(gone!);
            arena.free(gone!.at);
          }
        }
        for (const each of stored) check(each);
        const inUse = stored.reduce((sum, { bytes }) => sum + bytes, 0);
        expect(arena.memoryBytes - arena.idleBytes).toBeGreaterThanOrEqual(inUse);
        expect(arena.memoryBytes - arena.idleBytes).toBeLessThanOrEqual(inUse * 1.125 + stored.length * 16);
        for (const { at } of stored) arena.free(at);
        expect(arena.idleBytes).toBe(arena.memoryBytes);
        expect(arena.releasedBytes).toBeGreaterThanOrEqual(0);
        expect(arena.memoryBytes).toBeLessThanOrEqual(16 * 256 * 1024);
      }),
      { numRuns: breadth(5, 40) },
    );
  });

  it('reports how much memory it has released since the peak', () => {
    const arena = new ByteArena();
    const places = Array.from({ length: 10 }, () => arena.alloc(1_000_000));
    expect([arena.memoryBytes, arena.releasedBytes]).toEqual([10_000_000, 0]);
    for (const at of places.slice(0, 4)) arena.free(at);
    expect([arena.memoryBytes, arena.releasedBytes]).toEqual([6_000_000, 4_000_000]);
  });

  it('wastes at most an eighth of a string, or sixteen bytes', () => {
    const arena = new ByteArena();
    for (const bytes of [1, 16, 17, 100, 180, 512, 513, 600, 1025, 3000, 9000, 30_000, 32_768]) {
      const at = arena.alloc(bytes);
      const larger = Math.ceil(Math.max(bytes + 16, bytes * 1.125 + 1));
      expect(arena.fits(at, larger), `${bytes} in the slot of ${larger}`).toBe(false);
    }
  });

  it('reuses a page for another size once all of it is free', () => {
    const arena = new ByteArena();
    const small = Array.from({ length: 20_000 }, () => arena.alloc(100));
    const full = arena.memoryBytes;
    for (const at of small) arena.free(at);
    const others = Array.from({ length: 300 }, () => arena.alloc(6000));
    expect(arena.memoryBytes).toBeLessThan(full + 300 * 600);
    expect(others.length).toBe(300);
  });

  it('counts a long string by its length, and releases all of it', () => {
    const arena = new ByteArena();
    const at = arena.alloc(1_000_000);
    expect(arena.memoryBytes).toBe(1_000_000);
    expect(arena.fits(at, 999_999)).toBe(false);
    arena.free(at);
    expect(arena.memoryBytes).toBe(0);
    expect(arena.alloc(50_000)).toBe(at);
  });
});
