/** The output of `npm test`, and how `.ci/run` parses it. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { countLastLine, countTests, failuresIn } from '../scripts/ci.js';

const root = fileURLToPath(new URL('..', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-reporter-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Runs these files with the reporter, and with vitest's JSON reporter. */
function run(files: Readonly<Record<string, string>>): { readonly output: string; readonly lines: string[]; readonly report: string } {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const vitest = join(root, 'node_modules/vitest/vitest.mjs');
  const reporters = [
    `--reporter=${join(root, 'scripts/test-reporter.js')}`,
    '--reporter=json',
    `--outputFile=${join(folder, 'report.json')}`,
  ];
  const options = ['run', '--globals', '--silent=passed-only', '--root', folder, ...reporters];
  const env = { ...process.env, CI: '', NO_COLOR: '1', VITEST: undefined, VITEST_MODE: undefined };
  const { stdout, stderr } = spawnSync(process.execPath, [vitest, ...options], { cwd: folder, env, encoding: 'utf8' });
  const output = stripVTControlCharacters(stdout + stderr);
  return { output, lines: output.split('\n'), report: join(folder, 'report.json') };
}

describe('the report of the tests', () => {
  it('has a line for each package and one for all, and no output of passing tests', () => {
    const passing = "it('one', () => { console.log('chatter'); }); it('two', () => {}); it.skip('three', () => {});";
    const { lines } = run({ 'packages/a/test/x.test.ts': passing, 'packages/a/test/y.test.ts': passing, 'test/z.test.ts': passing });
    expect(lines.filter((line) => line.includes('passed')).map((line) => line.replaceAll(/ +[\d.]+ s\b/g, ' S'))).toEqual([
      ' ✓ packages/a     4 passed S, 2 skipped',
      ' ✓ test           2 passed S, 1 skipped',
      '6 passed, 0 failed, 3 skipped in 3 files, S',
    ]);
    expect(lines.length).toBeLessThan(15);
    expect(lines.join('\n')).not.toContain('chatter');
  });

  it('has the place, the message and the output of each failed test, and of a file that cannot be loaded', () => {
    const failing =
      "describe('a', () => {\n  it('b', () => {\n    console.log('a clue');\n    expect({ n: 1 }).toEqual({ n: 2 });\n  });\n});\n";
    const { output, report } = run({
      'packages/a/test/x.test.ts': failing,
      'packages/b/test/y.test.ts': "it('never runs', () => {});\nthrow new Error('no way in');\n",
    });
    for (const part of [
      'packages/a/test/x.test.ts > a > b',
      'a clue',
      '+   "n": 1,',
      '-   "n": 2,',
      'packages/a/test/x.test.ts:4',
      'no way in',
    ]) {
      expect(output).toContain(part);
    }
    expect(output).toMatch(/^ ! packages\/a +0 passed .* 1 FAILED$/m);
    expect(output).toMatch(/^ ! packages\/b +0 passed .* 1 FAILED$/m);
    expect(output).toMatch(/^0 passed, 2 failed, 0 skipped in 2 files/m);
    // What .ci/run reads from it.
    expect(failuresIn(output)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/FAIL .*packages\/a\/test\/x\.test\.ts > a > b/),
        expect.stringContaining('expected { n: 1 } to deeply equal { n: 2 }'),
        expect.stringContaining('no way in'),
      ]),
    );
    expect(countTests(readFileSync(report, 'utf8'))).toEqual({ passed: 0, failed: 1, skipped: 0 });
  });

  it('ends with a line of counts when it belongs to a part of .ci/run', () => {
    expect(countLastLine('1 passed, 0 failed, 0 skipped\nmore\n12 passed, 3 failed, 4 skipped\n')).toEqual({
      passed: 12,
      failed: 3,
      skipped: 4,
    });
    expect(() => countLastLine('killed')).toThrow('line of counts');
  });
});
