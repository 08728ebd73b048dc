/** Reader and Writer: the encoding itself. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ProtocolError, Reader, Writer } from '../src/index.ts';
import { bigLong, bytes, int32, long, text } from './arbitraries.ts';
import { written } from './fixtures.ts';

function hexOf(write: (writer: Writer) => void): string {
  return written(write).toString('hex');
}

describe('the bytes of', () => {
  test.each<[string, (writer: Writer) => void, string]>([
    ['an int', (writer) => writer.int32(0x01020304), '01020304'],
    ['a negative int', (writer) => writer.int32(-2), 'fffffffe'],
    ['a long', (writer) => writer.int64(0x1000000002), '0000001000000002'],
    ['-1 as a long', (writer) => writer.int64(-1), 'ffffffffffffffff'],
    ['the lowest exact long', (writer) => writer.int64(-(2 ** 53)), 'ffe0000000000000'],
    ['a long of 64 bits', (writer) => writer.bigint64(-0x7fffffffffffffffn), '8000000000000001'],
    ['two halves', (writer) => writer.int64Halves(-1, 1), 'ffffffff00000001'],
    ['true', (writer) => writer.boolean(true), '01'],
    ['false', (writer) => writer.boolean(false), '00'],
    ['a byte', (writer) => writer.int8(-1), 'ff'],
    ['a buffer', (writer) => writer.buffer(Buffer.from([1, 2])), '000000020102'],
    ['an empty buffer', (writer) => writer.buffer(Buffer.alloc(0)), '00000000'],
    ['a null buffer', (writer) => writer.buffer(null), 'ffffffff'],
    ['a text', (writer) => writer.ustring('é'), '00000002c3a9'],
    ['an empty text', (writer) => writer.ustring(''), '00000000'],
    ['a null text', (writer) => writer.ustring(null), 'ffffffff'],
    ['U+0000 in a text', (writer) => writer.ustring('\0'), '0000000100'],
    ['a character outside the basic plane', (writer) => writer.ustring('😀'), '00000004f09f9880'],
    ['a lone surrogate', (writer) => writer.ustring('\ud800'), '00000003efbfbd'],
    ['a vector', (writer) => writer.vector([1, 2], (w, n) => w.int8(n)), '000000020102'],
    ['an empty vector', (writer) => writer.vector([], () => {}), '00000000'],
    ['a null vector', (writer) => writer.vector(null, () => {}), 'ffffffff'],
  ])('%s are as Jute defines them', (_title, write, hex) => {
    expect(hexOf(write)).toBe(hex);
  });
});

describe('reading', () => {
  const read = (hex: string): Reader => new Reader(Buffer.from(hex, 'hex'));

  test('any byte except 0 is true', () => {
    expect(['00', '01', '02', 'ff'].map((hex) => read(hex).boolean())).toEqual([false, true, true, true]);
  });

  test('text that is not UTF-8 contains U+FFFD, without an error', () => {
    expect(read('00000003ff6180').ustring()).toBe('\ufffda\ufffd');
  });

  test('surrogate pairs that Java encodes as two three-byte sequences become U+FFFD', () => {
    expect(read('00000006eda0bdedb880').ustring()).toMatch(/^\ufffd+$/);
  });

  test('a vector with a count below -1 is empty, and one with -1 is null', () => {
    expect(read('fffffffe').vector(1, () => 0)).toEqual([]);
    expect(read('80000000').vector(1, () => 0)).toEqual([]);
    expect(read('ffffffff').vector(1, () => 0)).toBeNull();
  });

  test('a buffer is a view, and a range creates no object', () => {
    const reader = read('000000020102');
    const view = reader.buffer()!;
    reader.bytes[4] = 9;
    expect(view[0]).toBe(9);
    expect([reader.rangeStart, reader.rangeEnd]).toEqual([4, 6]);
  });

  test('a null range is empty', () => {
    const reader = read('ffffffff');
    expect(reader.range()).toBe(false);
    expect(reader.rangeEnd - reader.rangeStart).toBe(0);
  });

  test('an error contains the expectation and the position', () => {
    const reader = read('0000000161');
    reader.int8();
    expect(() => reader.int64()).toThrow(new ProtocolError('a long', 1));
    expect(new ProtocolError('a long', 1)).toMatchObject({ name: 'ProtocolError', message: 'expected a long at byte 1', offset: 1 });
  });

  test('stops at the limit although there are more bytes', () => {
    const reader = new Reader(Buffer.alloc(16), 2, 5);
    expect(reader.remaining).toBe(3);
    expect(() => reader.int32()).toThrow('expected an int at byte 2');
  });

  test('an empty reader has no bytes', () => {
    expect(new Reader().remaining).toBe(0);
    expect(() => new Reader().int8()).toThrow(ProtocolError);
  });
});

test('a writer grows from nothing, and its values are read in order', () => {
  const value = fc.oneof(
    fc.record({ kind: fc.constant('int32' as const), value: int32 }),
    fc.record({ kind: fc.constant('int64' as const), value: long }),
    fc.record({ kind: fc.constant('bigint64' as const), value: bigLong }),
    fc.record({ kind: fc.constant('boolean' as const), value: fc.boolean() }),
    fc.record({ kind: fc.constant('ustring' as const), value: fc.option(text) }),
    fc.record({ kind: fc.constant('buffer' as const), value: fc.option(fc.oneof(bytes, fc.constant(Buffer.alloc(300, 7)))) }),
  );
  fc.assert(
    fc.property(fc.array(value, { maxLength: 20 }), fc.integer({ min: 1, max: 64 }), (values, capacity) => {
      const writer = new Writer(capacity);
      for (const { kind, value: content } of values) (writer[kind] as (content: unknown) => void)(content);
      const reader = new Reader(writer.written());
      expect(values.map(({ kind }) => reader[kind]())).toEqual(values.map(({ value: content }) => content));
      expect(reader.remaining).toBe(0);
    }),
  );
});

describe('a writer', () => {
  test('patches the length of a frame at its end', () => {
    expect(
      hexOf((writer) => {
        writer.int8(9);
        const start = writer.beginFrame();
        writer.int32(5);
        writer.endFrame(start);
      }),
    ).toBe('090000000400000005');
  });

  test('appends part of other bytes, short or long, without a length', () => {
    const source = Buffer.alloc(200, 1).fill(2, 100);
    for (const [start, end] of [
      [99, 101],
      [10, 190],
      [0, 200],
      [5, 5],
    ]) {
      expect(hexOf((writer) => writer.raw(source, start, end))).toBe(source.subarray(start, end).toString('hex'));
    }
  });

  test('starts again when cleared, in its memory', () => {
    const writer = new Writer();
    writer.int32(1);
    const { bytes: memory } = writer;
    writer.clear();
    writer.int32(2);
    expect(writer.bytes).toBe(memory);
    expect(writer.written().toString('hex')).toBe('00000002');
  });
});
