/**
 * `npm run sim:ci`: what every change goes through. Seeds, a part of them a second time in another process for the same trace; the named
 * scenarios; the explorer and the crash states of joining, bounded; and mutants in rotation, each of which must be caught. Marks that are
 * never hit are red.
 */
import { execFileSync } from 'node:child_process';
import { zoo } from '../mutants/zoo.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { Pool } from './pool.ts';
import { failureText, freshBase, replayLine } from './run.ts';
import { runSearches } from './searches.ts';
import { reportOutcome, type SeedReport } from './seed-report.ts';
import { Summary } from './summary.ts';
import { catchText, runZoo } from './zoo.ts';

/** The same for every change: they have shown that each mark can be hit. */
const fixedCount = 30;
/** Others for each change. */
const freshCount = 1900;
/** One in so many runs a second time. */
const twiceEvery = 20;
const mutantsInRotation = 10;
const shownMax = 5;

export async function runCi(jobs: number): Promise<boolean> {
  const begun = performance.now();
  const base = treeBase() ?? freshBase();
  const counts = { passed: 0, failed: 0 };
  const fail = (text: string) => {
    counts.failed++;
    console.log(text);
  };
  const summary = await runSeeds(base, jobs, counts, fail);
  console.log(summary.text(performance.now() - begun));
  const { missing } = summary;
  if (missing.length > 0) fail(`marks that no seed has hit: ${missing.join(', ')}`);
  else counts.passed++;
  for (const [name, scenario] of Object.entries(scenarios)) {
    const { findings } = reportOutcome(await scenario.run());
    if (findings.length === 0) counts.passed++;
    else fail(`scenario ${name} failed: ${findings[0]}\n  run it again: npm run sim -- --scenario ${name}`);
  }
  await runSearches(({ name, isWell, output }) => {
    console.log(output);
    if (isWell) counts.passed++;
    else fail(`${name}: see above`);
  });
  const names = Object.keys(zoo);
  const turn = (base / 1000) % names.length;
  const inRotation = [...names.slice(turn), ...names.slice(0, turn)].slice(0, mutantsInRotation);
  await runZoo(inRotation, base, undefined, jobs, (caught) => {
    if (caught.report === undefined) fail(catchText(caught));
    else {
      counts.passed++;
      console.log(catchText(caught));
    }
  });
  console.log(`${((performance.now() - begun) / 1000).toFixed(1)} s`);
  console.log(`${counts.passed} passed, ${counts.failed} failed, 0 skipped`);
  return counts.failed === 0;
}

async function runSeeds(
  base: number,
  jobs: number,
  counts: { passed: number; failed: number },
  fail: (text: string) => void,
): Promise<Summary> {
  const ranges = [
    [1, fixedCount],
    [base, freshCount],
  ] as const;
  const seeds = ranges.flatMap(([from, count]) => Array.from({ length: count }, (_, at) => from + at));
  console.log(`${seeds.length} seeds: ${ranges.map(([from, count]) => `${from} to ${from + count - 1}`).join(', ')}`);
  const summary = new Summary();
  const traces = new Map<number, number>();
  const first = take(seeds);
  await new Pool({ jobs }).run(first, (report) => {
    summary.add(report);
    traces.set(report.seed, report.trace);
    if (report.findings.length === 0) counts.passed++;
    else if (summary.failed <= shownMax) fail(failureText(report, replayLine(report.seed, undefined)));
    else counts.failed++;
  });
  const again = take(seeds.filter((_, at) => at % twiceEvery === 0));
  const repeat = (report: SeedReport) => {
    if (report.trace === traces.get(report.seed)) counts.passed++;
    else fail(`seed ${report.seed} went another way the second time: ${replayLine(report.seed, undefined)}`);
  };
  await new Pool({ jobs }).run(again, repeat);
  return summary;
}

function take(seeds: readonly number[]): () => number | undefined {
  let at = 0;
  return () => seeds[at++];
}

/** Fresh for each state of the sources and the same for each run of one, so that whatever turns a change red does so again. */
function treeBase(): number | undefined {
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD:packages'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return Number.parseInt(tree.slice(0, 10), 16) * 1000;
  } catch {
    return undefined;
  }
}
