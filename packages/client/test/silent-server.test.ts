/**
 * A server that opens sessions and answers pings, and answers nothing else: silence never reveals
 * it. `close` still ends, and with `requestTimeoutMs` each call does, and the client moves to
 * another server, as ZooKeeper's Java client does with zookeeper.request.timeout.
 */
import { EventType, OpCode } from '@tskeeper/protocol';
import { beforeEach, describe, expect, it } from 'vitest';
import { KeeperError } from '../src/index.ts';
import { notification } from './support/server-frames.ts';
import { SilentServers } from './support/silent-servers.ts';

let servers: SilentServers;

beforeEach(() => {
  servers = new SilentServers();
});

/** `done`, or the code and outcome of the error. */
async function outcomeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return 'done';
  } catch (error) {
    if (!KeeperError.is(error)) throw error;
    return `${error.code} ${error.outcome}`;
  }
}

/** Silences the connected server. */
function silence(): void {
  servers.silent.add(servers.latest.server);
}

describe('close, if the server does not answer', () => {
  it('resolves after the time-out of the session, and earlier calls fail with ConnectionLoss, unknown', async () => {
    const zk = await servers.client();
    silence();
    const call = outcomeOf(zk.exists('/a'));
    const startMs = servers.nowMs;
    await servers.until(zk.close());
    expect(servers.nowMs - startMs).toBeGreaterThanOrEqual(9000);
    expect(servers.nowMs - startMs).toBeLessThanOrEqual(9100);
    expect(await call).toBe('ConnectionLoss unknown');
    expect([zk.state, servers.latest.over]).toEqual(['closed', true]);
    expect(servers.latest.asked).toEqual(['exists', 'closeSession']);
  });

  it('resolves even if that server sends events without end', async () => {
    const zk = await servers.client();
    silence();
    const startMs = servers.nowMs;
    const { sink } = servers.latest;
    const tell = () => {
      sink.received(notification(EventType.nodeDataChanged, '/a', 7));
      servers.clock.after(5, tell);
    };
    tell();
    await servers.until(zk.close());
    expect(servers.nowMs - startMs).toBeLessThanOrEqual(9100);
  });

  it('waits while answers to earlier calls arrive', async () => {
    const zk = await servers.client();
    silence();
    const calls = [outcomeOf(zk.sync('/')), outcomeOf(zk.sync('/')), outcomeOf(zk.sync('/'))];
    await servers.pass(10);
    const closing = zk.close();
    await servers.pass(6000);
    const { sink } = servers.latest;
    servers.answerSync(sink, 1);
    await servers.pass(6000);
    servers.answerSync(sink, 2);
    const startMs = servers.nowMs;
    await servers.until(closing);
    expect(servers.nowMs - startMs).toBeLessThanOrEqual(9100);
    expect(await Promise.all(calls)).toEqual(['done', 'done', 'ConnectionLoss unknown']);
  });

  it('reads waiting input before it gives up, after a pause of the process', async () => {
    const zk = await servers.client();
    silence();
    const closing = zk.close();
    await servers.pass(100);
    const { sink } = servers.latest;
    servers.standStill(20_000);
    servers.answer(sink, 1);
    await closing;
    // The connection ends gracefully, as for a session that its server has closed.
    expect(servers.latest.ended).toBe(true);
  });

  it('resolves when a session that could not be opened in time is abandoned', async () => {
    const controller = new AbortController();
    servers.mute.add(OpCode.getData);
    const opening = outcomeless(servers.client({ followConfig: true, signal: controller.signal }));
    await servers.pass(50);
    servers.mute.add(OpCode.closeSession);
    controller.abort(new Error('never mind'));
    await servers.pass(9100);
    expect(await opening).toBe('never mind');
    expect(servers.latest.over).toBe(true);
  });
});

/** The reason of the rejection. */
function outcomeless(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'done',
    (error: unknown) => (error as Error).message,
  );
}

