/**
 * Compares docs/internals/properties.md and docs/internals/faults.md with the code, in both
 * directions: every id that sources, tests or other pages cite has a row or is listed as not built,
 * and code cites every row. The columns of checkers, mutants, canaries and injectors are generated:
 * `npm run golden -- --write` writes them again.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkers } from '../verification/simulator/src/checkers/checkers.ts';
import { faults } from '../verification/simulator/src/faults/faults.ts';
import { mutants } from '../verification/simulator/src/mutants/mutants.ts';
import { recipeFaults } from '../verification/simulator/src/recipes/recipe-faults.ts';
import { faults as chaosFaults } from '../verification/chaos/faults.ts';

const root = join(import.meta.dirname, '..');
const propertiesPage = 'docs/internals/properties.md';
const faultsPage = 'docs/internals/faults.md';
const simulator = 'verification/simulator/src';
const write = process.env['GOLDEN_WRITE'] === '1';

interface TextFile {
  readonly path: string;
  readonly text: string;
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

function filesIn(folder: string, pattern: RegExp): TextFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name).replaceAll('\\', '/'))
    .filter((path) => pattern.test(path) && !/\/(?:node_modules|dist)\//.test(path) && statSync(join(root, path)).isFile())
    .map((path) => ({ path, text: read(path) }));
}

/** Sources and tests, without the tests of such pages, which cite ids only as examples. */
function codeFiles(): TextFile[] {
  const folders = readdirSync(join(root, 'packages')).flatMap((name) => [`packages/${name}/src`, `packages/${name}/test`]);
  return [...folders, 'verification', 'test', 'scripts']
    .flatMap((folder) => filesIn(folder, /\.(?:ts|js)$/))
    .filter(({ path }) => !/^test\/[\w-]+-reference\.test\.ts$|^test\/known-bugs\.test\.ts$/.test(path));
}

function docFiles(): TextFile[] {
  return ['docs', 'verification', 'test']
    .flatMap((folder) => filesIn(folder, /\.md$/))
    .concat(filesIn('packages', /^packages\/[^/]+\/README\.md$/))
    .filter(({ path }) => path !== propertiesPage && path !== faultsPage);
}

/** Ids of one series, P or F, with the files that cite them. `P14-P18` cites its two ends. */
function citedIn(files: readonly TextFile[], series: 'P' | 'F'): Map<string, string[]> {
  const cited = new Map<string, string[]>();
  for (const { path, text } of files) {
    for (const [id] of text.matchAll(new RegExp(String.raw`\b${series}[1-9]\d?\b`, 'g'))) {
      const paths = cited.get(id) ?? [];
      if (!paths.includes(path)) cited.set(id, [...paths, path]);
    }
  }
  return cited;
}

function rowsOf(page: string): string[] {
  return [...page.matchAll(/^\| ([PF]\d+) \| .+ \|$/gm)].map(([, id]) => id!);
}

/** Parses `- F24: why not`. */
function unbuiltOf(page: string): string[] {
  return [...page.matchAll(/^- ([PF]\d+): ./gm)].map(([, id]) => id!);
}

function slips(page: string, series: 'P' | 'F', count: number, code: readonly TextFile[], docs: readonly TextFile[]): string[] {
  const [rows, unbuilt, byCode] = [rowsOf(page), unbuiltOf(page), citedIn(code, series)];
  const known = [...rows, ...unbuilt];
  const numbers = Array.from({ length: count }, (_, at) => `${series}${at + 1}`);
  return [
    ...known.filter((id, at) => known.indexOf(id) !== at).map((id) => `${id} is on the page twice`),
    ...known.filter((id) => !numbers.includes(id)).map((id) => `${id} is not one of ${series}1 to ${series}${count}`),
    ...numbers.filter((id) => !known.includes(id)).map((id) => `${id} is not on the page`),
    ...[...citedIn([...code, ...docs], series)]
      .filter(([id]) => !known.includes(id))
      .map(([id, paths]) => `${id} is cited in ${paths.join(', ')}, and is not on the page`),
    ...rows.filter((id) => !byCode.has(id)).map((id) => `${id} has a row, and no code cites it`),
    ...unbuilt.filter((id) => byCode.has(id)).map((id) => `${id} is listed as not built, and ${byCode.get(id)!.join(', ')} cites it`),
  ];
}

