/**
 * The rules of scripts/pack.js, check-packed.js and install-packages.js. `npm run check` and `npm run newcomer`
 * apply them to the packages.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stagedManifest, withAbsoluteLinks, withSiblings } from '../scripts/pack.js';
import { chosen } from '../scripts/install-packages.js';
import { missingFrom, needlessFiles } from '../scripts/check-packed.js';
import { commandsOf, firstExample, sectionOf, withProject, withServer, outputPattern } from '../scripts/doc-pages.js';
import { publicPackages, root } from '../scripts/public-packages.js';

const workspace = {
  homepage: 'https://example.org/keeper',
  bugs: 'https://example.org/keeper/issues',
  repository: { type: 'git', url: 'git+https://example.org/keeper.git' },
};
const source = {
  name: '@k/client',
  version: '1.0.0',
  description: 'A client.',
  keywords: ['k'],
  license: 'Apache-2.0',
  type: 'module',
  exports: { '.': { 'tskeeper-source': './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' } },
  dependencies: { '@k/protocol': '1.0.0' },
  devDependencies: { '@k/testing': '1.0.0' },
  scripts: { test: 'x' },
  buildDate: '2026-01-31',
  engines: { node: '>=20' },
};
const manifest = stagedManifest(source, 'client', workspace);
const files = ['LICENSE', 'README.md', 'package.json', 'dist/index.js', 'dist/index.d.ts'];
const readme = '# Client\n\n[Guide](https://example.org/guide.md), [below](#below)\n\n```\n[x](y)\n```\n';
const complete = { manifest, files, readme };

const without = (field: string): object => Object.fromEntries(Object.entries(manifest).filter(([name]) => name !== field));

describe('the check of packed packages', () => {
  it('finds files that only the developers of a package use', () => {
    const needless = ['dist/.tsbuildinfo', 'dist/index.js.map', 'test/a.ts', 'src/a.ts', 'src/a.test.ts', 'tsconfig.json'];
    expect(needlessFiles(['dist/index.js', 'dist/testing.d.ts', ...needless])).toEqual(needless);
  });

  it('finds a package without its licence, its README or its build', () => {
    expect(missingFrom(complete)).toEqual([]);
    for (const file of files)
      expect(missingFrom({ ...complete, files: files.filter((each) => each !== file) })).toEqual([`${file} is missing`]);
  });

  it('finds a manifest without a field that a registry shows', () => {
    for (const field of ['description', 'keywords', 'license', 'homepage', 'bugs', 'repository', 'engines', 'exports', 'type'])
      expect(missingFrom({ ...complete, manifest: without(field) })).toEqual([`package.json has no ${field}`]);
    expect(missingFrom({ ...complete, manifest: { ...manifest, keywords: [] } })).toEqual(['package.json has no keywords']);
    expect(missingFrom({ ...complete, manifest: { ...manifest, repository: workspace.repository } })).toEqual([
      'repository in package.json has no directory',
    ]);
  });

  it('finds a link to a page that is not in the package', () => {
    expect(missingFrom({ ...complete, readme: `${readme}[Guide](../../docs/guide.md#a)` })).toEqual([
      'README.md links to ../../docs/guide.md#a, which is not in the package',
    ]);
  });
});

describe('a packed package', () => {
  it('has a manifest without the fields for the repository only', () => {
    expect(manifest).toEqual({
      name: '@k/client',
      version: '1.0.0',
      description: 'A client.',
      keywords: ['k'],
      license: 'Apache-2.0',
      type: 'module',
      exports: { '.': { types: './dist/index.d.ts', default: './dist/index.js' } },
      dependencies: { '@k/protocol': '1.0.0' },
      buildDate: '2026-01-31',
      engines: { node: '>=20' },
      homepage: 'https://example.org/keeper/tree/HEAD/packages/client#readme',
      bugs: 'https://example.org/keeper/issues',
      repository: { type: 'git', url: 'git+https://example.org/keeper.git', directory: 'packages/client' },
    });
  });

  it('has a README whose links work outside of the repository', () => {
    const page = '[a](../../docs/a.md#b) [`c`](src/c.ts), [d](#d) [e](https://e.org)\n```\n[f](g)\n```\n';
    expect(withAbsoluteLinks(page, 'packages/client', workspace.homepage)).toBe(
      '[a](https://example.org/keeper/blob/HEAD/docs/a.md#b) [`c`](https://example.org/keeper/blob/HEAD/packages/client/src/c.ts), ' +
        '[d](#d) [e](https://e.org)\n```\n[f](g)\n```\n',
    );
  });
});

describe('npm run packages', () => {
  const all = publicPackages().map(({ name, manifest: each }) => ({ folder: name, name: each.name, manifest: each }));
  const foldersOf = (names: string[]): string[] => chosen(all, names).map(({ folder }: { folder: string }) => folder);

  it('installs all packages, or the named ones and those they need', () => {
    expect(foldersOf([])).toEqual(all.map(({ folder }) => folder));
    expect(foldersOf(['client'])).toEqual(['client', 'protocol']);
    expect(foldersOf(['@tskeeper/recipes'])).toEqual(['client', 'protocol', 'recipes']);
    expect(foldersOf(['tskeeper'])).toContain('server');
    expect(withSiblings(all, [])).toEqual([]);
  });

  it('lists the packages when a named one does not exist', () => {
    expect(() => foldersOf(['clients'])).toThrow(/^Unknown package clients\. Packages are: .*\bclient, /);
  });

  it('appears on pages only with names of packages that exist', () => {
    const folders = ['.', 'docs/guides', ...publicPackages().map(({ name }) => `packages/${name}`)];
    const pages = folders.flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(root, folder, name)));
    const commands = pages
      .filter((path) => path.endsWith('.md'))
      .flatMap((path) => [...readFileSync(path, 'utf8').matchAll(/npm run packages -- \.\.\/my-app((?: [\w-]+)*)/g)])
      .map(([, names]) => names!.split(' ').filter((name) => name !== '' && !name.startsWith('--')));
    expect(commands.length).toBeGreaterThan(8);
    for (const names of commands) expect(foldersOf(names)).not.toEqual([]);
    expect(pages.filter((path) => path.endsWith('.md') && /npm install (?:-\S+ )*@?tskeeper/.test(readFileSync(path, 'utf8')))).toEqual([]);
  });
});

describe('npm run newcomer', () => {
  const shown =
    '# A\n\n## Tour\n\n```console\n$ one --a  # why\n1\n...\n4 of 5\n$ two ../my-app 127.0.0.1:2181\n```\n\n## Next\n\n```js\nx();\n```\n';

  it('extracts the commands and their output from a page', () => {
    const section = sectionOf(shown, 'Tour');
    expect(section).not.toContain('x();');
    expect(commandsOf(firstExample(section, 'console'))).toEqual([
      { command: 'one --a', printed: '1\n...\n4 of 5\n' },
      { command: 'two ../my-app 127.0.0.1:2181', printed: '' },
    ]);
    expect(withServer(withProject('two ../my-app 127.0.0.1:2181; nc 127.0.0.1 2181', '/p'), 7)).toBe('two /p 127.0.0.1:7; nc 127.0.0.1 7');
    expect(() => sectionOf(shown, 'Install')).toThrow('the page has no section "Install"');
    expect(() => firstExample(shown, 'ts')).toThrow('the page shows no ```ts');
  });

  it('compares the output of a command with the page, line by line', () => {
    const pattern = outputPattern('1\n...\n4 of ...\n');
    for (const printed of ['1\n2\n3\n4 of 5\n', '1\n4 of 9\n']) expect(printed).toMatch(pattern);
    for (const printed of ['1\n2\n', '4 of 5\n', '1\n2\n4 of 5\nmore\n', '']) expect(printed).not.toMatch(pattern);
    expect('a.b\n').toMatch(outputPattern('a.b'));
    expect('axb\n').not.toMatch(outputPattern('a.b'));
  });
});
