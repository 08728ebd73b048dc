/** The error for invalid JSON contains the engine's position, and nothing of the text. */
import { expect, it } from 'vitest';
import { parsedJson } from '../src/json-text.ts';

it.each([
  'password=hunter2',
  '',
  '{ a: "hunter2" }',
  '{"a":hunter2}',
  '{"a":"hunter2"]',
  '{"a":"hunter2',
  `{"${'a'.repeat(100)}":hunter2}`,
  'null hunter2',
])('%j is not JSON, and the error does not quote it', (text) => {
  expect(() => parsedJson(text)).toThrow(SyntaxError);
  expect(() => parsedJson(text)).toThrow(/^not JSON( at position \d+)?$/);
});

it('the error contains the position if the engine reports it', () => {
  expect(() => parsedJson('{"a":1')).toThrow(new SyntaxError('not JSON at position 6'));
});

it.each(['1', ' [1, -2.5e+3, "a\\u0041\\n", null, true, {}] ', '{"a":{"b":[]},"c":false}'])('%j is JSON', (text) => {
  expect(parsedJson(text)).toEqual(JSON.parse(text));
});
