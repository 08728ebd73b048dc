import { expect, test } from 'vitest';
import { shownText } from '../../src/auth/shown-text.ts';

test.each([
  ['bob', '"bob"'],
  ['a"b\\c', String.raw`"a\"b\\c"`],
  ['a\nb\u001b[2J', String.raw`"a\nb\u001b[2J"`],
  ['\u007f\u009b\u2028', String.raw`"\u007f\u009b\u2028"`],
  ['x'.repeat(65), `"${'x'.repeat(64)}..."`],
])('%j is shown as %s', (text, shown) => {
  expect(shownText(text)).toBe(shown);
});
