import { describe, expect, it } from 'vitest';
import { curatorItemsCodec } from '../../src/index.ts';

const bytesOf = (...parts: (number | string)[]) =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === 'number' ? [part] : [...new TextEncoder().encode(part)])));
const head = [0, 1, 0, 1] as const;
const textsOf = (data: Uint8Array | null) => curatorItemsCodec.decode(data).map((item) => new TextDecoder().decode(item));

describe("items in Curator's format", () => {
  it('B8: are written as its ItemSerializer writes them', () => {
    expect(curatorItemsCodec.encode(['hello'])).toEqual(bytesOf(...head, 1, 0, 0, 0, 5, 'hello', 2));
    expect(curatorItemsCodec.encode(['', null, bytesOf(7)])).toEqual(bytesOf(...head, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 7, 2));
    expect(curatorItemsCodec.encode([])).toEqual(bytesOf(...head, 2));
  });

  it('B8: are read, however many one znode has', () => {
    expect(textsOf(bytesOf(...head, 1, 0, 0, 0, 5, 'hello', 2))).toEqual(['hello']);
    expect(textsOf(bytesOf(...head, 1, 0, 0, 0, 3, 'one', 1, 0, 0, 0, 0, 1, 0, 0, 0, 3, 'two', 2))).toEqual(['one', '', 'two']);
    expect(textsOf(bytesOf(...head, 2))).toEqual([]);
    // Curator reads no further than the end.
    expect(textsOf(bytesOf(...head, 2, 'more'))).toEqual([]);
  });

  it('are rejected with a remedy when their data have another format', () => {
    const remedy = 'use the data of other producers as they are';
    for (const [data, reason] of [
      [null, 'they do not begin with its version'],
      [bytesOf('hello'), 'they do not begin with its version'],
      [bytesOf(...head), 'there is neither an item nor the end at byte 4'],
      [bytesOf(...head, 1, 0, 0), 'the item at byte 4 is cut off'],
      [bytesOf(...head, 1, 0, 0, 0, 9, 'hello', 2), 'the item at byte 4 is cut off'],
      [bytesOf(...head, 1, 255, 255, 255, 255, 2), 'the item at byte 4 is cut off'],
      [bytesOf(...head, 1, 0, 0, 0, 1, 'x', 3), 'there is neither an item nor the end at byte 10'],
    ] as const) {
      expect(() => curatorItemsCodec.decode(data)).toThrow(
        new TypeError(`these data are not in the format of Curator: ${reason}; ${remedy}`),
      );
    }
  });
});
