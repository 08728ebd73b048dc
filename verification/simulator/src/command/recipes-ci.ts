/**
 * `npm run sim:recipes`, which every change runs: runs of recipes, and some of the recipes' mutants
 * in rotation.
 */
import { isRecipeDetector } from '../mutants/mutant.ts';
import { mutants } from '../mutants/mutants.ts';
import { recipeMarks } from '../recipes/recipe-marks.ts';
import { CiRun } from './ci-run.ts';
import { Summary } from './summary.ts';
import { detectorOf } from './run-mutants.ts';

export async function runRecipesCi(jobs: number): Promise<boolean> {
  const run = new CiRun(jobs);
  await run.seeds({ fixed: 48, fresh: 1152, detector: 'recipes', summary: new Summary(recipeMarks) });
  await run.mutants(
    Object.keys(mutants).filter((name) => isRecipeDetector(detectorOf(name))),
    4,
  );
  return run.end();
}
