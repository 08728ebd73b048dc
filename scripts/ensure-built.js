#!/usr/bin/env node
/**
 * Makes a fresh clone ready: installs what package-lock.json names when that has not been done, and builds. So `npm start` and `npm test`
 * need nothing done before. Uses Node's own modules only, since nothing else may be there yet.
 *
 *   node scripts/ensure-built.js [--install-only]
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const lockfile = join(root, 'package-lock.json');
/** npm's own record of what it installed. */
const installed = join(root, 'node_modules/.package-lock.json');
/** Ours: the lockfile it was installed from. Times alone mislead, since git sets them anew at each checkout. */
const stamp = join(root, 'node_modules/.installed-from');

function isInstalled() {
  if (!existsSync(installed)) return false;
  if (existsSync(stamp)) return readFileSync(stamp, 'utf8') === lockHash();
  return statSync(installed).mtimeMs >= statSync(lockfile).mtimeMs;
}

function lockHash() {
  return createHash('sha256').update(readFileSync(lockfile)).digest('hex');
}

function run(command, args, what) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (status === 0) return;
  console.error(`${what} failed${error ? `: ${error.message}` : ''}. Run \`${[command, ...args].join(' ')}\` in ${root} to see more.`);
  process.exit(1);
}

if (!isInstalled()) {
  console.error('Installing what package-lock.json names (npm ci) ...');
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], 'The installation');
  writeFileSync(stamp, lockHash());
}
if (!process.argv.includes('--install-only')) {
  // The compiler knows what is stale; when nothing is, it is done in a third of a second.
  run(process.execPath, [join('node_modules', 'typescript-7', 'bin', 'tsc'), '-b'], 'The build');
}
