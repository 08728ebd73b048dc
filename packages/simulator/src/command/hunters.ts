/** The hunters, which find errors of a server, one seed at a time. */
import { huntWithCrashStates } from '../crash-states/hunt.ts';
import { type Hunt, hunt } from '../explorer/hunt.ts';
import type { Hunter, RecipeHunter } from '../mutants/mutant.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { type FamilyName, familyNames } from '../recipes/families.ts';
import type { RecipeRunOptions } from '../recipes/recipe-seed.ts';
import { brokenOff, nothingReported, reportOutcome, reportRecipe, reportSeed, type SeedReport } from './seed-report.ts';

const recipeHunters = forRecipes((options) => (seed: number) => reportRecipe(seed, options));

export const hunters: Readonly<Record<Hunter, (seed: number) => SeedReport | Promise<SeedReport>>> = {
  seeds: (seed) => reportSeed(seed),
  scenarios: (seed) => reportScenario(seed),
  explorer: (seed) => reported(seed, hunt(seed)),
  'crash-states': async (seed) => reported(seed, await huntWithCrashStates(seed)),
  ...recipeHunters,
};

const allScenarios = Object.values(scenarios);

/** Here a seed is only the index of a scenario. */
async function reportScenario(seed: number): Promise<SeedReport> {
  try {
    return { ...reportOutcome(await allScenarios[seed % allScenarios.length]!.run()), seed };
  } catch (error) {
    return brokenOff(seed, error);
  }
}

function reported(seed: number, { states, finding }: Hunt): SeedReport {
  return { ...nothingReported, seed, states, findings: finding === undefined ? [] : [finding] };
}

/**
 * The maximum number of seeds for each. Seeds of the explorer take longer and repeat themselves
 * earlier.
 */
export const seedsMax: Readonly<Record<Hunter, number>> = {
  seeds: 2000,
  scenarios: allScenarios.length,
  explorer: 400,
  'crash-states': 60,
  ...forRecipes(() => 600),
};

function forRecipes<T>(make: (options: RecipeRunOptions) => T): Readonly<Record<RecipeHunter, T>> {
  const each = familyNames.map((family) => [`recipes/${family}`, make({ family })] as const);
  return Object.fromEntries([['recipes', make({})], ...each]) as Record<RecipeHunter, T>;
}

export function recipeHunter(family: FamilyName | undefined): RecipeHunter {
  return family === undefined ? 'recipes' : `recipes/${family}`;
}

export function isHunter(name: string): name is Hunter {
  return name in hunters;
}
