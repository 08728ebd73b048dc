/**
 * `npm run sim:mutants`: runs each mutant's detector until it catches the mutant, and prints how
 * many seeds that took.
 */
import type { Detector } from '../mutants/mutant.ts';
import { mutants } from '../mutants/mutants.ts';
import { detectors } from './detectors.ts';
import { Pool, type PoolOptions } from './pool.ts';
import type { SeedReport } from './seed-report.ts';

/** Creates what runs the seeds: child processes, except in a test. */
type PoolMaker = (options: PoolOptions) => Pick<Pool, 'run'>;

export interface MutantResult {
  readonly name: string;
  /** Undefined if the mutant escaped. */
  readonly report: SeedReport | undefined;
  readonly seeds: number;
  /** Distinct states that the explorer reached in all of these seeds. */
  readonly states: number;
}

/**
 * Runs the mutants, `jobs` at a time, each on seeds from `from`, at most as many as the limit of its
 * detector. A seed that also fails without the mutant does not count.
 */
export async function runMutants(
  names: readonly string[],
  from: number,
  limitOf: (detector: Detector) => number,
  jobs: number,
  onResult: (results: MutantResult) => void,
  poolOf: PoolMaker = (options) => new Pool(options),
): Promise<MutantResult[]> {
  const waiting = [...names];
  const results: MutantResult[] = [];
  const worker = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const result = await runMutant(name, from, limitOf(detectorOf(name)), poolOf);
      results.push(result);
      onResult(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return results;
}

export function detectorOf(name: string): Detector {
  const mutant = mutants[name];
  if (mutant === undefined) throw new Error(`unknown mutant ${name}; use one of ${Object.keys(mutants).join(', ')}`);
  return mutant.detector ?? 'seeds';
}

async function runMutant(name: string, from: number, seedCountMax: number, poolOf: PoolMaker): Promise<MutantResult> {
  const detector = detectorOf(name);
  let seeds = 0;
  let states = 0;
  let found: SeedReport | undefined;
  do {
    found = undefined;
    await poolOf({ jobs: 1, mutant: name, detector }).run(
      () => (found === undefined && seeds < seedCountMax ? from + seeds++ : undefined),
      (report) => {
        states += report.states;
        if (report.findings.length > 0) found ??= report;
      },
    );
  } while (found !== undefined && (await failsWithoutMutant(found, poolOf({ jobs: 1, detector }))));
  return { name, report: found, seeds, states };
}

async function failsWithoutMutant({ seed }: SeedReport, unmutated: Pick<Pool, 'run'>): Promise<boolean> {
  const waiting = [seed];
  let isRed = false;
  await unmutated.run(
    () => waiting.shift(),
    ({ findings }) => {
      isRed = findings.length > 0;
    },
  );
  return isRed;
}

const evidenceMax = 110;

export function mutantResultText({ name, report, seeds, states }: MutantResult): string {
  const { description, origin } = mutants[name]!;
  const effort = `${seeds} ${seeds === 1 ? 'seed' : 'seeds'}${states === 0 ? '' : `, ${states} states`}`;
  if (report === undefined) return `ESCAPED ${name} (${origin}): ${description}, in ${effort}`;
  const [first = ''] = report.findings;
  const evidence = first.split('\n')[0]!;
  const shown = evidence.length > evidenceMax ? `${evidence.slice(0, evidenceMax)}...` : evidence;
  return `caught  ${name} (${origin}): ${description}, in ${effort}\n          ${shown}\n          npm run sim:mutants -- --mutant ${name} --from ${report.seed} --seeds 1`;
}

/** The summary, for each detector. */
export function mutantsSummary(results: readonly MutantResult[]): string {
  const escaped = results.filter(({ report }) => report === undefined);
  const rows = [`${results.length - escaped.length} of ${results.length} mutants caught`];
  for (const detector of Object.keys(detectors) as Detector[]) {
    const own = results.filter(({ name }) => detectorOf(name) === detector);
    if (own.length === 0) continue;
    const { median, most } = spread(own.map(({ seeds }) => seeds));
    const ofStates = spread(own.map(({ states }) => states));
    const states = ofStates.most === 0 ? '' : `; states: median ${ofStates.median}, at most ${ofStates.most}`;
    rows.push(`${own.length} by ${detector}: seeds needed: median ${median}, at most ${most}${states}`);
  }
  if (escaped.length > 0) rows.push(`escaped: ${escaped.map(({ name }) => name).join(', ')}`);
  return rows.join('\n');
}

function spread(counts: readonly number[]): { median: number; most: number } {
  const sorted = counts.toSorted((a, b) => a - b);
  return { median: sorted[sorted.length >> 1] ?? 0, most: sorted.at(-1) ?? 0 };
}