/** Names by the id that they cite. */
function byId(named: Readonly<Record<string, string>>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [name, ids] of Object.entries(named)) {
    for (const [id] of ids.matchAll(/\b[PF]\d+\b/g)) found.set(id, [...(found.get(id) ?? []), name]);
  }
  return found;
}

function each<T>(all: Readonly<Record<string, T>>, ids: (one: T) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, ids(one)]));
}

/** The file that exports each of these names. */
function homesOf(names: readonly string[], files: readonly TextFile[]): Map<string, string> {
  return new Map(
    names.map((name) => {
      const home = files.find(({ text }) => new RegExp(String.raw`^(?:export )?const ${name}\b`, 'm').test(text));
      if (home === undefined) throw new Error(`no file declares ${name}`);
      return [name, home.path];
    }),
  );
}

function link(label: string, path: string): string {
  return `[${label}](${relative(dirname(propertiesPage), path).replaceAll('\\', '/')})`;
}

const orNone = (parts: readonly string[]): string => (parts.length === 0 ? 'none' : parts.join(', '));
const quoted = (name: string): string => `\`${name}\``;

/**
 * Replaces the last columns of each row. A row begins with its id and ends with as many columns as
 * `columns` returns.
 */
function withColumns(page: string, pattern: RegExp, columns: (id: string) => readonly string[]): string {
  return page.replaceAll(/^\| .+ \|$/gm, (line) => {
    const id = pattern.exec(line)?.[1];
    if (id === undefined) return line;
    const last = columns(id);
    return `| ${[...line.slice(2, -2).split(' | ').slice(0, -last.length), ...last].join(' | ')} |`;
  });
}

/** What `canaries.test.ts` changes in a recording, by the checker that must detect it. */
function canariesOf(text: string): Map<string, string[]> {
  const canaries = new Map<string, string[]>();
  for (const [, checker, what] of text.matchAll(/^ {2}\[\s*'(\w+)',\s*'([^']+)',/gm)) {
    canaries.set(checker!, [...(canaries.get(checker!) ?? []), what!]);
  }
  return canaries;
}

function generatedProperties(page: string): string {
  const checkerFiles = filesIn(`${simulator}/checkers`, /\.ts$/);
  const homes = homesOf(Object.keys(checkers), checkerFiles);
  const judges = byId(each(checkers, ({ property }) => property));
  const caught = byId(each(mutants, ({ origin }) => origin));
  const canaries = canariesOf(read('verification/simulator/test/canaries.test.ts'));
  // A run that does not become quiet, or makes no progress, is a finding without a checker.
  const run = link('the run', `${simulator}/run/seed-run.ts`);
  const judgedBy = (id: string) => [
    ...(judges.get(id) ?? []).map((name) => link(name, homes.get(name)!)),
    ...(read(`${simulator}/checkers/checkers.ts`).includes(`checker: 'run', property: '${id}'`) ? [run] : []),
  ];
  const withProperties = withColumns(page, /^\| (P\d+) \|/, (id) => [orNone(judgedBy(id)), orNone((caught.get(id) ?? []).map(quoted))]);
  const rows = Object.entries(checkers).map(
    ([name, { property }]) => `| ${name} | ${property === '' ? 'none' : property} | ${(canaries.get(name) ?? []).join('; ')} |`,
  );
  return withTable(withProperties, '| checker | property | changes of a true recording that it must notice |', rows);
}

