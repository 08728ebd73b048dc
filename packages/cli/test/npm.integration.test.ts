/**
 * A server that npm or npx started ends with them, however they end; a server that neither started
 * outlives its parent.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
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

/** A command that starts a server, and the server's log. */
class Started {
  readonly child: ChildProcess;
  readonly #lines: { readonly pid: number; readonly msg: string }[] = [];
  #wake: () => void = () => undefined;
  /** The server, the last process with the pipe, has closed it. */
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
      // npm and the shell write to the same output.
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

/** Holds a server at a moment of its start until it is released. */
class Hold implements Disposable {
  /** Environment of the command that starts the server. */
  readonly variables: Readonly<Record<string, string>>;
  readonly #pipe: number;

  /**
   * `before everything`: no statement of the command has run. `before modules`: the file that npm
   * started is running, and has loaded no other module.
   */
  constructor(moment: 'before everything' | 'before modules') {
    const pipe = join(folder, 'hold');
    const made = spawnSync('mkfifo', [pipe]);
    if (made.status !== 0) throw new Error(`mkfifo failed: ${made.stderr.toString()}`);
    // Open for reading as well, so that neither side waits for the other to open it.
    this.#pipe = openSync(pipe, constants.O_RDWR);
    const preload = join(folder, 'hold.cjs');
    writeFileSync(
      preload,
      `const { openSync, readSync, writeSync } = require('node:fs');
      function hold() {
        writeSync(1, JSON.stringify({ pid: process.pid, msg: 'held' }) + '\\n');
        readSync(openSync(${JSON.stringify(pipe)}, 'r+'), Buffer.alloc(1));
      }
      // npm, its shells and the compiler have other names.
      if (/\\/(tskeeper|start\\.js)$/.test(process.argv[1])) {
        const { versions } = process;
        let isHeld = false;
        if (${JSON.stringify(moment)} === 'before everything') hold();
        else Object.defineProperty(process, 'versions', { get: () => {
          if (!isHeld && new Error().stack.includes('.js:')) {
            isHeld = true;
            hold();
          }
          return versions;
        } });
      }`,
    );
    this.variables = { NODE_OPTIONS: `--require ${preload}` };
  }

  letGo(): void {
    writeSync(this.#pipe, 'x');
  }

  [Symbol.dispose](): void {
    this.letGo();
    closeSync(this.#pipe);
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

// On Windows the pid of npm is that of a shell.
describe.skipIf(process.platform === 'win32')('a server', () => {
  const args = (): string[] => ['--client-port', '0', '--data-dir', join(folder, 'data'), '--log-format', 'json'];
  type Variables = Readonly<Record<string, string>>;
  const ways = {
    'npm start': (more?: Variables) => new Started('npm', ['start', '--', ...args()], root, more),
    'npx tskeeper serve': (more?: Variables) => new Started('npx', ['tskeeper', 'serve', ...args()], project(), more),
    'npm run with a shell in between': (more?: Variables) =>
      new Started('npm', ['run', 'server'], project(), { ARGS: args().join(' '), ...more }),
  };

  it.each([
    ['npm start', 'SIGTERM'],
    ['npm start', 'SIGINT'],
    ['npm start', 'SIGHUP'],
    ['npm start', 'SIGKILL'],
    ['npx tskeeper serve', 'SIGTERM'],
    ['npx tskeeper serve', 'SIGKILL'],
    ['npm run with a shell in between', 'SIGHUP'],
  ] as const)('started by %s ends cleanly when npm receives %s', async (way, signal) => {
    const server = ways[way]();
    await server.logs(/^serving clients on /);
    // Ctrl+C is a signal to all processes of the terminal's foreground group. SIGINT to npm alone
    // has no effect: the shell keeps waiting.
    process.kill(signal === 'SIGINT' ? -server.child.pid! : server.child.pid!, signal);
    await server.closed;
    expect(server.messages.at(-1)).toBe('ended');
    expect(server.messages.filter((message) => message.endsWith(': ending'))).toHaveLength(1);
    expect(readdirSync(join(folder, 'data')).filter((name) => name.startsWith('tskeeper.'))).toEqual([]);
  });

  describe.each(['before everything', 'before modules'] as const)('held %s', (moment) => {
    it.each([
      ['npm start', 'SIGTERM'],
      ['npm start', 'SIGKILL'],
      ['npx tskeeper serve', 'SIGTERM'],
      ['npx tskeeper serve', 'SIGHUP'],
      ['npx tskeeper serve', 'SIGKILL'],
      ['npm run with a shell in between', 'SIGKILL'],
    ] as const)('started by %s does not serve when npm ends by %s during the start', async (way, signal) => {
      using hold = new Hold(moment);
      const server = ways[way](hold.variables);
      await server.logs(/^held$/);
      process.kill(server.child.pid!, signal);
      if (server.child.exitCode === null && server.child.signalCode === null) await once(server.child, 'exit');
      hold.letGo();
      await Promise.race([server.closed, server.logs(/^serving clients on /)]);
      expect(server.messages.slice(0, 1)).toEqual(['held']);
      // A signal that reached the server itself has ended it there.
      if (server.messages.length > 1)
        expect(server.messages.slice(1)).toEqual(['npm, which started this server, has ended: ending', 'ended']);
      expect(readdirSync(folder)).not.toContain('data');
    });
  });

  it('continues after SIGHUP and after its shell has ended, if it runs in the background', async () => {
    const server = new Started('sh', ['-c', '"$@" & :', 'sh', 'nohup', process.execPath, bin, 'serve', ...args()], folder);
    await server.logs(/^serving clients on /);
    if (server.child.exitCode === null) await once(server.child, 'exit');
    process.kill(server.serverPid, 'SIGHUP');
    await server.logs(/^ignoring SIGHUP/);
    process.kill(server.serverPid, 'SIGTERM');
    await server.closed;
    expect(server.messages.slice(-2)).toEqual(['SIGTERM: ending', 'ended']);
  });
});
