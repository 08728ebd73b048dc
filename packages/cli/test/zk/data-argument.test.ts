/** Znode data from standard input or from a file. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@tskeeper/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { temporaryFolder, type ToolResult } from '../support/tool.ts';
import { testServer, zkAt, type ZkServer } from '../support/zk.ts';

const binary = Buffer.from([0xff, 0x00, 0x0a, 0x80, 0x0d, 0x0a]);

let server: ZkServer;
beforeAll(async () => {
  server = await testServer();
  await server.zk('create', '/p', 'before');
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

async function withInput(input: Uint8Array | string, ...argv: readonly string[]): Promise<ToolResult> {
  const terminal = new FakeTerminal();
  terminal.input.end(input);
  return await zkAt(server.connectString, terminal, ...argv);
}

async function dataOf(path: string): Promise<Buffer | null> {
  await using client = await connect(server.connectString);
  const { data } = await client.getData(path);
  return data === null ? null : Buffer.from(data);
}

describe('data of - and @file', () => {
  it('`-` reads standard input, byte by byte', async () => {
    expect(await withInput(binary, 'set', '/p', '-')).toEqual({ code: exitCodes.done, out: '', err: '' });
    expect(await dataOf('/p')).toEqual(binary);
    expect((await withInput(binary, 'create', '/from-input', '-', 'world:anyone:cdrwa')).out).toBe('Created /from-input\n');
    expect(await dataOf('/from-input')).toEqual(binary);
    await withInput('', 'set', '/p', '-');
    expect(await dataOf('/p')).toEqual(Buffer.alloc(0));
  });

  it('`@file` reads a file, byte by byte', async () => {
    using folder = temporaryFolder({ data: binary });
    expect((await server.zk('set', '/p', `@${join(folder.path, 'data')}`)).code).toBe(exitCodes.done);
    expect(await dataOf('/p')).toEqual(binary);
    expect((await server.zk('create', '/from-file', `@${join(folder.path, 'data')}`)).code).toBe(exitCodes.done);
    expect(await dataOf('/from-file')).toEqual(binary);
  });

  it('is base64 with -b, over any number of lines', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'base64');
    const text = binary.toString('base64');
    writeFileSync(path, `${text.slice(0, 3)}\n${text.slice(3)}\n`);
    expect((await server.zk('set', '-b', '/p', `@${path}`)).code).toBe(exitCodes.done);
    expect(await dataOf('/p')).toEqual(binary);
    expect(await withInput('not base64!', 'set', '-b', '/p', '-')).toEqual({
      code: exitCodes.refused,
      out: '',
      err: 'the data from standard input are not base64\n',
    });
  });

  it('a backslash makes text of `-` and of a leading `@`; every other word is text', async () => {
    for (const [word, data] of [
      ['\\-', '-'],
      ['\\@x', '@x'],
      ['\\\\-', '\\-'],
      ['\\\\@x', '\\@x'],
      ['\\n', '\\n'],
      ['\\-x', '\\-x'],
      ['a@b', 'a@b'],
      ['', ''],
    ] as const) {
      await server.zk('set', '/p', '--', word);
      expect([word, (await dataOf('/p'))?.toString()]).toEqual([word, data]);
    }
  });

  it('fails with the name of a file that cannot be read, and changes nothing', async () => {
    using folder = temporaryFolder();
    await server.zk('set', '/p', 'kept');
    const missing = join(folder.path, 'missing');
    expect(await server.zk('set', '/p', `@${missing}`)).toEqual({
      code: exitCodes.refused,
      out: '',
      err: `cannot read the data from ${missing}: ENOENT. To store data that begin with @, write a backslash first: \\@...\n`,
    });
    expect((await server.zk('set', '/p', `@${folder.path}`)).err).toContain(`from ${folder.path}: EISDIR`);
    expect((await server.zk('set', '/p', '@')).err).toContain('a file name must follow @');
    expect((await dataOf('/p'))?.toString()).toBe('kept');
  });

  it('stops reading when the data exceed the longest request', async () => {
    const terminal = new FakeTerminal();
    // An endless source.
    const piece = Buffer.alloc(64 * 1024);
    const feed = () => {
      while (terminal.input.write(piece));
      terminal.input.once('drain', feed);
    };
    feed();
    const { code, err } = await zkAt(server.connectString, terminal, 'set', '/p', '-');
    expect([code, err]).toEqual([
      exitCodes.refused,
      'the data from standard input are longer than 1048575 bytes, the jute.maxbuffer. If the servers accept more, set --jute-maxbuffer\n',
    ]);
  });

  it('is not read further after a signal, which ends the command', async () => {
    const terminal = new FakeTerminal();
    const reading = new Promise<void>((resolve) => {
      terminal.input.once('newListener', () => resolve());
    });
    const ended = zkAt(server.connectString, terminal, 'set', '/p', '-');
    await reading;
    terminal.signal('SIGINT');
    expect((await ended).code).toBe(exitCodes.interrupted);
  });

  it('rejects `-` in the shell, which reads its lines from there', async () => {
    const { code, err } = await withInput('set /p -\n', 'shell');
    expect([code, err]).toEqual([exitCodes.refused, 'the shell reads commands from standard input: use @file, or \\- to store a hyphen\n']);
    using folder = temporaryFolder({ data: binary });
    await withInput(`set /p @${join(folder.path, 'data')}\n`, 'shell');
    expect(await dataOf('/p')).toEqual(binary);
    await withInput('set /p \\-\n', 'shell');
    expect((await dataOf('/p'))?.toString()).toBe('-');
  });
});
