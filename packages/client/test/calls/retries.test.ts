/** Retries: safe calls are repeated, others reject, and all of them end in time. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CallDeadline, type CallSession } from '../../src/calls/call-deadline.ts';
import { delayMsMax, Retries } from '../../src/calls/retries.ts';
import { resolveRetryPolicy } from '../../src/calls/retry-policy.ts';
import { type CallOptions, type Client, op, openAcl } from '../../src/index.ts';
import { ErrorCode } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { RequestFailure } from '../../src/keeper-error.ts';
import { ClientWorld } from '../support/client-world.ts';
import { type Cut, cutting } from '../support/cut-transport.ts';
import { settle, text } from '../support/outcomes.ts';

let world: ClientWorld;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  await world.until(other.create('/t', 'x'));
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

interface Case {
  readonly name: string;
  readonly call: (zk: Client, options: CallOptions) => Promise<unknown>;
}

const reads: readonly Case[] = [
  { name: 'exists', call: (zk, options) => zk.exists('/t', options) },
  { name: 'getData', call: (zk, options) => zk.getData('/t', options) },
  { name: 'getData, linearizable', call: (zk, options) => zk.getData('/t', { ...options, linearizable: true }) },
  { name: 'getChildren', call: (zk, options) => zk.getChildren('/t', options) },
  { name: 'getAllChildrenNumber', call: (zk, options) => zk.getAllChildrenNumber('/t', options) },
  { name: 'getEphemerals', call: (zk, options) => zk.getEphemerals('/', options) },
  { name: 'getACL', call: (zk, options) => zk.getACL('/t', options) },
  { name: 'getConfig', call: (zk, options) => zk.getConfig(options) },
  { name: 'multiRead', call: (zk, options) => zk.multiRead([op.getData('/t')], options) },
  { name: 'sync', call: (zk, options) => zk.sync('/t', options) },
  { name: 'whoAmI', call: (zk, options) => zk.whoAmI(options) },
  { name: 'addWatch', call: (zk, options) => zk.addWatch('/t', { ...options, watch: () => {} }) },
];

const writes: readonly Case[] = [
  { name: 'create', call: (zk, options) => zk.create('/new', null, options) },
  { name: 'delete', call: (zk, options) => zk.delete('/t', options) },
  { name: 'delete of a version', call: (zk, options) => zk.delete('/t', { ...options, version: 0 }) },
  { name: 'setData', call: (zk, options) => zk.setData('/t', 'y', options) },
  { name: 'setData of a version', call: (zk, options) => zk.setData('/t', 'y', { ...options, version: 0 }) },
  { name: 'setACL', call: (zk, options) => zk.setACL('/t', openAcl, options) },
  { name: 'multi', call: (zk, options) => zk.multi([op.setData('/t', 'y')], options) },
];

/** Calls that send several requests, of which the first is a read. */
const update: Case = { name: 'update', call: (zk, options) => zk.update('/t', () => 'y', options) };

/** Loses the answer to the call. */
async function losingTheAnswer<T>(call: () => Promise<T>): Promise<T> {
  const { backward } = world.cnxn;
  backward.cut();
  const made = call();
  await world.settle();
  world.break();
  return go(made);
}

describe('a call without an answer', () => {
  it.each(reads)('B51: $name is repeated if retry is on, and not if it is off', async ({ call }) => {
    const zk = await world.connect({ retry: true });
    expect((await losingTheAnswer(() => settle(call(zk, {})))).outcome).toBe('done');
    await world.untilSo(() => zk.state === 'connected');
    expect((await losingTheAnswer(() => settle(call(zk, { retry: false })))).outcome).toBe('ConnectionLoss unknown');
    const plain = await world.connect();
    expect((await losingTheAnswer(() => settle(call(plain, {})))).outcome).toBe('ConnectionLoss unknown');
    await world.untilSo(() => plain.state === 'connected');
    expect((await losingTheAnswer(() => settle(call(plain, { retry: { maxAttempts: 2 } })))).outcome).toBe('done');
  });

  it.each(writes)('B51: $name is never repeated', async ({ name, call }) => {
    const zk = await world.connect({ retry: true });
    const before = (await go(other.exists('/t')))!;
    const { outcome } = await losingTheAnswer(() => settle(call(zk, {})));
    expect(outcome).toBe('ConnectionLoss unknown');
    await world.pass(5000);
    const after = await go(other.exists('/t'));
    if (after !== null) expect(after.version + after.aversion - before.version - before.aversion).toBeLessThanOrEqual(1);
    else expect(name).toMatch(/^delete/);
  });

  it('B51: is repeated if it removes watches, as the lost connection has removed the watches', async () => {
    const zk = await world.connect({ retry: true });
    const received: string[] = [];
    await go(zk.addWatch('/t', { watch: ({ type }) => received.push(type) }));
    expect((await losingTheAnswer(() => settle(zk.removeWatches('/t')))).outcome).toBe('done');
    await go(other.setData('/t', 'y'));
    await world.settle();
    expect(received).toEqual(['None', 'None', 'PersistentWatchRemoved']);
  });
});

