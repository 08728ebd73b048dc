/**
 * Runs the real command in its own process. It runs the build, so the build is brought up to date
 * first.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

export const bin: string = join(root, 'packages/cli/bin/tskeeper.js');

export function build(): void {
  const built = spawnSync(process.execPath, [join(root, 'node_modules/typescript-7/bin/tsc'), '-b'], { cwd: root, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`the build failed:\n${built.stdout}${built.stderr}`);
}
