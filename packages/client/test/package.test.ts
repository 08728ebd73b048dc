/**
 * The package as it is installed and bundled: without a compiler or a script, and with no more code
 * than a program uses.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

it('B30, D3: the package consists of ES modules, runs no install script, and needs nothing from outside this repository', () => {
  const seen: string[] = [];
  const look = (name: string): void => {
    seen.push(name);
    const folder = join(import.meta.dirname, '../..', name);
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({ type: 'module' });
    // One module has an effect when it is loaded: it rejects an old Node.
    const acting = {
      client: ['./src/node/node-version.ts', './dist/node/node-version.js'],
      // Its index only re-exports, so a bundler would omit it together with the check.
      protocol: ['./src/index.ts', './dist/index.js', './src/check-node-version.ts', './dist/check-node-version.js'],
    };
    expect(manifest.sideEffects).toEqual(acting[name as keyof typeof acting] ?? false);
    expect(manifest).not.toHaveProperty('scripts');
    expect(Object.values(manifest.peerDependenciesMeta ?? {}).every((meta) => (meta as { optional: boolean }).optional)).toBe(true);
    expect(Object.keys(manifest.peerDependencies ?? {})).toEqual(Object.keys(manifest.peerDependenciesMeta ?? {}));
    for (const dependency of Object.keys(manifest.dependencies ?? {})) {
      expect(dependency).toMatch(/^@tskeeper\//);
      look(dependency.replace('@tskeeper/', ''));
    }
  };
  look('client');
  expect(seen).toEqual(['client', 'protocol']);
});

interface Bundle {
  readonly files: readonly string[];
  readonly kilobytes: number;
  readonly gzippedKilobytes: number;
}

async function bundle(program: string): Promise<Bundle> {
  const { metafile, outputFiles } = await build({
    stdin: { contents: program, resolveDir: import.meta.dirname, loader: 'ts' },
    bundle: true,
    minify: true,
    metafile: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['tskeeper-source'],
    external: ['jks-js', 'kerberos'],
  });
  const [output] = Object.values(metafile.outputs);
  const files = Object.entries(output!.inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => path.replace(/^.*packages\//, ''))
    .filter((path) => path !== '<stdin>');
  const { contents } = outputFiles[0]!;
  return { files, kilobytes: contents.length / 1000, gzippedKilobytes: gzipSync(contents).length / 1000 };
}

const uses = (name: string, use: string) => `import { ${name} } from '@tskeeper/client';\nconsole.log(${use});`;

/** The validation of arguments. */
const checks = ['client/src/arguments.ts', 'client/src/call-signature.ts', 'protocol/src/edit-distance.ts'];

/** In every bundle: rejects an old Node. */
const always = ['client/src/node/node-version.ts', 'protocol/src/check-node-version.ts', 'protocol/src/node-version.ts'];

/** The files that each part needs. */
const parts: readonly [name: string, use: string, files: readonly string[]][] = [
  ['op', "op.create('/a', 'x')", ['client/src/operations/multi.ts', 'client/src/operations/op-signatures.ts', ...checks]],
  ['KeeperError', "KeeperError.is(1, 'NoNode')", ['client/src/keeper-error.ts', 'protocol/src/constants.ts', 'protocol/src/error-text.ts']],
  ['openAcl', 'openAcl', ['protocol/src/znode/acl.ts', 'protocol/src/constants.ts']],
  ['formatZxid', 'formatZxid(5n)', ['client/src/formats.ts', 'protocol/src/jute/numbers.ts', ...checks]],
  ['ErrorCode', 'ErrorCode.NoNode', ['protocol/src/constants.ts']],
  ['parseConnectString', "parseConnectString('a:2181')", ['client/src/connect-string.ts', 'protocol/src/znode/paths.ts', ...checks]],
];

it.each(parts)('a program that uses only %s bundles no session code', async (name, use, needed) => {
  const { files, kilobytes } = await bundle(uses(name, use));
  expect([...always, ...needed]).toEqual(expect.arrayContaining([...files]));
  expect(kilobytes).toBeLessThan(12);
});

it('a program that connects bundles the session code', async () => {
  const { files } = await bundle(uses('connect', 'await connect("a")'));
  expect(files).toContain('client/src/session/session-machine.ts');
});

it('a program that uses only the types bundles nothing', async () => {
  const { files } = await bundle("import type { Client } from '@tskeeper/client';\nexport const close = (zk: Client) => zk.close();");
  expect(files).toEqual([]);
});

it('the README states the sizes of a bundle', async () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const { kilobytes, gzippedKilobytes } = await bundle("export * from '@tskeeper/client';");
  const [, whole, gzipped] = /(\d+) kB minified, (\d+) kB of it over the wire with gzip/.exec(readme)!.map(Number);
  expect(Math.abs(whole! - kilobytes)).toBeLessThan(kilobytes * 0.1);
  expect(Math.abs(gzipped! - gzippedKilobytes)).toBeLessThan(gzippedKilobytes * 0.1);
});