describe('a call that was not sent', () => {
  it.each([...reads, ...writes, update])('B51: $name is repeated until there is a server', async ({ call }) => {
    const zk = await world.connect({ retry: true });
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const made = settle(call(zk, {}));
    await world.pass(3000);
    await world.boot();
    expect((await go(made)).outcome).toBe('done');
  });

  it('B51: fails after the maximum of attempts or time, and the error contains the number of attempts', async () => {
    const zk = await world.connect();
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const three = await go(settle(zk.setData('/t', 'y', { retry: { maxAttempts: 3 } })));
    expect(three.outcome).toBe('ConnectionLoss notSent');
    expect(three.error!.message).toMatch(/; 3 attempts in \d+ ms\)$/);
    const started = world.clock.now().elapsedMs;
    const long = await go(settle(zk.getData('/t', { retry: { maxAttempts: Infinity, maxElapsedMs: 5000 } })));
    expect(long.outcome).toBe('ConnectionLoss notSent');
    const elapsed = world.clock.now().elapsedMs - started;
    expect(elapsed).toBeGreaterThan(1000);
    expect(elapsed).toBeLessThan(6500);
    await world.boot();
  });

  it('B50, B51: is limited by timeoutMs and signal over all attempts and pauses together', async () => {
    const zk = await world.connect({ retry: { maxAttempts: Infinity, maxElapsedMs: Infinity } });
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const started = world.clock.now().elapsedMs;
    const { outcome } = await go(settle(zk.setData('/t', 'y', { timeoutMs: 4000 })));
    expect(['RequestTimeout notSent', 'ConnectionLoss notSent']).toContain(outcome);
    expect(world.clock.now().elapsedMs - started).toBeLessThanOrEqual(4100);
    const controller = new AbortController();
    const aborted = zk.getData('/t', { signal: controller.signal });
    aborted.catch(() => undefined);
    await world.pass(2000);
    const reason = new Error('never mind');
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await world.boot();
  });

  it('B50, B51: shares one listener on its signal with a hundred calls in a pause, and leaves none on it', async () => {
    const zk = await world.connect({ retry: { maxAttempts: Infinity, maxElapsedMs: Infinity, baseDelayMs: 5000 } });
    const { signal } = new AbortController();
    const listeners = { now: 0, most: 0 };
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners.most = Math.max(listeners.most, ++listeners.now);
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners.now--;
      remove(...args);
    };
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const calls = Array.from({ length: 100 }, () => zk.getData('/t', { signal }));
    await world.pass(4000);
    await world.boot();
    await go(Promise.all(calls));
    await world.settle();
    // One for pending requests, one for pauses.
    expect(listeners).toEqual({ now: 0, most: 2 });
  });

  it('B51: is not repeated after the end of the session', async () => {
    const zk = await world.connect({ retry: { maxAttempts: Infinity, maxElapsedMs: Infinity } });
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const made = settle(zk.getData('/t'));
    await world.pass(3000);
    await go(zk.close());
    expect((await go(made)).outcome).toBe('SessionExpired notSent');
    await world.boot();
  });
});

it('B51: a final rejection of a server is not repeated', async () => {
  const zk = await world.connect({ retry: true });
  const started = world.clock.now().elapsedMs;
  const { outcome, error } = await go(settle(zk.getData('/missing')));
  expect(outcome).toBe('NoNode refused');
  expect(error!.message).toBe('KeeperErrorCode = NoNode for /missing');
  expect(world.clock.now().elapsedMs).toBe(started);
});

