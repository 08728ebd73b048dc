import type { FamilyName } from '../recipes/families.ts';

/**
 * The detector of a mutant: the simulator's seeds, one run each, or only those that change the
 * membership, or those with observers that learn from followers; the scenarios, which run the same
 * each time; the explorer, one search per seed (explorer/detector.ts); the enumeration of crash
 * states, one case each (crash-states/detector.ts); or recipe runs, of all families in turn or of
 * one (recipes/recipe-seed.ts).
 */
export type Detector = 'seeds' | 'reconfigs' | 'observers' | 'scenarios' | 'explorer' | 'crash-states' | RecipeDetector;

export type RecipeDetector = 'recipes' | `recipes/${FamilyName}`;

export function isRecipeDetector(detector: Detector): detector is RecipeDetector {
  return detector.startsWith('recipes');
}

/**
 * A server with one deliberate error: a piece of its source is replaced when it is loaded. Nothing
 * in the shipped code knows of it. The piece is addressed by symbol and text, not by file, so that
 * a mutant survives when code moves. If the symbol or the piece is missing or occurs twice, that is
 * an error, so that a mutant cannot silently become the unchanged server (apply-mutant.ts).
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
  /**
   * The declaration that contains the replaced piece, such as `Leader.#checkQuorum`, `isBetterVote`,
   * or `EpochStages` if the piece does not lie within one member (source-symbols.ts).
   */
  readonly symbol: string;
  /** The replaced piece. It must occur exactly once in the text of the symbol. */
  readonly original: string;
  readonly replacement: string;
}

/** Mutants that the runs of one family have to catch. */
export function detectedBy(family: FamilyName, mutants: Readonly<Record<string, Omit<Mutant, 'detector'>>>): [string, Mutant][] {
  return Object.entries(mutants).map(([name, mutant]) => [name, { detector: `recipes/${family}`, ...mutant }]);
}
