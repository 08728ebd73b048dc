/**
 * Compares docs/internals/mutants.md with the mutants. The tables are generated from the fields
 * `description`, `origin` and `symbol` of each mutant: `npm run golden -- --write` writes them again.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Mutant } from '../verification/simulator/src/mutants/mutant.ts';
import { mutants } from '../verification/simulator/src/mutants/mutants.ts';
import { packageSymbols, SourceSymbols } from '../verification/simulator/src/mutants/source-symbols.ts';

const root = join(import.meta.dirname, '..');
const pagePath = join(root, 'docs/internals/mutants.md');
const write = process.env['GOLDEN_WRITE'] === '1';
const mark = '<!-- The rest of this page is generated from verification/simulator/src/mutants. -->';

type Mutants = Readonly<Record<string, Omit<Mutant, 'original' | 'replacement'>>>;

/** The heading of the table with the mutants of a detector. Mutants of recipes share one. */
const titles: Readonly<Record<string, string>> = {
  seeds: 'Caught by seeds',
  reconfigs: 'Caught by seeds that change the membership',
  observers: 'Caught by seeds with observers of followers',
  scenarios: 'Caught by named scenarios',
  explorer: 'Caught by the explorer',
  'crash-states': 'Caught by crash states',
  recipes: 'Caught by seeds of recipes',
};

function tables(shown: Mutants, symbols: SourceSymbols): string {
  const groups = new Map(Object.keys(titles).map((detector) => [detector, [] as string[]]));
  for (const [name, { detector = 'seeds', description, origin, symbol }] of Object.entries(shown)) {
    const [group = '', family] = detector.split('/');
    const rows = groups.get(group);
    if (rows === undefined) throw new Error(`${name}: no table for ${detector}`);
    const changed = `[\`${symbol}\`](../../${symbols.find(symbol).file})`;
    rows.push(`| \`${name}\` | ${family === undefined ? '' : `${family} | `}${description} | ${origin} | ${changed} |`);
  }
  return [...groups]
    .filter(([, rows]) => rows.length > 0)
    .map(([group, rows]) => {
      const columns = ['mutant', ...(group === 'recipes' ? ['family'] : []), 'what is wrong', 'from', 'changed symbol'];
      const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
      return ['', `## ${titles[group]!}`, '', line(columns), line(columns.map(() => '---')), ...rows, ''].join('\n');
    })
    .join('');
}

function generated(page: string, shown: Mutants, symbols: SourceSymbols): string {
  const [written, rest] = page.split(mark);
  if (rest === undefined) throw new Error(`the page lacks the line ${mark}`);
  return `${written}${mark}\n${tables(shown, symbols)}`;
}

describe('docs/internals/mutants.md', () => {
  it('lists every mutant with its own description, and no other', () => {
    const page = readFileSync(pagePath, 'utf8');
    if (write) writeFileSync(pagePath, generated(page, mutants, packageSymbols()));
    expect(readFileSync(pagePath, 'utf8')).toBe(generated(page, mutants, packageSymbols()));
  });

  it('fails this test for a missing mutant, a surplus one, another detector or another description', () => {
    const one = { description: 'half of the voters are a quorum', origin: 'P32', symbol: 'Quorum.contains' };
    const symbols = new SourceSymbols(new Map([['packages/core/src/quorum.ts', 'export class Quorum {\n  contains() {}\n}']]));
    const pageOf = (text: string, some: Mutants) => generated(text, some, symbols);
    const page = pageOf(`# Mutants\n${mark}`, { 'half-quorum': one });
    expect(page).toContain('## Caught by seeds');
    expect(page).toContain(
      '| `half-quorum` | half of the voters are a quorum | P32 | [`Quorum.contains`](../../packages/core/src/quorum.ts) |',
    );
    expect(pageOf(page, { 'half-quorum': one })).toBe(page);
    expect(pageOf(page, {})).not.toBe(page);
    expect(pageOf(page, { 'half-quorum': one, 'no-quorum': one })).not.toBe(page);
    expect(pageOf(page, { 'half-quorum': { ...one, detector: 'explorer' } })).not.toBe(page);
    expect(pageOf(page, { 'half-quorum': { ...one, description: 'something else' } })).not.toBe(page);
    expect(pageOf(page, { 'half-quorum': { ...one, symbol: 'Quorum' } })).not.toBe(page);
    expect(() => pageOf(page, { 'half-quorum': { ...one, symbol: 'Majority' } })).toThrow('no file declares Majority');
    const locks = pageOf(page, { 'half-quorum': { ...one, detector: 'recipes/locks' } });
    expect(locks).toContain('| `half-quorum` | locks | half of the voters are a quorum |');
    expect(() => pageOf('# Mutants', {})).toThrow('the page lacks the line');
  });
});
