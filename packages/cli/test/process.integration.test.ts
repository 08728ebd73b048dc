import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bin, build } from './support/built.ts';

let folder: string;
let processes: ChildProcess[];

beforeAll(build);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-process-'));
  processes = [];
});
afterEach(() => {
  for (const child of processes) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

class ServerProcess {
  readonly child: ChildProcess;
  readonly lines: { readonly event: string; readonly msg: string; readonly address?: string }[] = [];
  errors = '';
  readonly exited: Promise<number | null>;
  #wake: () => void = () => undefined;

  constructor(args: readonly string[], environment: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [bin, 'serve', '--log-format', 'json', ...args], {
      cwd: folder,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    processes.push(this.child);
    let rest = '';
    this.child.stdout!.on('data', (bytes: Buffer) => {
      const lines = (rest + bytes.toString()).split('\n');
      rest = lines.pop()!;
      this.lines.push(...lines.map((line) => JSON.parse(line) as ServerProcess['lines'][number]));
      this.#wake();
    });
    this.child.stderr!.on('data', (bytes: Buffer) => (this.errors += bytes.toString()));
    this.exited = once(this.child, 'close').then(([code]) => {
      this.#wake();
      return code as number | null;
    });
  }

  get messages(): string[] {
    return this.lines.map(({ msg }) => msg);
  }

  /** Standard error, which contains one line of JSON. */
  get refusal(): string {
    return (JSON.parse(this.errors) as { msg: string }).msg;
  }

  /** The port on which it serves. */
  async serving(): Promise<number> {
    for (;;) {
      const port = this.lines.find(({ event }) => event === 'server.serving')?.address?.split(':')[1];
      if (port !== undefined) return Number(port);
      if (this.child.exitCode !== null) throw new Error(`the server ended with ${this.child.exitCode}: ${this.errors}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

async function fourLetterWord(port: number, word: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(word);
  let answer = '';
  socket.on('data', (bytes) => (answer += bytes.toString()));
  await once(socket, 'close');
  return answer;
}

describe('a server process', () => {
  it('serves without a configuration, and ends cleanly on SIGTERM and SIGINT', async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const server = new ServerProcess(['--client-port', '0']);
      const port = await server.serving();
      expect(await fourLetterWord(port, 'srvr')).toContain('Mode: standalone\n');
      server.child.kill(signal);
      expect(await server.exited).toBe(0);
      expect(server.messages.at(-1)).toBe('ended');
      expect(server.errors).toBe('');
      expect(readdirSync(join(folder, 'data')).filter((name) => name.startsWith('tskeeper.'))).toEqual([]);
    }
  });

  it('reads zoo.cfg and the environment', async () => {
    writeFileSync(
      join(folder, 'zoo.cfg'),
      `dataDir=${folder}/elsewhere\nclientPort=0\nclientPortAddress=127.0.0.1\n4lw.commands.whitelist=ruok\n`,
    );
    const server = new ServerProcess(['zoo.cfg'], { SERVER_JVMFLAGS: '-Xmx64m -Dzookeeper.snapCount=1000' });
    const port = await server.serving();
    expect(await fourLetterWord(port, 'ruok')).toBe('imok');
    expect(server.messages).toContain('SERVER_JVMFLAGS: -Xmx64m is accepted and has no effect: it is for the Java virtual machine.');
    server.child.kill('SIGTERM');
    expect(await server.exited).toBe(0);
  });

  it('fails to start in a folder that another server uses, and starts there after that server was killed', async () => {
    const first = new ServerProcess(['--client-port', '0']);
    await first.serving();
    const second = new ServerProcess(['--client-port', '0']);
    expect(await second.exited).toBe(2);
    expect(second.refusal).toContain(`is in use by process ${first.child.pid}. Stop that server or choose another folder`);
    first.child.kill('SIGKILL');
    await first.exited;
    const third = new ServerProcess(['--client-port', '0']);
    await third.serving();
    third.child.kill('SIGTERM');
    expect(await third.exited).toBe(0);
  });

  it('fails to start on a port that another server uses', async () => {
    const first = new ServerProcess(['--client-port', '0']);
    const port = await first.serving();
    const second = new ServerProcess(['--client-port', `${port}`, '--data-dir', 'other']);
    expect(await second.exited).toBe(2);
    expect(second.refusal).toContain(`port ${port} of 127.0.0.1 is already in use by process ${first.child.pid} (`);
    first.child.kill('SIGTERM');
    expect(await first.exited).toBe(0);
  });

  it('explains an invalid zoo.cfg in one line on standard error, and writes no log', async () => {
    writeFileSync(join(folder, 'zoo.cfg'), 'dataDir=data\nclientPort=2181\ntickTime=soon\n');
    const server = new ServerProcess(['zoo.cfg']);
    expect(await server.exited).toBe(2);
    expect(server.refusal).toBe('zoo.cfg:3: tickTime must be a whole number from 1 to 2147483647, not "soon".');
    expect(server.lines).toEqual([]);
  });
});
