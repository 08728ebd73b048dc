import { describe, expect, it } from 'vitest';
import { contendersIn } from '../../src/wait-queue/contender.ts';

describe('a queue of contenders', () => {
  it('keeps its order where the numbers overflow', () => {
    const names = ['x-lock--2147483648', 'x-lock-2147483647', 'x-lock--2147483647', 'x-lock-2147483646'];
    expect(contendersIn('/l', names, ['lock-']).map(({ sequence }) => sequence)).toEqual([
      2147483646, 2147483647, -2147483648, -2147483647,
    ]);
  });

  it('includes the znodes of its kinds, whatever precedes the kind, and no others', () => {
    const names = ['_c_1-read-0000000002', 'acknowledged', 'write-0000000001', 'read-x', 'lock-0000000000', 'b6read-0000000003'];
    expect(contendersIn('/', names, ['read-', 'write-']).map(({ path, prefix }) => `${prefix} ${path}`)).toEqual([
      'write- /write-0000000001',
      'read- /_c_1-read-0000000002',
      'read- /b6read-0000000003',
    ]);
  });
});
