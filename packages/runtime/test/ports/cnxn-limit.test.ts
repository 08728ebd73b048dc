import { expect, it } from 'vitest';
import type { HostFacts } from '../../src/index.ts';
import { cnxnLimit } from '../../src/internal.ts';

function host(max: number | undefined, open: number | undefined = 25): HostFacts {
  return { version: '', environment: () => [], openFileDescriptors: () => open, maxFileDescriptors: () => max };
}

it.each([
  ['200 are kept back where there are many', 0, host(65_536), 65_336, true],
  ['200 are kept back of 1,024', 0, host(1024), 824, true],
  ['of few, what is open and what storage may open at once', 0, host(64), 23, true],
  ['at least one client is let in', 0, host(30), 1, true],
  ['maxCnxns counts where there are descriptors for it', 500, host(1024), 500, false],
  ['descriptors count where maxCnxns asks for more', 5000, host(1024), 824, true],
  ['without a known limit there is none but maxCnxns', 0, host(undefined), 0, false],
])('F34: %s', (_title, maxCnxns, facts, cnxns, byDescriptors) => {
  expect(cnxnLimit(maxCnxns, facts)).toEqual({ cnxns, byDescriptors });
});
