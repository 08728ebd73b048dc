/** What the parts of the command have in common: which servers take part, how often, and how a row is carried out. */
import { type Kind } from './cluster.ts';
import { type Figure, type Outcome, type Row, textOf, verdictOf } from './report.ts';

export interface PartContext {
  /** Of this run; a row has a folder of its own in it. */
  readonly folder: string;
  readonly kinds: readonly Kind[];
  /** Undefined: as many as the row says. */
  readonly rounds: number | undefined;
  readonly isBounded: boolean;
  /** A limit of time as it holds in this run: the bounded form may run on a busy machine, and judges times only roughly. */
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

/** Measures a row for each kind of server, one after the other, and says how it went. */
export async function carryOut(
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
