#!/usr/bin/env node
/**
 * npm run proofs: the proofs that take minutes, in the size for every submission. These variables
 * set other sizes:
 *
 *   TSKEEPER_CONFORMANCE_STREAMS   streams of 2,000 operations that the core and the reference model answer alike (110: 220,000)
 *   TSKEEPER_HOSTILE_RUNS          runs of 20,000 mutated frames against the core beside an honest client (20: 400,000)
 *   TSKEEPER_KILLS                 SIGKILLs of the real process under load, every acknowledged write read back (50)
 *   TSKEEPER_ATTACKS               hostile connections to the real process beside an honest client (20,000)
 *   TSKEEPER_LOCKSTEP_ACTIONS      operations that the real process and the reference model answer alike (15,000)
 *   TSKEEPER_CHAOS_KILLS           SIGKILLs of ensembles of real processes, in episodes with all other faults (8)
 *   TSKEEPER_CHAOS_WRITES          acknowledged writes that are read back from each server in these episodes (2,000)
 *   TSKEEPER_RECONNECTS            reconnects in memory during which a client's memory must not grow (40,000; by itself 100,000)
 *   TSKEEPER_SOCKET_RECONNECTS     the same over real sockets (2,000)
 *   TSKEEPER_WATCH_EVENTS          events during which it must not grow (400,000; by itself 1,000,000)
 *   TSKEEPER_SEED                  another seed than 1
 *
 * The long form of verification/hostile is `npm run test:hostile`.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const defaults = {
  TSKEEPER_CONFORMANCE_STREAMS: '110',
  TSKEEPER_HOSTILE_RUNS: '20',
  TSKEEPER_RECONNECTS: '40000',
  TSKEEPER_WATCH_EVENTS: '400000',
};
const total = { passed: 0, failed: 0, skipped: 0 };

function prove(name, args) {
  const results = join(root, '.cache', `proofs-${name}.json`);
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(results, { force: true });
  const reporters = ['--reporter=verbose', '--reporter=json', `--outputFile=${results}`];
  const { status } = spawnSync('npx', ['vitest', 'run', ...args, ...reporters], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...defaults, ...process.env },
  });
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(results, 'utf8'));
    total.passed += numPassedTests;
    total.failed += numFailedTests;
    total.skipped += numPendingTests + numTodoTests;
    if (status !== 0 && numFailedTests === 0) total.failed++;
  } catch {
    total.failed++;
  }
}

/**
 * Attacks real servers, restarts them and cuts them off from each other: verification/hostile. Each
 * of its rows counts.
 */
function proveHostile() {
  const results = join(root, '.cache', 'proofs-hostile.json');
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(results, { force: true });
  const args = ['--import', './verification/hostile/typescript.js', 'verification/hostile/main.ts', '--bounded', '--json', results];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  try {
    const verdicts = JSON.parse(readFileSync(results, 'utf8')).map(({ verdict }) => verdict);
    const passed = verdicts.filter((verdict) => verdict === 'ok').length;
    total.passed += passed;
    total.failed += verdicts.length - passed;
    if (status !== 0 && passed === verdicts.length) total.failed++;
  } catch {
    total.failed++;
  }
}

prove('model', ['--mode', 'proofs', '--project', 'unit', 'verification/model/']);
prove('process', ['--config', 'verification/processes/vitest.config.ts']);
prove('chaos', ['--config', 'verification/chaos/vitest.config.ts']);
proveHostile();
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 ? 0 : 1;
