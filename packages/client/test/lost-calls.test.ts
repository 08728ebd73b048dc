/**
 * Every operation of the client and every moment at which a server can be lost: what the caller
 * learns, and what the ensemble has really done. The caller never learns more than can be known,
 * and the session continues afterwards.
 */
import { openAcl } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, KeeperError, op } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';

interface Case {
  readonly name: string;
  readonly call: (zk: Client) => Promise<unknown>;
  /** What other clients see if it was applied; undefined if it changes nothing. */
  readonly shows?: (other: Client) => Promise<boolean>;
  /** The error of the call without any fault. */
  readonly refusedWith?: string;
}

const there = async (other: Client, path: string): Promise<boolean> => (await other.exists(path)) !== null;

const cases: readonly Case[] = [
  { name: 'create', call: (zk) => zk.create('/new', 'x'), shows: (other) => there(other, '/new') },
  { name: 'create ephemeral', call: (zk) => zk.create('/new', 'x', { mode: 'ephemeral' }), shows: (other) => there(other, '/new') },
  { name: 'create container', call: (zk) => zk.create('/new', null, { mode: 'container' }), shows: (other) => there(other, '/new') },
  {
    name: 'create with TTL',
    call: (zk) => zk.create('/new', null, { mode: 'persistentWithTtl', ttlMs: 3_600_000 }),
    shows: (other) => there(other, '/new'),
  },
  { name: 'delete', call: (zk) => zk.delete('/t/child'), shows: async (other) => !(await there(other, '/t/child')) },
  { name: 'setData', call: (zk) => zk.setData('/t', 'y'), shows: async (other) => (await other.exists('/t'))!.version === 1 },
  { name: 'setACL', call: (zk) => zk.setACL('/t', openAcl), shows: async (other) => (await other.exists('/t'))!.aversion === 1 },
  {
    name: 'multi',
    call: (zk) => zk.multi([op.create('/new'), op.setData('/t', 'y')]),
    shows: (other) => there(other, '/new'),
  },
  { name: 'exists', call: (zk) => zk.exists('/t') },
  { name: 'exists of nothing', call: (zk) => zk.exists('/nothing') },
  { name: 'getData', call: (zk) => zk.getData('/t') },
  { name: 'getChildren', call: (zk) => zk.getChildren('/t') },
  { name: 'getAllChildrenNumber', call: (zk) => zk.getAllChildrenNumber('/t') },
  { name: 'getEphemerals', call: (zk) => zk.getEphemerals() },
  { name: 'getACL', call: (zk) => zk.getACL('/t') },
  { name: 'sync', call: (zk) => zk.sync('/t') },
  { name: 'multiRead', call: (zk) => zk.multiRead([op.getData('/t'), op.getChildren('/nothing')]) },
  { name: 'addWatch', call: (zk) => zk.addWatch('/t', { watch: () => {} }) },
  { name: 'removeWatches', call: (zk) => zk.removeWatches('/watched') },
  { name: 'whoAmI', call: (zk) => zk.whoAmI() },
  { name: 'getConfig', call: (zk) => zk.getConfig() },
  { name: 'reconfig', call: (zk) => zk.reconfig({ leavingServers: [2] }), refusedWith: 'ReconfigDisabled' },
];

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  await world.until(other.create('/t', 'x'));
  await world.until(other.create('/t/child'));
  zk = await world.connect();
  await world.until(zk.addWatch('/watched', { watch: () => {} }));
});

afterEach(async () => {
  await world.close();
});

interface Settled {
  readonly outcome: string;
  readonly error: KeeperError | undefined;
}

/** `done`, or the code and outcome of the error. */
async function settle(promise: Promise<unknown>): Promise<Settled> {
  try {
    await promise;
    return { outcome: 'done', error: undefined };
  } catch (thrown) {
    if (!KeeperError.is(thrown)) throw thrown;
    return { outcome: `${thrown.code} ${thrown.outcome}`, error: thrown };
  }
}

/** The client reconnects and works again. */
async function expectUsable(): Promise<void> {
  await world.untilSo(() => zk.state === 'connected');
  expect(await world.until(zk.exists('/t'))).not.toBe(null);
}

/** Whether the ensemble has applied it, as other clients see. */
async function shown({ shows }: Case): Promise<boolean> {
  await world.untilSo(() => other.state === 'connected');
  return shows !== undefined && (await world.until(shows(other)));
}

