/** What the README shows of a server at work, done. Its program in Python is run by interop, which brings kazoo along. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '@tskeeper/server';
import { expect, it } from 'vitest';
import { FakeTerminal } from './support/fake-terminal.ts';
import { testServer, zkAt } from './support/zk.ts';

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');

it('the four letter word of the README is answered', async () => {
  const word = /^\$ echo (\w{4}) \| nc 127\.0\.0\.1 2181$/m.exec(readme)![1]!;
  const folder = mkdtempSync(join(tmpdir(), 'tskeeper-readme-'));
  const server = await startServer({ dataDir: folder, clientPort: 0 });
  try {
    const [host, port] = server.connectString.split(':');
    const socket = connect({ host: host!, port: Number(port) });
    socket.end(`${word}\n`);
    let answer = '';
    for await (const chunk of socket) answer += String(chunk);
    expect(answer).toContain('Mode: standalone');
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

it('what the README types into the shell works, and the script behind it gets its answer', async () => {
  const [, typed, command, answer] =
    /^\$ npx tskeeper -s 127\.0\.0\.1:2181 shell\n([^`]+)```[^`]+```\n\$ npx tskeeper -s 127\.0\.0\.1:2181 (.*)\n(.*\n)```$/m.exec(readme)!;
  await using server = await testServer();
  const terminal = new FakeTerminal();
  terminal.input.end(typed);
  const shell = await zkAt(server.connectString, terminal, 'shell');
  expect([shell.code, shell.err]).toEqual([0, expect.stringMatching(/^WATCHER::\n\nWatchedEvent .* path:\/hello\/config zxid: \d+\n$/)]);
  expect(shell.out).toMatch(/^Created \/hello\nCreated \/hello\/config\nblue\ncZxid[^]*\/hello\/config\n/);
  expect(await server.zk(...command!.split(' '))).toEqual({ code: 0, out: answer, err: '' });
});
