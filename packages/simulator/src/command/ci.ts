/**
 * `npm run sim:ci`, which every change runs: seeds, some of them a second time in another process
 * to compare the trace; the named scenarios; bounded searches of the explorer and of the crash
 * states; and mutants in rotation, each of which must be caught. Marks that are never hit fail the
 * command.
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
    else run.failed(`scenario ${name} failed: ${findings[0]}\n  reproduce: npm run sim -- --scenario ${name}`);
  }
  await runSearches(({ name, isWell, output }) => {
    console.log(output);
    if (isWell) run.passed();
    else run.failed(`${name} failed; its output is above`);
  });
  await run.mutants(
    Object.keys(zoo).filter((name) => !isRecipeHunter(hunterOf(name))),
    10,
  );
  return run.end();
}
