/** The search for a server: what it reports, and when it fails. */
import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import type { Client, ConnectFailure } from '@tskeeper/client';
import { ManualClock } from '@tskeeper/runtime';
import { afterEach, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { SessionSearch, type SessionSearchOptions } from '../../src/zk/session-search.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { jsonLines } from '../support/tool.ts';
import { testServer, zkAt } from '../support/zk.ts';

let silent: Server | undefined;
afterEach(() => {
  silent?.close();
  silent = undefined;
});

/** A server that accepts connections and sends nothing. */
async function silentServer(): Promise<string> {
  silent = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.unref();
  });
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  return `127.0.0.1:${(silent.address() as { port: number }).port}`;
}

const settings = { timeoutMs: 30_000, connectTimeoutMs: undefined, readOnly: false, maxPacketBytes: undefined, auth: [] };

/** Connection attempts as the client reports them, without a network. */
function watchedAttempts(connectString: string, connectTimeoutMs?: number) {
  const clock = new ManualClock();
  const said: string[] = [];
  let fails: (failure: ConnectFailure) => void = () => undefined;
  let isClosed = false;
  const client = {
    on: (_name: string, listener: typeof fails) => (fails = listener),
    ready: () => new Promise<void>(() => undefined),
    close: () => {
      isClosed = true;
      return Promise.resolve();
    },
  };
  const parts: SessionSearchOptions = {
    clock,
    onProgress: (sentence) => said.push(sentence),
    onState: () => undefined,
    onOpened: () => undefined,
    createClient: () => client as unknown as Client,
  };
  const connecting = new SessionSearch({ ...settings, connectString, connectTimeoutMs }, parts);
  const result = connecting.client(new AbortController().signal).then(
    () => 'connected',
    (error: unknown) => (error as Error).message,
  );
  return {
    clock,
    said,
    connecting,
    result,
    fails: (at: string, reason: string) => fails({ server: at, reason, attempt: 1 }),
    isClosed: () => isClosed,
  };
}

describe('while no server opens a session', () => {
  it('the search reports at once what it tries and why it fails, and gives up after 4 s when every server refuses', async () => {
    const { clock, said, result, fails, connecting } = watchedAttempts('a:1');
    fails('a:1', 'connection failed: ECONNREFUSED');
    expect(said).toEqual(['cannot connect to a:1: connection refused; trying again for 4 s']);
    clock.advance(3999);
    fails('a:1', 'connection failed: ECONNREFUSED');
    clock.advance(600);
    fails('a:1', 'connection failed: ECONNREFUSED');
    expect(await result).toBe('cannot connect to a:1: connection refused; gave up after 4.6 s, --timeout <ms> sets another time');
    expect(said).toHaveLength(1);
    await connecting.close();
    expect(clock.timerCount).toBe(0);
  });

  it('the search does not report a failed server while others are untried', async () => {
    const { clock, said, result, fails } = watchedAttempts('a:1,b:2');
    fails('a:1', 'connection failed: ECONNREFUSED');
    expect(said).toEqual([]);
    fails('b:2 at ::1', 'connection failed: EHOSTUNREACH');
    expect(said).toEqual(['cannot connect to a:1: connection refused, b:2 at ::1: no route to the host; trying again for 4 s']);
    clock.advance(5000);
    fails('a:1', 'connection failed: ECONNRESET');
    expect(await result).toContain('cannot connect to a:1: the connection was reset, b:2 at ::1: no route to the host; gave up');
  });

  it('the search waits for a silent server until the timeout, and reports that', async () => {
    const { clock, said, result, fails } = watchedAttempts('a:1,b:2');
    fails('a:1', 'connection failed: ECONNREFUSED');
    clock.advance(2000);
    expect(said).toEqual(['connecting to a:1,b:2; no session yet (a:1: connection refused); trying for 28 s']);
    clock.advance(13_000);
    fails('b:2', 'timed out');
    expect(await result).toContain('cannot connect to a:1: connection refused, b:2: timed out; gave up after 15 s');
    const alone = watchedAttempts('a:1');
    alone.clock.advance(29_999);
    expect(alone.said).toEqual(['connecting to a:1; no session yet; trying for 28 s']);
    alone.clock.advance(1);
    expect(await alone.result).toBe('cannot connect to a:1: no answer; gave up after 30 s, --timeout <ms> sets another time');
  });

  it('the search takes as long as the user requested, even if every server refuses', async () => {
    const { clock, said, result, fails } = watchedAttempts('a:1', 60_000);
    fails('a:1', 'connection failed: ECONNREFUSED');
    expect(said).toEqual(['cannot connect to a:1: connection refused; trying again for 60 s']);
    clock.advance(59_000);
    fails('a:1', 'connection failed: ECONNREFUSED');
    clock.advance(1000);
    expect(await result).toContain('gave up after 60 s');
  });

  it('the search continues after a command has given up, so that the next one finds a session or fails at once', async () => {
    const { clock, connecting, result, fails, isClosed } = watchedAttempts('a:1');
    clock.advance(5000);
    fails('a:1', 'connection failed: ECONNREFUSED');
    await result;
    expect(isClosed()).toBe(false);
    await expect(connecting.client(new AbortController().signal)).rejects.toThrow(
      'cannot connect to a:1: connection refused; still trying',
    );
    await connecting.close();
    expect(isClosed()).toBe(true);
  });
});

