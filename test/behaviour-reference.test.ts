/**
 * Keeps docs/reference/behaviour.md true: each promise on the page is held by tests that bear its id, the page names the files they are
 * in, and no test bears an id that the page does not have. What is called not built has neither a row nor a test, and no number is left
 * out. Likewise every key of zoo.cfg that is called built has a test of its effect.
 *
 * A title begins with the ids it is about (`C3-17, C3-18: ...`), that of a golden story with those in its lines `# rows:`, and a check of
 * conformance has them as its `rows`. The last
 * column of the page is written anew by `npm run golden -- --write`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { configKeys } from '../packages/server/src/config/config-keys.ts';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const page = join(root, 'docs/reference/behaviour.md');
const write = process.env['GOLDEN_WRITE'] === '1';

interface TestFile {
  readonly path: string;
  readonly text: string;
}

/** Its checks are sources, since anyone may run them, and tests all the same. */
const conformanceChecks = 'packages/conformance/src/checks';

function testFiles(): TestFile[] {
  const folders = [...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/test`), 'test', conformanceChecks];
  return folders.flatMap((folder) => {
    return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => folder === conformanceChecks || /\.(?:test|process)\.ts$|golden\/.*\.txt$/.test(name.replaceAll('\\', '/')))
      .map((name) => join(folder, name).replaceAll('\\', '/'))
      .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
  });
}

const id = String.raw`(?:A|B|D|E|F|C\d-)\d+a?`;
const idsOfTitle = new RegExp(String.raw`['"\x60](${id}(?:, ${id})*): `, 'g');
const rowsOfStory = new RegExp(`^# rows: (${id}(?: ${id})*)$`, 'gm');
const rowsOfCheck = new RegExp(String.raw`rows: \[('${id}'(?:, '${id}')*)\]`, 'g');
const keysOfTitle = /['"`](?:[^'"`\n]*: )?option ((?:[\w.*-]+)(?:, [\w.*-]+)*): /g;

/** For each id, the files with tests that bear it, in order. */
function heldBy(files: readonly TestFile[]): Map<string, string[]> {
  const held = new Map<string, string[]>();
  for (const { path, text } of files) {
    const pattern = path.endsWith('.txt') ? rowsOfStory : path.startsWith(conformanceChecks) ? rowsOfCheck : idsOfTitle;
    for (const one of [...text.matchAll(pattern)].flatMap(([, ids]) => ids!.replaceAll("'", '').split(/,? /))) {
      const paths = held.get(one) ?? [];
      if (!paths.includes(path)) paths.push(path);
      held.set(one, paths.sort());
    }
  }
  return held;
}

/** The rows of the page: an id, what is promised, and where it is tested. */
function rowsOf(text: string): Map<string, string> {
  const row = new RegExp(String.raw`^\| (${id}) \| .+ \| (.*?) \|$`, 'gm');
  return new Map([...text.matchAll(row)].map(([, one, places]) => [one!, places!]));
}

/** The ids of the list of what is not built. */
function unbuiltOf(text: string): string[] {
  const item = new RegExp(`^- (${id}(?:, ${id})*): .`, 'gm');
  return [...text.matchAll(item)].flatMap(([, ids]) => ids!.split(', '));
}

/** Numbers that are neither promised nor called not built. Of F the page has a part. */
function gaps(text: string): string[] {
  const known = new Set([...rowsOf(text).keys(), ...unbuiltOf(text)]);
  const last = new Map<string, number>();
  for (const one of known) {
    const [, series, number] = /^(F|[A-E](?:\d-)?)(\d+)/.exec(one)!;
    if (series !== 'F') last.set(series!, Math.max(last.get(series!) ?? 0, Number(number)));
  }
  const all = [...last].flatMap(([series, count]) => Array.from({ length: count }, (_, at) => `${series}${at + 1}`));
  return all.filter((one) => !known.has(one));
}

function linksTo(paths: readonly string[]): string {
  return paths
    .map((path) => {
      const name = path.replace(/^.*\//, '').replace(/\.(?:test\.ts|integration\.test\.ts|process\.ts|txt|ts)$/, '');
      const label = path.startsWith(conformanceChecks) ? `conformance/${name}` : name;
      return `[${label}](${relative(dirname('docs/reference/x'), path)})`;
    })
    .join(', ');
}

function slips(text: string, files: readonly TestFile[]): string[] {
  const [rows, held, unbuilt] = [rowsOf(text), heldBy(files), unbuiltOf(text)];
  return [
    ...unbuilt.filter((one) => rows.has(one)).map((one) => `${one} is called not built, and has a row`),
    ...unbuilt.filter((one) => held.has(one)).map((one) => `${one} is called not built, and a test bears its id`),
    ...unbuilt.filter((one, at) => unbuilt.indexOf(one) !== at).map((one) => `${one} is called not built twice`),
    ...[...rows.keys()].filter((one) => !held.has(one)).map((one) => `${one} is promised, and no test bears its id`),
    ...[...held.keys()]
      .filter((one) => !rows.has(one) && !unbuilt.includes(one))
      .map((one) => `${one} is in ${held.get(one)!.join(', ')}, and not on the page`),
    ...[...rows]
      .filter(([one, places]) => held.has(one) && places !== linksTo(held.get(one)!))
      .map(([one]) => `${one} names other files than its tests are in`),
  ];
}

describe('docs/reference/behaviour.md', () => {
  it('has the promises that tests bear in their titles, no other, and says where they are tested', () => {
    const files = testFiles().filter(({ path }) => path !== 'test/behaviour-reference.test.ts');
    if (write) {
      const held = heldBy(files);
      const row = new RegExp(String.raw`^(\| (${id}) \| .+ \|).*\|$`, 'gm');
      const text = readFileSync(page, 'utf8');
      writeFileSync(
        page,
        text.replace(row, (_line, begin: string, one: string) => `${begin} ${linksTo(held.get(one) ?? [])} |`),
      );
    }
    expect(slips(readFileSync(page, 'utf8'), files)).toEqual([]);
  });

  it('has every number of the list, as a promise or as one that is not built', () => {
    expect(gaps(readFileSync(page, 'utf8'))).toEqual([]);
  });

  it('would be caught with a number left out, or with something not built that has a row or a test', () => {
    const file = { path: 'packages/core/test/x.test.ts', text: "it('A1, A3: something', f)" };
    const row = '| A1 | One. | [x](../../packages/core/test/x.test.ts) |';
    expect(gaps(`${row}\n- A2, C0-2: none\n- A5a: none\n| F9 | Nine. |  |`)).toEqual(['A3', 'A4', 'A5', 'C0-1']);
    expect(slips(`${row}\n- A3: none`, [file])).toEqual(['A3 is called not built, and a test bears its id']);
    const other = { ...file, text: "it('A1: something', f)" };
    expect(slips(`${row}\n- A3: none`, [other])).toEqual([]);
    expect(slips(`${row}\n- A1: none`, [other])).toContain('A1 is called not built, and has a row');
    expect(slips(`${row}\n- A3: none\n- A3: none`, [other])).toEqual(['A3 is called not built twice']);
  });

  it('would be caught with a promise too many, too few, or with the wrong place', () => {
    const file = { path: 'packages/core/test/x.test.ts', text: "it('A1, C3-2: something', f)" };
    const story = { path: 'packages/core/test/golden/y.txt', text: '# rows: C3-2\na connects\n' };
    const link = '[x](../../packages/core/test/x.test.ts)';
    const both = `[y](../../packages/core/test/golden/y.txt), ${link}`;
    const rows = [`| A1 | One. | ${link} |`, `| C3-2 | Two. | ${both} |`];
    expect(slips(rows.join('\n'), [file, story])).toEqual([]);
    expect(slips(rows[0]!, [file, story])).toHaveLength(1);
    const check = { path: `${conformanceChecks}/z.ts`, text: "rows: ['A1', 'C3-2']," };
    expect(slips(rows.join('\n'), [file, story, check])).toHaveLength(2);
    expect(slips([...rows, '| F9 | Nine. |  |'].join('\n'), [file, story])).toEqual(['F9 is promised, and no test bears its id']);
    expect(slips(rows.join('\n'), [file])).toEqual(['C3-2 names other files than its tests are in']);
  });
});

describe('a key of zoo.cfg', () => {
  function unshown(names: readonly string[], files: readonly TestFile[]): { lacking: string[]; unknown: string[] } {
    const shown = new Set(files.flatMap(({ text }) => [...text.matchAll(keysOfTitle)]).flatMap(([, keys]) => keys!.split(', ')));
    return { lacking: names.filter((name) => !shown.has(name)), unknown: [...shown].filter((name) => !names.includes(name)) };
  }

  it('that is called built has a test that shows its effect, and no other has', () => {
    const built = configKeys.filter(({ status }) => status === 'built').map(({ name }) => name);
    const files = testFiles().filter(({ path }) => path !== 'test/behaviour-reference.test.ts');
    expect(unshown(built, files)).toEqual({ lacking: [], unknown: [] });
  });

  it('without a test would be noticed, and so would a test of a key that does not exist', () => {
    const file = { path: 'x.test.ts', text: "it('A29: option tickTime, tackTime: each', f)" };
    expect(unshown(['tickTime', 'snapCount'], [file])).toEqual({ lacking: ['snapCount'], unknown: ['tackTime'] });
  });
});
