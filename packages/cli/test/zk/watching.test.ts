/** Commands that wait for a watched event. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/index.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { testServer, type ZkServer, zkAt } from '../support/zk.ts';

let server: ZkServer;
beforeAll(async () => {
  server = await testServer();
  await server.zk('create', '/a', 'one');
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

describe('a one-shot command with a watch', () => {
  it('prints its answer at once, and ends with the event, which is not part of the answer', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, 'get', '-w', '/a');
    await terminal.shows('one\n');
    await server.zk('set', '/a', 'two');
    const { code, out, err } = await ended;
    expect([code, out]).toEqual([exitCodes.done, 'one\n']);
    expect(err).toMatch(/^WATCHER::\n\nWatchedEvent state:SyncConnected type:NodeDataChanged path:\/a zxid: \d+\n$/);
  });

  it('prints the event as JSON with -o json', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, '-o', 'json', 'ls', '-w', '/a');
    await terminal.shows('children');
    await server.zk('create', '/a/b');
    expect(JSON.parse((await ended).err)).toEqual({
      event: 'NodeChildrenChanged',
      state: 'SyncConnected',
      path: '/a',
      zxid: expect.stringMatching(/^0x/) as string,
    });
  });

  it('ends on a signal with the exit code that shells use', async () => {
    for (const [signal, code] of [
      ['SIGINT', exitCodes.interrupted],
      ['SIGTERM', exitCodes.terminated],
    ] as const) {
      const terminal = new FakeTerminal();
      const ended = zkAt(server.connectString, terminal, 'stat', '-w', '/a');
      await terminal.shows('numChildren');
      terminal.signal(signal);
      expect(await ended).toMatchObject({ code, err: '' });
    }
  });

  it('keeps waiting when the connection is lost, and ends when the session is lost', async () => {
    await using first = await testServer();
    const port = Number(first.connectString.split(':')[1]);
    const terminal = new FakeTerminal();
    const ended = zkAt(first.connectString, terminal, 'get', '-w', '/zookeeper');
    await terminal.shows('\n');
    await first.close();
    await terminal.shows('WatchedEvent state:Disconnected type:None path:null zxid: -1\n');
    // Another database, with more txns than the client has seen and without its session.
    await using second = await testServer(port);
    await second.zk('create', '/more');
    const { code, err } = await ended;
    expect(code).toBe(exitCodes.noConnection);
    expect(err).toContain('WatchedEvent state:Expired type:None path:null zxid: -1\n');
    expect(err).toMatch(/the session has ended, and its watch with it\n$/);
  });
});

describe('addWatch', () => {
  it('prints each event on standard output until it is interrupted', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, '-o', 'json', 'addWatch', '/w');
    await terminal.shows('PERSISTENT_RECURSIVE');
    await server.zk('create', '/w');
    await server.zk('create', '/w/x');
    await server.zk('delete', '/w/x');
    await terminal.shows('NodeDeleted');
    terminal.signal('SIGINT');
    const { code, out } = await ended;
    expect(code).toBe(exitCodes.interrupted);
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => {
          const { mode, event, path } = JSON.parse(line) as Record<string, string>;
          return `${mode ?? event} ${path}`;
        }),
    ).toEqual(['PERSISTENT_RECURSIVE /w', 'NodeCreated /w', 'NodeCreated /w/x', 'NodeDeleted /w/x']);
  });

  it('ends when the reader of its events closes the pipe', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, 'addWatch', '-m', 'PERSISTENT', '/gone');
    // It prints nothing until an event; the server's watches show that it watches.
    while (server.watchCount() === 0) await new Promise((resolve) => setImmediate(resolve));
    terminal.reads = false;
    await server.zk('create', '/gone');
    expect((await ended).code).toBe(exitCodes.done);
  });
});