describe('idempotent writes', () => {
  it('B52: a create whose answer was lost succeeds with its own znode, and fails with another one', async () => {
    const zk = await world.connect();
    const made = await losingTheAnswer(() => zk.create('/new', 'mine', { idempotent: true, mode: 'ephemeral' }));
    expect(made).toMatchObject({ path: '/new', stat: { version: 0, ephemeralOwner: zk.sessionId } });
    await world.untilSo(() => zk.state === 'connected');
    // Another client creates it with other data while the first request is lost.
    const { forward } = world.cnxn;
    forward.cut();
    const creating = settle(zk.create('/theirs', 'mine', { idempotent: true }));
    await world.settle();
    await go(other.create('/theirs', 'theirs'));
    world.break();
    expect((await go(creating)).outcome).toBe('NodeExists unknown');
    // Without a loss, NodeExists is an error, whatever the data.
    expect((await go(settle(zk.create('/theirs', 'theirs', { idempotent: true })))).outcome).toBe('NodeExists refused');
  });

  it('B52: a setData whose answer was lost succeeds with its own data, and writes them once', async () => {
    const zk = await world.connect();
    expect((await losingTheAnswer(() => zk.setData('/t', 'y', { version: 0, idempotent: true }))).version).toBe(1);
    await world.untilSo(() => zk.state === 'connected');
    const { forward } = world.cnxn;
    forward.cut();
    const setting = settle(zk.setData('/t', 'z', { version: 1, idempotent: true }));
    await world.settle();
    await go(other.setData('/t', 'theirs'));
    world.break();
    expect((await go(setting)).outcome).toBe('BadVersion unknown');
    expect(text((await go(other.getData('/t'))).data)).toBe('theirs');
    await world.untilSo(() => zk.state === 'connected');
    expect((await losingTheAnswer(() => zk.setData('/t', 'any', { idempotent: true }))).version).toBe(4);
  });

  it('B52: a delete whose answer was lost succeeds if the znode is gone', async () => {
    const zk = await world.connect();
    await losingTheAnswer(() => zk.delete('/t', { version: 0, idempotent: true }));
    expect(await go(other.exists('/t'))).toBe(null);
    expect((await go(settle(zk.delete('/t', { idempotent: true })))).outcome).toBe('NoNode refused');
  });

  it('B52: survive a cut after each byte, on two connections', async () => {
    for (let bytes = 0; bytes < 200; bytes += 5) {
      const plan: Cut[] = [];
      const zk = await world.connect(cutting(world, world.options(), plan));
      const { backward } = world.cnxn;
      backward.resetAfter(backward.deliveredBytes + bytes);
      plan.push({ of: 'answers', afterBytes: bytes });
      const before = (await go(other.exists('/t')))!.version;
      expect((await go(zk.setData('/t', String(bytes), { version: before, idempotent: true }))).version).toBe(before + 1);
      await go(zk.create(`/i${bytes}`, 'x', { idempotent: true }));
      await go(zk.delete(`/i${bytes}`, { idempotent: true }));
      await go(zk.close());
    }
  });

  it('B52: a call that cannot be idempotent is rejected before it is sent', async () => {
    const zk = await world.connect();
    const sequential = await go(settle(zk.create('/s-', null, { idempotent: true, mode: 'persistentSequential' })));
    expect(sequential.error!.message).toContain('cannot be idempotent; use protection instead');
    await expect(go(zk.delete('/t', { idempotent: true, retry: false }))).rejects.toThrow('retry cannot be false');
  });
});

describe('a retry policy', () => {
  it.each([
    [{ maxAttempts: 0 }, 'retry.maxAttempts must be a whole number >= 1, or Infinity, not 0'],
    [{ maxAttempts: 1.5 }, 'retry.maxAttempts must be a whole number >= 1, or Infinity, not 1.5'],
    [{ maxElapsedMs: -1 }, 'retry.maxElapsedMs must be a number of milliseconds >= 0, or Infinity, not -1'],
    [{ baseDelayMs: '5' }, 'retry.baseDelayMs must be a number of milliseconds >= 0, or Infinity, not string'],
    [{ maxDelayMs: NaN }, 'retry.maxDelayMs must be a number of milliseconds >= 0, or Infinity, not NaN'],
    [{ tries: 3 }, 'unknown option retry.tries; the options of a policy are maxAttempts, maxElapsedMs, baseDelayMs, maxDelayMs'],
    ['yes', 'retry must be true, false or a policy, not "yes"'],
  ])('B51: is rejected if it is %j', async (retry, message) => {
    expect(() => resolveRetryPolicy(retry as never)).toThrow(message);
    await expect(go(world.connect({ retry: retry as never }))).rejects.toThrow(message);
    await expect(go(other.getData('/t', { retry: retry as never }))).rejects.toThrow(message);
  });

  it('B51: doubles its pauses up to their limit, and draws each at random below it', async () => {
    const policy = resolveRetryPolicy({ baseDelayMs: 10, maxDelayMs: 50, maxAttempts: 6 })!;
    expect([1, 2, 3, 4, 5].map((attempts) => delayMsMax(policy, attempts))).toEqual([10, 20, 40, 50, 50]);
    const clock = new ManualClock();
    const waits: number[] = [];
    const session: CallSession = {
      clock: {
        now: () => clock.now(),
        cancel: (timer) => clock.cancel(timer),
        after: (ms, then) => (waits.push(ms), clock.after(ms, then)),
      },
      random: new SeededRandom(5),
      hasEnded: false,
      onEnd: () => () => {},
    };
    const retries = new Retries(session, policy, new CallDeadline(session, {}));
    const lost = new RequestFailure(ErrorCode.ConnectionLoss, 'notSent');
    for (let attempt = 1; attempt < 6; attempt++) {
      const again = retries.waitToRetry(lost, false);
      clock.advance(50);
      expect(await again).toBe(true);
    }
    expect(await retries.waitToRetry(lost, false)).toBe(false);
    for (const [index, ms] of waits.entries()) expect(ms).toBeLessThan([10, 20, 40, 50, 50][index]!);
    expect(new Set(waits).size).toBe(5);
  });
});
