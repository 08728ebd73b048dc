import { describe, expect, it } from 'vitest';
import { crc32 } from '../../src/tree/tree-digest.ts';
import { plainCrc32 } from './model.ts';

describe('crc32', () => {
  it('matches the polynomial for every length and offset, in one call or in two', () => {
    const bytes = Buffer.from(Array.from({ length: 900 }, (_, i) => (i * i * 31 + (i >> 3)) & 0xff));
    expect(crc32(Buffer.from('123456789'), 0, 9) >>> 0).toBe(0xcbf43926);
    for (let length = 0; length < 900; length += length < 40 ? 1 : 61) {
      for (const start of [0, 1, 7]) {
        const end = Math.min(bytes.length, start + length);
        const whole = crc32(bytes, start, end);
        expect(whole >>> 0).toBe(plainCrc32(bytes.subarray(start, end)));
        const middle = start + ((end - start) >> 1);
        expect(crc32(bytes, middle, end, crc32(bytes, start, middle))).toBe(whole);
      }
    }
  });
});
