/** A client before its session exists: its state, its calls, and how it ends. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, type ConnectFailure, type ConnectOptions, connect, createClient, type SessionEvent } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { settle } from './support/outcomes.ts';

let world: ClientWorld;

beforeEach(async () => {
  world = await ClientWorld.start();
});

afterEach(async () => {
  await world.close();
});

function create(options: ConnectOptions = {}, servers = 'server:2181'): { zk: Client; states: SessionEvent[]; failures: ConnectFailure[] } {
  const states: SessionEvent[] = [];
  const zk = createClient(servers, world.options({ onState: (event) => void states.push(event), ...options }));
  const failures: ConnectFailure[] = [];
  zk.on('connectFailed', (failure) => void failures.push(failure));
  return { zk, states, failures };
}

describe('C2-1: a client of createClient', () => {
  it('C2-1: is connecting at once, and its calls wait for the session, in order', async () => {
    const { zk, states } = create();
    expect([zk.state, zk.sessionId, zk.connectedServer, zk.endReason]).toEqual(['connecting', 0n, undefined, undefined]);
    const calls = [zk.create('/a', 'one'), zk.setData('/a', 'two', { version: 0 }), zk.getText('/a')] as const;
    const [, , { text, stat }] = await world.until(Promise.all(calls));
    expect([text, stat.version]).toEqual(['two', 1]);
    expect([zk.state, zk.connectedServer]).toEqual(['connected', 'server:2181']);
    await zk.ready();
    expect(states.map(({ state }) => state)).toEqual(['SyncConnected']);
  });

  it('C2-1: continues while no server answers: its calls wait, and it reports each failed attempt', async () => {
    world.kill();
    const { zk, failures } = create();
    const call = settle(zk.create('/a', 'one'));
    await world.pass(8000);
    expect(zk.state).toBe('connecting');
    expect(failures.length).toBeGreaterThan(5);
    expect(failures[0]).toMatchObject({ server: 'server:2181', attempt: 1 });
    expect(failures[0]!.reason).toContain('address lookup failed');
    expect(failures.map(({ attempt }) => attempt)).toEqual(failures.map((_, index) => index + 1));
    await world.boot();
    expect((await world.until(call)).outcome).toBe('done');
    expect(zk.state).toBe('connected');
    world.break();
    await world.untilSo(() => zk.state === 'suspended');
    world.kill();
    const before = failures.length;
    await world.pass(5000);
    expect(failures[before]!.attempt).toBe(1);
    await world.boot();
    await world.untilSo(() => zk.state === 'connected');
  });

  it('C2-1: ends if no server was found in time: waiting calls fail with ConnectionLoss, and the reason names each server', async () => {
    const { zk, states } = create({ connectTimeoutMs: 3000 }, 'one:2181,two:2182');
    const call = settle(zk.getData('/a'));
    const failure = await world.until(settle(zk.ready()));
    expect(failure.outcome).toBe('ConnectionLoss notSent');
    expect(failure.error).toMatchObject({ op: 'connect' });
    for (const server of ['one:2181', 'two:2182'])
      expect(failure.error!.message).toContain(`${server}: address lookup failed: the name ${server.split(':')[0]} does not resolve`);
    const waited = await world.until(call);
    expect(waited.outcome).toBe('ConnectionLoss notSent');
    expect(waited.error!.message).toContain('no session within 3000 ms; ');
    expect([zk.state, zk.endReason]).toEqual(['closed', 'closed']);
    expect(states).toMatchObject([{ state: 'Closed', reason: waited.error!.reason }]);
    const late = await world.until(settle(zk.getData('/a')));
    expect(late.outcome).toBe('SessionExpired notSent');
    expect(late.error!.message).toContain('this client was closed: no session within 3000 ms; ');
    await zk.close();
  });

  it('C2-1: can be closed while it is connecting, and then dials no server', async () => {
    world.kill();
    const { zk, states, failures } = create();
    const call = settle(zk.getData('/a'));
    await world.pass(2000);
    await zk.close();
    expect((await world.until(call)).outcome).toBe('SessionExpired notSent');
    expect((await world.until(settle(zk.ready()))).outcome).toBe('SessionExpired notSent');
    expect(states.map(({ state }) => state)).toEqual(['Closed']);
    const attempts = failures.length;
    await world.pass(60_000);
    expect(failures).toHaveLength(attempts);
  });

  it('C2-1: ends with the signal, and connected rejects with its reason', async () => {
    world.kill();
    const controller = new AbortController();
    const { zk } = create({ signal: controller.signal });
    const call = settle(zk.getData('/a'));
    const waiting = zk.ready();
    await world.pass(1000);
    const reason = new Error('enough');
    controller.abort(reason);
    await expect(world.until(waiting)).rejects.toBe(reason);
    const waited = await world.until(call);
    expect(waited.outcome).toBe('ConnectionLoss notSent');
    expect(waited.error!.message).toContain('stopped connecting: enough');
    expect(waited.error!.cause).toBe(reason);
    const never = create({ signal: AbortSignal.abort(reason) });
    expect(never.zk.state).toBe('closed');
    await expect(world.until(never.zk.ready())).rejects.toBe(reason);
  });

  it('C2-1: ends if its identity is rejected, or the session to resume is gone', async () => {
    const { zk } = create({ auth: [{ scheme: 'nothing', auth: 'x' }] });
    expect((await world.until(settle(zk.ready()))).outcome).toBe('AuthFailed refused');
    expect(zk.state).toBe('authFailed');
    const { zk: late } = create({ session: { id: 0x123n, password: new Uint8Array(16) } });
    expect(late.state).toBe('suspended');
    expect((await world.until(settle(late.getData('/a')))).outcome).toBe('SessionExpired notSent');
    expect(late.state).toBe('expired');
  });

  it('C2-1: causes no unhandled rejection if it fails and no caller waits', async () => {
    const { zk } = create({ connectTimeoutMs: 1000 }, 'nowhere:1');
    await world.untilSo(() => zk.state === 'closed');
    // vitest fails the run for an unhandled rejection.
    await world.pass(1000);
    expect((await world.until(settle(zk.ready()))).outcome).toBe('ConnectionLoss notSent');
  });

  it('throws for invalid arguments', () => {
    expect(() => createClient('a:b', world.options())).toThrow('connect string "a:b": the port of "a:b" is not a number from 1 to 65535.');
    expect(() => createClient('a', { tls: true, ...world.options() })).toThrow('tls and transport exclude each other');
    expect(() => createClient('a', { keepProcessAlive: false, ...world.options() })).toThrow(
      'keepProcessAlive: false requires the default transport',
    );
  });
});

it('connect names at most eight of the servers it has tried', async () => {
  const servers = Array.from({ length: 10 }, (_, index) => `s${index}:1`);
  const failure = await world.until(settle(connect(servers, world.options({ connectTimeoutMs: 20_000 }))));
  expect(failure.error!.message.match(/s\d:1: /g)).toHaveLength(8);
  expect(failure.error!.message).toContain('; and 2 more');
});
