import type { FamilyName } from '../recipes/families.ts';

/**
 * The detector of a mutant: the simulator's seeds, one run each; the scenarios, which run the same
 * each time; the explorer, one search per seed (explorer/detector.ts); the enumeration of crash
 * states, one case each (crash-states/detector.ts); or recipe runs, of all families in turn or of
 * one (recipes/recipe-seed.ts).
 */
export type Detector = 'seeds' | 'scenarios' | 'explorer' | 'crash-states' | RecipeDetector;

export type RecipeDetector = 'recipes' | `recipes/${FamilyName}`;

export function isRecipeDetector(detector: Detector): detector is RecipeDetector {
  return detector.startsWith('recipes');
}

/**
 * A server with one deliberate error: a piece of its source is replaced when it is loaded. Nothing
 * in the shipped code knows of it. If the piece is missing or occurs twice, that is an error, so
 * that a mutant cannot silently become the unchanged server.
 */
export interface Mutant {
  /** The detector that has to catch it. Default: seeds. */
  readonly detector?: Detector;
  /** What is wrong, in a few words. */
  readonly description: string;
  /**
   * Where the bug was met: a ZooKeeper issue, a row of the behaviour reference, or a rule of our
   * own.
   */
  readonly origin: string;
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly original: string;
  readonly replacement: string;
}

/** Mutants that the runs of one family have to catch. */
export function detectedBy(family: FamilyName, mutants: Readonly<Record<string, Omit<Mutant, 'detector'>>>): [string, Mutant][] {
  return Object.entries(mutants).map(([name, mutant]) => [name, { detector: `recipes/${family}`, ...mutant }]);
}

/** The source of the mutant's file with the mutation applied. */
export function applyMutant(source: string, { file, original, replacement }: Mutant): string {
  const at = source.indexOf(original);
  if (at === -1) throw new Error(`${file} does not contain the text that the mutant replaces; adapt the mutant:\n${original}`);
  if (source.includes(original, at + 1))
    throw new Error(`${file} contains the text that the mutant replaces more than once; make it longer:\n${original}`);
  return source.slice(0, at) + replacement + source.slice(at + original.length);
}
