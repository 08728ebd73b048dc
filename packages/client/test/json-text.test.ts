/** The error for invalid JSON contains the engine's position, and nothing of the text. */
import { expect, it } from 'vitest';
import { parseJson } from '../src/json-text.ts';

it.each([
  'password=hunter2',
  '',
  '{ a: "hunter2" }',
  '{"a":hunter2}',
  '{"a":"hunter2"]',
  '{"a":"hunter2',
  `{"${'a'.repeat(100)}":hunter2}`,
  'null hunter2',
])('parseJson rejects %j, and the error does not quote it', (text) => {
  expect(() => parseJson(text)).toThrow(SyntaxError);
  expect(() => parseJson(text)).toThrow(/^not JSON( at position \d+)?$/);
});

it('the error of parseJson contains the position if the engine reports it', () => {
  expect(() => parseJson('{"a":1')).toThrow(new SyntaxError('not JSON at position 6'));
});

it.each(['1', ' [1, -2.5e+3, "a\\u0041\\n", null, true, {}] ', '{"a":{"b":[]},"c":false}'])('parseJson accepts %j', (text) => {
  expect(parseJson(text)).toEqual(JSON.parse(text));
});
