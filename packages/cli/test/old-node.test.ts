/** The command on versions of Node that cannot run it. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { exitCodes } from '../src/index.ts';
import { bin } from './support/built.ts';
import { temporaryFolder } from './support/tool.ts';

/**
 * Starts the command in a process that pretends to be another version of Node and fails if a module
 * is loaded.
 */
function startedAs(version: string) {
  using folder = temporaryFolder();
  const disguise = join(folder.path, 'disguise.cjs');
  writeFileSync(disguise, `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`);
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--require', disguise, bin, '--version'], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

it.each(['4.9.1', '18.20.8', '20.18.3', '21.7.3', '22.1.0'])('tskeeper on Node %s prints the required versions in one line', (version) => {
  expect(startedAs(version)).toEqual({
    status: exitCodes.refused,
    stdout: '',
    stderr: `tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node ${version}: install a newer one, for example from https://nodejs.org.\n`,
  });
});

it('an old Node can parse the first file of the command: no import before the version check, and no newer syntax', () => {
  const text = readFileSync(bin, 'utf8');
  expect(text).not.toMatch(/^import |\bawait\b|\?\.|\?\?/m);
  expect(text.indexOf('import(')).toBeGreaterThan(text.indexOf('process.versions'));
});
