/** Runs the programs of docs/guides/first-steps.md and compares their output with the guide. */
import { readFileSync } from 'node:fs';
import { TestServer } from '@tskeeper/testing';
import { afterEach, expect, test, vi } from 'vitest';

const page = readFileSync(new URL('../../../../docs/guides/first-steps.md', import.meta.url), 'utf8');
const [ofTypeScript, ofJavaScript] = [...page.matchAll(/^It prints:\n\n```\n([\s\S]*?)^```$/gm)].map(([, printed]) => printed);
const [program, script] = process.argv;

afterEach(() => {
  process.argv = [program!, script!];
  vi.restoreAllMocks();
});

/** The guide's programs export no functions: each runs once, when it is imported. */
async function printedBy(run: () => Promise<unknown>): Promise<string> {
  await using server = await TestServer.start();
  process.argv = [program!, script!, server.connectString];
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  await run();
  expect([...server.inspect.cnxns()]).toEqual([]);
  return log.mock.calls.map(([line]) => `${String(line)}\n`).join('');
}

test('the TypeScript program of the first steps prints what the guide says, and closes its session', async () => {
  expect(await printedBy(() => import('./first-steps.ts'))).toBe(ofTypeScript);
});

test('the JavaScript program of the first steps prints what the guide says, and closes its session', async () => {
  expect(await printedBy(() => import('./first-steps.js'))).toBe(ofJavaScript);
});
