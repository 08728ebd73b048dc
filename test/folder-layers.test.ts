/**
 * Inside a package folders form layers, as packages do: a reader follows a request downwards, and
 * is not sent back up. If two folders import each other, a type stands in the wrong one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * The folders of src, lowest first: a folder imports from itself and from those before it. A folder
 * within one has a line of its own where it stands elsewhere.
 *
 * A file directly in src stands with the highest folder that it imports, itself or by way of other
 * such files: `core/src/now.ts` below all folders, `core/src/server.ts` with `request`. Folders
 * above may import it.
 *
 * Imports of types count too: what a file must know to be read is what counts here, not what runs.
 */
const layers: Readonly<Record<string, readonly string[]>> = {
  protocol: ['jute', 'znode', 'auth', 'client', 'ensemble', 'disk'],
  core: ['tables', 'tree', 'snapshot', 'auth', 'session', 'pending', 'cnxn', 'request', 'quorum', 'election', 'zab', 'roles'],
  runtime: ['storage', 'ports', 'ports/client', 'ports/election', 'ports/learner', 'metrics', 'ports/four-letter-words', 'virtual'],
  client: ['auth', 'watches', 'operations', 'session', 'calls', 'view', 'ensemble', 'node'],
  recipes: [
    'waiting',
    'sessions',
    'codecs',
    'markers',
    'wait-queue',
    'nodes',
    'caches',
    'barriers',
    'elections',
    'events',
    'leases',
    'locks',
    'queues',
    'transactions',
    'values',
    'models',
    'groups',
    'discovery',
  ],
};

interface Source {
  /** Below src: `tree/data-tree.ts`. */
  readonly path: string;
  readonly text: string;
}

const below = -1;

/** The relative imports and re-exports of a file, as paths below src. */
function importsOf({ path, text }: Source): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '');
  return [...code.matchAll(/(?:\bfrom|^import|\bimport\()\s*'(\.[^']+)'/gm)].map(([, name]) => posix.join(posix.dirname(path), name!));
}

/** The complaints about the imports of one package. */
function importsUpward(name: string, order: readonly string[], sources: readonly Source[]): string[] {
  const byPath = new Map(sources.map((source) => [source.path, source]));
  /** The entry of the list that a path belongs to: the longest one that it lies in. */
  const folderOf = (path: string): string | undefined =>
    order.filter((folder) => path.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)[0];

  /** Of a file directly in src: the highest folder that it leads to, and the files on the way. */
  const highest = (path: string, seen: Set<string>): { readonly at: number; readonly way: readonly string[] } => {
    let found = { at: below, way: [] as readonly string[] };
    if (seen.has(path)) return found;
    seen.add(path);
    for (const target of importsOf(byPath.get(path) ?? { path, text: '' })) {
      const next = target.includes('/') ? { at: order.indexOf(folderOf(target) ?? ''), way: [] } : highest(target, seen);
      if (next.at > found.at) found = { at: next.at, way: [target, ...next.way] };
    }
    return found;
  };

  const complaints: string[] = [];
  for (const source of sources) {
    const { path } = source;
    if (!path.includes('/')) continue;
    const own = folderOf(path);
    if (own === undefined) {
      complaints.push(`${name}/${path}: its folder has no place among the layers; add it to the list in test/folder-layers.test.ts`);
      continue;
    }
    for (const target of importsOf(source)) {
      const { at, way } = target.includes('/') ? { at: order.indexOf(folderOf(target) ?? ''), way: [] } : highest(target, new Set());
      if (at <= order.indexOf(own)) continue;
      const by = way.length === 0 ? '' : `, which leads to ${way.join(', ')}`;
      complaints.push(
        `${name}/${path} imports ${target}${by}: the folder ${own} stands below ${order[at]}. ` +
          `Move what ${own} needs of it into ${own} or below, or move ${posix.basename(path)} into ${order[at]} or above.`,
      );
    }
  }
  return complaints;
}

function sourcesOf(name: string): Source[] {
  const src = join(root, 'packages', name, 'src');
  return readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => ({ path: path.replaceAll('\\', '/'), text: readFileSync(join(src, path), 'utf8') }));
}

describe('folders', () => {
  const order = ['low', 'high', 'high/top'];
  const complaintsOf = (files: Readonly<Record<string, string>>) =>
    importsUpward(
      'core',
      order,
      Object.entries(files).map(([path, text]) => ({ path, text })),
    );

  it('that import from a higher one are reported, with the import, both folders and what to do', () => {
    expect(complaintsOf({ 'low/a.ts': "import type { B } from '../high/b.ts';", 'high/b.ts': '' })).toEqual([
      'core/low/a.ts imports high/b.ts: the folder low stands below high. ' +
        'Move what low needs of it into low or below, or move a.ts into high or above.',
    ]);
    for (const text of ["export * from './top/c.ts';", "const c = await import('./top/c.ts');", "import './top/c.ts';"])
      expect(complaintsOf({ 'high/b.ts': text, 'high/top/c.ts': '' }), text).toHaveLength(1);
  });

  it('that import from a higher one by way of a file in src are reported too', () => {
    const files = { 'low/a.ts': "import { s } from '../s.ts';", 's.ts': "export * from './t.ts';", 't.ts': "export * from './high/b.ts';" };
    expect(complaintsOf({ ...files, 'high/b.ts': '' })).toEqual([
      'core/low/a.ts imports s.ts, which leads to t.ts, high/b.ts: the folder low stands below high. ' +
        'Move what low needs of it into low or below, or move a.ts into high or above.',
    ]);
  });

  it('that are not on the list are reported', () => {
    expect(complaintsOf({ 'middle/a.ts': '' })).toEqual([
      'core/middle/a.ts: its folder has no place among the layers; add it to the list in test/folder-layers.test.ts',
    ]);
  });

  it('that import from themselves, from lower ones, and by way of files in src from these, are not reported', () => {
    const text = "import '../low/a.ts';\nimport '../s.ts';\nimport './d.ts';\n/** import '../high/top/c.ts' */";
    expect(
      complaintsOf({
        'high/b.ts': text,
        'high/d.ts': '',
        's.ts': "import './high/d.ts';",
        'low/a.ts': "import '../now.ts';",
        'now.ts': '',
      }),
    ).toEqual([]);
  });

  it.each(Object.entries(layers))('of %s form layers', (name, folders) => {
    const sources = sourcesOf(name);
    expect(importsUpward(name, folders, sources)).toEqual([]);
    expect(folders.filter((folder) => !sources.some(({ path }) => path.startsWith(`${folder}/`)))).toEqual([]);
  });
});
