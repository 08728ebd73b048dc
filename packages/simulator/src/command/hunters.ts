/** Those who can tell that something is wrong with a server, one seed at a time. */
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

/** A seed is no more than a number of them here. */
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

/** How many seeds each may need at most: those of the explorer take longer, and say the same again sooner. */
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
