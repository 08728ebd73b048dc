/** What ZooKeeper's overview promises of clients that mostly read, in the last measurement that is committed (bench/results/mixed.md). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

interface Measured {
  readonly results: readonly {
    readonly load: { readonly connections: number; readonly readPercent: number };
    readonly rounds: readonly { readonly ours: { readonly throughput: number } }[];
  }[];
}

const { results } = JSON.parse(readFileSync(join(import.meta.dirname, '../../bench/results/mixed.json'), 'utf8')) as Measured;

it('C0-18: serves 1,000 sessions, of whose requests 90, 95 or 99 % are reads, tens of thousands of requests a second', () => {
  expect(results.map(({ load }) => [load.connections, load.readPercent])).toEqual([
    [1000, 90],
    [1000, 95],
    [1000, 99],
  ]);
  for (const { load, rounds } of results) {
    expect(rounds.length, `${load.readPercent} % reads`).toBeGreaterThan(0);
    for (const { ours } of rounds) expect(ours.throughput, `${load.readPercent} % reads`).toBeGreaterThan(20_000);
  }
});