describe('C2-20: when the server is lost', () => {
  it.each(cases)('while the request is on its way, the call fails as unknown and is not applied: $name', async (each) => {
    const { forward } = world.cnxn;
    forward.cut();
    const call = settle(each.call(zk));
    await world.settle();
    world.break();
    const { outcome, error } = await world.until(call);
    expect(outcome).toBe('ConnectionLoss unknown');
    expect(error).toMatchObject({ retryable: true, op: each.name.split(' ')[0] });
    expect(error!.message).toMatch(/^KeeperErrorCode = ConnectionLoss.* \(server:2181 at 10\.0\.0\.1: the connection broke: ECONNRESET\)$/);
    await expectUsable();
    expect(await shown(each)).toBe(false);
  });

  it.each(cases)('while the answer is on its way, the call fails as unknown, and a write is applied: $name', async (each) => {
    const { backward } = world.cnxn;
    backward.cut();
    const call = settle(each.call(zk));
    await world.settle();
    world.break();
    expect((await world.until(call)).outcome).toBe('ConnectionLoss unknown');
    await expectUsable();
    expect(await shown(each)).toBe(each.shows !== undefined);
  });

  it.each(cases)('in the middle of the answer, the call fails as unknown, and a write is applied: $name', async (each) => {
    const { backward } = world.cnxn;
    backward.resetAfter(backward.deliveredBytes + 11);
    expect((await world.until(settle(each.call(zk)))).outcome).toBe('ConnectionLoss unknown');
    await expectUsable();
    expect(await shown(each)).toBe(each.shows !== undefined);
  });

  it.each(cases)('by a crash before the answer, the call fails as unknown, and the session resumes: $name', async (each) => {
    const { sessionId } = zk;
    const call = settle(each.call(zk));
    world.kill();
    expect((await world.until(call)).outcome).toBe('ConnectionLoss unknown');
    await world.boot();
    await expectUsable();
    expect(zk.sessionId).toBe(sessionId);
    expect(await shown(each)).toBe(false);
  });

  it.each(cases)('by a partition, the client detects the silence, and resumes its session: $name', async (each) => {
    const [dialer, listener] = [world.cnxn.dialer.address, world.cnxn.listener.address];
    world.wire.cut(dialer, listener);
    const called = world.clock.now().elapsedMs;
    const call = settle(each.call(zk));
    const { outcome, error } = await world.until(call);
    expect(outcome).toBe('ConnectionLoss unknown');
    expect(error!.message).toContain('received nothing for 6666 ms');
    expect(world.clock.now().elapsedMs - called).toBeLessThanOrEqual(6800);
    // The server may still get the request: the network delivers it when it heals. A third of the
    // session's time is left to find the session again.
    const { sessionId } = zk;
    world.wire.heal(dialer, listener);
    await world.untilSo(() => zk.state !== 'suspended');
    expect([zk.state, zk.sessionId]).toEqual(['connected', sessionId]);
  });

  it.each(cases)('by a partition that outlasts the session, the client reports the end of the session: $name', async (each) => {
    const [dialer, listener] = [world.cnxn.dialer.address, world.cnxn.listener.address];
    world.wire.cut(dialer, listener);
    expect((await world.until(settle(each.call(zk)))).outcome).toBe('ConnectionLoss unknown');
    await world.pass(20_000);
    expect(zk.state).toBe('suspended');
    world.wire.heal(dialer, listener);
    await world.untilSo(() => zk.state !== 'suspended');
    expect([zk.state, zk.endReason]).toEqual(['expired', 'expired']);
    expect((await world.until(settle(each.call(zk)))).outcome).toBe('SessionExpired notSent');
  });
});

describe('C2-20: while there is no server', () => {
  it.each(cases)('a call waits for a server: $name', async (each) => {
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const call = settle(each.call(zk));
    await world.settle();
    await world.boot();
    expect((await world.until(call)).outcome).toBe(each.refusedWith === undefined ? 'done' : `${each.refusedWith} refused`);
    expect(await shown(each)).toBe(each.shows !== undefined);
  });

  it.each(cases)('a call fails after all servers were tried, and was certainly not applied: $name', async (each) => {
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const { outcome, error } = await world.until(settle(each.call(zk)));
    expect(outcome).toBe('ConnectionLoss notSent');
    expect(error!.message).toContain('address lookup failed');
    await world.boot();
    await expectUsable();
    expect(await shown(each)).toBe(false);
  });
});

