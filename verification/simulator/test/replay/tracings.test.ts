import { describe, expect, it } from 'vitest';
import type { DoubtfulTxn, Tracing } from '../../src/replay/replay-result.ts';
import { fewestFindings, type Judged, triesOf } from '../../src/replay/tracings.ts';

const doubtful: readonly DoubtfulTxn[] = [
  { zxid: 7, others: ['b', 'c'] },
  { zxid: 9, others: ['d'] },
];

/**
 * A recording without findings for one tracing, and with one more finding for each txn that is
 * traced otherwise.
 */
class Recorded {
  readonly tried: string[] = [];
  readonly #truth: Tracing;

  constructor(truth: readonly (readonly [number, string])[]) {
    this.#truth = new Map(truth);
  }

  judge(tracing: Tracing): Judged<string> {
    this.tried.push([...tracing].join(' '));
    const wrong = [...this.#truth].filter(([zxid, cnxn]) => tracing.get(zxid) !== cnxn);
    return { doubtful, findings: wrong.map(([zxid]) => `0x${zxid}`) };
  }
}

function searched(recorded: Recorded, first: readonly string[]): string[] {
  return fewestFindings({ doubtful, findings: first }, triesOf(100), (tracing) => recorded.judge(tracing));
}

describe('the findings of a recording with doubtful txns', () => {
  it('are none if another request of one txn explains them', () => {
    expect(searched(new Recorded([[7, 'c']]), ['0x7'])).toEqual([]);
  });

  it('are none if other requests of two txns explain them', () => {
    const recorded = new Recorded([
      [7, 'c'],
      [9, 'd'],
    ]);
    expect(searched(recorded, ['0x7', '0x9'])).toEqual([]);
    // A step that does not help is not kept.
    expect(recorded.tried).toEqual(['7,b', '7,c', '7,b', '7,c', '7,c 9,d']);
  });

  it('remain if no tracing explains them', () => {
    expect(searched(new Recorded([[8, 'x']]), ['0x8'])).toEqual(['0x8']);
  });

  it('need no search if there are none', () => {
    const recorded = new Recorded([[8, 'x']]);
    expect(searched(recorded, [])).toEqual([]);
    expect(recorded.tried).toEqual([]);
  });

  it('are searched for among 64 tracings at most, and among fewer if a replay takes long', () => {
    expect([0, 100, 400, 5000, 50_000].map(triesOf)).toEqual([64, 64, 25, 2, 1]);
    let tries = 0;
    const many = Array.from({ length: 100 }, (_, zxid) => ({ zxid, others: ['b'] }));
    const found = fewestFindings({ doubtful: many, findings: ['wrong'] }, 64, () => ({
      doubtful: many,
      findings: ++tries === 65 ? [] : ['wrong'],
    }));
    expect([found, tries]).toEqual([['wrong'], 64]);
  });
});
