/** `npm run sim:zoo`: runs each mutant until a checker has caught it, and says how many seeds that took. */
import { mutants } from '../mutants/mutants.ts';
import { Pool } from './pool.ts';
import { replayLine } from './run.ts';
import type { SeedReport } from './seed-report.ts';

export interface Catch {
  readonly name: string;
  /** Undefined when nobody noticed. */
  readonly report: SeedReport | undefined;
  readonly seeds: number;
}

/** Runs the mutants, `jobs` at a time, each on seeds from `from` on, at most `seedsMax` of them. */
export async function runZoo(
  names: readonly string[],
  from: number,
  seedsMax: number,
  jobs: number,
  told: (caught: Catch) => void,
): Promise<Catch[]> {
  const waiting = [...names];
  const caught: Catch[] = [];
  const keeper = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const result = await runMutant(name, from, seedsMax);
      caught.push(result);
      told(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, keeper));
  return caught;
}

async function runMutant(name: string, from: number, seedsMax: number): Promise<Catch> {
  if (mutants[name] === undefined) throw new Error(`there is no mutant ${name}; there are ${Object.keys(mutants).join(', ')}`);
  const pool = new Pool({ jobs: 1, mutant: name });
  let seeds = 0;
  let found: SeedReport | undefined;
  await pool.run(
    () => (found === undefined && seeds < seedsMax ? from + seeds++ : undefined),
    (report) => {
      if (report.findings.length > 0) found ??= report;
    },
  );
  return { name, report: found, seeds };
}

const evidenceMax = 110;

export function catchText({ name, report, seeds }: Catch): string {
  const { what } = mutants[name]!;
  if (report === undefined) return `ESCAPED ${name}: ${what}, in ${seeds} seeds`;
  const [first = ''] = report.findings;
  const evidence = first.split('\n')[0]!;
  const shown = evidence.length > evidenceMax ? `${evidence.slice(0, evidenceMax)}...` : evidence;
  return `caught  ${name}: ${what}, in ${seeds} ${seeds === 1 ? 'seed' : 'seeds'}\n          ${shown}\n          ${replayLine(report.seed, name)}`;
}
