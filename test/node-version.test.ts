/**
 * One range of Node versions: in the manifests, in the check of each program and package, and on
 * the pages.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeVersionError } from '@tskeeper/protocol/internal';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const range = '^20.19 || >=22.2';
const inRange = ['20.19.0', '20.20.2', '22.2.0', '22.12.0', '23.0.0', '24.1.0', '26.1.0'];
const outOfRange = ['0.12.18', '14.21.3', '18.20.8', '19.9.0', '20.0.0', '20.18.3', '21.7.3', '22.0.0', '22.1.0'];
const sentence = (version: string) =>
  `tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node ${version}: install a newer one, for example from https://nodejs.org.`;

/** Whether a version is in a range of this form: `^a.b || >=c.d`. */
function satisfies(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return range.split(' || ').some((part) => {
    const [, sign, atMajor, atMinor] = /^(\^|>=)(\d+)\.(\d+)$/.exec(part)!;
    if (major === Number(atMajor)) return minor >= Number(atMinor);
    return sign === '>=' && major > Number(atMajor);
  });
}

it('the manifest of each package has the range of supported Node versions', () => {
  const workspaces = ['packages', 'verification'].flatMap((folder) => readdirSync(join(root, folder)).map((name) => `${folder}/${name}`));
  const folders = ['.', 'examples', ...workspaces.filter((folder) => existsSync(join(root, folder, 'package.json')))];
  for (const folder of folders) {
    const { engines } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as { engines?: { node: string } };
    expect([folder, engines?.node]).toEqual([folder, range]);
  }
});

it('the packages accept exactly the range of supported Node versions', () => {
  for (const version of [...inRange, ...outOfRange]) {
    expect([version, nodeVersionError(version) === undefined]).toEqual([version, satisfies(version)]);
  }
  expect(inRange.filter((version) => !satisfies(version))).toEqual([]);
  expect(outOfRange.filter((version) => satisfies(version))).toEqual([]);
});

it.each(['packages/cli/bin/tskeeper.js', 'scripts/ensure-built.js'])('%s accepts exactly the range of supported Node versions', (path) => {
  const [, condition] =
    /^if \((major > .*)\) \{$|^const isNodeNewEnough = (.*);$/m.exec(readFileSync(join(root, path), 'utf8'))?.filter(Boolean) ?? [];
  for (const version of [...inRange, ...outOfRange]) {
    const [major, minor] = version.split('.').map(Number);
    // oxlint-disable-next-line no-implied-eval
    const accepts = new Function('major', 'minor', `return ${condition};`) as (...numbers: (number | undefined)[]) => boolean;
    expect([version, accepts(major, minor)]).toEqual([version, satisfies(version)]);
  }
});

describe('npm start and npm test in a clone', () => {
  it.each(['14.21.3', '18.20.8', '21.7.3', '22.1.0'])(
    'print on Node %s which versions they need, before anything is installed',
    (version) => {
      const folder = mkdtempSync(join(tmpdir(), 'tskeeper-old-'));
      try {
        const disguise = join(folder, 'disguise.cjs');
        writeFileSync(disguise, `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`);
        for (const [script, ...args] of [['ensure-built.js', '--install-only'], ['start.js']]) {
          const { status, stdout, stderr } = spawnSync(process.execPath, ['--require', disguise, join(root, 'scripts', script!), ...args], {
            encoding: 'utf8',
          });
          expect({ script, status, stdout, stderr }).toEqual({ script, status: 2, stdout: '', stderr: `${sentence(version)}\n` });
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  it('begin with files that Node 14 can parse', () => {
    for (const script of ['start.js', 'ensure-built.js']) {
      const text = readFileSync(join(root, 'scripts', script), 'utf8');
      // Each is a syntax error there, or a missing module or export, which is reported before the
      // first statement runs.
      expect(text).not.toMatch(
        /\?\?=|\|\|=|&&=|#\w+ in |static \{|\d_\d|\bcreateRequire\b|node:(test|util\/types|timers\/promises|fs\/promises)/,
      );
    }
  });
});

it.each(['README.md', 'CONTRIBUTING.md', 'docs/guides/first-steps.md', 'docs/reference/cli.md'])('%s names the Node versions', (path) => {
  expect(existsSync(join(root, path))).toBe(true);
  const text = readFileSync(join(root, path), 'utf8').replaceAll(/\s+/g, ' ');
  expect(text).toMatch(/Node 20\.19 or later in line 20, or (on )?22\.2 or later/);
});
