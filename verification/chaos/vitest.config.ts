import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * Ensembles of real processes under real faults, separate from the default run since they take
 * minutes: `npm run chaos`.
 */
export default defineConfig({
  resolve: { conditions: ['tskeeper-source'] },
  ssr: { resolve: { conditions: ['tskeeper-source'], externalConditions: ['tskeeper-source'] } },
  test: {
    root: path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..'),
    include: ['verification/chaos/*.process.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 24 * 3_600_000,
    hookTimeout: 1_200_000,
  },
});
