/**
 * `npm run sim:ci`, which every change runs: seeds, some of them a second time in another process
 * to compare the trace; the named scenarios; bounded searches of the explorer and of the crash
 * states; and mutants in rotation, which must be caught, or need more seeds than CI has. Marks that
 * are never hit fail the command.
 */
import { isRecipeDetector } from '../mutants/mutant.ts';
import { mutants } from '../mutants/mutants.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { CiRun } from './ci-run.ts';
import { runSearches } from './searches.ts';
import { reportOutcome } from './seed-report.ts';
import { Summary } from './summary.ts';
import { detectorOf } from './run-mutants.ts';

export async function runCi(jobs: number): Promise<boolean> {
  const run = new CiRun(jobs);
  await run.seeds({ fixed: 30, fresh: 650, detector: 'seeds', summary: new Summary() });
  for (const [name, scenario] of Object.entries(scenarios)) {
    const { findings } = reportOutcome(await scenario.run());
    if (findings.length === 0) run.passed();
    else run.failed(`scenario ${name} failed: ${findings[0]}\n  reproduce: npm run sim -- --scenario ${name}`);
  }
  await runSearches(({ name, passed, output }) => {
    console.log(output);
    if (passed) run.passed();
    else run.failed(`${name} failed; its output is above`);
  });
  await run.mutants(
    Object.keys(mutants).filter((name) => !isRecipeDetector(detectorOf(name))),
    8,
  );
  return run.end();
}
