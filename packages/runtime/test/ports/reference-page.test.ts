import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fourLetterWords } from '../../src/internal.ts';

test('docs/reference/four-letter-words.md has a line for every word and no other', () => {
  const page = readFileSync(new URL('../../../../docs/reference/four-letter-words.md', import.meta.url), 'utf8');
  const words = [...page.matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]!);
  expect(words.toSorted()).toEqual([...fourLetterWords]);
});
