/** Tests docs/guides/sessions-and-connection-loss.md in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, connect, KeeperError } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import * as guide from './sessions-and-connection-loss.ts';

let world: ClientWorld;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
});

afterEach(async () => {
  await world.close();
});

test('a seat is taken once, although the answer to the first request is lost', async () => {
  await world.until(other.create('/seats'));
  const zk = await world.connect();
  world.cnxn.backward.cut();
  const taken = guide.takeSeat(zk, '12A', 'ticket 1');
  await world.settle();
  expect((await world.until(other.getData('/seats/12A'))).stat.version).toBe(0);
  world.break();
  expect(await world.until(taken)).toBe(true);
  expect(await world.until(guide.takeSeat(other, '12A', 'ticket 2'))).toBe(false);
});

test('a seat is taken although the first request was not sent, or did not arrive', async () => {
  await world.until(other.create('/seats'));
  const zk = await world.connect();
  world.cnxn.forward.cut();
  const taken = guide.takeSeat(zk, '12B', 'ticket 1');
  await world.settle();
  world.break();
  expect(await world.until(taken)).toBe(true);
});

test('work is suspended while the connection is lost, and resumes when the ephemeral is certain again', async () => {
  const zk = await world.connect();
  await world.until(zk.create('/leader', 'me', { mode: 'ephemeral' }));
  const log: string[] = [];
  let done!: () => void;
  const work = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      log.push('working');
      done = resolve;
      signal.addEventListener('abort', () => {
        log.push('suspended');
        reject(signal.reason as Error);
      });
    });
  const over = guide.whileHolding(zk, '/leader', work);
  await world.settle();
  expect(log).toEqual(['working']);
  world.break();
  await world.settle();
  expect(log).toEqual(['working', 'suspended']);
  await world.untilSo(() => log.length === 3);
  expect(log).toEqual(['working', 'suspended', 'working']);
  done();
  await over;
  await world.until(guide.whileHolding(other, '/leader', () => Promise.reject(new Error('not its own'))));
  await expect(world.until(guide.whileHolding(zk, '/leader', () => Promise.reject(new Error('of the work'))))).rejects.toThrow(
    'of the work',
  );
});

test('work ends with the session', async () => {
  const zk = await world.connect();
  await world.until(zk.create('/leader', 'me', { mode: 'ephemeral' }));
  const forEver = (signal: AbortSignal) =>
    new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
  const over = guide.whileHolding(zk, '/leader', forEver);
  await world.settle();
  await Promise.all([expect(over).rejects.toThrow('This operation was aborted'), world.until(zk.close())]);
});

test('work ends when the session has expired, and its successor may begin: never both at once', async () => {
  const zk = await world.connect();
  await world.until(zk.create('/leader', 'me', { mode: 'ephemeral' }));
  const log: string[] = [];
  const workAs = (name: string) => (signal: AbortSignal) =>
    new Promise<void>((_, reject) => {
      log.push(`${name} works`);
      signal.addEventListener('abort', () => {
        log.push(`${name} stops`);
        reject(signal.reason as Error);
      });
    });
  const over = guide.whileHolding(zk, '/leader', workAs('the first'));
  const failure = over.catch((error: unknown) => error);
  await world.settle();
  const { dialer, listener } = world.cnxn;
  world.wire.cut(dialer.address, listener.address);
  await world.untilSo(() => log.length === 2);
  expect((await world.until(other.exists('/leader')))?.ephemeralOwner).toBe(zk.sessionId);
  await world.pass(15_000);
  await world.until(other.create('/leader', 'the next', { mode: 'ephemeral' }));
  void guide.whileHolding(other, '/leader', workAs('the next')).catch(() => undefined);
  await world.settle();
  world.wire.heal(dialer.address, listener.address);
  await world.untilSo(() => zk.endReason !== undefined);
  expect(KeeperError.is(await world.until(failure), 'SessionExpired')).toBe(true);
  expect(log).toEqual(['the first works', 'the first stops', 'the next works']);
});

test('a program that stays registered registers again after its session has expired, until the signal', async () => {
  const stop = new AbortController();
  const clients: Client[] = [];
  const open = async (signal: AbortSignal) => {
    const zk = await connect('server:2181', world.options({ signal, connectTimeoutMs: Infinity }));
    clients.push(zk);
    return zk;
  };
  const register = async (zk: Client) => {
    await zk.create('/worker', '', { mode: 'ephemeral', retry: true });
  };
  const over = guide.stayRegistered(open, register, stop.signal);
  await world.settle();
  const owner = async () => (await world.until(other.exists('/worker')))?.ephemeralOwner;
  expect(await owner()).toBe(clients[0]!.sessionId);

  // The client finds no server for longer than its session timeout.
  world.wire.name('server', []);
  world.break();
  await world.pass(12_000);
  world.wire.name('server', [world.address]);
  await world.untilSo(() => clients.length === 2);
  await world.settle();
  expect(clients[0]!.state).toBe('expired');
  expect(await owner()).toBe(clients[1]!.sessionId);
  stop.abort();
  await expect(world.until(over)).rejects.toBe(stop.signal.reason);
  expect(clients[1]!.state).toBe('closed');
});

test('a saved session is resumed with its ephemerals, and an expired one is replaced by a new one', async () => {
  const zk = await world.connect({ yieldSession: true });
  await world.until(zk.create('/mine', '', { mode: 'ephemeral' }));
  const saved = guide.savedSession(zk);
  const next = await world.until(guide.resume('server:2181', saved, world.options()));
  await world.untilSo(() => zk.state === 'moved');
  expect((await world.until(next.exists('/mine')))?.ephemeralOwner).toBe(next.sessionId);
  expect(next.sessionId).toBe(zk.sessionId);
  await world.until(next.close());
  const last = await world.until(guide.resume('server:2181', saved, world.options()));
  expect(last.sessionId).not.toBe(zk.sessionId);
});

test('a call sent before the loss is unknown, a call during the loss waits, and a call without a server is not sent', async () => {
  const zk = await world.connect();
  const pending = zk.create('/pending');
  world.break();
  await Promise.all([expect(pending).rejects.toMatchObject({ code: 'ConnectionLoss', outcome: 'unknown' }), world.settle()]);
  await world.until(zk.create('/waiting'));
  world.kill();
  await world.untilSo(() => zk.state === 'suspended');
  const error: unknown = await world.until(zk.create('/late').catch((thrown: unknown) => thrown));
  expect(KeeperError.is(error, 'ConnectionLoss') && error.outcome).toBe('notSent');
  await world.boot();
});
