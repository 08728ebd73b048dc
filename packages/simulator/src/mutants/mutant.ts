import type { FamilyName } from '../recipes/families.ts';

/**
 * The hunter of a mutant: the simulator's seeds, one run each; the scenarios, which run the same
 * each time; the explorer, one search per seed (explorer/hunt.ts); the enumeration of crash states,
 * one case each (crash-states/hunt.ts); or recipe runs, of all families in turn or of one
 * (recipes/recipe-seed.ts).
 */
export type Hunter = 'seeds' | 'scenarios' | 'explorer' | 'crash-states' | RecipeHunter;

export type RecipeHunter = 'recipes' | `recipes/${FamilyName}`;

export function isRecipeHunter(hunter: Hunter): hunter is RecipeHunter {
  return hunter.startsWith('recipes');
}

/**
 * A server with one deliberate error: a piece of its source is replaced when it is loaded. Nothing
 * in the shipped code knows of it. If the piece is missing or occurs twice, that is an error, so
 * that a mutant cannot silently become the unchanged server.
 */
export interface Mutant {
  /** The hunter that has to catch it. Default: seeds. */
  readonly hunter?: Hunter;
  /** What is wrong, in a few words. */
  readonly what: string;
  /**
   * Where the bug was met: a ZooKeeper issue, a row of the behaviour reference, or a rule of our
   * own.
   */
  readonly from: string;
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly replace: string;
  readonly by: string;
}

/** Mutants that the runs of one family have to catch. */
export function caughtBy(family: FamilyName, mutants: Readonly<Record<string, Omit<Mutant, 'hunter'>>>): [string, Mutant][] {
  return Object.entries(mutants).map(([name, mutant]) => [name, { hunter: `recipes/${family}`, ...mutant }]);
}

/** The source of the mutant's file with the mutation applied. */
export function mutated(source: string, { file, replace, by }: Mutant): string {
  const at = source.indexOf(replace);
  if (at === -1) throw new Error(`${file} does not contain the text that the mutant replaces; adapt the mutant:\n${replace}`);
  if (source.includes(replace, at + 1))
    throw new Error(`${file} contains the text that the mutant replaces more than once; make it longer:\n${replace}`);
  return source.slice(0, at) + by + source.slice(at + replace.length);
}
