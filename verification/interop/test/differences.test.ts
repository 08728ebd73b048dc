/** The page of justified differences and the rules agree. */
import { readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

import { justifiedDifferences } from '../src/differential/justified-differences.ts';
import { cliDifferences } from '../src/drivers/cli-differences.ts';
import { introductionDifferences } from '../src/ensemble/learner-introductions.ts';
import { localSessionDifferences } from '../src/ensemble/local-sessions.ts';
import { readOnlyDifferences } from '../src/ensemble/read-only.ts';

const page = readFileSync(new URL('../differences.md', import.meta.url), 'utf8');

test('every rule has its row in verification/interop/differences.md, and every row its rule', () => {
  const rows = [...page.matchAll(/^\| `([a-z0-9.-]+)` \|/gm)].map((match) => match[1]);
  const rules = [
    ...justifiedDifferences,
    ...introductionDifferences,
    ...localSessionDifferences,
    ...readOnlyDifferences,
    ...cliDifferences,
  ];
  expect(new Set(rows)).toEqual(new Set(rules.map(({ id }) => id)));
});
