/**
 * A Node version that is too old is rejected in one sentence, whichever package is loaded first.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeVersionError } from '@tskeeper/protocol/internal';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bundle } from '../support/bundle.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-node-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

it.each(['0.12.18', '18.20.8', '20.18.3', '21.7.3', '22.1.0'])('Node %s is rejected as too old', (version) => {
  expect(nodeVersionError(version)).toBe(
    `tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node ${version}: install a newer one, for example from https://nodejs.org.`,
  );
});

it.each(['20.19.0', '20.20.1', '22.2.0', '26.1.0-nightly'])('Node %s is accepted', (version) => {
  expect(nodeVersionError(version)).toBe(undefined);
});

it.each(['protocol', 'client', 'server'])('%s rejects an old Node when it is loaded', async (name) => {
  const file = await bundle(`export * from '@tskeeper/${name}';`, join(folder, `${name}.mjs`));
  const pretend = "data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '18.20.8' })";
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, ['--import', pretend, file], (_error, _stdout, stderr) => resolve(stderr));
  });
  expect(output).toContain('Error: tskeeper needs Node 20.19 or later in line 20, or 22.2 or later. This is Node 18.20.8');
});

it('no module imports a name that an old Node lacks, as that import would fail first', () => {
  const packages = join(import.meta.dirname, '../../..');
  for (const name of ['protocol', 'client', 'recipes', 'core', 'runtime', 'server', 'testing', 'cli']) {
    for (const file of readdirSync(join(packages, name, 'src'), { recursive: true, encoding: 'utf8' }).filter((each) =>
      each.endsWith('.ts'),
    )) {
      const source = readFileSync(join(packages, name, 'src', file), 'utf8');
      expect(/import \{[^}]*\bcrc32\b[^}]*\} from 'node:zlib'/.test(source) ? `${name}/src/${file}` : undefined).toBe(undefined);
    }
  }
});
