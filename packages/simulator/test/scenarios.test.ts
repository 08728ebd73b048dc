import { expect, test } from 'vitest';
import { check, findingText, scenarios } from '../src/index.ts';

test.each(Object.entries(scenarios))('the scenario %s comes out well', { timeout: 30_000 }, async (_name, scenario) => {
  expect(check((await scenario.run()).recording).map(findingText)).toEqual([]);
});