describe('when the server is lost while', () => {
  it('an identity is being proved, the next connection proves it', async () => {
    const { backward } = world.cnxn;
    backward.cut();
    const call = settle(zk.addAuth('digest', 'user:password'));
    await world.settle();
    world.break();
    expect((await world.until(call)).outcome).toBe('done');
    expect((await world.until(zk.whoAmI())).map(({ authScheme }) => authScheme)).toContain('digest');
  });

  it('an identity whose caller no longer waits is being proved, it is still proved', async () => {
    const { backward } = world.cnxn;
    backward.cut();
    expect((await world.until(settle(zk.addAuth('digest', 'user:password', { timeoutMs: 100 })))).outcome).toBe('RequestTimeout unknown');
    const controller = new AbortController();
    const aborted = zk.addAuth('digest', 'other:password', { signal: controller.signal });
    controller.abort(new Error('never mind'));
    await expect(aborted).rejects.toThrow('never mind');
    backward.heal();
    const identities = await world.until(zk.whoAmI());
    expect(identities.filter(({ authScheme }) => authScheme === 'digest').map(({ user }) => user)).toEqual(['user', 'other']);
  });

  it('the session is being closed, the client is closed, and the session ends by its time-out at the latest', async () => {
    await world.until(zk.create('/mine', null, { mode: 'ephemeral' }));
    const { forward } = world.cnxn;
    forward.cut();
    const closing = zk.close();
    await world.settle();
    world.break();
    await world.until(closing);
    expect([zk.state, zk.endReason]).toEqual(['closed', 'closed']);
    await world.pass(12_000);
    expect(await world.until(other.exists('/mine'))).toBe(null);
  });

  it('many calls are pending, all of them fail in order', async () => {
    const { backward } = world.cnxn;
    backward.cut();
    const order: number[] = [];
    const calls = Array.from({ length: 100 }, async (_, index) => {
      await settle(zk.setData('/t', String(index)));
      order.push(index);
    });
    await world.settle();
    world.break();
    await world.until(Promise.all(calls));
    expect(order).toEqual(Array.from({ length: 100 }, (_, index) => index));
  });
});

describe('timeoutMs and signal', () => {
  it('a call that takes too long rejects with RequestTimeout, keeps its position, and may have been applied', async () => {
    const { backward } = world.cnxn;
    backward.cut();
    const late = settle(zk.setData('/t', 'y', { timeoutMs: 500 }));
    const patient = zk.exists('/t');
    const { outcome, error } = await world.until(late);
    expect(outcome).toBe('RequestTimeout unknown');
    expect(error).toMatchObject({ errno: -122, retryable: true, path: '/t', op: 'setData' });
    expect(error!.message).toBe('KeeperErrorCode = Unknown error REQUESTTIMEOUT for /t (no answer within 500 ms)');
    backward.heal();
    expect((await world.until(patient))!.version).toBe(1);
    expect(zk.state).toBe('connected');
  });

  it('A89: requestTimeoutMs applies to every call without a time-out of its own', async () => {
    const hasty = await world.connect({ requestTimeoutMs: 300 });
    const { backward } = world.cnxn;
    backward.cut();
    const started = world.clock.now().elapsedMs;
    expect((await world.until(settle(hasty.exists('/t')))).outcome).toBe('RequestTimeout unknown');
    expect(world.clock.now().elapsedMs - started).toBeLessThan(500);
    const own = settle(hasty.exists('/t', { timeoutMs: Infinity }));
    await world.pass(1000);
    backward.heal();
    expect((await world.until(own)).outcome).toBe('done');
  });

  it('a call that times out while it waits for a server was not sent', async () => {
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const [late, patient] = [settle(zk.create('/late', null, { timeoutMs: 20 })), settle(zk.create('/patient'))];
    world.clock.advance(20);
    await world.settle();
    expect((await late).outcome).toBe('RequestTimeout notSent');
    await world.boot();
    expect((await world.until(patient)).outcome).toBe('done');
    expect(await world.until(zk.exists('/late'))).toBe(null);
  });

  it('B33: an aborted call rejects at once with the reason of the signal, before and after it is sent', async () => {
    const reason = new Error('never mind');
    await expect(zk.create('/a', null, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [zk.create('/b', null, { signal }), zk.exists('/t', { signal }), zk.getData('/t')];
    await Promise.resolve();
    controller.abort(reason);
    const results = await world.until(Promise.allSettled(calls));
    expect(results.slice(0, 2)).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    expect(results[2]!.status).toBe('fulfilled');
    expect(await world.until(zk.exists('/a'))).toBe(null);
    expect(await world.until(zk.exists('/b'))).not.toBe(null);
  });

  it('a watch whose caller no longer waits is not set', async () => {
    let delivered = 0;
    const controller = new AbortController();
    const watch = () => void delivered++;
    const call = zk.exists('/w', { watch, signal: controller.signal });
    controller.abort(new Error('never mind'));
    await world.until(Promise.allSettled([call]));
    await world.until(other.create('/w'));
    await world.settle();
    expect(delivered).toBe(0);
  });

  it('a thousand calls share a signal, and leave no listener on it', async () => {
    const warnings: string[] = [];
    const note = (warning: Error) => void warnings.push(warning.message);
    process.on('warning', note);
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    await world.until(Promise.all(Array.from({ length: 1000 }, () => zk.exists('/t', { signal }))));
    await world.settle();
    process.off('warning', note);
    expect(warnings).toEqual([]);
    expect(listeners).toBe(0);
  });
});
