import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../scripts/ensure-built.js', import.meta.url));

/**
 * Acts as npm does: removes what was there and writes its own record early; `NPM_ENDS` says how it
 * ends.
 */
const npm = `#!/bin/sh
echo npm "$@" >> calls
rm -rf node_modules
mkdir node_modules
echo '{}' > node_modules/.package-lock.json
if [ "$NPM_ENDS" = killed ]; then kill -KILL $$; fi
if [ "$NPM_ENDS" = never ]; then
  echo $$ > pid
  while :; do sleep 0.1; done
fi
`;

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tskeeper-clone-'));
  mkdirSync(join(root, 'scripts'));
  mkdirSync(join(root, 'bin'));
  cpSync(script, join(root, 'scripts', 'ensure-built.js'));
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(root, 'package-lock.json'), '{}');
  writeFileSync(join(root, 'bin', 'npm'), npm);
  chmodSync(join(root, 'bin', 'npm'), 0o755);
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

const environment = (npmEnds: string) => ({
  ...process.env,
  PATH: [join(root, 'bin'), process.env['PATH']].join(delimiter),
  NPM_ENDS: npmEnds,
});
const command = () => [join(root, 'scripts', 'ensure-built.js'), '--install-only'];

/** Its exit code. */
function install(npmEnds = 'well'): number | null {
  return spawnSync(process.execPath, command(), { cwd: root, env: environment(npmEnds) }).status;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const installations = (): number =>
  existsSync(join(root, 'calls')) ? readFileSync(join(root, 'calls'), 'utf8').split('\n').length - 1 : 0;

// The npm of this test is a script that a shell must find.
describe.skipIf(process.platform === 'win32')('the preparation of a clone', () => {
  it('installs once, and again for another lockfile', () => {
    expect([install(), installations()]).toEqual([0, 1]);
    expect([install(), installations()]).toEqual([0, 1]);
    writeFileSync(join(root, 'package-lock.json'), '{ }');
    expect([install(), installations()]).toEqual([0, 2]);
  });

  it('installs again after a killed installation, however far it came', () => {
    expect([install('killed'), installations()]).toEqual([1, 1]);
    expect(existsSync(join(root, 'node_modules', '.package-lock.json'))).toBe(true);
    expect([install(), installations()]).toEqual([0, 2]);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends npm when it is ended by %s, so that no installation runs beside the next one',
    async (signal) => {
      const installing = spawn(process.execPath, command(), { cwd: root, env: environment('never'), stdio: 'ignore' });
      const pidFile = join(root, 'pid');
      await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n')).toBe(true);
      const pid = Number(readFileSync(pidFile, 'utf8'));
      try {
        const ended = once(installing, 'exit');
        installing.kill(signal);
        expect(await ended).not.toEqual([0, null]);
        expect(isAlive(pid)).toBe(false);
      } finally {
        if (isAlive(pid)) process.kill(pid, 'SIGKILL');
      }
      expect([install(), installations()]).toEqual([0, 2]);
    },
  );
});
