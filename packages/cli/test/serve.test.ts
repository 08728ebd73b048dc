import { ConfigError, exitCodes, type Server, type ServerOptions } from '@tskeeper/server';
import type { Inspector } from '@tskeeper/core';
import { DiskError } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { defineServe, run } from '../src/index.ts';
import { FakeTerminal } from './support/fake-terminal.ts';

class FakeServer implements Server {
  readonly connectString = '127.0.0.1:2181';
  readonly dataDir = '/d';
  readonly ended: Promise<void>;
  closed = 0;
  fail!: (error: unknown) => void;

  constructor() {
    this.ended = new Promise((_, reject) => {
      this.fail = reject;
    });
  }
  place: { readonly sid: number; readonly voterCount: number } | undefined;
  get inspect(): Inspector {
    return { ensemble: () => this.place } as Inspector;
  }
  expireSession(): never {
    throw new Error('not asked for');
  }
  transferLeadership(): never {
    throw new Error('not asked for');
  }
  shedConnections(): never {
    throw new Error('not asked for');
  }
  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

async function begin(argv: readonly string[], terminal = new FakeTerminal(), place?: FakeServer['place']) {
  const server = new FakeServer();
  server.place = place;
  const started: ServerOptions[] = [];
  let wasStarted: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    wasStarted = resolve;
  });
  const code = run(argv, terminal, [
    defineServe((options) => {
      started.push(options);
      wasStarted();
      return Promise.resolve(server);
    }),
  ]);
  await Promise.race([begun, code]);
  await new Promise((resolve) => setImmediate(resolve));
  return { code, server, started, terminal };
}

