#!/usr/bin/env node
/**
 * `npm run check`: checks the sources without running the product. Runs all parts, prints the
 * failed ones and how long each took, and fails if one failed.
 *
 *   node scripts/check.js [part ...]
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const tool = (...path) => join('node_modules', ...path);

const parts = [
  ['build', tool('typescript-7', 'bin', 'tsc'), '-b'],
  ['types of tests', tool('typescript-7', 'bin', 'tsc'), '-p', 'tsconfig.test.json'],
  ['format', tool('oxfmt', 'bin', 'oxfmt'), '--check'],
  ['lint', tool('oxlint', 'bin', 'oxlint'), '--type-aware', '--deny-warnings'],
  [
    'boundaries',
    tool('dependency-cruiser', 'bin', 'dependency-cruise.mjs'),
    '--config',
    '.dependency-cruiser.mjs',
    'packages',
    'verification',
    'test',
  ],
  ['dead code', tool('knip', 'bin', 'knip.js'), '--no-config-hints', '--no-progress'],
  ['public API', join('scripts', 'public-api.js')],
  ['packed packages', join('scripts', 'check-packed.js')],
  ['tidy', tool('vitest', 'vitest.mjs'), 'run', '--project', 'unit', 'test/tidy.test.ts', 'test/folder-layers.test.ts'],
];

function run([, script, ...args]) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (output += text));
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (code) => resolve({ ok: code === 0, output }));
  });
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !parts.some((part) => part[0] === name));
if (unknown.length > 0) {
  console.error(`Unknown part: ${unknown.join(', ')}. Parts are: ${parts.map(([name]) => name).join(', ')}.`);
  process.exit(2);
}

let failed = 0;
for (const part of parts.filter(([name]) => wanted.length === 0 || wanted.includes(name))) {
  const begun = performance.now();
  const { ok, output } = await run(part);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1).padStart(6);
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${seconds} s  ${part[0]}`);
  if (!ok) {
    failed++;
    console.log(output.trimEnd().replaceAll(/^/gm, '    '));
  }
}
process.exitCode = failed === 0 ? 0 : 1;
