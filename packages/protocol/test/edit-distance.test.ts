import { expect, it } from 'vitest';
import { editDistance } from '../src/edit-distance.ts';

it.each([
  ['verison', 'version', 1],
  ['', 'abc', 3],
  ['abc', 'abc', 0],
  ['abcd', 'acbd', 1],
  ['kitten', 'sitting', 3],
])('the distance from %s to %s is %i', (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
});
