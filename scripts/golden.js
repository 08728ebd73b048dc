#!/usr/bin/env node
/**
 * Runs what compares outcomes with files kept beside the tests, and what packages export with their API reports. With --write the files are written anew; what has changed in them is then
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
const runs = [
  [vitest, 'run', '--project', 'unit', 'golden', 'properties-reference', 'mutants-reference'],
  // What the API reports are made from is what is built.
  [join(root, 'scripts', 'ensure-built.js')],
  [join(root, 'scripts', 'public-api.js'), ...process.argv.slice(2)],
];
const failed = runs.filter((args) => spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status !== 0);
process.exitCode = failed.length === 0 ? 0 : 1;
