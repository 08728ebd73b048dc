import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, silentLogger } from '@tskeeper/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fileOracle } from '../src/oracle-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-oracle-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

it('A57: the oracle says yes while its file begins with 1, and no with any other content', async () => {
  const path = join(folder, 'oracle');
  const ask = fileOracle(path, silentLogger);
  for (const [text, answer] of [
    ['1', true],
    ['1\n', true],
    ['0', false],
    ['', false],
    ['true', false],
    ['1 is not what it says', true],
  ] as const) {
    writeFileSync(path, text);
    expect([text, await ask()]).toEqual([text, answer]);
  }
});

it('the oracle says no while its file cannot be read, and logs each such period once', async () => {
  const lines: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (line) => lines.push(line) };
  const path = join(folder, 'oracle');
  const ask = fileOracle(path, logger);
  expect([await ask(), await ask()]).toEqual([false, false]);
  expect(lines).toEqual([`oraclePath: ${path} cannot be read (ENOENT), which counts as no. Let this user read the file.`]);
  writeFileSync(path, '1');
  expect(await ask()).toBe(true);
  rmSync(path);
  expect(await ask()).toBe(false);
  expect(lines).toHaveLength(2);
});
