import type { FamilyName } from '../recipes/families.ts';

/**
 * Who hunts mutants: the seeds of the simulator, with a story each; the scenarios, which are told the same way each time; the explorer, with a
 * search for each seed (explorer/hunt.ts); the enumeration of crash states, with a case each (crash-states/hunt.ts); or the stories of recipes, of all
 * families in turn or of one (recipes/recipe-seed.ts).
 */
export type Hunter = 'seeds' | 'scenarios' | 'explorer' | 'crash-states' | RecipeHunter;

export type RecipeHunter = 'recipes' | `recipes/${FamilyName}`;

export function isRecipeHunter(hunter: Hunter): hunter is RecipeHunter {
  return hunter.startsWith('recipes');
}

/**
 * A server with one thing wrong: a piece of its source replaced when it is loaded. Nothing in the shipped code knows of it. A piece that is
 * no longer there, or is there twice, is an error, so that a mutant cannot quietly become the server as it should be.
 */
export interface Mutant {
  /** Who has to catch it. Default: seeds. */
  readonly hunter?: Hunter;
  /** What is wrong with it, in a few words. */
  readonly what: string;
  /** Where this was met: a ZooKeeper issue, a row of the catalogue, or a rule of our own. */
  readonly from: string;
  /** From the root of the repository. */
  readonly file: string;
  readonly replace: string;
  readonly by: string;
}

/** Mutants that the stories of one family have to catch. */
export function caughtBy(family: FamilyName, mutants: Readonly<Record<string, Omit<Mutant, 'hunter'>>>): [string, Mutant][] {
  return Object.entries(mutants).map(([name, mutant]) => [name, { hunter: `recipes/${family}`, ...mutant }]);
}

/** The source of a mutant's file with the mutation in it. */
export function mutated(source: string, { file, replace, by }: Mutant): string {
  const at = source.indexOf(replace);
  if (at === -1) throw new Error(`${file} no longer has what the mutant replaces:\n${replace}`);
  if (source.includes(replace, at + 1)) throw new Error(`${file} has what the mutant replaces more than once:\n${replace}`);
  return source.slice(0, at) + by + source.slice(at + replace.length);
}