describe('a one-shot command without a server', () => {
  const cannot = 'cannot connect to 127.0.0.1:1: connection refused';

  it('reports the failed search on standard error, and ends with exit code 5', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt('127.0.0.1:1', terminal, '--timeout', '1000', 'ls', '/');
    await terminal.shows('trying again');
    terminal.clock.advance(1000);
    expect(await ended).toEqual({
      code: exitCodes.noConnection,
      out: '',
      err: `${cannot}; trying again for 1 s\n${cannot}; gave up after 1 s, --timeout <ms> sets another time\n`,
    });
  });

  it('reports the failed search as JSON with -o json', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt('127.0.0.1:1', terminal, '--timeout', '1000', '-o', 'json', 'ls', '/');
    await terminal.shows('trying again');
    terminal.clock.advance(1000);
    expect(jsonLines((await ended).err)).toEqual([
      { note: `${cannot}; trying again for 1 s` },
      { error: { code: 'ConnectionLoss', message: `${cannot}; gave up after 1 s, --timeout <ms> sets another time` } },
    ]);
  });

  it('reports a silent server after two seconds and gives up after the timeout, on the clock of its terminal', async () => {
    const server = await silentServer();
    const terminal = new FakeTerminal();
    const connected = once(silent!, 'connection');
    const ended = zkAt(server, terminal, 'ls', '/');
    await connected;
    terminal.clock.advance(1999);
    expect(terminal.errors).toBe('');
    terminal.clock.advance(1);
    expect(terminal.errors).toBe(`connecting to ${server}; no session yet; trying for 28 s\n`);
    terminal.clock.advance(28_000);
    const { code, err } = await ended;
    expect(code).toBe(exitCodes.noConnection);
    expect(err).toContain(`\ncannot connect to ${server}: no answer; gave up after 30 s, --timeout <ms> sets another time\n`);
  });

  it('limits its wait to 24 days, the longest timer of Node, for the longest --timeout', async () => {
    const server = await silentServer();
    const terminal = new FakeTerminal();
    const delays: number[] = [];
    const after = terminal.clock.after.bind(terminal.clock);
    terminal.clock.after = (delayMs, callback) => {
      delays.push(delayMs);
      return after(delayMs, callback);
    };
    const connected = once(silent!, 'connection');
    const ended = zkAt(server, terminal, '--timeout', '2147483647', 'ls', '/');
    await connected;
    terminal.signal('SIGINT');
    await ended;
    // The system's clock adds one millisecond.
    expect(delays).toEqual([2000, 0x7fffffff - 1]);
  });

  it('ends at once on a signal while it connects', async () => {
    const server = await silentServer();
    const terminal = new FakeTerminal();
    const connected = once(silent!, 'connection');
    const ended = zkAt(server, terminal, 'ls', '/');
    await connected;
    terminal.signal('SIGINT');
    expect(await ended).toMatchObject({ code: exitCodes.interrupted, out: '' });
  });

  it('finds a server that starts during the search, and reports nothing more', async () => {
    const first = await testServer();
    const port = Number(first.connectString.split(':')[1]);
    await first.close();
    const terminal = new FakeTerminal();
    const ended = zkAt(first.connectString, terminal, '-waitforconnection', 'ls', '/zookeeper');
    await terminal.shows('trying again');
    await using _second = await testServer(port);
    expect(await ended).toMatchObject({ code: exitCodes.done, out: '[config, quota]\n' });
    expect(terminal.errors).toMatch(/^cannot connect to .*; trying again for [\d.]+ s\n$/);
  });
});
