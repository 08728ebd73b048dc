#!/usr/bin/env node
/**
 * Makes a fresh clone ready: installs what package-lock.json names when that has not been done, and builds. So `npm start` and `npm test`
 * need nothing done before. Uses Node's own modules only, since nothing else may be there yet.
 *
 *   node scripts/ensure-built.js [--install-only]
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Before anything is installed: npm only warns, and the compiler and the tests would fail without saying why. An old Node has to be able to read this
// file, so its syntax and its imports are those of Node 14.
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
 * The lockfile that node_modules were installed from, written behind the installation: so one that was killed is made anew. npm's own record may be left from an
 * installation before, and times mislead, since git sets them anew at each checkout.
 */
const stamp = join(root, 'node_modules/.installed-from');

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function isInstalled() {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash();
}

function lockHash() {
  return createHash('sha256').update(readFileSync(lockfile)).digest('hex');
}

/** Runs a command to its end. A signal to end goes to the command as well: an installation that goes on would be in the way of the next one. */
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
  console.error('Installing what package-lock.json names (npm ci) ...');
  rmSync(stamp, { force: true });
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], 'The installation');
  writeFileSync(stamp, lockHash());
}
if (!process.argv.includes('--install-only')) {
  // The compiler knows what is stale; when nothing is, it is done in a third of a second.
  await run(process.execPath, [join('node_modules', 'typescript-7', 'bin', 'tsc'), '-b'], 'The build');
}
