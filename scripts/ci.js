#!/usr/bin/env node
/**
 * The parts of `.ci/run` after the installation, in order; `npm run test:all` names those that need
 * no foreign program. A failed part does not stop the next ones. Each prints how many of its tests
 * passed, failed and were skipped; the last line is the sum. The failures are printed again before
 * it, so that the end of the output shows them all.
 *
 *   node scripts/ci.js [part ...]
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const results = join(root, '.cache/ci-tests.json');
const reporter = './scripts/test-reporter.js';
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/** A part runs an npm script, and parses its counts from the output. */
const parts = [
  { name: 'check', args: ['run', 'check'], count: countChecks },
  {
    name: 'test',
    // Everything of which `npm test` does a small part.
    args: ['test', '--', '--mode=full', `--reporter=${reporter}`, '--reporter=json', `--outputFile=${results}`],
    count: () => countTests(readFileSync(results, 'utf8')),
  },
  { name: 'newcomer', args: ['run', 'newcomer'], count: countLastLine },
  { name: 'proofs', args: ['run', 'proofs'], count: countLastLine },
  { name: 'sim:ci', args: ['run', 'sim:ci'], count: countLastLine },
  { name: 'sim:recipes', args: ['run', 'sim:recipes'], count: countLastLine },
  { name: 'interop', args: ['run', 'interop', '--', '--bounded'], count: countLastLine },
].filter(({ name }) => scripts[name] !== undefined);

/** @returns {Counts} */
function countChecks(output) {
  return { passed: matches(output, /^ok /gm), failed: matches(output, /^FAILED /gm), skipped: 0 };
}

/**
 * @param {string} report of vitest's reporter `json`
 * @returns {Counts}
 */
export function countTests(report) {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(report);
  return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests + numTodoTests };
}

/**
 * @param {string} output that ends with a line of counts
 * @returns {Counts}
 */
export function countLastLine(output) {
  const lines = [...output.matchAll(/^(\d+) passed, (\d+) failed, (\d+) skipped$/gm)];
  const [, passed, failed, skipped] = lines.at(-1) ?? [];
  if (passed === undefined) throw new Error('the output does not end with a line of counts');
  return { passed: Number(passed), failed: Number(failed), skipped: Number(skipped) };
}

/** Lines that report a failure: of vitest, the simulator, its mutants, the checks, interop. */
const failure = /^ *(?:FAIL |FAILED |× |✗ |AssertionError|Error: )|^seed \d+ failed|^ESCAPED|^escaped/;
const failureLinesMax = 40;

/**
 * The lines that report a failure, each with the two lines after it.
 *
 * @param {string} output
 * @returns {string[]}
 */
export function failuresIn(output) {
  const lines = stripVTControlCharacters(output).split('\n');
  const wanted = new Set();
  for (const [at, line] of lines.entries()) if (failure.test(line)) for (const next of [at, at + 1, at + 2]) wanted.add(next);
  return [...wanted].flatMap((at) => (lines[at]?.trim() ? [lines[at].slice(0, 300)] : [])).slice(0, failureLinesMax);
}

function matches(text, pattern) {
  return [...text.matchAll(pattern)].length;
}

function run(args) {
  return new Promise((resolve) => {
    const child = spawn('npm', args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (bytes) => {
        output += bytes;
        process.stdout.write(bytes);
      });
    }
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (code) => resolve({ ok: code === 0, output }));
  });
}

async function main(wanted) {
  const unknown = wanted.filter((name) => !parts.some((part) => part.name === name));
  if (unknown.length > 0) {
    console.error(`Unknown part: ${unknown.join(', ')}. Parts are: ${parts.map(({ name }) => name).join(', ')}.`);
    process.exit(2);
  }
  rmSync(results, { force: true });
  mkdirSync(join(root, '.cache'), { recursive: true });
  const total = { passed: 0, failed: 0, skipped: 0 };
  const summary = [];
  const failures = [];
  for (const { name, args, count } of parts.filter((part) => wanted.length === 0 || wanted.includes(part.name))) {
    const begun = performance.now();
    const { ok, output } = await run(args);
    const counts = { passed: 0, failed: 0, skipped: 0 };
    try {
      Object.assign(counts, count(output));
    } catch (error) {
      console.log(`${name}: cannot count its tests: ${error.message}`);
      counts.failed++;
    }
    // A suite that cannot be loaded fails without a failed test.
    if (!ok && counts.failed === 0) counts.failed = 1;
    for (const kind of Object.keys(total)) total[kind] += counts[kind];
    if (counts.failed > 0) failures.push(`in ${name}:`, ...failuresIn(output), '');
    const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(7);
    summary.push(`${ok && counts.failed === 0 ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}: ${describe(counts)}`);
  }
  if (failures.length > 0) console.log(`\nWhat failed\n\n${failures.join('\n')}`);
  console.log(`\n${summary.join('\n')}\n${describe(total)}`);
  process.exitCode = total.failed === 0 ? 0 : 1;
}

function describe({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
