import { expect, test } from 'vitest';
import { sample } from '../../../test/breadth.ts';
import { check, findingText, scenarios } from '../src/index.ts';

test.each(sample(Object.entries(scenarios), 7))('the scenario %s has no findings', async (_name, scenario) => {
  expect(check((await scenario.run()).recording).map(findingText)).toEqual([]);
});
