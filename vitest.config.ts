import { defineConfig } from 'vitest/config';

/** Tests resolve sibling packages to their sources, so that no test can pass on a stale build. */
const resolve = { conditions: ['tskeeper-source'] };
const ssr = { resolve: { conditions: ['tskeeper-source'], externalConditions: ['tskeeper-source'] } };

/** What is polled for has the time of its test, and not a second. */
const testTimeout = 5000;
const patience = { testTimeout, expect: { poll: { timeout: testTimeout } } };

export default defineConfig({
  test: {
    reporters: ['default'],
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: 'unit',
          ...patience,
          include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/*.integration.test.ts'],
          pool: 'threads',
          isolate: false,
          maxWorkers: '100%',
          sequence: { groupOrder: 0 },
        },
      },
      {
        resolve,
        ssr,
        test: {
          name: 'integration',
          ...patience,
          include: ['packages/*/test/**/*.integration.test.ts', 'test/**/*.integration.test.ts'],
          pool: 'forks',
          // Alone, and behind all others: these wait for real time to pass.
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
