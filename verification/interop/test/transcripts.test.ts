/** The comparison of mixed ensembles with those of ZooKeeper's servers. */
import type { ServerKind } from '@tskeeper/harness';
import { describe, expect, test } from 'vitest';

import { compareTranscripts, type EnsembleJustification, TranscriptWriter } from '../src/ensemble/transcripts.ts';
import { Report } from '../src/report.ts';

const java: readonly ServerKind[] = ['java-3.9.5'];
const mixed: readonly ServerKind[] = ['ours'];

async function compare(found: Readonly<Record<string, string>>, justified: readonly EnsembleJustification[] = []): Promise<string[]> {
  const lines: string[] = [];
  const report = new Report((line) => lines.push(line.trim()), true);
  const expected = new Map([
    ['a read', '0'],
    ['a write', '-119'],
  ]);
  const transcriptOf = async (kinds: readonly ServerKind[]) => (kinds === java ? expected : new Map(Object.entries(found)));
  await compareTranscripts({ name: 'a check', castings: [java, mixed], transcriptOf, justified }, report);
  return lines;
}

const writesMayWork: EnsembleJustification = { id: 'writes-may-work', explains: (step, _, found) => step === 'a write' && found === '0' };

describe('transcripts', () => {
  test('pass if every result is the same', async () => {
    expect(await compare({ 'a read': '0', 'a write': '-119' })).toEqual(['ok      a check: ours as java-3.9.5: 2 results']);
  });

  test('fail with each difference, a missing result among them', async () => {
    const [line] = await compare({ 'a write': '0' });
    expect(line).toBe(
      'FAILED  a check: ours as java-3.9.5: \n    a read: 0, and undefined in the mixed one\n    a write: -119, and 0 in the mixed one',
    );
  });

  test('pass if a rule explains each difference', async () => {
    expect(await compare({ 'a read': '0', 'a write': '0' }, [writesMayWork])).toEqual([
      '1 differences justified: a check: ours as java-3.9.5',
      'ok      a check: ours as java-3.9.5: 2 results',
    ]);
  });

  test('fail if a rule is never needed', async () => {
    expect((await compare({ 'a read': '0', 'a write': '-119' }, [writesMayWork])).at(-1)).toBe(
      'FAILED  a check: the rule writes-may-work was never needed',
    );
  });

  test('name each step once', () => {
    const writer = new TranscriptWriter();
    writer.note('a read', 0);
    expect(() => writer.note('a read', 0)).toThrow('two steps are named a read');
  });
});
