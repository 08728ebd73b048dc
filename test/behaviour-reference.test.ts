/**
 * Keeps docs/reference/behaviour/ true: each promise has a test with its id in the title, and no
 * test has an id that the pages lack. A promise listed as not built has neither a row nor a test,
 * no id has two rows, and no number is missing. Likewise every key of zoo.cfg listed as built has a
 * test of its effect. scripts/behaviour.js reads the pages and the tests.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configKeys } from '../packages/server/src/config/config-keys.ts';
import { checksFolder, pagesFolder, readPages, readTestFiles, rowsOf, testsOf, type TextFile, unbuiltOf } from '../scripts/behaviour.js';

const root = join(import.meta.dirname, '..');
const keysOfTitle = /['"`](?:[^'"`\n]*: )?option ((?:[\w.*-]+)(?:, [\w.*-]+)*): /g;

/**
 * Numbers that are neither a promise nor listed as not built. The pages contain only a part of F.
 */
function gaps(pages: readonly TextFile[]): string[] {
  const known = new Set([...rowsOf(pages), ...unbuiltOf(pages)].map(({ id }) => id));
  const last = new Map<string, number>();
  for (const one of known) {
    const [, series, number] = /^(F|[A-E](?:\d-)?)(\d+)/.exec(one)!;
    if (series !== 'F') last.set(series!, Math.max(last.get(series!) ?? 0, Number(number)));
  }
  const all = [...last].flatMap(([series, count]) => Array.from({ length: count }, (_, at) => `${series}${at + 1}`));
  return all.filter((one) => !known.has(one));
}

function repeated(ids: readonly string[]): string[] {
  return ids.filter((one, at) => ids.indexOf(one) !== at);
}

function slips(pages: readonly TextFile[], files: readonly TextFile[]): string[] {
  const rows = rowsOf(pages).map(({ id }) => id);
  const unbuilt = unbuiltOf(pages).map(({ id }) => id);
  const tests = testsOf(files);
  const tested = new Set(tests.map(({ id }) => id));
  const placesOf = (one: string) => [...new Set(tests.filter(({ id }) => id === one).map(({ path }) => path))].join(', ');
  return [
    ...unbuilt.filter((one) => rows.includes(one)).map((one) => `${one} is called not built, and has a row`),
    ...unbuilt.filter((one) => tested.has(one)).map((one) => `${one} is called not built, and a test has its id`),
    ...repeated(unbuilt).map((one) => `${one} is called not built twice`),
    ...repeated(rows).map((one) => `${one} has two rows`),
    ...rows.filter((one) => !tested.has(one)).map((one) => `${one} is promised, and no test has its id`),
    ...[...tested]
      .filter((one) => !rows.includes(one) && !unbuilt.includes(one))
      .map((one) => `${one} is in ${placesOf(one)}, and not on the pages`),
  ];
}

/** A page that is missing in the list of chapters in README.md, and a chapter without a page. */
function chapterSlips(pages: readonly TextFile[]): string[] {
  const index = pages.find(({ path }) => path.endsWith('/README.md'))!;
  const chapters = [...index.text.matchAll(/^1\. \[[^\]]+\]\(([\w-]+\.md)\)/gm)].map(([, name]) => `${pagesFolder}/${name}`);
  const paths = pages.filter((page) => page !== index).map(({ path }) => path);
  return [
    ...paths.filter((path) => !chapters.includes(path)).map((path) => `${path} is not in the list of chapters`),
    ...chapters.filter((path) => !paths.includes(path)).map((path) => `${path} is in the list of chapters, and does not exist`),
  ];
}

const page = (...lines: string[]): TextFile => ({ path: `${pagesFolder}/x.md`, text: lines.join('\n') });

describe(pagesFolder, () => {
  it('has the promises that tests name in their titles, and no others', () => {
    expect(slips(readPages(), readTestFiles())).toEqual([]);
  });

  it('has every number of each series, as a promise or as one that is not built', () => {
    expect(gaps(readPages())).toEqual([]);
  });

  it('has a list of all chapters', () => {
    expect(chapterSlips(readPages())).toEqual([]);
    const index = { path: `${pagesFolder}/README.md`, text: '1. [One](one.md): first.\n1. [X](y.md).' };
    expect(chapterSlips([index, { path: `${pagesFolder}/one.md`, text: '' }, page()])).toEqual([
      `${pagesFolder}/x.md is not in the list of chapters`,
      `${pagesFolder}/y.md is in the list of chapters, and does not exist`,
    ]);
  });

  it('fails this test if a number is missing', () => {
    expect(gaps([page('| A1 | One. |', '- A2, C0-2: none', '- A5a: none', '| F9 | Nine. |')])).toEqual(['A3', 'A4', 'A5', 'C0-1']);
    expect(gaps([page('| A1 | One. |'), page('| A2 | Two. |')])).toEqual([]);
  });

  it('fails this test if a promise that is not built has a row or a test, or is listed twice', () => {
    const both = { path: 'packages/core/test/x.test.ts', text: "it('A1, A3: something', f)" };
    const one = { ...both, text: "it('A1: something', f)" };
    const row = '| A1 | One. |';
    expect(slips([page(row, '- A3: none')], [one])).toEqual([]);
    expect(slips([page(row, '- A3: none')], [both])).toEqual(['A3 is called not built, and a test has its id']);
    expect(slips([page(row, '- A1: none')], [one])).toContain('A1 is called not built, and has a row');
    expect(slips([page(row, '- A3: none'), page('- A3: none')], [one])).toEqual(['A3 is called not built twice']);
  });

  it('fails this test if a promise has no test, two rows, or only a test', () => {
    const file = { path: 'packages/core/test/x.test.ts', text: "it('A1, C3-2: something', f)" };
    const story = { path: 'packages/core/test/golden/y.txt', text: '# rows: C3-2 C3-3\na connects\n' };
    const check = { path: `${checksFolder}/z.ts`, text: "behaviourIds: ['A1', 'C3-4']," };
    const rows = ['| A1 | One. |', '| C3-2 | Two. |', '| C3-3 | Three. |', '| C3-4 | Four. |'];
    expect(slips([page(...rows)], [file, story, check])).toEqual([]);
    expect(slips([page(...rows)], [file, story])).toEqual(['C3-4 is promised, and no test has its id']);
    expect(slips([page(...rows)], [file, check])).toEqual(['C3-3 is promised, and no test has its id']);
    expect(slips([page(...rows)], [story, check])).toEqual([]);
    expect(slips([page(rows[0]!), page(rows[3]!)], [file, story, check])).toEqual([
      'C3-2 is in packages/core/test/x.test.ts, packages/core/test/golden/y.txt, and not on the pages',
      'C3-3 is in packages/core/test/golden/y.txt, and not on the pages',
    ]);
    expect(slips([page(...rows), page(rows[1]!)], [file, story, check])).toEqual(['C3-2 has two rows']);
  });
});

