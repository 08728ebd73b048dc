/** The marks that recipe runs must hit: each fault, and the marks of each family. */
import { families } from './families.ts';
import { recipeFaults } from './recipe-faults.ts';

export const recipeMarks: readonly string[] = [
  ...Object.keys(recipeFaults).map((name) => `fault ${name}`),
  ...new Set(Object.values(families).flatMap(({ marks }) => marks)),
];
