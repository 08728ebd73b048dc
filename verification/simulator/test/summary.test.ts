/** The marks that a run must hit. */
import { describe, expect, it } from 'vitest';
import { emptyReport, type SeedReport } from '../src/command/seed-report.ts';
import { longRunSeeds, Summary } from '../src/command/summary.ts';
import { marks, rareMarks } from '../src/run/marks.ts';

const rare = 'hostile requests of every opcode';
const common = 'a session expired';

const empty: SeedReport = { ...emptyReport, seed: 1, findings: [] };

function summaryOf(seeds: number, hits: Readonly<Record<string, number>>): Summary {
  const summary = new Summary([rare, common]);
  for (let at = 0; at < seeds; at++) {
    const counted = Object.fromEntries(
      Object.entries(hits)
        .filter(([, count]) => at < count)
        .map(([name]) => [name, 1]),
    );
    summary.add({ ...empty, marks: counted });
  }
  return summary;
}

describe('a run', () => {
  it('of a thousand seeds misses a mark that no seed has hit, unless it is a rare one', () => {
    expect(summaryOf(1000, {}).missing).toEqual([`${common} 0`]);
    expect(summaryOf(1000, { [common]: 1 }).missing).toEqual([]);
  });

  it('of 20,000 seeds misses a mark that was hit less than 20 times, rare or not', () => {
    expect(summaryOf(longRunSeeds, { [common]: 20, [rare]: 19 }).missing).toEqual([`${rare} 19`]);
    expect(summaryOf(longRunSeeds, { [common]: 20, [rare]: 20 }).missing).toEqual([]);
  });

  it('counts checkers of ensembles in percent of the ensembles', () => {
    const summary = new Summary([]);
    const add = (kind: string, exercised: readonly string[]) => summary.add({ ...empty, kinds: [kind], exercised });
    add('ensemble', ['reads', 'zab']);
    add('ensemble', ['reads']);
    add('standalone', ['reads']);
    add('standalone', []);
    expect(summary.text(1)).toContain(
      'checkers with something to check, in percent of the seeds: reads 75\ncheckers with something to check, in percent of the ensembles: zab 50',
    );
  });

  it('has only rare marks that exist', () => {
    expect([...rareMarks].filter((name) => !(name in marks))).toEqual([]);
  });
});
