/** What the stories of recipes must have seen, if they are to prove what they say: each fault, and the rare things of each family. */
import { families } from './families.ts';
import { recipeFaults } from './recipe-faults.ts';

export const recipeMarks: readonly string[] = [
  ...Object.keys(recipeFaults).map((name) => `fault ${name}`),
  ...new Set(Object.values(families).flatMap(({ marks }) => marks)),
];
