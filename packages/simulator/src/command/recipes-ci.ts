/**
 * `npm run sim:recipes`, which every change runs: runs of recipes, and some of the recipes' mutants
 * in rotation.
 */
import { isRecipeHunter } from '../mutants/mutant.ts';
import { zoo } from '../mutants/zoo.ts';
import { recipeMarks } from '../recipes/recipe-marks.ts';
import { CiRun } from './ci-run.ts';
import { Summary } from './summary.ts';
import { hunterOf } from './zoo.ts';

export async function runRecipesCi(jobs: number): Promise<boolean> {
  const run = new CiRun(jobs);
  await run.seeds({ fixed: 48, fresh: 1152, hunter: 'recipes', summary: new Summary(recipeMarks) });
  await run.mutants(
    Object.keys(zoo).filter((name) => isRecipeHunter(hunterOf(name))),
    4,
  );
  return run.end();
}