describe('A89: requestTimeoutMs, if the server does not answer', () => {
  it('rejects with RequestTimeout, unknown, and the client leaves that server; other pending calls fail with ConnectionLoss', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500 });
    silence();
    const states: string[] = [];
    zk.on('state', ({ state, reason }) => void states.push(reason === undefined ? state : `${state}: ${reason}`));
    const startMs = servers.nowMs;
    const first = zk.setData('/a', 'x');
    const outcome = outcomeOf(first);
    await servers.pass(200);
    const second = outcomeOf(zk.exists('/a'));
    expect(await servers.until(outcome)).toBe('RequestTimeout unknown');
    expect(servers.nowMs - startMs).toBeLessThanOrEqual(520);
    await expect(first).rejects.toMatchObject({
      errno: -122,
      op: 'setData',
      path: '/a',
      retryable: true,
      message: 'KeeperErrorCode = Unknown error REQUESTTIMEOUT for /a (no answer within 500 ms)',
    });
    expect(await second).toBe('ConnectionLoss unknown');
    const [left] = servers.cnxns;
    expect(left!.over).toBe(true);
    await servers.pass(1000);
    expect(servers.latest.server).not.toBe(left!.server);
    expect(states).toEqual([`Disconnected: ${left!.server}:2181: setData was not answered within 500 ms`, 'SyncConnected']);
    expect(await servers.until(outcomeOf(zk.exists('/a')))).toBe('done');
  });

  it('counts as a ConnectionLoss for a retry: a read is repeated, a write only if it is idempotent', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500, retry: true });
    silence();
    expect(await servers.until(outcomeOf(zk.exists('/a')))).toBe('done');
    servers.silent.clear();
    silence();
    expect(await servers.until(outcomeOf(zk.setData('/a', 'x')))).toBe('RequestTimeout unknown');
    await servers.pass(2000);
    servers.silent.clear();
    silence();
    expect(await servers.until(outcomeOf(zk.setData('/a', 'x', { idempotent: true })))).toBe('done');
  });

  it('applies to each attempt, and timeoutMs to all of them; a call with timeoutMs uses only that, and leaves no server', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500, retry: true });
    silence();
    expect(await servers.until(outcomeOf(zk.exists('/a', { timeoutMs: 2000 })))).toBe('RequestTimeout unknown');
    expect(servers.cnxns).toHaveLength(1);
    const patient = outcomeOf(zk.exists('/a', { timeoutMs: Infinity }));
    await servers.pass(20_000);
    expect(servers.cnxns).toHaveLength(1);
    servers.latest.sink.closed('ECONNRESET');
    expect(await servers.until(patient)).toBe('done');
  });

  it('rejects a call that waits for a server with notSent', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500 });
    servers.isDown = true;
    servers.latest.sink.closed('ECONNRESET');
    const late = outcomeOf(zk.setData('/a', 'x'));
    expect(await servers.until(late)).toBe('RequestTimeout notSent');
    servers.isDown = false;
    expect(await servers.until(outcomeOf(zk.exists('/a')))).toBe('done');
    expect(servers.latest.asked).toEqual(['exists']);
  });

  it('expires only after waiting input was read, after a pause of the process', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500 });
    silence();
    const call = outcomeOf(zk.sync('/'));
    await servers.pass(100);
    servers.standStill(3000);
    servers.answerSync(servers.latest.sink, 1);
    expect(await call).toBe('done');
    expect(servers.cnxns).toHaveLength(1);
  });

  it('does not count as another client with the session, however early it expires', async () => {
    const zk = await servers.client({ requestTimeoutMs: 200, retry: { maxAttempts: 9 }, yieldSession: true });
    servers.silent.add('one').add('two');
    expect(await servers.until(outcomeOf(zk.exists('/a')))).toBe('RequestTimeout unknown');
    expect(servers.cnxns.length).toBeGreaterThan(5);
    expect(zk.state).not.toBe('moved');
  });

  it('applies to identities too', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500 });
    silence();
    const call = zk.addAuth('digest', 'user:password');
    expect(await servers.until(outcomeOf(call))).toBe('RequestTimeout unknown');
    await servers.pass(1000);
    expect(servers.cnxns.map(({ over }) => over)).toEqual([true, false]);
    expect(servers.latest.asked).toEqual(['auth']);
  });

  it.each(['watches', 'identities'])(
    'applies to the %s that are restored with a connection, although no call waits for them',
    async (what) => {
      const zk = await servers.client({ requestTimeoutMs: 500 });
      if (what === 'watches') await servers.until(zk.exists('/a', { watch: () => {} }));
      else await servers.until(zk.addAuth('digest', 'user:password'));
      const [first] = servers.cnxns;
      servers.silent.add(first!.server === 'one' ? 'two' : 'one');
      first!.sink.closed('ECONNRESET');
      await servers.pass(3000);
      const asked = what === 'watches' ? ['setWatches'] : ['auth'];
      expect(servers.cnxns.slice(1).map((cnxn) => cnxn.asked)).toEqual([asked, asked]);
      expect([zk.state, servers.latest.server]).toEqual(['connected', first!.server]);
    },
  );

  it('lets a watch loop start on another server', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500 });
    silence();
    const first = zk.watch('/a').next();
    expect(await servers.until(first)).toMatchObject({ value: { type: 'Reread', cause: 'started' } });
    expect(servers.cnxns.map(({ asked }) => asked)).toEqual([['addWatch'], ['addWatch']]);
  });

  it('lets a client with followConfig read the configuration from another server', async () => {
    servers.silent.add('one').add('two');
    const opening = servers.client({ requestTimeoutMs: 500, followConfig: true });
    await servers.until(opening);
    servers.silent.clear();
    await servers.pass(1500);
    expect(servers.latest.asked).toContain('getData');
    expect(servers.cnxns.length).toBeGreaterThan(1);
  });

  it('does not apply to close, which has the session time-out', async () => {
    const zk = await servers.client({ requestTimeoutMs: 500 });
    silence();
    const call = outcomeOf(zk.exists('/a'));
    const startMs = servers.nowMs;
    await servers.until(zk.close());
    expect(servers.nowMs - startMs).toBeLessThanOrEqual(520);
    expect(await call).toBe('RequestTimeout unknown');
  });
});
