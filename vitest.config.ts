import { defineConfig } from 'vitest/config';

/** Tests resolve sibling packages to their sources, so that no test can pass on a stale build. */
const resolve = { conditions: ['tskeeper-source'] };
const ssr = { resolve: { conditions: ['tskeeper-source'], externalConditions: ['tskeeper-source'] } };

/**
 * A guard against hangs only, at least ten times what the slowest test needs on a quiet machine. A
 * polled condition gets all of it.
 */
const testTimeout = 120_000;
const patience = { testTimeout, hookTimeout: testTimeout, expect: { poll: { timeout: testTimeout } } };

/**
 * `vitest run --mode full` does all that tests can do, and has as long as that takes;
 * test/breadth.ts explains it. Only the tests against the reference model are left to `npm run
 * proofs`, which runs them with `--mode proofs`, so that `.ci/run` runs nothing twice.
 */
export default defineConfig(({ mode }) => {
  const isFull = mode === 'full' || mode === 'proofs';
  const limits = isFull ? { ...patience, testTimeout: 10 * testTimeout } : patience;
  // Workers are kept from file to file: importing everything anew for each file takes longer than
  // the tests.
  const kept = { isolate: false, provide: { breadth: isFull ? ('full' as const) : ('small' as const) } };
  return {
    test: {
      reporters: ['./scripts/test-reporter.js'],
      // What tests print is shown when they fail.
      silent: 'passed-only',
      projects: [
        {
          resolve,
          ssr,
          test: {
            name: 'unit',
            ...limits,
            ...kept,
            include: ['packages/*/test/**/*.test.ts', 'verification/**/*.test.ts', 'test/**/*.test.ts'],
            exclude: ['**/*.integration.test.ts', ...(mode === 'full' ? ['verification/model/**'] : [])],
            pool: 'threads',
            maxWorkers: '100%',
            sequence: { groupOrder: 1 },
          },
        },
        {
          resolve,
          ssr,
          test: {
            name: 'integration',
            ...limits,
            ...kept,
            include: ['packages', 'verification', 'test'].map((folder) => `${folder}/**/*.integration.test.ts`),
            pool: 'forks',
            // More than there are processors of a small machine, since these tests wait for real
            // time to pass, and no more, since each worker imports everything. They do not run
            // beside the unit tests, which compute.
            maxWorkers: 3,
            sequence: { groupOrder: 0 },
          },
        },
      ],
    },
  };
});
