#!/usr/bin/env node
/**
 * Prepares a fresh clone: installs the packages of package-lock.json if they are not installed, and
 * builds. So `npm start` and `npm test` need no preparation. Uses only Node's own modules, since no
 * package may be installed yet.
 *
 *   node scripts/ensure-built.js [--install-only]
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Checked before the installation: npm only warns, and the compiler and the tests would fail
// without a reason. An old Node must be able to parse this file, so it uses the syntax and imports
// of Node 14.
const [major, minor] = process.versions.node.split('.').map(Number);
const isNodeNewEnough = major > 22 || (major === 22 && minor >= 2) || (major === 20 && minor >= 19);
if (!isNodeNewEnough) {
  console.error(
    `tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node ${process.versions.node}: install a newer one, for example from https://nodejs.org.`,
  );
  process.exit(2);
}

const root = fileURLToPath(new URL('..', import.meta.url));
const lockfile = join(root, 'package-lock.json');
/**
 * The lockfile from which node_modules was installed, written after the installation: an
 * interrupted installation is repeated. npm's own record may be left from an earlier installation,
 * and modification times mislead, since git sets them at each checkout.
 */
const stamp = join(root, 'node_modules/.installed-from');

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function isInstalled() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash();
}

function lockHash() {
  return createHash('sha256').update(readFileSync(lockfile)).digest('hex');
}

/**
 * Runs a command to its end. Passes a signal on to the command: an installation that continues
 * would block the next one.
 */
async function run(command, args, what) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  const pass = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  const [status, error] = await new Promise((resolve) => {
    child.on('error', (reason) => resolve([null, reason]));
    child.on('close', (code) => resolve([code]));
  });
  for (const signal of signals) process.off(signal, pass);
  if (status === 0) return;
  console.error(`${what} failed${error ? `: ${error.message}` : ''}. Run \`${[command, ...args].join(' ')}\` in ${root} to see more.`);
  process.exit(1);
}

if (!isInstalled()) {
  console.error('Installing the packages of package-lock.json (npm ci) ...');
  rmSync(stamp, { force: true });
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], 'The installation');
  writeFileSync(stamp, lockHash());
}
if (!process.argv.includes('--install-only')) {
  // The compiler finds out what is stale; if nothing is, it takes a third of a second.
  await run(process.execPath, [join('node_modules', 'typescript-7', 'bin', 'tsc'), '-b'], 'The build');
}
