/**
 * `npm run sim`: runs seeds and prints a summary; for the first failures, the evidence and the
 * command that reproduces them.
 */
import { traceLines } from '../record/trace-text.ts';
import { planOf } from '../run/reconfig-plan.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { recipeMarks } from '../recipes/recipe-marks.ts';
import type { CommandOptions } from './options.ts';
import { Pool } from './pool.ts';
import { type RunListener, reportOutcome, reportRecipe, reportSeed, type SeedReport } from './seed-report.ts';
import { recipeDetector } from './detectors.ts';
import { longRunSeeds, rareHits, Summary } from './summary.ts';
import { UsageError } from './usage-error.ts';

const seedsDefault = 100;
const evidenceMax = 5;
/** Number of failing seeds with full evidence; for the others, only the first line. */
const shownMax = 3;

/** Seeds that differ from every earlier run. */
export function freshSeedBase(): number {
  return Math.floor(Date.now() / 1000) * 1000;
}

export function replayLine({ seed, family }: Pick<SeedReport, 'seed' | 'family'>, mutant?: string): string {
  const command = family === undefined ? '' : ` recipes --family ${family}`;
  return `npm run sim --${command} --seed ${seed}${mutant === undefined ? '' : ` --mutant ${mutant}`}`;
}

export function failureText({ seed, findings }: SeedReport, replay: string): string {
  const evidence = findings.slice(0, evidenceMax).map((each) => `  ${each}`);
  if (findings.length > evidenceMax) evidence.push(`  ... and ${findings.length - evidenceMax} more`);
  return [`seed ${seed} failed`, ...evidence, `  reproduce: ${replay}`].join('\n');
}

/** Returns whether everything passed. */
export async function runCommand(options: CommandOptions): Promise<boolean> {
  validateOptions(options);
  if (options.scenario !== undefined) return await runScenarios(options.scenario);
  const { seed, mutant } = options;
  if (seed !== undefined && mutant === undefined) return await runOne(seed, options);
  return await runMany(options);
}

function validateOptions({ command, scenario, seed, seeds, from, minutes, reconfigs, mutant, trace, events }: CommandOptions): void {
  if (reconfigs && (command === 'recipes' || scenario !== undefined || seed !== undefined)) {
    throw new UsageError('--reconfigs chooses among seeds: npm run sim -- --seeds COUNT --reconfigs');
  }
  if (scenario !== undefined && [seed, seeds, from, minutes, mutant].some((value) => value !== undefined)) {
    throw new UsageError('--scenario takes neither seeds nor a mutant; for a mutant run: npm run sim:mutants -- --mutant NAME');
  }
  if ((trace || events) && (seed === undefined || mutant !== undefined)) {
    throw new UsageError('--trace and --events need one seed and no mutant: npm run sim -- --seed N --trace');
  }
}

async function runOne(seed: number, { command, family, trace, events }: CommandOptions): Promise<boolean> {
  const begun = performance.now();
  const listening: RunListener = {
    onEvent: events ? (what, elapsedMs) => console.log(`${elapsedMs.toFixed(3)} ${what}`) : undefined,
    onEnd: trace ? (recording) => console.log(traceLines(recording).join('\n')) : undefined,
  };
  const report = command === 'recipes' ? await reportRecipe(seed, { family }, listening) : await reportSeed(seed, listening);
  const summary = summaryOf(command);
  summary.add(report);
  console.log(summary.text(performance.now() - begun));
  console.log(`trace ${report.traceHash.toString(16)}`);
  if (report.findings.length > 0) console.log(failureText(report, replayLine(report)));
  return report.findings.length === 0;
}

function summaryOf(command: CommandOptions['command']): Summary {
  return command === 'recipes' ? new Summary(recipeMarks) : new Summary();
}

async function runMany({ command, family, seed, seeds, from, minutes, reconfigs, mutant, jobs }: CommandOptions): Promise<boolean> {
  const begun = performance.now();
  const first = seed ?? from ?? freshSeedBase();
  const count = seed === undefined ? (seeds ?? (minutes === undefined ? seedsDefault : Infinity)) : 1;
  const endsAt = minutes === undefined ? Infinity : begun + minutes * 60_000;
  console.log(reconfigs || count === Infinity ? `seeds from ${first}` : `seeds ${first} to ${first + count - 1}`);
  const summary = summaryOf(command);
  let next = first;
  let left = count;
  const isWanted = (candidate: number): boolean => !reconfigs || planOf(candidate).reconfig !== undefined;
  const nextSeed = (): number | undefined => {
    if (left <= 0 || performance.now() >= endsAt) return undefined;
    left--;
    while (!isWanted(next)) next++;
    return next++;
  };
  const pool = new Pool({ jobs: Math.min(jobs, count), mutant, detector: command === 'recipes' ? recipeDetector(family) : 'seeds' });
  await pool.run(nextSeed, (report) => {
    summary.add(report);
    if (report.findings.length === 0) return;
    if (summary.failed <= shownMax) console.log(failureText(report, replayLine(report, mutant)));
    else console.log(`seed ${report.seed} failed: ${report.findings[0]!.split('\n')[0]}`);
  });
  console.log(summary.text(performance.now() - begun));
  const missing = command === 'recipes' || summary.seeds < longRunSeeds ? [] : summary.missing;
  if (missing.length > 0) console.log(`marks hit fewer than ${rareHits} times: ${missing.join(', ')}`);
  return summary.failed === 0 && missing.length === 0;
}

async function runScenarios(wanted: string): Promise<boolean> {
  const names = wanted === 'all' ? Object.keys(scenarios) : [wanted];
  let passed = true;
  for (const name of names) {
    const scenario = scenarios[name];
    if (scenario === undefined) throw new Error(`unknown scenario ${name}; use one of ${Object.keys(scenarios).join(', ')}`);
    const report = reportOutcome(await scenario.run());
    console.log(`${report.findings.length === 0 ? 'ok    ' : 'FAILED'} ${name}: ${scenario.description}`);
    for (const finding of report.findings.slice(0, evidenceMax)) console.log(`  ${finding}`);
    if (report.findings.length === 0) continue;
    passed = false;
    console.log(`  reproduce: npm run sim -- --scenario ${name}`);
  }
  return passed;
}
