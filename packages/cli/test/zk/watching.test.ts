/** Commands that wait for what they watch. */
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

describe('a one-shot command that watches', () => {
  it('prints its answer at once, and ends with the event, which is no part of it', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, 'get', '-w', '/a');
    await terminal.shows('one\n');
    await server.zk('set', '/a', 'two');
    const { code, out, err } = await ended;
    expect([code, out]).toEqual([exitCodes.done, 'one\n']);
    expect(err).toMatch(/^WATCHER::\n\nWatchedEvent state:SyncConnected type:NodeDataChanged path:\/a zxid: \d+\n$/);
  });

  it('tells the event as JSON where JSON was asked for', async () => {
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

  it('ends by a signal with the code that shells give it', async () => {
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

  it('goes on waiting when the connection is lost, and ends when the session is', async () => {
    await using first = await testServer();
    const port = Number(first.connectString.split(':')[1]);
    const terminal = new FakeTerminal();
    const ended = zkAt(first.connectString, terminal, 'get', '-w', '/zookeeper');
    await terminal.shows('\n');
    await first.close();
    await terminal.shows('WatchedEvent state:Disconnected type:None path:null zxid: -1\n');
    // Another database, that has seen more txns than the client knows of and nothing of its session.
    await using second = await testServer(port);
    await second.zk('create', '/more');
    const { code, err } = await ended;
    expect(code).toBe(exitCodes.noConnection);
    expect(err).toContain('WatchedEvent state:Expired type:None path:null zxid: -1\n');
    expect(err).toMatch(/the session is over, and the watch with it\n$/);
  });
});

describe('addWatch', () => {
  it('prints event after event on standard output until it is interrupted', async () => {
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

  it('ends when nobody reads its events any more', async () => {
    const terminal = new FakeTerminal();
    const ended = zkAt(server.connectString, terminal, 'addWatch', '-m', 'PERSISTENT', '/gone');
    // It says nothing until something happens; that it watches shows in what the server knows.
    while (server.watchCount() === 0) await new Promise((resolve) => setImmediate(resolve));
    terminal.reads = false;
    await server.zk('create', '/gone');
    expect((await ended).code).toBe(exitCodes.done);
  });
});
