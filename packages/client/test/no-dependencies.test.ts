/** B30: what the package needs for installation and at run time. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

const packages = fileURLToPath(new URL('../../', import.meta.url));
const manifestOf = (name: string): Manifest => JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')) as Manifest;

it('B30: the client and its dependencies depend on nothing outside this repository, and installation builds nothing', () => {
  const client = manifestOf('client');
  expect(Object.keys(client.dependencies ?? {})).toEqual(['@tskeeper/protocol']);
  expect(manifestOf('protocol').dependencies ?? {}).toEqual({});
  for (const name of Object.keys(client.peerDependencies ?? {})) expect(client.peerDependenciesMeta?.[name]?.optional).toBe(true);
  for (const { scripts = {} } of [client, manifestOf('protocol')]) {
    expect(Object.keys(scripts).filter((script) => /install|prepare/.test(script))).toEqual([]);
  }
});

it('B30: importing the client loads no other package', () => {
  for (const name of ['client', 'protocol']) {
    const folder = join(packages, name, 'src');
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((each) => each.endsWith('.ts'))) {
      const source = readFileSync(join(folder, file), 'utf8');
      const loaded = [...source.matchAll(/^(?:import|export)\b(?! type\b)[^;]*?\bfrom '([^']+)'/gm)].map(([, from]) => from!);
      const foreign = loaded.filter(
        (from) => !from.startsWith('.') && !from.startsWith('node:') && !/^@tskeeper\/protocol(?:\/internal)?$/.test(from),
      );
      expect([file, foreign]).toEqual([file, []]);
    }
  }
});