describe('tskeeper serve', () => {
  it('passes its options and arguments to the server', async () => {
    const { code, started, terminal } = await begin([
      'serve',
      'zoo.cfg',
      '--data-dir',
      'd',
      '--client-port',
      '0',
      '--client-address',
      '::1',
      '-Da=b=c',
      '-D',
      'd=e',
      '--log-level',
      'error',
    ]);
    terminal.signal('SIGTERM');
    expect(await code).toBe(exitCodes.ended);
    expect(started).toEqual([
      expect.objectContaining({
        configFile: 'zoo.cfg',
        dataDir: 'd',
        clientPort: 0,
        clientAddress: '::1',
        definitions: ['a=b=c', 'd=e'],
        environment: terminal.environment,
      }),
    ]);
  });

  it('shows on a terminal where the server listens and what to try', async () => {
    const { code, terminal } = await begin(['serve']);
    terminal.signal('SIGINT');
    await code;
    expect(terminal.output).toContain('connect string  127.0.0.1:2181\n');
    expect(terminal.output).toContain('data folder     /d\n');
    expect(terminal.output).toContain('zkCli.sh -server 127.0.0.1:2181 ls /\n');
    expect(terminal.output).toContain("KazooClient as K; k = K('127.0.0.1:2181'); k.start()");
  });

  it('writes only JSON when the output is not a terminal', async () => {
    const terminal = new FakeTerminal();
    terminal.isTty = false;
    const { code } = await begin(['serve'], terminal);
    terminal.signal('SIGTERM');
    await code;
    const messages = terminal.output
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages).toEqual(['SIGTERM: ending', 'ended']);
    expect(JSON.parse(terminal.output.split('\n')[0]!)).toMatchObject({ level: 'info', event: 'server.stopping', reason: 'SIGTERM' });
  });

  it('shows which server of an ensemble it is', async () => {
    const terminal = new FakeTerminal();
    const { code } = await begin(['serve'], terminal, { sid: 2, voterCount: 3 });
    terminal.signal('SIGTERM');
    await code;
    expect(terminal.output).toContain('\n  ensemble        server 2; 3 vote\n  connect string  127.0.0.1:2181\n');
  });

  it('ends on a signal before the start has finished, even if the start never finishes', async () => {
    for (const start of [() => new Promise<never>(() => undefined), () => new Promise<never>((_, reject) => setImmediate(reject))]) {
      const terminal = new FakeTerminal();
      const code = run(['serve'], terminal, [defineServe(start)]);
      await Promise.resolve();
      terminal.signal('SIGTERM');
      expect(await code).toBe(exitCodes.ended);
      expect(terminal.listening).toBe(0);
    }
  });

  it('ends cleanly on a signal, and at once on a second one at least one second later', async () => {
    const { code, server, terminal } = await begin(['serve']);
    terminal.signal('SIGINT');
    // Ctrl+C under npm: the terminal sends the signal, and npm passes it on.
    terminal.clock.advance(999);
    terminal.signal('SIGINT');
    expect(terminal.exited).toEqual([]);
    terminal.clock.advance(1);
    terminal.signal('SIGINT');
    expect(terminal.exited).toEqual([exitCodes.internalError]);
    expect(await code).toBe(exitCodes.ended);
    expect([server.closed, terminal.listening]).toEqual([1, 0]);
  });

  it('ends cleanly on SIGHUP if it was started on a terminal, and ignores it otherwise', async () => {
    const { code, server, terminal } = await begin(['serve']);
    terminal.hangUp(false);
    expect(terminal.output).toContain('ignoring SIGHUP: the server was started without a terminal; stop it with SIGTERM');
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.closed).toBe(0);
    terminal.hangUp(true);
    expect(await code).toBe(exitCodes.ended);
    expect(terminal.output).toContain('SIGHUP: ending');
  });

  it('ends cleanly, with one sentence, when npm, which started it, has ended', async () => {
    const { code, server, terminal } = await begin(['serve']);
    terminal.npmGone(77);
    expect(await code).toBe(exitCodes.ended);
    expect([server.closed, terminal.listening]).toEqual([1, 0]);
    expect(terminal.output).toContain('npm (process 77), which started this server, or its shell has ended: ending\n');
  });

  it('starts no server when npm, which started the command, has already ended', async () => {
    const terminal = new FakeTerminal();
    terminal.onNpmGone = (callback) => {
      callback(undefined);
      return () => undefined;
    };
    const { code, started } = await begin(['serve'], terminal);
    expect(await code).toBe(exitCodes.ended);
    expect([started, terminal.listening]).toEqual([[], 0]);
    expect(terminal.output).toContain('npm, which started this server, has ended: ending\n');
  });

  it('ends with the exit code of the server when the server fails', async () => {
    const { code, server, terminal } = await begin(['serve']);
    server.fail(new DiskError('EIO', 'sync', '/d/version-2/log.1'));
    expect(await code).toBe(exitCodes.diskFailure);
    expect(terminal.output).toContain('the disk failed: sync /d/version-2/log.1: EIO. Check the disk before starting the server again.');
  });

  it('explains a failed start once, on standard error, at every log level: in a sentence, or in JSON with --log-format json', async () => {
    for (const format of ['auto', 'text', 'json']) {
      const terminal = new FakeTerminal();
      terminal.isTty = false;
      const argv = ['serve', '--log-level', 'silent', '--log-format', format];
      const code = await run(argv, terminal, [defineServe(() => Promise.reject(new ConfigError('zoo.cfg:3: no.')))]);
      expect(code).toBe(exitCodes.refused);
      expect(terminal.output).toBe('');
      if (format !== 'json') expect(terminal.errors).toBe('tskeeper: zoo.cfg:3: no.\n');
      else
        expect(JSON.parse(terminal.errors)).toMatchObject({ level: 'error', event: 'server.refused', exitCode: 2, msg: 'zoo.cfg:3: no.' });
    }
  });

  it('ends the process on an uncaught error', async () => {
    const { code, terminal } = await begin(['serve']);
    terminal.uncaught(new Error('a broken belief'));
    expect(terminal.exited).toEqual([exitCodes.internalError]);
    expect(terminal.output).toContain('unexpected error, please report it: Error: a broken belief');
    terminal.signal('SIGTERM');
    await code;
  });

  it('reads level and format of the log from the environment; options take precedence', async () => {
    const terminal = new FakeTerminal();
    process.env['TSKEEPER_LOG_LEVEL'] = 'silent';
    process.env['TSKEEPER_LOG_FORMAT'] = 'json';
    try {
      const { code } = await begin(['serve'], terminal);
      terminal.signal('SIGTERM');
      await code;
      expect(terminal.output).toBe('');
      const loud = await begin(['serve', '--log-level', 'info']);
      loud.terminal.signal('SIGTERM');
      await loud.code;
      expect(loud.terminal.output).toContain('"msg":"ended"');
    } finally {
      delete process.env['TSKEEPER_LOG_LEVEL'];
      delete process.env['TSKEEPER_LOG_FORMAT'];
    }
  });

  it.each([
    [['serve', '--client-port', '99999'], 'It must be a whole number from 0 to 65535.'],
    [['serve', '--log-level', 'loud'], 'Allowed choices are debug, info, warn, error, silent.'],
    [['serve', '--dat-dir', 'x'], "unknown option '--dat-dir'"],
    [['serve', 'a', 'b'], 'too many arguments'],
  ])('%j fails with an explanation', async (argv, explanation) => {
    const { code, started, terminal } = await begin(argv);
    expect(await code).toBe(exitCodes.refused);
    expect(terminal.errors).toContain(explanation);
    expect(started).toEqual([]);
  });

  it('an unknown command fails with the exit code of shells', async () => {
    const { code, terminal } = await begin(['sreve']);
    expect(await code).toBe(127);
    expect(terminal.errors).toContain("unknown command 'sreve'\n(Did you mean serve?)");
  });
});

describe('tskeeper', () => {
  it('prints its version', async () => {
    const { code, terminal } = await begin(['--version']);
    expect([await code, terminal.output]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
  });

  it('prints help for itself and for each command', async () => {
    const general = await begin(['--help']);
    expect(await general.code).toBe(0);
    expect(general.terminal.output).toMatch(/serve \[options\] \[zoo\.cfg\]\s+run a server/);
    const serve = await begin(['serve', '--help']);
    expect(await serve.code).toBe(0);
    expect(serve.terminal.output).toMatch(/Exit codes:\n {2}0 {2}ended as requested\n/);
  });
});
