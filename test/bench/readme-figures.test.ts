/** The first figures of README.md are those of the last measurements in bench/results. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { rows } from '../../bench/rows.js';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const readme = read('README.md');

/** The cells of the first row that begins with this on a page of results. */
function cells(page: string, row: string): string[] {
  const line = read(`bench/results/${page}.md`)
    .split('\n')
    .find((each) => each.startsWith(`| ${row} |`));
  if (line === undefined) throw new Error(`bench/results/${page}.md has no row "${row}"`);
  return line.split('|').map((cell) => cell.trim());
}

/** Java's value, then ours. */
const both = (row: string): string =>
  cells('failover', row)
    .slice(2, 4)
    .map((ms) => String(Math.round(Number(ms))))
    .toReversed()
    .join(' of ');
const ratio = (page: string, row: string): string => Number(cells(page, row)[5]!.replace(' x', '')).toFixed(1);

it('the figures in README.md are those of bench/results', () => {
  const [p50, most] = [both('p50Ms').split(' of '), both('maxMs').split(' of ')];
  expect(readme).toContain(`answered within ${p50[0]} ms (ZooKeeper 3.9.5: ${p50[1]} ms), at most after ${most[0]} ms (${most[1]} ms)`);
  const [java, idle] = cells('idle', 'rssMb').slice(2, 4).map(Number);
  expect(readme).toContain(`An idle server takes ${idle} MB of memory (ZooKeeper 3.9.5: ${java} MB)`);
  expect(readme).toContain('Three real servers start inside a test within half a second.');
  expect(Number(cells('test-ensemble', 'mostStartMs')[2])).toBeLessThanOrEqual(500);
  expect(readme).toContain(`with a million znodes of 100 bytes ${cells('million', 'rssMb')[2]} MB`);
  const [reads, writes] = [ratio('standalone', 'getData, 50 connections x 16 in flight'), ratio('standalone', 'setData, 50 connections')];
  const ensemble = ['getData, 50 connections x 16 in flight', 'setData, 50 connections', '90 % getData, 10 % setData, 1,000 sessions'];
  const [threeReads, threeWrites, threeMixed] = ensemble.map((row) => ratio('ensemble', `3 servers: ${row}`));
  expect(readme).toContain(
    `${reads} for pipelined reads, ${writes} for writes; with three servers ${threeReads} and ${threeWrites}, and ${threeMixed} for 1,000 sessions`,
  );
  const [, ours] = read('bench/results/clients.md').split('## Against tskeeper');
  const row = ours!
    .split('### getData, 16 in flight')[1]!
    .split('\n')
    .find((line) => line.startsWith('| node-zookeeper-client |'))!;
  expect(readme).toContain(`${row.split('|')[6]!.trim().replace(' x', '')} times the CPU of \`node-zookeeper-client\` per read`);
});

it('each row of figures in README.md names a command of this repository and the page of its result', () => {
  const table = readme.split('\n').filter((line) => line.startsWith('| **'));
  expect(table.length).toBe(6);
  const known = [...new Set(rows.map((row) => ('group' in row ? row.group : ''))), 'clients'];
  for (const line of table) {
    const source = line.split(' | ').at(-1)!;
    expect(source, line).toMatch(/`npm run (?:bench|interop)\b[^`]*`/);
    for (const [, words] of source.matchAll(/`npm run bench(?: -- ([^`]*))?`/g)) {
      const named = words?.startsWith('--rows ') ? words.slice('--rows '.length).split(',') : undefined;
      if (named === undefined) expect(known, line).toContain(words ?? '');
      else expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(named));
      expect(source, line).toMatch(/\]\(bench\/results\/[\w-]+\.md\)/);
    }
  }
});
