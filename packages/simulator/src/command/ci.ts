/**
 * `npm run sim:ci`: what every change goes through. Seeds, a part of them a second time in another process for the same trace; the named
 * scenarios; the explorer and the crash states of joining, bounded; and mutants in rotation, each of which must be caught. Marks that are
 * never hit are red.
 */
import { isRecipeHunter } from '../mutants/mutant.ts';
import { zoo } from '../mutants/zoo.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { CiRun } from './ci-run.ts';
import { runSearches } from './searches.ts';
import { reportOutcome } from './seed-report.ts';
import { Summary } from './summary.ts';
import { hunterOf } from './zoo.ts';

export async function runCi(jobs: number): Promise<boolean> {
  const run = new CiRun(jobs);
  await run.seeds({ fixed: 30, fresh: 850, hunter: 'seeds', summary: new Summary() });
  for (const [name, scenario] of Object.entries(scenarios)) {
    const { findings } = reportOutcome(await scenario.run());
    if (findings.length === 0) run.passed();
    else run.failed(`scenario ${name} failed: ${findings[0]}\n  run it again: npm run sim -- --scenario ${name}`);
  }
  await runSearches(({ name, isWell, output }) => {
    console.log(output);
    if (isWell) run.passed();
    else run.failed(`${name}: see above`);
  });
  await run.mutants(
    Object.keys(zoo).filter((name) => !isRecipeHunter(hunterOf(name))),
    10,
  );
  return run.end();
}
