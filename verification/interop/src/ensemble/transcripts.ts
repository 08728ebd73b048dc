/**
 * Ensembles that do the same, one of ZooKeeper's servers alone and others with servers of ours in
 * its places: what clients get must be the same.
 */
import type { ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { twoAtATime } from '../two-at-a-time.ts';

/** By what was done, what came of it. */
export type Transcript = ReadonlyMap<string, string>;

/** A difference that is intended; differences.md has a row for it. */
export interface EnsembleJustification {
  readonly id: string;
  readonly explains: (step: string, expected: string | undefined, found: string | undefined) => boolean;
}

export interface TranscriptComparison {
  readonly name: string;
  /** The first is the reference. */
  readonly castings: readonly (readonly ServerKind[])[];
  /** Names servers by their place, since their kind differs. */
  readonly transcriptOf: (kinds: readonly ServerKind[]) => Promise<Transcript>;
  /** Each must be needed. */
  readonly justified?: readonly EnsembleJustification[];
}

export async function compareTranscripts(comparison: TranscriptComparison, report: Report): Promise<void> {
  const { name, castings, transcriptOf, justified = [] } = comparison;
  const transcripts = new Map<readonly ServerKind[], Transcript>();
  await twoAtATime(castings, async (kinds) => {
    try {
      transcripts.set(kinds, await transcriptOf(kinds));
    } catch (error) {
      report.fail(`${name}: ${kinds.join(', ')}`, error instanceof Error ? error.message : String(error));
    }
  });
  const [reference, ...mixed] = castings;
  const used = new Set<EnsembleJustification>();
  const expected = transcripts.get(reference!);
  if (expected === undefined) return;
  for (const kinds of mixed) {
    const found = transcripts.get(kinds);
    if (found === undefined) continue;
    const what = `${name}: ${kinds.join(', ')} as ${reference!.join(', ')}`;
    const steps = new Set([...expected.keys(), ...found.keys()]);
    const all = [...steps].filter((step) => found.get(step) !== expected.get(step));
    const differences = all.filter((step) => {
      const rule = justified.find(({ explains }) => explains(step, expected.get(step), found.get(step)));
      if (rule !== undefined) used.add(rule);
      return rule === undefined;
    });
    if (all.length > differences.length) report.note(`${all.length - differences.length} differences justified: ${what}`);
    if (differences.length === 0) report.pass(`${what}: ${steps.size} results`);
    else
      report.fail(
        what,
        differences.map((step) => `\n    ${step}: ${expected.get(step)}, and ${found.get(step)} in the mixed one`).join(''),
      );
  }
  for (const rule of justified) if (!used.has(rule)) report.fail(name, `the rule ${rule.id} was never needed`);
}

/** Collects a transcript; each step must have a name of its own. */
export class TranscriptWriter {
  readonly #results = new Map<string, string>();

  note(step: string, result: unknown): void {
    if (this.#results.has(step)) throw new Error(`two steps are named ${step}`);
    this.#results.set(step, String(result));
  }

  get transcript(): Transcript {
    return this.#results;
  }
}
