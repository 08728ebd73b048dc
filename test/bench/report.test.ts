import { describe, expect, it } from 'vitest';
import { judge, markdown, measureOf, median, ratioOf, verdicts, demandText } from '../../bench/report.js';
import { rows } from '../../bench/rows.js';

/** Throughputs of java, ours and the ceiling, round by round. */
function result(...rounds: (readonly [java: number | undefined, ours: number | undefined, ceiling?: number])[]) {
  const measured = (throughput: number | undefined) => (throughput === undefined ? undefined : { throughput });
  return {
    name: 'getData-50',
    title: 'getData',
    kind: 'load',
    rounds: rounds.map(([java, ours, ceiling]) => ({ java: measured(java), ours: measured(ours), ceiling: measured(ceiling) })),
    demands: [],
  };
}

const overJava = { measure: 'throughput', against: 'java', atLeast: 1.3, level: 'goal' };
const overJavaOrNearCeiling = { ...overJava, or: { measure: 'throughput', against: 'ceiling', atLeast: 0.92 } };

describe('numbers', () => {
  it.each([
    [[], undefined],
    [[3], 3],
    [[9, 1, 5], 5],
    [[4, 1, 3, 2], 2.5],
  ])('the median of %j is %j', (numbers, expected) => {
    expect(median(numbers)).toBe(expected);
  });

  it('a ratio is computed within each round, so that a slow moment of the machine affects both sides', () => {
    const drifting = result([100, 130], [50, 65], [10, 13]);
    expect(ratioOf(drifting, 'throughput', 'java')).toBeCloseTo(1.3);
    expect(measureOf(drifting, 'ours', 'throughput')).toBe(65);
  });

  it('a round in which one side failed does not count for the ratio', () => {
    expect(ratioOf(result([100, undefined], [50, 100]), 'throughput', 'java')).toBe(2);
    expect(ratioOf(result([100, undefined]), 'throughput', 'java')).toBeUndefined();
  });
});

describe('the result of a demand', () => {
  it.each([
    ['met at the bound', result([100, 130]), overJava, 'met'],
    ['missed below it', result([100, 129]), overJava, 'missed'],
    ['unknown without a comparison', result([undefined, 129]), overJava, 'unknown'],
    ['met by being close to the ceiling', result([100, 120, 130]), overJavaOrNearCeiling, 'met'],
    ['missed when neither is enough', result([100, 120, 140]), overJavaOrNearCeiling, 'missed'],
    ['missed when the ceiling is not known', result([100, 120]), overJavaOrNearCeiling, 'missed'],
    ['met by the ceiling alone', result([undefined, 95, 100]), overJavaOrNearCeiling, 'met'],
    ['met at a limit of its own', result([1, 450]), { measure: 'throughput', atMost: 450, level: 'goal' }, 'met'],
    ['missed beyond a limit of its own', result([1, 451]), { measure: 'throughput', atMost: 450, level: 'goal' }, 'missed'],
  ])('is %s', (_title, measured, demand, expected) => {
    expect(judge(measured, demand).verdict).toBe(expected);
  });
});

describe('the page of a bench', () => {
  it('shows each row, each demand and the failed measurements', () => {
    const page = markdown({
      environment: { node: 'v20' },
      settings: { rounds: 1, seconds: 1, warmUp: 1 },
      results: [
        { ...result([1000, 2000, 2500]), demands: [overJavaOrNearCeiling] },
        {
          name: 'restart',
          title: 'start',
          kind: 'restart',
          rounds: [{ java: { emptySeconds: 0.4 }, ours: { emptySeconds: 0.2 } }],
          demands: [{ measure: 'emptySeconds', atMost: 0.25, level: 'tripwire' }],
        },
      ],
      failures: ['getData-50, round 2, ours: it ended'],
    });
    expect(page).toContain('| getData | 1,000 | 2,000 | 2,500 | 2.00 x | 0.80 x |');
    expect(page).toContain(
      '| getData-50 | operations per second >= 1.3 x java, or operations per second >= 0.92 x ceiling | 2.00, or 0.800 | met |',
    );
    expect(page).toContain('| emptySeconds | 0.400 | 0.200 |');
    expect(page).toContain('| restart | s to start empty <= 0.25 | 0.200 | met |');
    expect(page).toContain('- getData-50, round 2, ours: it ended');
  });

  it('compares two builds in percent, by the ratios within the rounds', () => {
    const round = (before: number, ours: number) => ({
      before: { cpuUsPerOp: before, throughput: 1000 },
      ours: { cpuUsPerOp: ours, throughput: 1100 },
    });
    const page = markdown({
      environment: {},
      settings: { rounds: 3, seconds: 1, warmUp: 1 },
      results: [{ ...result(), rounds: [round(10, 10.2), round(20, 20.2), round(10, 10.1)] }],
      failures: [],
    });
    expect(page).toContain('| getData | 10.00 / 10.20 | +1.0 % | 1,000 / 1,100 | +10.0 % |');
  });

  it('describes every demand of every row', () => {
    for (const row of rows) {
      for (const demand of row.demands) expect(demandText(demand)).toMatch(/^[\w ]+ (?:>=|<=) [\d.]+/);
      expect(verdicts([{ ...row, rounds: [] }]).map(({ verdict }) => verdict)).toEqual(row.demands.map(() => 'unknown'));
    }
    expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length);
  });
});
