/** A server for users' own tests: it starts at once, and does to a client what such tests need. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, connect, KeeperError, type SessionEvent } from '@tskeeper/client';
import { describe, expect, it, vi } from 'vitest';
import { TestServer } from '../src/index.ts';

/** Resolves with the first change of state that `wanted` accepts. */
function stateOf(client: Client, wanted: (event: SessionEvent) => boolean): Promise<SessionEvent> {
  return new Promise((resolve) => {
    const stop = client.on('state', (event) => {
      if (!wanted(event)) return;
      stop();
      resolve(event);
    });
  });
}

const isAgain = ({ state }: SessionEvent): boolean => state === 'SyncConnected';

describe('a test server', () => {
  it('B29: is reachable by a client under its connect string', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    await client.create('/a', 'one');
    expect(Buffer.from((await client.getData('/a')).data!).toString()).toBe('one');
    expect(server.inspect.sessionCount()).toBe(1);
  });

  it('B29: runs beside others, each with its own port and data', async () => {
    await using one = await TestServer.start();
    await using other = await TestServer.start();
    expect(one.port).not.toBe(other.port);
    await using client = await connect(one.connectString);
    await client.create('/a');
    await using elsewhere = await connect(other.connectString);
    expect(await elsewhere.exists('/a')).toBeNull();
  });

  it('is ready after 50 ms of work, on the median of twenty starts', async () => {
    const times: number[] = [];
    for (let start = 0; start < 20; start++) {
      // CPU time, so other work of the machine does not count. A quiet machine needs 2 ms, so a
      // throttled or shared processor has room.
      const begun = process.cpuUsage();
      await using server = await TestServer.start();
      const { user, system } = process.cpuUsage(begun);
      times.push((user + system) / 1000);
      expect(server.isRunning).toBe(true);
    }
    expect(times.toSorted((a, b) => a - b)[10]).toBeLessThan(50);
  });

  it('waits for no timer: it is ready before any time has passed', async () => {
    // No timer fires and no clock advances: any wait would never end.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] });
    try {
      await using server = await TestServer.start();
      expect(server.isRunning).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('has ticks of 2 s, so that session timeouts are between 4 and 40 s', async () => {
    await using server = await TestServer.start();
    await using short = await connect(server.connectString, { sessionTimeoutMs: 1 });
    await using long = await connect(server.connectString, { sessionTimeoutMs: 1_000_000 });
    expect([short.sessionTimeoutMs, long.sessionTimeoutMs]).toEqual([4000, 40_000]);
  });

  it('accepts settings of zoo.cfg, and rejects invalid ones with a sentence', async () => {
    await using server = await TestServer.start({ config: { tickTime: 100 } });
    await using client = await connect(server.connectString, { sessionTimeoutMs: 1, connectTimeoutMs: 5000 });
    expect(client.sessionTimeoutMs).toBe(200);
    await expect(TestServer.start({ config: { tickTime: 'soon' } })).rejects.toThrow('tickTime');
  });

  it('rejects a port in use with a sentence that names it', async () => {
    await using server = await TestServer.start();
    await expect(TestServer.start({ port: server.port })).rejects.toThrow(String(server.port));
  });
});

describe('the data of a test server', () => {
  it.each(['memory', 'folder'] as const)('survive a restart, in storage %s', async (storage) => {
    await using server = await TestServer.start({ storage });
    await using client = await connect(server.connectString);
    await client.create('/kept', 'x');
    await client.create('/mine', '', { mode: 'ephemeral' });
    const { port } = server;
    const again = stateOf(client, isAgain);
    await server.restart();
    await again;
    expect(server.port).toBe(port);
    expect(await client.exists('/kept')).not.toBeNull();
    expect((await client.exists('/mine'))?.ephemeralOwner).toBe(client.sessionId);
  });

  it('are lost when a server in memory is closed', async () => {
    const server = await TestServer.start();
    await server.close();
    await expect(server.start()).rejects.toThrow('closed');
  });

  it('stay in a folder of the user, and are removed with a temporary one', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tskeeper-test-'));
    try {
      await using first = await TestServer.start({ storage: { dataDir } });
      await using client = await connect(first.connectString);
      await client.create('/kept');
      await client.close();
      await first.close();
      expect(existsSync(dataDir)).toBe(true);
      await using second = await TestServer.start({ storage: { dataDir } });
      await using again = await connect(second.connectString);
      expect(await again.exists('/kept')).not.toBeNull();
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});

describe('a test server with clients', () => {
  it('B29: expires a session: its ephemeral znodes are deleted, watches fire, and its client is notified', async () => {
    await using server = await TestServer.start();
    await using other = await connect(server.connectString);
    const client = await connect(server.connectString);
    await client.create('/mine', '', { mode: 'ephemeral' });
    const gone = new Promise<string>((resolve) => void other.exists('/mine', { watch: (event) => resolve(event.type) }));
    await other.sync('/');
    const expired = stateOf(client, ({ state }) => state === 'Expired');
    expect(await server.expireSession(client.sessionId)).toBe(true);
    expect(server.inspect.hasSession(client.sessionId)).toBe(false);
    expect(await gone).toBe('NodeDeleted');
    expect(await other.exists('/mine')).toBeNull();
    await expired;
    expect(client.endReason).toBe('expired');
  });

  it('returns false for the expiry of a session that does not exist', async () => {
    await using server = await TestServer.start();
    expect(await server.expireSession(0x1234n)).toBe(false);
  });

  it('does not let a client resume a session while it is being expired', async () => {
    await using server = await TestServer.start();
    const clients = await Promise.all(Array.from({ length: 20 }, () => connect(server.connectString)));
    const ended = await Promise.all(clients.map(({ sessionId }) => server.expireSession(sessionId)));
    expect(ended).toEqual(clients.map(() => true));
    expect(server.inspect.sessionCount()).toBe(0);
    await Promise.all(clients.map((client) => client.close()));
  });

  it('B29: closes the connection of one session and leaves the others open', async () => {
    await using server = await TestServer.start();
    await using victim = await connect(server.connectString);
    await using other = await connect(server.connectString);
    const heard: string[] = [];
    other.on('state', ({ state }) => heard.push(state));
    const lost = stateOf(victim, ({ state }) => state === 'Disconnected');
    const again = stateOf(victim, isAgain);
    const session = victim.sessionId;
    expect(server.cutConnections(session)).toBe(1);
    await lost;
    await again;
    expect(victim.sessionId).toBe(session);
    expect(heard).toEqual([]);
  });

  it('closes all connections', async () => {
    await using server = await TestServer.start();
    await using one = await connect(server.connectString);
    await using two = await connect(server.connectString);
    const again = Promise.all([stateOf(one, isAgain), stateOf(two, isAgain)]);
    expect(server.cutConnections()).toBe(2);
    await again;
  });

  it('delivers no bytes during a partition, and all of them afterwards', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    const partition = server.partition();
    let isDone = false;
    const created = client.create('/a').then(() => (isDone = true));
    // A complete exchange with another server takes longer than one with this server would have
    // taken.
    await using elsewhere = await TestServer.start();
    await using witness = await connect(elsewhere.connectString);
    await witness.create('/a');
    expect(isDone).toBe(false);
    partition[Symbol.dispose]();
    await created;
    expect(await client.exists('/a')).not.toBeNull();
  });

  it('expires the session of a client that it is cut off from', async () => {
    await using server = await TestServer.start({ config: { tickTime: 50 } });
    const client = await connect(server.connectString, { sessionTimeoutMs: 100, connectTimeoutMs: 5000 });
    const { sessionId } = client;
    const expired = stateOf(client, ({ state }) => state === 'Expired');
    {
      using partition = server.partition();
      void partition;
      await expect.poll(() => server.inspect.hasSession(sessionId)).toBe(false);
    }
    await expired;
  });

  it('never delivers to a client the bytes for another one whose connection is gone', async () => {
    await using server = await TestServer.start();
    const first = await connect(server.connectString);
    const partition = server.partition();
    const lost = first.getData('/').catch((error: unknown) => KeeperError.is(error, 'ConnectionLoss') && error.code);
    server.cutConnections();
    const second = connect(server.connectString);
    expect(await lost).toBe('ConnectionLoss');
    partition[Symbol.dispose]();
    await using client = await second;
    expect((await client.getChildren('/')).children).toEqual(['zookeeper']);
    await first.close();
  });

  it('refuses connections while it is stopped, and resumes its clients when it is back', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    await server.stop();
    expect(server.isRunning).toBe(false);
    expect(() => server.inspect).toThrow('stopped');
    await expect(connect(server.connectString, { connectTimeoutMs: 100 })).rejects.toMatchObject({ code: 'ConnectionLoss' });
    const again = stateOf(client, isAgain);
    await server.start();
    await again;
    await client.create('/a');
  });
});

describe('the time of a test server', () => {
  it('B29: advance expires the session of a silent client, and not that of an active one', async () => {
    await using server = await TestServer.start();
    const silent = await connect(server.connectString, { sessionTimeoutMs: 20_000 });
    await using alive = await connect(server.connectString, { sessionTimeoutMs: 20_000, clock: server.clock });
    await silent.create('/silent', '', { mode: 'ephemeral' });
    await alive.create('/alive', '', { mode: 'ephemeral' });
    const expired = stateOf(silent, ({ state }) => state === 'Expired');
    await server.advance(19_000);
    expect(server.inspect.hasSession(silent.sessionId)).toBe(true);
    await server.advance(5_000);
    expect(server.inspect.hasSession(silent.sessionId)).toBe(false);
    await expired;
    expect(await alive.exists('/silent')).toBeNull();
    expect((await alive.exists('/alive'))?.ephemeralOwner).toBe(alive.sessionId);
    await server.advance(600_000);
    expect(server.inspect.hasSession(alive.sessionId)).toBe(true);
  });

  it('advance deletes containers and TTL znodes', async () => {
    await using server = await TestServer.start({ config: { extendedTypesEnabled: true } });
    await using client = await connect(server.connectString, { clock: server.clock });
    await client.create('/container', '', { mode: 'container' });
    await client.create('/container/child');
    await client.delete('/container/child');
    await client.create('/ttl', '', { mode: 'persistentWithTtl', ttlMs: 5000 });
    await server.advance(130_000);
    expect((await client.getChildren('/')).children).toEqual(['zookeeper']);
  });

  it('is the time of its znodes: ctime grows with advance', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString, { clock: server.clock });
    const ctimeOf = async (path: string): Promise<number> => (await client.exists(path))!.ctime;
    await client.create('/first');
    await server.advance(3_600_000);
    await client.create('/second');
    expect((await ctimeOf('/second')) - (await ctimeOf('/first'))).toBeGreaterThanOrEqual(3_600_000);
  });

  it('continues to pass over a restart', async () => {
    await using server = await TestServer.start({ storage: 'folder' });
    const client = await connect(server.connectString, { sessionTimeoutMs: 10_000 });
    const { sessionId } = client;
    const expired = stateOf(client, ({ state }) => state === 'Expired');
    await server.stop();
    await server.advance(60_000);
    await server.start();
    // The client must not reconnect before its time is up.
    const partition = server.partition();
    expect(server.inspect.hasSession(sessionId)).toBe(true);
    await server.advance(15_000);
    expect(server.inspect.hasSession(sessionId)).toBe(false);
    partition[Symbol.dispose]();
    await expired;
  });

  it('counts a pause of the process only a little: no session expires', async () => {
    await using server = await TestServer.start({ config: { tickTime: 50 } });
    await using client = await connect(server.connectString, { sessionTimeoutMs: 1000, clock: server.clock });
    const until = performance.now() + 1500;
    while (performance.now() < until);
    await client.create('/a', '', { mode: 'ephemeral' });
    expect(server.inspect.hasSession(client.sessionId)).toBe(true);
  });
});
