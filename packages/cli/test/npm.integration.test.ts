/** A server that npm or npx has started ends with them, however they end; one that neither has started goes on without its parent. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bin, build } from './support/built.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
let folder: string;
let started: Started[];

beforeAll(build);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-npm-'));
  started = [];
});
afterEach(() => {
  for (const one of started) one.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** A command that starts a server, and what the server logs. */
class Started {
  readonly child: ChildProcess;
  readonly #lines: { readonly pid: number; readonly msg: string }[] = [];
  #wake: () => void = () => undefined;
  /** The server, the last of all who have the pipe, has closed it. */
  readonly closed: Promise<void>;

  constructor(command: string, args: readonly string[], cwd: string, more: Readonly<Record<string, string>> = {}) {
    const variables = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
    this.child = spawn(command, args, {
      cwd,
      env: { ...Object.fromEntries(variables), ...more },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    started.push(this);
    let rest = '';
    this.child.stdout!.on('data', (bytes: Buffer) => {
      const lines = (rest + bytes.toString()).split('\n');
      rest = lines.pop()!;
      // npm and the shell write there as well.
      this.#lines.push(...lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { pid: number; msg: string }));
      this.#wake();
    });
    this.closed = once(this.child.stdout!, 'close').then(() => undefined);
  }

  get messages(): string[] {
    return this.#lines.map(({ msg }) => msg);
  }

  get serverPid(): number {
    return this.#lines[0]!.pid;
  }

  async logs(wanted: RegExp): Promise<void> {
    while (!this.messages.some((message) => wanted.test(message))) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  kill(): void {
    for (const pid of [this.child.pid, this.#lines[0]?.pid]) {
      try {
        if (pid !== undefined) process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
  }
}

/** A project in which npx finds the command, as after an installation. */
function project(): string {
  const bins = join(folder, 'project', 'node_modules', '.bin');
  mkdirSync(bins, { recursive: true });
  symlinkSync(bin, join(bins, 'tskeeper'));
  writeFileSync(join(folder, 'project', 'package.json'), '{ "name": "p", "scripts": { "server": "tskeeper serve $ARGS; true" } }');
  return join(folder, 'project');
}

// The pid of npm is that of a shell on Windows.
describe.skipIf(process.platform === 'win32')('a server', () => {
  const args = (): string[] => ['--client-port', '0', '--data-dir', join(folder, 'data'), '--log-format', 'json'];
  const ways = {
    'npm start': () => new Started('npm', ['start', '--', ...args()], root),
    'npx tskeeper serve': () => new Started('npx', ['tskeeper', 'serve', ...args()], project()),
    'npm run with a shell in between': () => new Started('npm', ['run', 'server'], project(), { ARGS: args().join(' ') }),
  };

  it.each([
    ['npm start', 'SIGTERM'],
    ['npm start', 'SIGINT'],
    ['npm start', 'SIGHUP'],
    ['npm start', 'SIGKILL'],
    ['npx tskeeper serve', 'SIGTERM'],
    ['npx tskeeper serve', 'SIGKILL'],
    ['npm run with a shell in between', 'SIGHUP'],
  ] as const)('started by %s ends cleanly when npm has been sent %s', async (way, signal) => {
    const server = ways[way]();
    await server.logs(/^serving clients on /);
    // Ctrl+C is a signal to all processes of the terminal's foreground group. Sent to npm alone, SIGINT has no effect: the shell waits on.
    process.kill(signal === 'SIGINT' ? -server.child.pid! : server.child.pid!, signal);
    await server.closed;
    expect(server.messages.at(-1)).toBe('ended');
    expect(server.messages.filter((message) => message.endsWith(': ending'))).toHaveLength(1);
    expect(readdirSync(join(folder, 'data')).filter((name) => name.startsWith('tskeeper.'))).toEqual([]);
  });

  it('that a shell has put into the background outlives the shell and SIGHUP', async () => {
    const server = new Started('sh', ['-c', '"$@" & :', 'sh', 'nohup', process.execPath, bin, 'serve', ...args()], folder);
    await server.logs(/^serving clients on /);
    if (server.child.exitCode === null) await once(server.child, 'exit');
    process.kill(server.serverPid, 'SIGHUP');
    await server.logs(/^SIGHUP: the server goes on/);
    process.kill(server.serverPid, 'SIGTERM');
    await server.closed;
    expect(server.messages.slice(-2)).toEqual(['SIGTERM: ending', 'ended']);
  });
});
