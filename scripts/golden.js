#!/usr/bin/env node
/**
 * Runs the tests that compare outcomes with recorded files, and the comparison of exports with the
 * API reports. With --write it writes the files again; review the difference.
 *
 *   node scripts/golden.js [--write]
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const env = { ...process.env, ...(process.argv.includes('--write') ? { GOLDEN_WRITE: '1' } : {}) };
const runs = [
  [vitest, 'run', '--project', 'unit', 'golden', 'properties-reference', 'mutants-reference'],
  // The API reports are made from the build.
  [join(root, 'scripts', 'ensure-built.js')],
  [join(root, 'scripts', 'public-api.js'), ...process.argv.slice(2)],
];
const failed = runs.filter((args) => spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status !== 0);
process.exitCode = failed.length === 0 ? 0 : 1;