describe('the titles of tests', () => {
  it('are found with their line and the enclosing groups', () => {
    const text = "describe('a lock', () => {\n  it('x', f);\n  it(\n    'A1, C3-2: isn\\'t held', f);\n});\nit(`B2: ${n} wait`, f);\n";
    const found = testsOf([{ path: 'packages/core/test/x.test.ts', text }]);
    const held = { title: "a lock > isn't held", path: 'packages/core/test/x.test.ts', line: 4 };
    expect(found).toEqual([
      { id: 'A1', ...held },
      { id: 'C3-2', ...held },
      { id: 'B2', title: '${n} wait', path: held.path, line: 6 },
    ]);
  });

  it('are the comments of a golden story, or its name', () => {
    const path = 'packages/core/test/golden/ttl-off.txt';
    const text = 'a connects\n----\n\n# rows: A1\n# A create is\n# rejected.\na create /x\n----\n\n# rows: A2\nb connects\n----\n';
    expect(testsOf([{ path, text }]).map(({ id, title, line }) => [id, title, line])).toEqual([
      ['A1', 'A create is rejected.', 4],
      ['A2', 'ttl off', 10],
    ]);
  });

  it('are the name and the title of a conformance check', () => {
    const text = "{\n  name: 'paths.legal',\n  title: 'names may have dots',\n  behaviourIds: ['A1'],\n},";
    expect(testsOf([{ path: `${checksFolder}/z.ts`, text }])).toMatchObject([
      { id: 'A1', title: 'paths.legal: names may have dots', line: 4 },
    ]);
  });
});

describe('npm run promise', () => {
  function run(...ids: string[]): { status: number | null; stdout: string; stderr: string } {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts/promise.js'), ...ids], { encoding: 'utf8' });
    return { status, stdout, stderr };
  }

  it('prints each promise with the tests that name its id', () => {
    const { status, stdout, stderr } = run('C3-18', 'A75');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(
      'C3-18: The number is padded with zeros to ten digits.\n  docs/reference/behaviour/data-model.md, Kinds of znodes\n',
    );
    expect(stdout).toMatch(/^ {2}packages\/conformance\/src\/checks\/sequence\.ts:\d+\n {4}sequence\.format: /m);
    expect(stdout).toMatch(/^A75: .*\n {2}not built \(docs\/reference\/behaviour\/not-built\.md\)$/m);
  });

  it('reports an unknown id, and ends with 2', () => {
    expect(run('C3-999')).toEqual({ status: 2, stdout: '', stderr: 'There is no promise C3-999 in docs/reference/behaviour.\n' });
    const { status, stdout, stderr } = run('X1', 'A1');
    expect([status, stderr]).toEqual([2, 'There is no promise X1 in docs/reference/behaviour.\n']);
    expect(stdout).toContain('A1: ');
    expect(run()).toMatchObject({ status: 2, stdout: '', stderr: expect.stringContaining('npm run promise -- C3-17') });
  });
});

describe('a key of zoo.cfg', () => {
  function unshown(names: readonly string[], files: readonly TextFile[]): { lacking: string[]; unknown: string[] } {
    const shown = new Set(files.flatMap(({ text }) => [...text.matchAll(keysOfTitle)]).flatMap(([, keys]) => keys!.split(', ')));
    return { lacking: names.filter((name) => !shown.has(name)), unknown: [...shown].filter((name) => !names.includes(name)) };
  }

  it('listed as built has a test of its effect, and no other key has one', () => {
    const built = configKeys.filter(({ status }) => status === 'built').map(({ name }) => name);
    expect(unshown(built, readTestFiles())).toEqual({ lacking: [], unknown: [] });
  });

  it('fails this test if it is built without a test, or has a test and does not exist', () => {
    const file = { path: 'x.test.ts', text: "it('A29: option tickTime, tackTime: each', f)" };
    expect(unshown(['tickTime', 'snapCount'], [file])).toEqual({ lacking: ['snapCount'], unknown: ['tackTime'] });
  });
});
