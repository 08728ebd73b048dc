import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * Proofs against real processes, separate from the default run since they take minutes and a Java
 * server: `npx vitest run --config verification/processes/vitest.config.ts`. TSKEEPER_SERVER_KIND
 * names the server to test: `ours` or `java-3.9.5`.
 */
export default defineConfig({
  resolve: { conditions: ['tskeeper-source'] },
  ssr: { resolve: { conditions: ['tskeeper-source'], externalConditions: ['tskeeper-source'] } },
  test: {
    root: path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..'),
    include: ['verification/processes/*.process.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 1_200_000,
    hookTimeout: 1_200_000,
  },
});