function generatedFaults(page: string): string {
  const injectors = { ...faults, ...recipeFaults };
  const homes = homesOf(Object.keys(injectors), [
    ...filesIn(`${simulator}/faults`, /-faults\.ts$/),
    ...filesIn(`${simulator}/recipes`, /recipe-faults\.ts$/),
  ]);
  const simulated = byId(each(injectors, ({ id }) => id));
  const real = byId(each(chaosFaults, ({ id }) => id));
  const byFile = (names: readonly string[]) => {
    const files = [...new Set(names.map((name) => homes.get(name)!))];
    return files.map((path) => {
      const own = names.filter((name) => homes.get(name) === path);
      return `${link(path.replace(/^.*\/|\.ts$/g, ''), path)}: ${own.map(quoted).join(', ')}`;
    });
  };
  return withColumns(page, /^\| (F\d+) \|/, (id) => [
    byFile(simulated.get(id) ?? []).join('; ') || 'none',
    orNone((real.get(id) ?? []).map(quoted)),
  ]);
}

/** Replaces the rows of the table with this head. */
function withTable(page: string, head: string, rows: readonly string[]): string {
  const lines = page.split('\n');
  const from = lines.indexOf(head) + 2;
  if (from < 2) throw new Error(`the page has no table ${head}`);
  const rest = lines.slice(from);
  const count = rest.findIndex((line) => !line.startsWith('|'));
  return [...lines.slice(0, from), ...rows, ...rest.slice(count === -1 ? rest.length : count)].join('\n');
}

describe.each([
  { page: propertiesPage, series: 'P', count: 37, generated: generatedProperties },
  { page: faultsPage, series: 'F', count: 37, generated: generatedFaults },
] as const)('$page', ({ page, series, count, generated }) => {
  it('has every id of the list, every id that is cited, and no row that no code cites', () => {
    expect(slips(read(page), series, count, codeFiles(), docFiles())).toEqual([]);
  });

  it('names the checkers, mutants and injectors that cite an id, and no other', () => {
    const text = read(page);
    if (write) writeFileSync(join(root, page), generated(text));
    expect(read(page)).toBe(generated(text));
  });
});

describe('the comparison detects', () => {
  const page = '| P1 | One. | a | b |\n| P2 | Two. | a | b |\n\n- P3: not built\n';
  const file = { path: 'x.ts', text: "property: 'P1, P2'" };
  const of = (text: string, code: readonly TextFile[] = [file], docs: readonly TextFile[] = []) => slips(text, 'P', 3, code, docs);

  it('an id that is cited and not on the page, and a missing or surplus row or entry', () => {
    expect(of(page)).toEqual([]);
    expect(of(page, [file], [{ path: 'y.md', text: 'as P4 says' }])).toEqual(['P4 is cited in y.md, and is not on the page']);
    expect(of(page.replace('- P3: not built', ''))).toEqual(['P3 is not on the page']);
    expect(of(page, [{ path: 'x.ts', text: 'P1' }])).toEqual(['P2 has a row, and no code cites it']);
    expect(of(page, [file, { path: 'z.ts', text: '(P3)' }])).toEqual(['P3 is listed as not built, and z.ts cites it']);
    expect(of(`${page}\n- P1: not built`)).toContain('P1 is on the page twice');
    expect(of(`${page}\n- P9: not built`)).toEqual(['P9 is not one of P1 to P3']);
  });

  it('a checker, a mutant, an injector or a canary that the page omits or invents', () => {
    const [properties, faultText] = [read(propertiesPage), read(faultsPage)];
    for (const name of ['totalOrder', '`ack-before-sync`', 'a gap in the log']) {
      expect(properties).toContain(name);
      const wrong = properties.replaceAll(name, 'something else');
      expect(generatedProperties(wrong), name).not.toBe(wrong);
    }
    for (const name of ['`kill`', '`longPause`', '`dribble`']) {
      expect(faultText).toContain(name);
      const wrong = faultText.replaceAll(name, '`something`');
      expect(generatedFaults(wrong), name).not.toBe(wrong);
    }
  });

  it('a name in no file of its kind', () => {
    expect(() => homesOf(['nowhere'], [file])).toThrow('no file declares nowhere');
    expect(() => withTable('', '| no such head |', [])).toThrow('the page has no table');
  });
});
