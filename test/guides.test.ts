/** What guides show is what runs. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

function snippetsOf(page: string): string[] {
  return [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1]!);
}

test.each([
  ['docs/guides/test-with-a-real-server.md', 'packages/testing/test/guide.integration.test.ts'],
  ['docs/guides/test-with-a-real-ensemble.md', 'packages/testing/test/ensemble-guide.integration.test.ts'],
])('the example of %s is the program that the tests run', (page, program) => {
  expect(snippetsOf(read(page))).toEqual([read(program)]);
});

test.each([['docs/guides/tls-and-authentication.md', 'packages/client/test/guide/tls-and-authentication.ts']])(
  'the pieces of code in %s are those of the program that the tests run',
  (page, program) => {
    const pieces = snippetsOf(read(page));
    const [imports, ...rest] = read(program).split('\n\n/** ');
    expect(imports).toContain("from '@tskeeper/client';");
    expect(pieces).toEqual(rest.map((piece) => `/** ${piece.trimEnd()}\n`));
  },
);
