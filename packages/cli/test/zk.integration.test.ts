/**
 * The command in its own process: what goes to which stream, what a pipe gets, and how the process
 * ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../src/index.ts';
import { bin, build } from './support/built.ts';
import { logOf } from './support/log-bytes.ts';
import { fixtures, jsonLines, temporaryFolder } from './support/tool.ts';
import { testServer, type ZkServer } from './support/zk.ts';

let server: ZkServer;
let processes: ChildProcess[] = [];

beforeAll(async () => {
  build();
  server = await testServer();
});
afterEach(() => {
  for (const child of processes) child.kill('SIGKILL');
  processes = [];
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

/**
 * A process uses the machine's clock: on a slow machine a command reports after two seconds that it
 * has no session yet.
 */
const noSessionSoFar = /^connecting to \S+; no session yet.*\n/gm;

class Command {
  readonly child: ChildProcess;
  out = '';
  err = '';
  readonly ended: Promise<{ code: number | null; out: string; err: string }>;
  #look: () => void = () => undefined;

  constructor(args: readonly string[], line?: string) {
    const environment = { ...process.env, TSKEEPER_SERVER: server.connectString, TSKEEPER: `${process.execPath} ${bin}` };
    this.child =
      line === undefined ? spawn(process.execPath, [bin, ...args], { env: environment }) : spawn('sh', ['-c', line], { env: environment });
    processes.push(this.child);
    this.child.stdout!.on('data', (bytes: Buffer) => {
      this.out += bytes.toString();
      this.#look();
    });
    this.child.stderr!.on('data', (bytes: Buffer) => {
      this.err += bytes.toString();
      this.#look();
    });
    this.ended = once(this.child, 'close').then(([code]) => ({
      code: code as number | null,
      out: this.out,
      err: this.err.replace(noSessionSoFar, ''),
    }));
  }

  async says(text: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#look = () => {
        if (`${this.out}${this.err}`.includes(text)) resolve();
      };
      this.#look();
    });
  }
}

async function command(...args: readonly string[]) {
  const run = new Command(args);
  run.child.stdin!.end();
  return await run.ended;
}

/** Runs a line of a shell, in which $TSKEEPER is the command. */
async function shellLine(line: string) {
  return await new Command([], line).ended;
}

describe('a process of tskeeper', () => {
  it('answers on standard output, reports errors on standard error, and ends with a specific exit code', async () => {
    expect(await command('create', '/p', '{"colour": "blue"}')).toEqual({ code: exitCodes.done, out: 'Created /p\n', err: '' });
    expect(await command('get', '/p')).toEqual({ code: exitCodes.done, out: '{"colour": "blue"}\n', err: '' });
    expect(await command('get', '/missing')).toEqual({ code: exitCodes.noNode, out: '', err: 'Node does not exist: /missing\n' });
    expect(await command('nonsense')).toMatchObject({ code: exitCodes.noCommand, out: '' });
    expect(await command('create', '/p')).toMatchObject({ code: exitCodes.nodeExists });
  });

  it('can be piped: get /p into a program that reads JSON', async () => {
    const reader = `${process.execPath} -e 'process.stdin.on("data", (d) => console.log(JSON.parse(d).colour))'`;
    expect(await shellLine(`$TSKEEPER get /p | ${reader}`)).toEqual({ code: 0, out: 'blue\n', err: '' });
  });

  it('stores piped data byte by byte, and prints them unchanged', async () => {
    using folder = temporaryFolder({ data: Buffer.from(Array.from({ length: 70_000 }, (_, at) => (at * 7) % 256)) });
    const [data, copy] = [join(folder.path, 'data'), join(folder.path, 'copy')];
    expect(await shellLine(`cat ${data} | $TSKEEPER create /bytes - && $TSKEEPER get /bytes > ${copy}`)).toMatchObject({
      code: 0,
      err: '',
    });
    expect(readFileSync(copy)).toEqual(Buffer.concat([readFileSync(data), Buffer.from('\n')]));
    expect(await shellLine(`$TSKEEPER set /bytes @${copy} && $TSKEEPER set /bytes - < ${data}`)).toMatchObject({ code: 0, err: '' });
  });

  it('fails with exit code 5 when the server refuses connections', async () => {
    const { code, out, err } = await shellLine('$TSKEEPER -s 127.0.0.1:1 --timeout 1000 get /p');
    expect([code, out]).toEqual([exitCodes.noConnection, '']);
    // If the machine pauses for a second, no refusal has arrived by then.
    expect(err).toMatch(/^cannot connect to 127\.0\.0\.1:1: (connection refused|no answer); gave up after/m);
  });

  it('runs a script from standard input', async () => {
    const { code, out, err } = await shellLine(`printf 'set /p green\\nget /p\\nget /missing\\n' | $TSKEEPER shell`);
    expect([code, out, err]).toEqual([exitCodes.noNode, 'green\n', 'Node does not exist: /missing\n']);
  });

  it('waits for the watched event, and ends by SIGINT as shells expect', async () => {
    const watching = new Command(['get', '-w', '/p']);
    await watching.says('green\n');
    await command('set', '/p', 'red');
    expect(await watching.ended).toMatchObject({ code: exitCodes.done, out: 'green\n' });
    const interrupted = new Command(['-o', 'json', 'addWatch', '/p']);
    await interrupted.says('PERSISTENT_RECURSIVE');
    interrupted.child.kill('SIGINT');
    expect((await interrupted.ended).code).toBe(exitCodes.interrupted);
  });

  it('writes all of a long answer for a slow reader, and stops when the reader closes the pipe', async () => {
    const zxids = Array.from({ length: 20_000 }, (_, index) => index + 1);
    using folder = temporaryFolder({ 'log.1': logOf(zxids) });
    const writer = spawn(process.execPath, [bin, 'txnlog', 'dump', folder.path], { stdio: ['ignore', 'pipe', 'ignore'] });
    processes.push(writer);
    // Read nothing until the buffer is full.
    while (writer.stdout.readableLength < writer.stdout.readableHighWaterMark) await once(writer.stdout, 'readable');
    expect(writer.exitCode).toBe(null);
    let lines = 0;
    for await (const piece of writer.stdout) lines += (piece as Buffer).toString().split('\n').length - 1;
    expect(lines).toBe(zxids.length);
    const head = await shellLine(`$TSKEEPER -o json txnlog dump ${folder.path} | head -n 2`);
    expect(jsonLines(head.out).map(({ zxid }) => zxid)).toEqual(['0x1', '0x2']);
    expect(head.err).toBe('');
  });

  it('inspects files without a server', async () => {
    using folder = temporaryFolder();
    writeFileSync(join(folder.path, 'log.1'), logOf([1, 3]));
    expect(await command('txnlog', 'verify', folder.path)).toMatchObject({ code: exitCodes.failed });
    expect(await command('snapshot', 'diff', join(fixtures, 'disk-3.9.5'), join(fixtures, 'disk-3.9.5'))).toMatchObject({
      code: exitCodes.done,
    });
    expect(await command('snapshot', 'verify', folder.path)).toMatchObject({ code: exitCodes.refused });
  });
});
