/** All families that have stories. */
import type { Family } from './family.ts';
import { barriers } from './families/barriers.ts';
import { elections } from './families/elections.ts';
import { locks } from './families/locks.ts';
import { sharedLocks } from './families/shared-locks.ts';

export const families = {
  locks,
  'shared-locks': sharedLocks,
  elections,
  barriers,
} as const satisfies Record<string, Family>;

export type FamilyName = keyof typeof families;

export const familyNames = Object.keys(families) as FamilyName[];
