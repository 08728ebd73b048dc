/**
 * What ZooKeeper's overview promises to clients that mostly read, in the last committed measurement
 * (bench/results/mixed.md).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { median } from '../../bench/report.js';

interface Measured {
  readonly results: readonly {
    readonly load: { readonly connections: number; readonly readPercent: number };
    readonly rounds: readonly Readonly<Record<'ours' | 'java', { readonly throughput: number; readonly p99Us: number }>>[];
  }[];
}

const { results } = JSON.parse(readFileSync(join(import.meta.dirname, '../../bench/results/mixed.json'), 'utf8')) as Measured;

it('C0-18: serves 1,000 sessions with 90, 95 or 99 % reads at tens of thousands of requests a second, as docs/reference/behaviour/ensembles.md says', () => {
  expect(results.map(({ load }) => [load.connections, load.readPercent])).toEqual([
    [1000, 90],
    [1000, 95],
    [1000, 99],
  ]);
  for (const { load, rounds } of results) {
    const what = `${load.readPercent} % reads`;
    expect(median(rounds.map(({ ours }) => ours.throughput)), what).toBeGreaterThan(100_000);
    expect(median(rounds.map(({ ours, java }) => ours.throughput / java.throughput)), what).toBeGreaterThan(1.15);
    expect(median(rounds.map(({ ours, java }) => ours.p99Us / java.p99Us)), what).toBeLessThan(1.25);
  }
});
