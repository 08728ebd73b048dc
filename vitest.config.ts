import { defineConfig } from 'vitest/config';

/** Tests resolve sibling packages to their sources, so that no test can pass on a stale build. */
const resolve = { conditions: ['tskeeper-source'] };
const ssr = { resolve: { conditions: ['tskeeper-source'], externalConditions: ['tskeeper-source'] } };

/** A guard against hangs only, at least ten times what the slowest test needs on a quiet machine. A polled condition gets all of it. */
const testTimeout = 120_000;
const patience = { testTimeout, hookTimeout: testTimeout, expect: { poll: { timeout: testTimeout } } };

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
