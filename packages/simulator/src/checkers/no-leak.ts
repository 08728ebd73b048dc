import type { Checker } from './checker.ts';

export const noLeak: Checker = {
  property: 'P37',
  promise: 'When every session has ended, nothing of any is left: no watch, no ephemeral, no connection, no request.',
  check: ({ resting }) =>
    resting.flatMap(({ server, ...counts }) =>
      Object.entries(counts)
        .filter(([, count]) => count !== 0)
        .map(([what, count]) => `${server} still has ${count} ${what}`),
    ),
};
