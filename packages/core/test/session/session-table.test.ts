import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { SessionTable } from '../../src/session/session-table.ts';

describe('SessionTable', () => {
  it('finds a session by both halves of its id', () => {
    const table = new SessionTable();
    const one = table.open(0x01000000, -5, 4000);
    const two = table.open(0x01000001, -5, 6000);
    const three = table.open(0x01000000, 5, 8000);
    expect([table.find(0x01000000, -5), table.find(0x01000001, -5), table.find(0x01000000, 5)]).toEqual([one, two, three]);
    expect(table.find(0x01000001, 5)).toBe(-1);
    expect([table.high(two), table.low(two), table.timeoutMs(two)]).toEqual([0x01000001, -5, 6000]);
    expect(table.count).toBe(3);
  });

  it('accepts ids at the limits of 64 bits', () => {
    const table = new SessionTable();
    const halves = [0, -1, 1, 0x7fffffff, -0x80000000];
    const slots = halves.flatMap((high) => halves.map((low) => table.open(high, low, 1)));
    expect(halves.flatMap((high) => halves.map((low) => table.find(high, low)))).toEqual(slots);
    expect(new Set(slots).size).toBe(25);
  });

  it('reopens an open session in place, with the new timeout', () => {
    const table = new SessionTable();
    const slot = table.open(1, 2, 4000);
    table.setCnxn(slot, 7);
    expect(table.open(1, 2, 9000)).toBe(slot);
    expect([table.count, table.timeoutMs(slot), table.cnxnOf(slot)]).toEqual([1, 9000, 7]);
  });

  it('reuses a slot without data of the earlier session', () => {
    const table = new SessionTable();
    const slot = table.open(1, 1, 4000);
    table.setClosing(slot);
    table.setCnxn(slot, 3);
    table.remove(slot);
    expect(table.find(1, 1)).toBe(-1);
    expect(table.open(2, 2, 5000)).toBe(slot);
    expect([table.isClosing(slot), table.cnxnOf(slot)]).toEqual([false, -1]);
  });

  it('removes a slot once', () => {
    const table = new SessionTable();
    const slot = table.open(1, 1, 4000);
    table.remove(slot);
    table.remove(slot);
    table.remove(99);
    table.remove(-1);
    expect(table.count).toBe(0);
    expect([table.open(2, 2, 1), table.open(3, 3, 1)]).toEqual([slot, slot + 1]);
  });

  it('continues a list at the slot where it stopped, though sessions were added and removed', () => {
    const table = new SessionTable();
    const slots = [1, 2, 3, 4].map((low) => table.open(0, low, 1));
    expect(table.nextSlot(-1)).toBe(slots[0]);
    table.remove(slots[0]!);
    table.remove(slots[1]!);
    expect(table.nextSlot(slots[0]!)).toBe(slots[2]);
    expect(table.nextSlot(slots[2]!)).toBe(slots[3]);
    expect(table.nextSlot(slots[3]!)).toBe(-1);
    const seen: number[] = [];
    table.forEach((slot) => {
      seen.push(slot);
      table.remove(slot);
    });
    expect(seen).toEqual([slots[2], slots[3]]);
    expect(table.count).toBe(0);
  });

  it('agrees with a plain map after any operations', () => {
    const step = fc.record({ high: fc.integer({ min: -2, max: 2 }), low: fc.integer({ min: -40, max: 40 }), remove: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
        const table = new SessionTable();
        const model = new Map<string, number>();
        for (const { high, low, remove } of steps) {
          const key = `${high} ${low}`;
          expect(table.find(high, low)).toBe(model.get(key) ?? -1);
          if (remove) {
            table.remove(table.find(high, low));
            model.delete(key);
          } else {
            model.set(key, table.open(high, low, 1000));
          }
          expect(table.count).toBe(model.size);
        }
        const listed = new Map<string, number>();
        table.forEach((slot) => listed.set(`${table.high(slot)} ${table.low(slot)}`, slot));
        expect(listed).toEqual(model);
      }),
      { numRuns: breadth(6, 60) },
    );
  });
});
