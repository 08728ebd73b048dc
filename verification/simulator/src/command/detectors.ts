/** The detectors, which find errors of a server, one seed at a time. */
import { detectWithCrashStates } from '../crash-states/detector.ts';
import { type Detection, detectWithExplorer } from '../explorer/detector.ts';
import type { Detector, RecipeDetector } from '../mutants/mutant.ts';
import { planOf } from '../run/reconfig-plan.ts';
import { kindsOf } from '../run/swarm.ts';
import { scenarios } from '../scenarios/scenarios.ts';
import { type FamilyName, familyNames } from '../recipes/families.ts';
import type { RecipeRunOptions } from '../recipes/recipe-seed.ts';
import { crashedReport, emptyReport, reportOutcome, reportRecipe, reportSeed, type SeedReport } from './seed-report.ts';

const recipeDetectors = forRecipes((options) => (seed: number) => reportRecipe(seed, options));

export const detectors: Readonly<Record<Detector, (seed: number) => SeedReport | Promise<SeedReport>>> = {
  seeds: (seed) => reportSeed(seed),
  // The other seeds prove nothing about reconfigurations, or about observers of followers.
  reconfigs: (seed) => reportKind(seed, 'reconfig'),
  observers: (seed) => reportKind(seed, 'observers of followers'),
  scenarios: (seed) => reportScenario(seed),
  explorer: (seed) => detectionReport(seed, detectWithExplorer(seed)),
  'crash-states': async (seed) => detectionReport(seed, await detectWithCrashStates(seed)),
  ...recipeDetectors,
};

const allScenarios = Object.values(scenarios);

function reportKind(seed: number, kind: string): SeedReport | Promise<SeedReport> {
  return kindsOf(planOf(seed)).includes(kind) ? reportSeed(seed) : { ...emptyReport, seed, findings: [] };
}

/** Here a seed is only the index of a scenario. */
async function reportScenario(seed: number): Promise<SeedReport> {
  try {
    return { ...reportOutcome(await allScenarios[seed % allScenarios.length]!.run()), seed };
  } catch (error) {
    return crashedReport(seed, error);
  }
}

function detectionReport(seed: number, { states, finding }: Detection): SeedReport {
  return { ...emptyReport, seed, states, findings: finding === undefined ? [] : [finding] };
}

/**
 * The maximum number of seeds for each. Seeds of the explorer take longer and repeat themselves
 * earlier.
 */
export const seedsMax: Readonly<Record<Detector, number>> = {
  seeds: 2000,
  reconfigs: 4000,
  observers: 4000,
  scenarios: allScenarios.length,
  explorer: 400,
  'crash-states': 60,
  ...forRecipes(() => 600),
};

/**
 * What CI spends on a mutant. One that needs more is for `npm run sim:mutants`: CI would take an hour
 * where two such mutants have their turn.
 */
export const ciSeedsMax: Readonly<Record<Detector, number>> = { ...seedsMax, seeds: 120, reconfigs: 120, observers: 120, explorer: 20 };

function forRecipes<T>(make: (options: RecipeRunOptions) => T): Readonly<Record<RecipeDetector, T>> {
  const each = familyNames.map((family) => [`recipes/${family}`, make({ family })] as const);
  return Object.fromEntries([['recipes', make({})], ...each]) as Record<RecipeDetector, T>;
}

export function recipeDetector(family: FamilyName | undefined): RecipeDetector {
  return family === undefined ? 'recipes' : `recipes/${family}`;
}

export function isDetector(name: string): name is Detector {
  return name in detectors;
}
