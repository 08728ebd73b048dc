/**
 * Keeps docs/internals/known-bugs.md true: every mutant and every test that it names exists, and a
 * mutant made from a ZOOKEEPER issue is in the row of that issue. A row names a mutant or a test,
 * or says why the bug is impossible. docs/internals/mutants.md has all mutants.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { mutants } from '../verification/simulator/src/mutants/mutants.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/internals');
const pagePath = join(folder, 'known-bugs.md');

interface Row {
  readonly ids: readonly string[];
  readonly mutants: readonly string[];
  readonly tests: readonly { readonly title: string; readonly path: string }[];
  readonly isImpossible: boolean;
}

function rowsOf(text: string): Row[] {
  return [...text.matchAll(/^\| (.+?) \| .+? \| (.+) \|$/gm)]
    .filter(([, ids]) => ids !== '---' && ids !== 'id')
    .map(([, ids, here]) => {
      const isImpossible = here!.startsWith('cannot be: ');
      return {
        ids: ids!.split(', '),
        isImpossible,
        mutants: isImpossible ? [] : [...here!.matchAll(/`([a-z0-9-]{5,})`/g)].map(([, name]) => name!),
        tests: [...here!.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, title, path]) => ({ title: title!, path: path! })),
      };
    });
}

type Made = Readonly<Record<string, { readonly origin: string }>>;

function slips(rows: readonly Row[], made: Made, read: (path: string) => string | undefined): string[] {
  const named = new Set(rows.flatMap((row) => row.mutants));
  return [
    ...[...named].filter((name) => made[name] === undefined).map((name) => `there is no mutant ${name}`),
    ...rows
      .filter((row) => !row.isImpossible && row.mutants.length + row.tests.length === 0)
      .map(({ ids }) => `${ids.join(', ')}: neither a mutant nor a test nor a reason`),
    ...rows
      .flatMap(({ tests }) => tests)
      .filter(({ title, path }) => read(path)?.includes(title) !== true)
      .map(({ title, path }) => `${path} has no test “${title}”`),
    ...Object.entries(made).flatMap(([name, { origin }]) =>
      [...origin.matchAll(/ZOOKEEPER-(\d+)/g)]
        .map(([, id]) => rows.filter(({ ids }) => ids.includes(id!)))
        .filter((own) => own.length > 0 && !own.some((row) => row.mutants.includes(name)))
        .map(([row]) => `${name} is made from an issue of the row ${row!.ids.join(', ')}, which does not name it`),
    ),
  ];
}

function contentOf(path: string): string | undefined {
  const file = join(folder, path);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

describe('docs/internals/known-bugs.md', () => {
  it('names only mutants and tests that exist, and each mutant in the row of its ZOOKEEPER issue', () => {
    const rows = rowsOf(readFileSync(pagePath, 'utf8'));
    expect(rows.length).toBeGreaterThan(60);
    expect(slips(rows, mutants, contentOf)).toEqual([]);
  });

  it('fails this test for a mutant or a test that does not exist, a row that has neither, or a mutant missing from its row', () => {
    const made = { 'half-quorum': { origin: 'ZOOKEEPER-7' } };
    const page =
      '| 7, 8 | It is lost. | `half-quorum`; [loses nothing](../x.test.ts) |\n| 9 | It is slow. | cannot be: there is no `wait` |';
    const has = (path: string) => (path === '../x.test.ts' ? "it('loses nothing', f)" : undefined);
    expect(slips(rowsOf(page), made, has)).toEqual([]);
    expect(slips(rowsOf(page), {}, has)).toEqual(['there is no mutant half-quorum']);
    expect(slips(rowsOf(page), { ...made, more: { origin: 'F1' } }, has)).toEqual([]);
    expect(slips(rowsOf(page), { ...made, more: { origin: 'ZOOKEEPER-8' } }, has)).toHaveLength(1);
    expect(slips(rowsOf(page), made, () => undefined)).toEqual(['../x.test.ts has no test “loses nothing”']);
    expect(slips(rowsOf(`${page}\n| 10 | It is gone. | Somehow. |`), made, has)).toHaveLength(1);
    expect(
      slips(rowsOf(`${page}\n| 10 | It is gone. | \`other-mutant\` |`), { ...made, 'other-mutant': { origin: 'ZOOKEEPER-8' } }, has),
    ).toHaveLength(1);
  });
});
