/** Where a text stops being JSON, told without a word of it. */
import { expect, it } from 'vitest';
import { parsedJson } from '../src/json-text.ts';

it.each([
  ['password=hunter2', 0],
  ['', 0],
  ['   ', 3],
  ['{ a: 1 }', 2],
  ['{"a" 1}', 5],
  ['{"a":}', 5],
  ['{"a":1,}', 7],
  ['{"a":1 "b":2}', 7],
  ['{"a":1]', 6],
  ['[1,2', 4],
  ['[1,]', 3],
  ['[1 2]', 3],
  ['[tru]', 1],
  ['01', 1],
  ['-', 0],
  ['1.', 1],
  ['"a', 0],
  ['"a\n"', 0],
  ['"\\x"', 0],
  ['{"a":"secret', 5],
  ['null null', 5],
  ['\ufeff1', 0],
])('%j is not JSON, and the error has the position alone', (text, position) => {
  let message = 'nothing is thrown';
  try {
    parsedJson(text);
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    expect((error as Error).cause).toBe(undefined);
    message = (error as Error).message;
  }
  expect(message).toBe(`not JSON at position ${position}`);
});

it.each([
  ['an array in an array', '['.repeat(1_000_000), 1_000_000],
  ['a long string, and no comma', `["${'a'.repeat(1_000_000)}" 1]`, 1_000_004],
  ['a long string with escapes, and no end', `["${'\\n'.repeat(500_000)}`, 1],
])('%s: the position is found in as many steps as there are characters', (_, text, position) => {
  expect(() => parsedJson(text)).toThrow(new SyntaxError(`not JSON at position ${position}`));
});

it.each(['1', ' [1, -2.5e+3, "a\\u0041\\n", null, true, {}] ', '{"a":{"b":[]},"c":false}', '"\u2028 größer"'])('%j is JSON', (text) => {
  expect(parsedJson(text)).toEqual(JSON.parse(text));
});
