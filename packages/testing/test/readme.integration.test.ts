/** The programs that the README shows, done in its order: what the shell has typed is there when the client comes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as client from '@tskeeper/client';
import * as serverPackage from '@tskeeper/server';
import { expect, it } from 'vitest';
import { TestServer } from '../src/index.ts';

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
const packages: Readonly<Record<string, object>> = { '@tskeeper/client': client, '@tskeeper/server': serverPackage };

/** Runs the program of the README that contains `mark`, changed where it must be; its imports are handed in, and what it prints is returned. */
async function run(mark: string, change: (code: string) => string): Promise<string[]> {
  const code = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1]!).find((text) => text.includes(mark))!;
  const [whole, names, from] = /^import \{ (.*) \} from '(.*)';$/m.exec(code)!;
  const imported = names!.split(', ');
  // This Node does not know `await using`; what it does at the end is done by hand.
  const used = [...code.matchAll(/^await using (\w+) =/gm)].map((match) => match[1]!);
  const body = change(code).replace(whole, '').replaceAll('await using ', 'const ');
  const ends = used.map((name) => `await ${name}.close();`).join('\n');
  const program = `export async function start(console, ${names}) {\n${body}\n${ends}\n}`;
  const printed: string[] = [];
  const log = (...values: unknown[]): void => void printed.push(values.join(' '));
  const url = `data:text/javascript,${encodeURIComponent(program)}`;
  const { start } = (await import(/* @vite-ignore */ url)) as { start: (...args: unknown[]) => Promise<void> };
  await start({ log }, ...imported.map((name) => (packages[from!] as Record<string, unknown>)[name]));
  return printed;
}

it('the program for Node finds what the shell has left, and does what its comments say', async () => {
  await using server = await TestServer.start();
  await using zk = await client.connect(server.connectString);
  await zk.create('/hello');
  await zk.create('/hello/config', 'green');
  expect(await run('zk.getData', (code) => code.replace('127.0.0.1:2181', server.connectString))).toEqual([
    'green 0',
    'NodeDataChanged /hello/config',
    '/hello/workers/w-0000000000',
  ]);
  expect((await zk.getChildren('/hello/workers')).children).toEqual([]);
});

it('the server inside a program is there to be connected to', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tskeeper-readme-'));
  try {
    const printed = await run('await startServer', (code) => code.replace("'./data'", JSON.stringify(folder)));
    expect(printed).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+$/)]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
