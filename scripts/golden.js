#!/usr/bin/env node
/**
 * Runs what compares outcomes with files kept beside the tests. With --write the files are written anew; what has changed in them is then
 * for a reader to judge.
 *
 *   node scripts/golden.js [--write]
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const env = { ...process.env, ...(process.argv.includes('--write') ? { GOLDEN_WRITE: '1' } : {}) };
const { status } = spawnSync(process.execPath, [vitest, 'run', '--project', 'unit', 'golden', 'behaviour-reference'], {
  cwd: root,
  env,
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
