import type { Checker } from './checker.ts';

export const noLeaks: Checker = {
  property: 'P37',
  promise: 'When every session has ended, no watch, ephemeral, connection or request is left on any server.',
  check: ({ leftovers }) =>
    leftovers.flatMap(({ server, ...counts }) =>
      Object.entries(counts)
        .filter(([, count]) => count !== 0)
        .map(([what, count]) => `${server} still has ${count} ${what}`),
    ),
};
