/** Common settings of the parts: which servers, how many rounds, and how to run a row. */
import type { Kind } from './ensemble.ts';
import { type Figure, type Outcome, type Row, textOf, verdictOf } from './report.ts';

export interface PartContext {
  /** Folder of this run; each row has its own folder in it. */
  readonly folder: string;
  readonly kinds: readonly Kind[];
  /** undefined: the number of the row. */
  readonly rounds: number | undefined;
  readonly isBounded: boolean;
  /**
   * A time limit in this run: the bounded form may run on a busy machine, and checks times only
   * roughly.
   */
  readonly timeLimit: (limit: number) => number;
  readonly isWanted: (row: string) => boolean;
  readonly say: (line: string) => void;
}

export type Measure = (kind: Kind) => Promise<readonly Figure[]>;

async function outcomeOf(kind: Kind, measure: Measure): Promise<Outcome> {
  try {
    return { figures: await measure(kind) };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
}

/** Measures a row for each kind of server, one after the other, and prints the results. */
export async function measureRow(
  context: PartContext,
  row: { readonly part: string; readonly name: string; readonly limit: string },
  measure: Measure,
): Promise<Row[]> {
  if (!context.isWanted(row.name)) return [];
  const outcomes = new Map<Kind, Outcome>();
  for (const kind of context.kinds) {
    const beganMs = performance.now();
    const outcome = await outcomeOf(kind, measure);
    outcomes.set(kind, outcome);
    const seconds = ((performance.now() - beganMs) / 1000).toFixed(0);
    context.say(`  ${row.name}, ${kind}, ${seconds} s: ${'failure' in outcome ? outcome.failure : textOf(outcome)}`);
  }
  const limit = context.isBounded ? `${row.limit} (times here tenfold)` : row.limit;
  const done = { ...row, limit, ours: outcomes.get('ours'), java: outcomes.get('java-3.9.5') };
  if (done.ours !== undefined) context.say(`  ${row.name}: ${verdictOf(done)}`);
  return [done];
}
