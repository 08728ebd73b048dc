import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const script = fileURLToPath(new URL('../scripts/ensure-built.js', import.meta.url));

/** As npm: what was there goes, its own record comes early, and what is named by `NPM_ENDS` becomes of it. */
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

// The npm of this test is a script that a shell finds.
describe.skipIf(process.platform === 'win32')('what makes a clone ready', () => {
  it('installs once, and again when another lockfile is there', () => {
    expect([install(), installations()]).toEqual([0, 1]);
    expect([install(), installations()]).toEqual([0, 1]);
    writeFileSync(join(root, 'package-lock.json'), '{ }');
    expect([install(), installations()]).toEqual([0, 2]);
  });

  it('installs again after an installation that was killed, however much of it is there', () => {
    expect([install('killed'), installations()]).toEqual([1, 1]);
    expect(existsSync(join(root, 'node_modules', '.package-lock.json'))).toBe(true);
    expect([install(), installations()]).toEqual([0, 2]);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'takes npm along when it is ended by %s, so that no installation goes on beside the next',
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
