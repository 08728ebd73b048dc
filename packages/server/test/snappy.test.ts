import { describe, expect, it } from 'vitest';
import { snappy } from '../src/snappy.ts';

describe('snappy', () => {
  it('reads a block written by hand: a length, a literal, and a copy of it', () => {
    // 9 bytes: literal "abc", then 6 bytes copied from 3 back (tag 01, one-byte offset).
    const block = Buffer.from([9, 0b000010_00, 0x61, 0x62, 0x63, 0b000_010_01, 3]);
    expect(Buffer.from(snappy.uncompress(block, 9)).toString()).toBe('abcabcabc');
  });

  it('reads its own output, from any part of a buffer', () => {
    const whole = Buffer.from('x'.repeat(1000) + 'tail');
    const part = new Uint8Array(whole.buffer, whole.byteOffset + 500, 504);
    const block = snappy.compress(part);
    expect(block.length).toBeLessThan(100);
    expect(Buffer.from(snappy.uncompress(block, 504))).toEqual(whole.subarray(500));
  });

  it('refuses to allocate more than its limit', () => {
    expect(() => snappy.uncompress(snappy.compress(Buffer.alloc(1000)), 999)).toThrow(
      'The uncompressed length of 1000 is too big, expect at most 999',
    );
    expect(() => snappy.uncompress(Buffer.from([0xff, 0xff, 0xff, 0x7f, 0]), 1 << 20)).toThrow('too big');
  });
});
