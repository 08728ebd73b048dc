/**
 * Typical mistakes of programs: each is reported at once, by the call that makes it, with the value
 * that was given.
 */
import type { Client } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as recipes from '../src/index.ts';
import { RecipeWorld } from './support/recipe-world.ts';

type Any = ReturnType<typeof JSON.parse>;

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

/** Messages of the engine, which do not show what the program has passed. */
const engineWords = /cannot (read|destructure|convert)|is not a function|is not iterable|is not a constructor|\[object/i;

/** The error of the call, without requests and without time. */
async function mistake(call: () => unknown): Promise<Error> {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    return judged(error);
  }
  if (!(result instanceof Promise)) return new Error('it was taken, and gave a result');
  let outcome: unknown = new Error('it was taken, and waits');
  result.then(
    () => (outcome = new Error('it was taken, and is done')),
    (error: unknown) => (outcome = error),
  );
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  return judged(outcome);
}

function judged(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(`no Error, but ${String(error)}`);
  return engineWords.test(error.message) ? new Error(`words of the engine: ${error.message}`) : error;
}

function expectInputError(error: Error, words: RegExp, given: unknown): void {
  const received = { kind: error.constructor.name, message: error.message, given };
  expect(received).toEqual({ kind: expect.stringMatching(/^(Type|Range)Error$/), message: expect.stringMatching(words), given });
}

// --- Recipes with a client and a path

const work = () => undefined;
const lease = { durationMs: 1000, holder: 'a' };
const { textCodec } = recipes;

/** Each takes a client, a view of one, or `Sessions`. */
const places: Readonly<Record<string, (source: recipes.SessionSource, path: string) => unknown>> = {
  AtomicNumber: (source, path) => new recipes.AtomicNumber(source, path),
  Barrier: (source, path) => new recipes.Barrier(source, path),
  ChildrenCache: (source, path) => new recipes.ChildrenCache(source, path),
  DelayQueue: (source, path) => new recipes.DelayQueue(source, path),
  DoubleBarrier: (source, path) => new recipes.DoubleBarrier(source, path, 2),
  Election: (source, path) => new recipes.Election(source, path),
  EventHandle: (source, path) => new recipes.EventHandle(source, path),
  IdQueue: (source, path) => new recipes.IdQueue(source, path),
  Lease: (source, path) => new recipes.Lease(source, path, lease),
  Lock: (source, path) => new recipes.Lock(source, path),
  Migrations: (source, path) => new recipes.Migrations(source, path, []),
  MultiLease: (source, path) => new recipes.MultiLease(source, path, { ...lease, count: 2 }),
  NodeCache: (source, path) => new recipes.NodeCache(source, path),
  PriorityLock: (source, path) => new recipes.PriorityLock(source, path),
  PriorityQueue: (source, path) => new recipes.PriorityQueue(source, path),
  Queue: (source, path) => new recipes.Queue(source, path),
  Semaphore: (source, path) => new recipes.Semaphore(source, path),
  SetPartitioner: (source, path) => new recipes.SetPartitioner(source, path, 'alice', ['a'], work),
  ShardedQueue: (source, path) => new recipes.ShardedQueue(source, path, { shards: 2 }),
  SharedCount: (source, path) => new recipes.SharedCount(source, path),
  ReadWriteLock: (source, path) => new recipes.ReadWriteLock(source, path),
  SharedValue: (source, path) => new recipes.SharedValue(source, path, textCodec),
  SimpleBarrier: (source, path) => recipes.SimpleBarrier.create(source, path, 2),
  TreeCache: (source, path) => new recipes.TreeCache(source, path),
  TwoPhaseCommit: (source, path) => new recipes.TwoPhaseCommit(source, path),
  LeaderLatch: (source, path) => new recipes.LeaderLatch(source, path),
  Group: (source, path) => new recipes.Group(source, path),
  PersistentNode: (source, path) => new recipes.PersistentNode(source, path),
  ServiceDiscovery: (source, path) => new recipes.ServiceDiscovery(source, path),
};

describe.each(Object.entries(places))('%s', (_name, make) => {
  it('rejects a source that is not a client', async () => {
    for (const given of [undefined, null, {}, { client: t.zk }, 'zk1:2181', Promise.resolve(t.zk)])
      expectInputError(
        await mistake(() => make(given as Any, '/a')),
        /^expected a Client from connect\(\), a view of one, or Sessions, got .*; await connect/,
        given,
      );
  });

  it('rejects an invalid path', async () => {
    for (const given of [undefined, null, 5, {}, '', 'locks/a', '/a/', '//a', '/a//b', '/a/../b', '/a\0b'])
      expectInputError(await mistake(() => make(t.zk, given as Any)), /is not a path of a znode: it must/, given);
  });

  it('accepts a view of a client', async () => {
    const result = make(t.zk.chroot('/app'), '/a') as Any;
    expect(result).toBeInstanceOf(Object);
    if (result instanceof Promise) await t.until(result);
    else if (Symbol.asyncDispose in result) await t.until(result[Symbol.asyncDispose]());
  });

  it('B23: accepts Sessions', async () => {
    const sessions = await t.until(recipes.Sessions.start(() => t.client()));
    const result = make(sessions, '/a') as Any;
    expect(result).toBeInstanceOf(Object);
    if (result instanceof Promise) await t.until(result);
    else if (Symbol.asyncDispose in result) await t.until(result[Symbol.asyncDispose]());
    await t.until(sessions.close());
  });
});

// --- Waits

type Wait = (options: Any) => unknown;

/** Each call with `signal` and `timeoutMs`, on a client in the state that the test needs. */
async function waitsOf(zk: Client): Promise<Readonly<Record<string, Wait>>> {
  const path = '/r';
  const lock = new recipes.Lock(zk, `${path}/lock`);
  const shared = new recipes.ReadWriteLock(zk, `${path}/shared`);
  const priority = new recipes.PriorityLock(zk, `${path}/priority`);
  const semaphore = new recipes.Semaphore(zk, `${path}/semaphore`, { size: 3 });
  const sizeless = new recipes.Semaphore(zk, `${path}/sizeless`);
  const multi = new recipes.MultiLock([lock]);
  const holdsLease = new recipes.Lease(zk, `${path}/lease`, lease);
  const multiLease = new recipes.MultiLease(zk, `${path}/leases`, { ...lease, count: 2 });
  const election = new recipes.Election(zk, `${path}/election`);
  const barrier = new recipes.Barrier(zk, `${path}/barrier`);
  const double = new recipes.DoubleBarrier(zk, `${path}/double`, 2);
  const simple = await t.until(recipes.SimpleBarrier.create(zk, `${path}/simple`, 2));
  const event = new recipes.EventHandle(zk, `${path}/event`);
  const turnstile = new recipes.EventHandle(zk, `${path}/turnstile`, { autoReset: true });
  const group = new recipes.Group(zk, `${path}/group`);
  const node = new recipes.PersistentNode(zk, `${path}/node`);
  await t.until(node.ready());
  const queue = new recipes.Queue(zk, `${path}/queue`, { maxItems: 2 });
  const byPriority = new recipes.PriorityQueue(zk, `${path}/by-priority`);
  const byTime = new recipes.DelayQueue(zk, `${path}/by-time`);
  const byId = new recipes.IdQueue(zk, `${path}/by-id`);
  const sharded = new recipes.ShardedQueue(zk, `${path}/sharded`, { shards: 2 });
  const number = new recipes.AtomicNumber(zk, `${path}/number`);
  const cached = new recipes.CachedAtomicNumber(number, 1);
  const value = new recipes.SharedValue(zk, `${path}/value`, textCodec);
  const cache = new recipes.TreeCache(zk, `${path}/cached`);
  const partitioner = new recipes.SetPartitioner(zk, `${path}/shares`, 'alice', ['a'], work);
  const candidate = new recipes.LeaderLatch(zk, `${path}/candidates`);
  await t.until(Promise.all([value.ready(), cache.ready(), candidate.waitForLeadership()]));
  const transaction = new recipes.TwoPhaseCommit(zk, `${path}/transaction`);
  await t.until(transaction.begin(['berlin', 'paris']));
  const site = await t.until(transaction.join('berlin'));
  const migrations = new recipes.Migrations(zk, `${path}/migrations`, []);
  const registry = new recipes.ServiceDiscovery(zk, `${path}/services`);
  const service = { name: 'mail', address: '10.0.0.1', payload: null };
  const registration = await t.until(registry.register(service));
  const provider = registry.provider('mail');
  const contender = { prefix: 'lock-', name: 'x', path: `${path}/x`, sequence: 0 };
  return {
    'Lock.acquire': (options) => lock.acquire(options),
    'Lock.tryAcquire': (options) => lock.tryAcquire(options),
    'Lock.run': (options) => lock.run(work, options),
    'Lock.contenders': (options) => lock.contenders(options),
    'Lock.revoke': (options) => lock.revoke(contender, options),
    'ReadWriteLock.readLock.acquire': (options) => shared.readLock.acquire(options),
    'ReadWriteLock.readLock.tryAcquire': (options) => shared.readLock.tryAcquire(options),
    'ReadWriteLock.readLock.run': (options) => shared.readLock.run(work, options),
    'ReadWriteLock.writeLock.acquire': (options) => shared.writeLock.acquire(options),
    'ReadWriteLock.writeLock.tryAcquire': (options) => shared.writeLock.tryAcquire(options),
    'ReadWriteLock.writeLock.run': (options) => shared.writeLock.run(work, options),
    'ReadWriteLock.contenders': (options) => shared.contenders(options),
    'ReadWriteLock.revoke': (options) => shared.revoke(contender, options),
    'PriorityLock.readLock.acquire': (options) => priority.readLock(5).acquire(options),
    'PriorityLock.writeLock.tryAcquire': (options) => priority.writeLock(5).tryAcquire(options),
    'PriorityLock.writeLock.run': (options) => priority.writeLock(5).run(work, options),
    'PriorityLock.holders': (options) => priority.holders(options),
    'PriorityLock.contenders': (options) => priority.contenders(options),
    'PriorityLock.revoke': (options) => priority.revoke(contender, options),
    'Semaphore.acquire': (options) => semaphore.acquire(options),
    'Semaphore.acquireMany': (options) => semaphore.acquireMany(2, options),
    'Semaphore.tryAcquire': (options) => semaphore.tryAcquire(options),
    'Semaphore.run': (options) => semaphore.run(work, options),
    'Semaphore.leases': (options) => semaphore.leases(options),
    'Semaphore.contenders': (options) => semaphore.contenders(options),
    'Semaphore.resize': (options) => sizeless.resize(3, options),
    'MultiLock.acquire': (options) => multi.acquire(options),
    'MultiLock.tryAcquire': (options) => multi.tryAcquire(options),
    'MultiLock.run': (options) => multi.run(work, options),
    'Lease.acquire': (options) => holdsLease.acquire(options),
    'Lease.tryAcquire': (options) => holdsLease.tryAcquire(options),
    'MultiLease.tryAcquire': (options) => multiLease.tryAcquire(options),
    'Election.lead': (options) => election.lead(options),
    'Election.run': (options) => election.run(work, options),
    'Election.contenders': (options) => election.contenders(options),
    'Election.leader': (options) => election.leader(options),
    'LeaderLatch.waitForLeadership': (options) => candidate.waitForLeadership(options),
    'Barrier.set': (options) => barrier.set(options),
    'Barrier.remove': (options) => barrier.remove(options),
    'Barrier.wait': (options) => barrier.wait(options),
    'DoubleBarrier.enter': (options) => double.enter(options),
    'DoubleBarrier.run': (options) => double.run(work, options),
    'SimpleBarrier.create': (options) => recipes.SimpleBarrier.create(zk, `${path}/another-simple`, 2, options),
    'SimpleBarrier.enter': (options) => simple.enter(options),
    'SimpleBarrier.run': (options) => simple.run(work, options),
    'EventHandle.set': (options) => event.set(options),
    'EventHandle.reset': (options) => event.reset(options),
    'EventHandle.isSet': (options) => event.isSet(options),
    'EventHandle.wait': (options) => event.wait(options),
    'EventHandle.wait, autoReset': (options) => turnstile.wait(options),
    'Group.join': (options) => group.join('alice', options),
    'Group.members': (options) => group.members(options),
    'PersistentNode.ready': (options) => node.ready(options),
    'PersistentNode.setData': (options) => node.setData('other', options),
    'SetPartitioner.ready': (options) => partitioner.ready(options),
    'Queue.put': (options) => queue.put('a', options),
    'Queue.putAll': (options) => queue.putAll(['a'], options),
    'Queue.take': (options) => queue.take(options),
    'Queue.tryTake': (options) => queue.tryTake(options),
    'Queue.claim': (options) => queue.claim(options),
    'Queue.tryClaim': (options) => queue.tryClaim(options),
    'Queue.process': (options) => queue.process(work, options),
    'Queue.peek': (options) => queue.peek(options),
    'Queue.contents': (options) => queue.contents(options),
    'Queue.size': (options) => queue.size(options),
    'PriorityQueue.put': (options) =>
      byPriority.put('a', options !== null && typeof options === 'object' ? { priority: 1, ...options } : options),
    'DelayQueue.put': (options) => byTime.put('a', options !== null && typeof options === 'object' ? { delayMs: 1, ...options } : options),
    'IdQueue.put': (options) => byId.put('a', options !== null && typeof options === 'object' ? { id: 'b', ...options } : options),
    'IdQueue.remove': (options) => byId.remove('a', options),
    'ShardedQueue.put': (options) => sharded.put('a', options),
    'AtomicNumber.get': (options) => number.get(options),
    'AtomicNumber.add': (options) => number.add(1n, options),
    'AtomicNumber.increment': (options) => number.increment(options),
    'AtomicNumber.set': (options) => number.set(1n, options),
    'AtomicNumber.compareAndSet': (options) => number.compareAndSet(0n, 1n, options),
    'AtomicNumber.initialize': (options) => number.initialize(1n, options),
    'CachedAtomicNumber.next': (options) => cached.next(options),
    'SharedValue.ready': (options) => value.ready(options),
    'SharedValue.set': (options) => value.set('a', options),
    'SharedValue.compareAndSet': (options) => value.compareAndSet(undefined, 'a', options),
    'SharedValue.update': (options) => value.update(() => 'a', options),
    'Cache.ready': (options) => cache.ready(options),
    'TwoPhaseCommit.begin': (options) => new recipes.TwoPhaseCommit(zk, `${path}/another`).begin(['a'], options),
    'TwoPhaseCommit.join': (options) => transaction.join('paris', options),
    'TwoPhaseCommit.outcome': (options) => transaction.outcome(options),
    'TwoPhaseCommit.abort': (options) => transaction.abort(options),
    'Site.vote': (options) => site.vote('commit', options),
    'Site.outcome': (options) => site.outcome(options),
    'Migrations.applied': (options) => migrations.applied(options),
    'Migrations.migrate': (options) => migrations.migrate(options),
    'ServiceDiscovery.register': (options) => registry.register({ ...service, address: '10.0.0.2' }, options),
    'ServiceDiscovery.names': (options) => registry.names(options),
    'ServiceDiscovery.instances': (options) => registry.instances('mail', options),
    'ServiceDiscovery.instance': (options) => registry.instance('mail', '10.0.0.1', options),
    'ServiceDiscovery.update': (options) => registry.update('mail', '10.0.0.1', { enabled: false }, options),
    'Registration.update': (options) => registration.update({ enabled: false }, options),
    'ServiceProvider.ready': (options) => provider.ready(options),
  };
}

/** These return values from memory at once, so there is no wait to limit. */
const needNoWait = ['LeaderLatch.waitForLeadership', 'PersistentNode.ready', 'SharedValue.ready', 'Cache.ready'];

describe('a wait', () => {
  it('rejects invalid options', async () => {
    const waits = await waitsOf(t.zk);
    const bad = {
      'a number': 5000,
      'a text': 'fast',
      null: null,
      'a controller': { signal: new AbortController() },
      'timeoutMs NaN': { timeoutMs: NaN },
      'timeoutMs of text': { timeoutMs: '5000' },
      'timeoutMs null': { timeoutMs: null },
      'timeoutMs in capitals': { timeoutMS: 100 },
      'a time-out without its unit': { timeout: 100 },
      'a time-out of other names': { time_out_ms: 100 },
      'a signal of another name': { abortSignal: new AbortController().signal },
    };
    const failures: string[] = [];
    for (const [name, wait] of Object.entries(waits)) {
      for (const [what, options] of Object.entries(bad)) {
        const error = await mistake(() => wait(options));
        const isTold =
          /(options (are|must be) an object|: signal must be|: timeoutMs must be|unknown option .*(timeoutMs|signal))/.test(
            error.message,
          ) && /^(Type|Range)Error$/.test(error.constructor.name);
        if (!isTold) failures.push(`${name}, ${what}: ${error.message}`);
      }
    }
    expect(failures).toEqual([]);
  });

  it('rejects at once with the reason of an aborted signal, and returns a promise', async () => {
    const waits = await waitsOf(t.zk);
    const reason = new Error('enough');
    const failures: string[] = [];
    for (const [name, wait] of Object.entries(waits)) {
      let result: unknown;
      try {
        result = wait({ signal: AbortSignal.abort(reason) });
      } catch {
        failures.push(`${name} throws`);
        continue;
      }
      const error = await mistake(() => result);
      if (error !== reason) failures.push(`${name}: ${error.message}`);
    }
    expect(failures).toEqual([]);
  });

  it.each([0, -1, 1000])('rejects with a RecipeError, TimedOut, when there is no reply within %i ms', async (timeoutMs) => {
    const { zk } = await t.recorded();
    const waits = await waitsOf(zk);
    t.world.wire.name('server', []);
    t.world.break(t.world.cnxn);
    const failures: string[] = [];
    const ended = Object.entries(waits)
      .filter(([name]) => !needNoWait.includes(name))
      .map(async ([name, wait]) => {
        const error = await Promise.resolve(wait({ timeoutMs })).then(
          () => new Error('it is done'),
          (failure: unknown) => failure,
        );
        if (!(error instanceof recipes.RecipeError && error.code === 'TimedOut')) failures.push(`${name}: ${String(error)}`);
      });
    await t.until(Promise.all(ended), 5000);
    expect(failures).toEqual([]);
  });

  it('rejects at once when the client was closed', async () => {
    const { zk } = await t.recorded();
    const waits = await waitsOf(zk);
    await t.until(zk.close());
    const failures: string[] = [];
    for (const [name, wait] of Object.entries(waits)) {
      const error = await t.until(
        Promise.resolve(wait({})).then(
          () => new Error('it is done'),
          (failure: unknown) => failure,
        ),
      );
      if (!/closed|SessionExpired|session/i.test(String(error)) || engineWords.test(String(error)))
        failures.push(`${name}: ${String(error)}`);
    }
    expect(failures).toEqual([]);
  });
});

// --- Loops and constructors

/** Each call with a signal alone. */
async function loopsOf(zk: Client): Promise<Readonly<Record<string, Wait>>> {
  const candidate = new recipes.LeaderLatch(zk, '/loops/candidates');
  const cache = new recipes.NodeCache(zk, '/loops/cached');
  const value = new recipes.SharedValue(zk, '/loops/value', textCodec);
  const model = new recipes.Model('/loops/model', { codec: textCodec });
  await t.settle();
  return {
    'Election.observe': (options) => new recipes.Election(zk, '/loops/e').observe(options),
    'Group.observe': (options) => new recipes.Group(zk, '/loops/g').observe(options),
    'SharedValue.changes': (options) => value.changes(options),
    'Cache.changes': (options) => cache.changes(options),
    'NodeCache.changes': (options) => cache.changes(options),
    'ModelZnode.watch': (options) => model.at(zk).watch(options),
    'BaseQueue.items': (options) => new recipes.Queue(zk, '/loops/q').items(options),
    'LeaderLatch.run': (options) => candidate.run(work, options),
  };
}

/** Each class with options, made with these. */
function constructorsOf(zk: Client): Readonly<Record<string, (options: Any, ...more: []) => unknown>> {
  const merged = (options: Any, needed: object): Any => (typeof options === 'object' ? { ...needed, ...options } : options);
  return {
    AtomicNumber: (options, ...more) => new recipes.AtomicNumber(zk, '/a', options, ...more),
    Barrier: (options, ...more) => new recipes.Barrier(zk, '/a', options, ...more),
    LeaderLatch: (options, ...more) => new recipes.LeaderLatch(zk, '/a', options, ...more),
    ChildrenCache: (options, ...more) => new recipes.ChildrenCache(zk, '/a', options, ...more),
    DelayQueue: (options, ...more) => new recipes.DelayQueue(zk, '/a', options, ...more),
    DoubleBarrier: (options, ...more) => new recipes.DoubleBarrier(zk, '/a', 2, options, ...more),
    Election: (options, ...more) => new recipes.Election(zk, '/a', options, ...more),
    EventHandle: (options, ...more) => new recipes.EventHandle(zk, '/a', options, ...more),
    Group: (options, ...more) => new recipes.Group(zk, '/a', options, ...more),
    IdQueue: (options, ...more) => new recipes.IdQueue(zk, '/a', options, ...more),
    Lease: (options, ...more) => new recipes.Lease(zk, '/a', merged(options, lease), ...more),
    Lock: (options, ...more) => new recipes.Lock(zk, '/a', options, ...more),
    Migrations: (options, ...more) => new recipes.Migrations(zk, '/a', [], options, ...more),
    MultiLease: (options, ...more) => new recipes.MultiLease(zk, '/a', merged(options, { ...lease, count: 2 }), ...more),
    Model: (options, ...more) => new recipes.Model('/a', merged(options, { codec: textCodec }), ...more),
    NodeCache: (options, ...more) => new recipes.NodeCache(zk, '/a', options, ...more),
    PersistentNode: (options, ...more) => new recipes.PersistentNode(zk, '/a', null, options, ...more),
    PriorityLock: (options, ...more) => new recipes.PriorityLock(zk, '/a', options, ...more),
    PriorityQueue: (options, ...more) => new recipes.PriorityQueue(zk, '/a', options, ...more),
    Queue: (options, ...more) => new recipes.Queue(zk, '/a', options, ...more),
    SchemaSet: (options, ...more) => new recipes.SchemaSet([], options, ...more),
    Semaphore: (options, ...more) => new recipes.Semaphore(zk, '/a', options, ...more),
    ServiceProvider: (options, ...more) => new recipes.ServiceDiscovery(zk, '/a').provider('mail', options, ...more),
    ServiceDiscovery: (options, ...more) => new recipes.ServiceDiscovery(zk, '/a', options, ...more),
    SetPartitioner: (options, ...more) => new recipes.SetPartitioner(zk, '/a', 'alice', ['a'], work, options, ...more),
    ShardedQueue: (options, ...more) => new recipes.ShardedQueue(zk, '/a', merged(options, { shards: 2 }), ...more),
    SharedCount: (options, ...more) => new recipes.SharedCount(zk, '/a', options, ...more),
    ReadWriteLock: (options, ...more) => new recipes.ReadWriteLock(zk, '/a', options, ...more),
    SharedValue: (options, ...more) => new recipes.SharedValue(zk, '/a', textCodec, options, ...more),
    TreeCache: (options, ...more) => new recipes.TreeCache(zk, '/a', options, ...more),
    TwoPhaseCommit: (options, ...more) => new recipes.TwoPhaseCommit(zk, '/a', options, ...more),
  };
}

// --- Calls with the options of a call of the client

/** One of each class of the recipes, by the name of the class. */
async function instancesOf(zk: recipes.SessionSource): Promise<ReadonlyMap<string, object>> {
  const made = await t.until(Promise.all(Object.values(places).map(async (make, at) => (await make(zk, `/each/${at}`)) as object)));
  const lock = new recipes.Lock(zk, '/each/lock');
  const queue = new recipes.Queue(zk, '/each/queue');
  await t.until(queue.put('item'));
  const registry = new recipes.ServiceDiscovery(zk, '/each/services');
  const transaction = new recipes.TwoPhaseCommit(zk, '/each/transaction');
  await t.until(transaction.begin(['berlin']));
  const model = new recipes.Model('/each/{znode}', { codec: textCodec });
  const waited = await t.until(
    Promise.all([
      lock.acquire(),
      new recipes.Semaphore(zk, '/each/semaphore', { size: 2 }).acquireMany(2),
      new recipes.Lease(zk, '/each/lease', lease).acquire(),
      new recipes.Election(zk, '/each/election').lead(),
      queue.claim(),
      new recipes.DoubleBarrier(zk, '/each/barrier', 1).enter(),
      registry.register({ name: 'mail', address: '10.0.0.1', payload: null }),
      transaction.join('berlin'),
      recipes.Sessions.start(() => Promise.resolve(t.zk)),
    ]),
  );
  const others = [
    new recipes.CachedAtomicNumber(new recipes.AtomicNumber(zk, '/each/number'), 1),
    new recipes.MultiLock([lock]),
    model,
    model.at(zk, { znode: 'a' }),
    model.children(zk),
    model.template,
    new recipes.SchemaSet([]),
    registry.cache('mail'),
    registry.provider('mail'),
  ];
  return new Map([...made, ...waited, ...others].map((each) => [each.constructor.name, each]));
}

/** Each call with `signal`, `timeoutMs` and `retry`. */
async function callsOf(source: recipes.SessionSource): Promise<Readonly<Record<string, Wait>>> {
  const each = (await instancesOf(source)) as ReadonlyMap<string, Any>;
  const methods = {
    ModelZnode: {
      get: [],
      find: [],
      exists: [],
      create: ['value'],
      set: ['value'],
      put: ['value'],
      update: [() => 'value'],
      delete: [],
    },
    ModelChildren: { list: [] },
    Leadership: { acknowledge: [] },
    HeldLease: { renew: [] },
  };
  const calls = Object.entries(methods).flatMap(([owner, own]) =>
    Object.entries(own).map(([method, given]): [string, Wait] => [
      `${owner}.${method}`,
      (options) => each.get(owner)[method](...given, options),
    ]),
  );
  const fenced = fencedWriters.map((owner): [string, Wait] => [`${owner}.multi`, (options) => each.get(owner).multi([], options)]);
  return Object.fromEntries([...calls, ...fenced]);
}

/** Classes whose `multi` writes only while their hold lasts. */
const fencedWriters = ['Hold', 'HoldSet', 'HeldLease', 'Leadership', 'Participation', 'ClaimedItem'];

describe.each(['a client', 'Sessions'])('a client call through a recipe of %s', (kind) => {
  const sourceOf = () => (kind === 'Sessions' ? t.until(recipes.Sessions.start(() => t.client())) : t.zk);

  it('rejects unknown options, at once', async () => {
    const failures: string[] = [];
    for (const [name, call] of Object.entries(await callsOf(await sourceOf()))) {
      for (const given of [0, null, 'fast', [], { verison: 0 }, { singal: 5 }, { timeoutMs: '5' }, { signal: new AbortController() }]) {
        const error = await mistake(() => call(given));
        if (
          !/(options (are|must be) an object|unknown option|signal must be|timeoutMs must be)/.test(error.message) ||
          !/^(Type|Range)Error$/.test(error.name)
        )
          failures.push(`${name} of ${JSON.stringify(given)}: ${error.message}`);
      }
    }
    expect(failures).toEqual([]);
  });

  it('rejects invalid operations of a multi, at once', async () => {
    const each = (await instancesOf(await sourceOf())) as ReadonlyMap<string, Any>;
    const failures: string[] = [];
    for (const owner of fencedWriters) {
      for (const given of [
        undefined,
        null,
        5,
        'x',
        {},
        [5],
        [undefined],
        [{ op: 'getData', path: '/a' }],
        [{ op: 'delete', path: '/a', verison: 1 }],
      ]) {
        const error = await mistake(() => each.get(owner).multi(given));
        if (!/^multi: ops(\[0\])?(, op\.delete)?(:| is| must)/.test(error.message) || !/^TypeError$/.test(error.name))
          failures.push(`${owner}.multi of ${JSON.stringify(given)}: ${error.message}`);
      }
    }
    expect(failures).toEqual([]);
  });
});

// --- Other arguments

/**
 * Methods that pass their arguments on to a method that is tested, or to the client, which checks
 * them.
 */
const passedOn: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['Hold', 'HoldSet', 'Leadership', 'Participation', 'ClaimedItem', 'Registration', 'SetPartitioner'].map((name) => [
      `${name}.onStateChange`,
      'PersistentNode.onStateChange',
    ]),
  ),
  ...Object.fromEntries(['DelayQueue', 'IdQueue', 'PriorityQueue'].map((name) => [`${name}.putAll`, `${name}.put`])),
  'ShardedQueue.putAll': 'Queue.putAll',
  // Not public.
  ...Object.fromEntries(['putItems', 'ensembleTimeMs', 'takeAll'].map((name) => [`BaseQueue.${name}`, ''])),
  'AtomicNumber.decrement': 'AtomicNumber.subtract',
  'ClaimedItem.acknowledge': 'tried by itself',
  'Participation.leave': 'Deadline, as all calls that wait',
  'Site.acknowledge': 'Deadline, as all calls that wait',
  'PathTemplate.path': 'Model.at',
  'PathTemplate.parentPath': 'Model.children',
  'RecipeError.toString': 'Error',
};

const none = undefined as Any;

/** Without its types, as a program in JavaScript has it. */
function znodeOf(zk: Client): Any {
  return new recipes.Model('/a', { codec: textCodec }).at(zk);
}

/** Each call, and its error. */
const others: Readonly<Record<string, readonly [call: (zk: Client) => unknown, words: RegExp]>> = {
  'Lock, a name with a slash': [(zk) => new recipes.Lock(zk, '/a', { prefix: 'x/y' }), /must be a non-empty string without "\/"/],
  'Lock, no name': [(zk) => new recipes.Lock(zk, '/a', { prefix: '' }), /must be a non-empty string .*, not ""/],
  'Election, a name with a slash': [(zk) => new recipes.Election(zk, '/a', { prefix: '/n_' }), /must be a non-empty string without "\/"/],
  'ReadWriteLock, an invalid name': [(zk) => new recipes.ReadWriteLock(zk, '/a', { prefixes: { read: 'r', write: 5 as Any } }), /not 5/],
  'ReadWriteLock, invalid names': [(zk) => new recipes.ReadWriteLock(zk, '/a', { prefixes: 'read' as Any }), /names must be an object/],
  'Lock.run without work': [(zk) => new recipes.Lock(zk, '/a').run(none), /^work must be a function, not undefined/],
  'ReadWriteLock.readLock.run without work': [(zk) => new recipes.ReadWriteLock(zk, '/a').readLock.run(none), /^work must be a function/],
  'PriorityLock.writeLock.run without work': [
    (zk) => new recipes.PriorityLock(zk, '/a').writeLock(1).run(none),
    /^work must be a function/,
  ],
  'PriorityLock, an invalid priority': [
    (zk) => new recipes.PriorityLock(zk, '/a').readLock(none),
    /a priority must be an integer from 0 to 99/,
  ],
  'PriorityLock, an invalid preemption': [(zk) => new recipes.PriorityLock(zk, '/a').readLock(1, { preempt: 5 as Any }), /preempt is/],
  'Semaphore.run without work': [(zk) => new recipes.Semaphore(zk, '/a', { size: 1 }).run(none), /^work must be a function/],
  'Semaphore, a size of text': [(zk) => new recipes.Semaphore(zk, '/a', { size: '3' as Any }), /the size of a semaphore must be from 1/],
  'Semaphore, a size of null': [(zk) => new recipes.Semaphore(zk, '/a', { size: null as Any }), /the size of a semaphore must be from 1/],
  'Semaphore.acquireMany, NaN': [
    (zk) => new recipes.Semaphore(zk, '/a', { size: 1 }).acquireMany(NaN),
    /the number of leases must be from 1/,
  ],
  'Semaphore.resize, Infinity': [(zk) => new recipes.Semaphore(zk, '/a').resize(Infinity), /must be from 1 to 999999999, not Infinity/],
  'MultiLock of nothing': [() => new recipes.MultiLock(none), /the parts of a MultiLock must be an array, not undefined/],
  'MultiLock of paths': [() => new recipes.MultiLock(['/a' as Any]), /a part of a MultiLock must be a lock, .* not "\/a"/],
  'MultiLock.run without work': [(zk) => new recipes.MultiLock([new recipes.Lock(zk, '/a')]).run(none), /^work must be a function/],
  'Lock.acquire, an invalid onRevocation': [
    (zk) => new recipes.Lock(zk, '/a').acquire({ onRevocation: 5 as Any }),
    /^onRevocation must be a function/,
  ],
  'Lock.revoke of undefined': [
    (zk) => new recipes.Lock(zk, '/a').revoke(none),
    /^a contender must be an object, as contenders\(\) lists them, not undefined/,
  ],
  'Lock.revoke of a path': [(zk) => new recipes.Lock(zk, '/a').revoke('/a/b' as Any), /^a contender must be an object, .* not "\/a\/b"/],
  'Lock.revoke of an object without a path': [(zk) => new recipes.Lock(zk, '/a').revoke({} as Any), /undefined is not a path/],
  'Lock.revoke, deleteAfterMs NaN': [
    (zk) => new recipes.Lock(zk, '/a').revoke({ prefix: '', name: 'b', path: '/a/b', sequence: 0 }, { deleteAfterMs: NaN }),
    /^deleteAfterMs must be a number of milliseconds from 0, not NaN/,
  ],
  'Lease without options': [(zk) => new recipes.Lease(zk, '/a', none), /^options must be an object, as { durationMs/],
  'Lease without a duration': [
    (zk) => new recipes.Lease(zk, '/a', { holder: 'a' } as Any),
    /a positive number of milliseconds, .* not undefined/,
  ],
  'Lease, a duration of text': [(zk) => new recipes.Lease(zk, '/a', { holder: 'a', durationMs: '5' as Any }), /not "5"/],
  'Lease, a duration beyond all dates': [(zk) => new recipes.Lease(zk, '/a', { holder: 'a', durationMs: 1e300 }), /up to a hundred years/],
  'Lease without a holder': [(zk) => new recipes.Lease(zk, '/a', { durationMs: 1000 } as Any), /^the holder of a lease must be a string/],
  'MultiLease without options': [(zk) => new recipes.MultiLease(zk, '/a', none), /^options must be an object, as { count/],
  'Election.run without work': [(zk) => new recipes.Election(zk, '/a').run(none), /^work must be a function/],
  'LeaderLatch.run without work': [(zk) => new recipes.LeaderLatch(zk, '/a').run(none), /^work must be a function/],
  'LeaderLatch.onChange without a listener': [(zk) => new recipes.LeaderLatch(zk, '/a').onChange(none), /^a listener must be a function/],
  'DoubleBarrier without a size': [(zk) => new recipes.DoubleBarrier(zk, '/a', none), /the size of a barrier .* not undefined/],
  'DoubleBarrier, a name with a slash': [(zk) => new recipes.DoubleBarrier(zk, '/a', 2, { name: 'x/y' }), /the name of a participant/],
  'DoubleBarrier.run without work': [(zk) => new recipes.DoubleBarrier(zk, '/a', 2).run(none), /^work must be a function/],
  'SimpleBarrier, a name with a slash': [(zk) => recipes.SimpleBarrier.create(zk, '/a', 2, { name: 'x/y' }), /the name of a participant/],
  'Group, an unknown naming': [(zk) => new recipes.Group(zk, '/a', { naming: 'kazoo' as Any }), /naming must be one of/],
  'Group.join without a name': [(zk) => new recipes.Group(zk, '/a').join(none), /the name of a member .* not undefined/],
  'PersistentNode, an unknown mode': [
    (zk) => new recipes.PersistentNode(zk, '/a', null, { mode: 'container' as Any }),
    /^there is no mode "container" of a PersistentNode; modes are/,
  ],
  'PersistentNode, invalid data': [
    (zk) => new recipes.PersistentNode(zk, '/a', { a: 1 } as Any),
    /^data must be a Uint8Array, a string or null/,
  ],
  'PersistentNode, an invalid TTL': [
    (zk) => new recipes.PersistentNode(zk, '/a', null, { mode: 'persistentWithTtl', ttlMs: NaN }),
    /^ttlMs must be a number of milliseconds from 1, not NaN/,
  ],
  'PersistentNode.onStateChange without a listener': [
    (zk) => new recipes.PersistentNode(zk, '/a').onStateChange(none),
    /^a listener must be/,
  ],
  'SetPartitioner without items': [
    (zk) => new recipes.SetPartitioner(zk, '/a', 'b', none, work),
    /^items must be an array or a Set of names, not undefined/,
  ],
  'SetPartitioner of a text': [
    (zk) => new recipes.SetPartitioner(zk, '/a', 'b', 'abc', work),
    /^items must be an array or a Set of names, not "abc"/,
  ],
  'SetPartitioner of numbers': [
    (zk) => new recipes.SetPartitioner(zk, '/a', 'b', [1, 2] as Any, work),
    /^an item must be a non-empty string .* not 1/,
  ],
  'SetPartitioner without a name': [(zk) => new recipes.SetPartitioner(zk, '/a', '', ['a'], work), /^the name of a member/],
  'SetPartitioner without work': [(zk) => new recipes.SetPartitioner(zk, '/a', 'b', ['a'], none), /^work must be a function/],
  'SetPartitioner, an invalid boundary': [
    (zk) => new recipes.SetPartitioner(zk, '/a', 'b', ['a'], work, { timeBoundaryMs: NaN }),
    /^timeBoundaryMs must be a number of milliseconds from 0/,
  ],
  'Queue, a prefix with a slash': [
    (zk) => new recipes.Queue(zk, '/a', { prefix: 'x/y' }),
    /^the prefix of items must be a non-empty string without "\/", not "x\/y"/,
  ],
  'Queue, maxItems NaN': [(zk) => new recipes.Queue(zk, '/a', { maxItems: NaN }), /^maxItems must be a whole number/],
  'Queue, an invalid claimsPath': [(zk) => new recipes.Queue(zk, '/a', { claimsPath: 'taken' }), /"taken" is not a path/],
  'Queue.put of a number': [(zk) => new recipes.Queue(zk, '/a').put(5 as Any), /^data must be a Uint8Array, a string or null, not 5/],
  'Queue.put of nothing': [(zk) => new recipes.Queue(zk, '/a').put(none), /^data must be a Uint8Array, a string or null, not undefined/],
  'Queue.putAll of a text': [(zk) => new recipes.Queue(zk, '/a').putAll('abc' as Any), /^items must be an array, not "abc"/],
  'Queue.process without work': [(zk) => new recipes.Queue(zk, '/a').process(none), /^work must be a function/],
  'PriorityQueue.put without options': [
    (zk) => new recipes.PriorityQueue(zk, '/a').put('a', none),
    /^options must be an object, as { priority: 5 }/,
  ],
  'PriorityQueue.put, a priority of text': [
    (zk) => new recipes.PriorityQueue(zk, '/a').put('a', { priority: '5' as Any }),
    /a priority must be a whole number/,
  ],
  'DelayQueue.put without options': [(zk) => new recipes.DelayQueue(zk, '/a').put('a', none), /^options must be an object, as { delayMs/],
  'DelayQueue.put without a time': [(zk) => new recipes.DelayQueue(zk, '/a').put('a', {} as Any), /needs delayMs or dueAtMs/],
  'DelayQueue.put, NaN': [(zk) => new recipes.DelayQueue(zk, '/a').put('a', { delayMs: NaN }), /^delayMs must be a number/],
  'DelayQueue.put, an invalid time': [
    (zk) => new recipes.DelayQueue(zk, '/a').put('a', { dueAtMs: new Date(5) as Any }),
    /a time must be a whole number/,
  ],
  'IdQueue.put without an id': [(zk) => new recipes.IdQueue(zk, '/a').put('a', {} as Any), /^an id must be a non-empty string/],
  'IdQueue.remove without an id': [(zk) => new recipes.IdQueue(zk, '/a').remove(none), /^an id must be a non-empty string/],
  'ShardedQueue without options': [(zk) => new recipes.ShardedQueue(zk, '/a', none), /^options must be an object, as { shards/],
  'AtomicNumber, an invalid format': [(zk) => new recipes.AtomicNumber(zk, '/a', { format: 'int32' as Any }), /as int32, not "int32"/],
  'AtomicNumber, a lock without a path': [(zk) => new recipes.AtomicNumber(zk, '/a', { lockPath: 'lock' }), /"lock" is not a path/],
  'AtomicNumber.add of a number to bigints': [
    (zk) => new recipes.AtomicNumber(zk, '/a').add(1 as Any),
    /^a number of \/a must be a bigint, not 1/,
  ],
  'AtomicNumber.add of nothing': [(zk) => new recipes.AtomicNumber(zk, '/a').add(none), /must be a bigint, not undefined/],
  'AtomicNumber.subtract of a number from bigints': [
    (zk) => new recipes.AtomicNumber(zk, '/a').subtract(1 as Any),
    /must be a bigint, not 1/,
  ],
  'AtomicNumber.set to a number of bigints': [(zk) => new recipes.AtomicNumber(zk, '/a').set(5 as Any), /must be a bigint, not 5/],
  'AtomicNumber.compareAndSet of numbers among bigints': [
    (zk) => new recipes.AtomicNumber(zk, '/a').compareAndSet(0 as Any, 5n),
    /must be a bigint, not 0/,
  ],
  'AtomicNumber.add of a bigint to numbers': [
    (zk) => new recipes.AtomicNumber(zk, '/a', { format: recipes.int32 }).add(1n as Any),
    /must be a number, not 1n?/,
  ],
  'AtomicNumber.initialize with a number among bigints': [
    (zk) => new recipes.AtomicNumber(zk, '/a').initialize(5 as Any),
    /must be a bigint, not 5/,
  ],
  'CachedAtomicNumber of nothing': [() => new recipes.CachedAtomicNumber(none, 5), /ranges are taken of an AtomicNumber, not of undefined/],
  'SharedValue without a codec': [(zk) => new recipes.SharedValue(zk, '/a', none), /as textCodec, not undefined/],
  'SharedValue.update without a function': [
    (zk) => new recipes.SharedValue(zk, '/a', textCodec).update(none),
    /^change must be a function/,
  ],
  'NodeCache, an invalid decode': [
    (zk) => new recipes.NodeCache(zk, '/a', { decode: 'json' as Any }),
    /^decode must be a function, not "json"/,
  ],
  'TreeCache, an invalid include': [
    (zk) => new recipes.TreeCache(zk, '/a', { include: /a/ as Any }),
    /^include must be a function, not an object of RegExp/,
  ],
  'TreeCache, maxDepth 0': [(zk) => new recipes.TreeCache(zk, '/a', { maxDepth: 0 }), /^maxDepth must be a whole number/],
  'ChildrenCache, concurrency 0': [(zk) => new recipes.ChildrenCache(zk, '/a', { concurrency: 0 }), /^concurrency must be a whole number/],
  'Cache.changes, an invalid signal': [
    (zk) => new recipes.NodeCache(zk, '/a').changes({ signal: new AbortController() as Any }),
    /^changes: signal must be/,
  ],
  'TwoPhaseCommit, an unknown watching': [(zk) => new recipes.TwoPhaseCommit(zk, '/a', { watchedBy: 'all' as Any }), /watchedBy must be/],
  'TwoPhaseCommit.begin without sites': [(zk) => new recipes.TwoPhaseCommit(zk, '/a').begin(none), /^sites must be an array/],
  'TwoPhaseCommit.join without a site': [(zk) => new recipes.TwoPhaseCommit(zk, '/a').join(none), /is not a name of a site/],
  'Migrations without a list': [(zk) => new recipes.Migrations(zk, '/a', none), /^migrations must be an array/],
  'Migrations, one without operations': [
    (zk) => new recipes.Migrations(zk, '/a', [{ name: 'a' } as Any]),
    /^the operations of "a" must be an array/,
  ],
  'Migrations, one without a name': [
    (zk) => new recipes.Migrations(zk, '/a', [{ nam: 'a', ops: [] } as Any]),
    /^migrations\[0\]: unknown option "nam"; write name/,
  ],
  'Migrations, an invalid operation': [
    (zk) => new recipes.Migrations(zk, '/a', [{ name: 'a', ops: [5 as Any] }]),
    /^migrations\[0\]: ops\[0\] is not an operation of multi/,
  ],
  'Migrations, an invalid migration': [(zk) => new recipes.Migrations(zk, '/a', [none]), /^migration 1 of \/a must be an object/],
  'Model without a template': [() => new recipes.Model(none, { codec: textCodec }), /is not a template of a path/],
  'Model without options': [() => new recipes.Model('/a', none), /^options must be an object, as { codec/],
  'Model without a codec': [() => new recipes.Model('/a', {} as Any), /as jsonCodec\(\), not undefined/],
  'Model.at without a client': [
    () => new recipes.Model('/a', { codec: textCodec }).at(none),
    /^expected a Client from connect\(\), a view of one, or Sessions, got undefined/,
  ],
  'Model.children without a client': [
    () => new recipes.Model('/a/{b}', { codec: textCodec }).children(none),
    /^expected a Client from connect\(\), a view of one, or Sessions, got undefined/,
  ],
  'Model.at without a parameter': [(zk) => new recipes.Model('/a/{b}', { codec: textCodec }).at(zk, {} as Any), /needs the parameter b/],
  'ModelZnode.update without a function': [
    (zk) => new recipes.Model('/a', { codec: textCodec }).at(zk).update(none),
    /^updater must be a function/,
  ],
  'ModelZnode.op.create, options': [
    (zk) => znodeOf(zk).op.create('x', { mode: 'ephemeral' }),
    /^op\.create\(value\) takes 1 argument, not 2/,
  ],
  'ModelZnode.op.set, a number in the place of options': [
    (zk) => znodeOf(zk).op.set('x', 0),
    /^op\.set: options must be an object, not 0: write op\.set\(value, { version: 0 }\)/,
  ],
  'ModelZnode.op.set, null in the place of options': [
    (zk) => znodeOf(zk).op.set('x', null),
    /^op\.set: options must be an object, not null/,
  ],
  'ModelZnode.op.set, a misspelt version': [
    (zk) => znodeOf(zk).op.set('x', { verison: 0 }),
    /^op\.set: unknown option "verison"; write version/,
  ],
  'ModelZnode.op.set, a version of text': [
    (zk) => znodeOf(zk).op.set('x', { version: '0' }),
    /^op\.set: version must be a whole number .* not "0"/,
  ],
  'ModelZnode.op.set, an argument too many': [
    (zk) => znodeOf(zk).op.set('x', {}, 0),
    /^op\.set\(value, options\) takes 2 arguments, not 3/,
  ],
  'ModelZnode.op.delete, a number in the place of options': [
    (zk) => znodeOf(zk).op.delete(0),
    /^op\.delete: options must be an object, not 0: write op\.delete\({ version: 0 }\)/,
  ],
  'ModelZnode.op.delete, a misspelt version': [
    (zk) => znodeOf(zk).op.delete({ verison: 0 }),
    /^op\.delete: unknown option "verison"; write version/,
  ],
  'ModelZnode.op.check, a number in the place of options': [
    (zk) => znodeOf(zk).op.check(0),
    /^op\.check: options must be an object, not 0: write op\.check\({ version: 0 }\)/,
  ],
  'ModelZnode.op.check, a misspelt version': [
    (zk) => znodeOf(zk).op.check({ verison: 0 }),
    /^op\.check: unknown option "verison"; write version/,
  ],
  'PathTemplate of nothing': [() => new recipes.PathTemplate(none), /is not a template of a path/],
  'PathTemplate.match of nothing': [() => new recipes.PathTemplate('/a/{b}').match(none), /^a path must be a string, not undefined/],
  'PathTemplate.canMatchBelow nothing': [
    () => new recipes.PathTemplate('/a/{b}').canMatchBelow(none),
    /^a path must be a string, not undefined/,
  ],
  'Model, an unknown mode': [
    () => new recipes.Model('/a', { codec: textCodec, mode: 'ephemeralish' as Any }),
    /^new Model: mode must be "persistent", .* not "ephemeralish"/,
  ],
  'Model, misspelt parents': [
    () => new recipes.Model('/a', { codec: textCodec, parentss: false } as Any),
    /^new Model: unknown option "parentss"; write parents/,
  ],
  'Model, invalid parents': [
    () => new recipes.Model('/a', { codec: textCodec, parents: 'ephemeral' as Any }),
    /^new Model: parents must be "persistent", "container" or false, not "ephemeral"/,
  ],
  'Model, a TTL of text': [() => new recipes.Model('/a', { codec: textCodec, ttlMs: '5' } as Any), /^new Model: ttlMs must be a number/],
  'ModelChildren.cache, a number in the place of options': [
    (zk) => new recipes.Model('/a/{b}', { codec: textCodec }).children(zk).cache(5 as Any),
    /^cache: options must be an object, not 5/,
  ],
  'ModelChildren.cache, options that it does not know': [
    (zk) => new recipes.Model('/a/{b}', { codec: textCodec }).children(zk).cache({ concurency: 5 } as Any),
    /^cache: unknown option "concurency"; write concurrency/,
  ],
  'SchemaSet, invalid unmatched': [
    () => new recipes.SchemaSet([], { unmatched: 'forbidden' as Any }),
    /^new SchemaSet: unmatched must be "allowed" or "refused", not "forbidden"/,
  ],
  'SchemaSet, an unknown schema with a rule': [
    () => new recipes.SchemaSet([{ path: '/a', canBeDeletd: false } as Any]),
    /^schemas\[0\]: unknown option "canBeDeletd"; write canBeDeleted/,
  ],
  'SchemaSet, an invalid rule': [
    () => new recipes.SchemaSet([{ path: '/a', ephemeral: 'never' as Any }]),
    /^schemas\[0\]: ephemeral must be "can", "must" or "cannot", not "never"/,
  ],
  'SchemaSet, a schema without a path': [() => new recipes.SchemaSet([{ ephemeral: 'can' } as Any]), /is not a template of a path/],
  'SchemaSet of nothing': [() => new recipes.SchemaSet(none), /^schemas must be an array/],
  'SchemaSet of a template': [() => new recipes.SchemaSet(['/a' as Any]), /^a schema must be an object, as { path: .*not "\/a"/],
  'SchemaSet.view of nothing': [
    () => new recipes.SchemaSet([]).view(none),
    /^expected a Client from connect\(\), or a view of one, got undefined/,
  ],
  'jsonCodec, an invalid check': [
    () => recipes.jsonCodec('object' as Any),
    /^a check of values must be a function or a schema, not "object"/,
  ],
  'jsonCodec of an object that is not a schema': [
    () => recipes.jsonCodec({} as Any),
    /^a check of values must be a function or a schema, not an object/,
  ],
  'Sessions.start with a function, options that it does not know': [
    (zk) => recipes.Sessions.start(() => Promise.resolve(zk), { sgnal: 5 } as Any),
    /^Sessions\.start: unknown option "sgnal"; write signal/,
  ],
  'Sessions.start with a function, options of connect': [
    (zk) => recipes.Sessions.start(() => Promise.resolve(zk), { sessionTimeoutMs: 5 } as Any),
    /^Sessions\.start: unknown option "sessionTimeoutMs"/,
  ],
  'Sessions.start with a function, an invalid signal': [
    (zk) => recipes.Sessions.start(() => Promise.resolve(zk), { signal: 5 as Any }),
    /^Sessions\.start: signal must be an AbortSignal/,
  ],
  'Sessions.start with a session, which each client would resume': [
    () => recipes.Sessions.start('zk1:2181', { session: { id: 5n, password: new Uint8Array(16) } } as Any),
    /^Sessions\.start: unknown option "session"/,
  ],
  'Sessions.start with options that connect does not know': [
    () => recipes.Sessions.start('zk1:2181', { sesionTimeoutMs: 5 } as Any),
    /unknown option "sesionTimeoutMs"; write sessionTimeoutMs/,
  ],
  'Sessions.start without a function': [() => recipes.Sessions.start(none), /^the first argument, .* must be a function/],
  'Sessions.start with what gives no client': [
    () => recipes.Sessions.start((() => 'zk') as Any),
    /^expected a Client from connect\(\), or a view of one, got "zk"/,
  ],
  'ServiceDiscovery, a payloadValidator that checks nothing': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a', { payloadValidator: 5 as Any }),
    /^new ServiceDiscovery: payloadValidator must be a function or a schema, not 5/,
  ],
  'ServiceDiscovery.register of nothing': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').register(none),
    /^register: the service must be an object { name, address }, not undefined/,
  ],
  'ServiceDiscovery.register without a name': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').register({ address: 'b' } as Any),
    /^register: the service\.name is missing: write { name, address }/,
  ],
  'ServiceDiscovery.register without an address': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').register({ name: 'b', port: 80 } as Any),
    /^register: the service\.address is missing/,
  ],
  'ServiceDiscovery.register, a misspelt port': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').register({ name: 'b', address: 'c', prt: 80 } as Any),
    /^register: the service: unknown option "prt"; write port/,
  ],
  'ServiceDiscovery.register, a port of text': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').register({ name: 'b', address: 'c', port: '80' } as Any),
    /^register: the service\.port must be a whole number from 0 to 65535, not "80"/,
  ],
  'ServiceDiscovery.register, a serviceType that is not registered': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').register({ name: 'b', address: 'c', serviceType: 'dynamicSequential' } as Any),
    /^register: the service\.serviceType must be "dynamic", "static" or "permanent"/,
  ],
  'ServiceDiscovery.update, a misspelt address': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').update('b', 'c', { adress: 'd' } as Any),
    /^update: the change: unknown option "adress"; write address/,
  ],
  'ServiceDiscovery.update, an invalid flag': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').update('b', 'c', { enabled: 'no' } as Any),
    /^update: the change\.enabled must be true or false, not "no"/,
  ],
  'ServiceDiscovery.cache, options that it does not know': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').cache('b', { concurency: 5 } as Any),
    /^cache: unknown option "concurency"; write concurrency/,
  ],
  'ServiceDiscovery.cache, a number in the place of options': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').cache('b', 5 as Any),
    /^cache: options must be an object, not 5/,
  ],
  'ServiceDiscovery.instances without a name': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').instances(none),
    /the name or the id .* not undefined/,
  ],
  'ServiceDiscovery.cache without a name': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').cache(none),
    /the name or the id .* not undefined/,
  ],
  'ServiceDiscovery.provider without a name': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').provider(none),
    /the name or the id .* not undefined/,
  ],
  'ServiceDiscovery.provider, an invalid strategy': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').provider('b', { strategy: 'random' as Any }),
    /^strategy must be a function, not "random"/,
  ],
  'ServiceDiscovery.update of nothing': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').update('b', 'c', none),
    /^update: the change must be an object .* not undefined/,
  ],
  'ChildrenCache.get of a number': [
    (zk) => new recipes.ChildrenCache(zk, '/a').get(5 as Any),
    /^the name of a znode must be a string, not 5/,
  ],
  'ServiceCache.get of a number': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').cache('b').get(5 as Any),
    /^the name of a znode must be a string, not 5/,
  ],
  'TreeCache.get of nothing': [(zk) => new recipes.TreeCache(zk, '/a').get(none), /^the path of a znode must be a string, not undefined/],
  'TreeCache.children of nothing': [(zk) => new recipes.TreeCache(zk, '/a').children(none), /^the path of a znode must be a string/],
  'ServiceProvider.noteError of nothing': [
    (zk) => new recipes.ServiceDiscovery(zk, '/a').provider('b').noteError(none),
    /^an instance must be an object, as choose\(\) gives/,
  ],
  'PriorityLock.readLock with options that it does not know': [
    (zk) => new recipes.PriorityLock(zk, '/a').readLock(1, { preemt: true } as Any),
    /^readLock: unknown option "preemt"; write preempt/,
  ],
  'PriorityLock.writeLock with a number in the place of options': [
    (zk) => new recipes.PriorityLock(zk, '/a').writeLock(1, 5 as Any),
    /^options must be an object/,
  ],
  'Sessions.ready, a time-out of text': [
    async (zk) => await (await recipes.Sessions.start(() => Promise.resolve(zk))).ready({ timeoutMs: '5' as Any }),
    /timeoutMs must be a number/,
  ],
  'Sessions.onSession without a function': [
    async (zk) => (await recipes.Sessions.start(() => Promise.resolve(zk))).onSession(none),
    /^a listener must be a function/,
  ],
  'Sessions.start, invalid options': [() => recipes.Sessions.start('zk1:2181', 5 as Any), /^options must be an object/],
  'randomly without a function': [() => recipes.randomly(none), /must be a function, not undefined/],
  'sticky by a string': [() => recipes.sticky('random' as Any), /must be a function, not "random"/],
  'buildUri nothing': [
    () => recipes.buildUri(none),
    /^buildUri: the instance must be a ServiceInstance, as a registry gives it, not undefined/,
  ],
  'buildUri an object that is not an instance': [
    () => recipes.buildUri({} as Any),
    /^buildUri: the instance must be a ServiceInstance, .* not an object/,
  ],
  'buildUri an instance of an unknown kind': [
    () => recipes.buildUri({ uriSpec: '{address}', serviceType: 'DYNAMIC' } as Any),
    /^buildUri: the instance must be a ServiceInstance/,
  ],
  'buildUri, invalid variables': [
    () => recipes.buildUri({ uriSpec: null, serviceType: 'dynamic' } as Any, 5 as Any),
    /^buildUri: variables must be an object, as in { path: "\/api" }, not 5/,
  ],
  'Sessions by new': [(zk) => new (recipes.Sessions as Any)(zk), /^create Sessions with await Sessions\.start\('zk1:2181'\), not with new/],
};

it.each(Object.entries(others))('an invalid call is rejected with a reason: %s', async (_title, [call, words]) => {
  expectInputError(await mistake(() => call(t.zk)), words, 'that');
});

it('ClaimedItem.acknowledge rejects operations that are not an array, and the claim lasts', async () => {
  const queue = new recipes.Queue(t.zk, '/a');
  await t.until(queue.put('item'));
  const item = await t.until(queue.claim());
  expectInputError(await mistake(() => item.acknowledge(5 as Any)), /^the operations of acknowledge must be an array, not 5/, 'that');
  await t.until(item.acknowledge());
  await t.until(queue.close());
});

// --- All of it

/** Classes of the package by name. */
const classes = Object.entries(recipes as Readonly<Record<string, unknown>>).flatMap(([name, each]) =>
  typeof each === 'function' && /^class\b/.test(String(each)) ? [[name, each as new (...given: never[]) => object] as const] : [],
);

/** Methods with parameters, of a class and of its base classes. */
function methodsOf(each: { readonly prototype: object }): Map<string, unknown> {
  const methods = new Map<string, unknown>();
  for (let at = each.prototype; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (name !== 'constructor' && typeof value === 'function' && takesSomething(value as () => unknown) && !methods.has(name))
        methods.set(name, value);
  }
  return methods;
}

function takesSomething(method: () => unknown): boolean {
  return !/^(?:async\s+)?\*?\s*\w+\(\s*\)/.test(String(method));
}

it('every public method with parameters is tested with invalid arguments', async () => {
  const tried = [
    ...Object.keys(await waitsOf(t.zk)),
    ...Object.keys(others),
    ...Object.keys(await loopsOf(t.zk)),
    ...Object.keys(await callsOf(t.zk)),
    ...Object.keys(passedOn),
  ];
  const untried = classes.flatMap(([name, each]) =>
    [...methodsOf(each)]
      .filter(([method, value]) => {
        // A method that several classes inherit is tested once.
        const owners = classes.filter(([, other]) => methodsOf(other).get(method) === value);
        return !owners.some(([owner]) =>
          tried.some(
            (title) => title === `${owner}.${method}` || title.startsWith(`${owner}.${method},`) || title.startsWith(`${owner}.${method} `),
          ),
        );
      })
      .map(([method]) => `${name}.${method}`),
  );
  expect(untried.join(' ')).toBe('');
});

/**
 * Objects with methods that an object of a recipe has, by the name of the property: `op` of a
 * ModelZnode.
 */
function partsOf(object: object): ReadonlyMap<string, object> {
  const names = new Set(Object.keys(object));
  for (let at = Object.getPrototypeOf(object) as object; at !== Object.prototype; at = Object.getPrototypeOf(at) as object)
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (descriptor.get !== undefined) names.add(name);
  const parts = [...names].map((name) => [name, (object as Readonly<Record<string, unknown>>)[name]] as const);
  return new Map(parts.filter((part): part is [string, object] => isPart(part[1])));
}

/** Properties whose methods programs do not call, and why. */
const partsElsewhere: Readonly<Record<string, string>> = {
  format: 'given by the program',
  schema: 'handed to a SchemaSet',
  znodes: 'protected',
};

/** Not made by another package, and not tested as a class of its own. */
function isPart(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const isElsewhere = 'clock' in value || 'aborted' in value || 'now' in value || value instanceof Uint8Array;
  return !isElsewhere && !classes.some(([, each]) => value instanceof each);
}

it('every method of a part of a public object is tested with invalid arguments', async () => {
  const tried = [...Object.keys(await waitsOf(t.zk)), ...Object.keys(others)];
  const instances = await instancesOf(t.zk);
  const base = ['Cache', 'BaseQueue', 'SimpleBarrier', 'RecipeError'];
  expect(classes.map(([name]) => name).filter((name) => !instances.has(name) && !base.includes(name))).toEqual([]);
  const untried: string[] = [];
  for (const [owner, object] of instances) {
    for (const [name, part] of partsOf(object)) {
      if (name in partsElsewhere) continue;
      for (const method of methodsOf({ prototype: part }).keys()) {
        const title = `${owner}.${name}.${method}`;
        if (!tried.some((each) => each === title || each.startsWith(`${title},`) || each.startsWith(`${title} `))) untried.push(title);
      }
    }
  }
  expect(untried).toEqual([]);
});

it('every public function with parameters is tested with invalid arguments', () => {
  const functions = Object.entries(recipes as Readonly<Record<string, unknown>>)
    .filter(([name, each]) => typeof each === 'function' && !classes.some(([other]) => other === name))
    .map(([name]) => name);
  expect(functions).toContain('buildUri');
  // It takes nothing.
  const tried = ['roundRobin', ...Object.keys(others)];
  expect(functions.filter((name) => !tried.some((title) => title === name || new RegExp(`^${name}[ ,]`).test(title)))).toEqual([]);
});

it('every public constructor rejects unknown options, and names the nearest', () => {
  const known = { acl: [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }] };
  const failures: string[] = [];
  for (const [name, make] of Object.entries(constructorsOf(t.zk))) {
    for (const [given, words] of [
      [{ ...known, acll: known.acl }, /unknown option "acll"; write acl, which must be/],
      [{ nonsense: 1 }, /unknown option "nonsense"; the options are .*/],
      [5, /options (are|must be) an object/],
      [{ acl: 31 }, /acl must be an array/],
    ] as const) {
      const isWithoutAcl = name.endsWith('Cache') || name === 'SchemaSet' || name === 'ServiceProvider';
      if (isWithoutAcl && typeof given === 'object' && !('nonsense' in given)) continue;
      try {
        make(given);
        failures.push(`${name} takes ${JSON.stringify(given)}`);
      } catch (error) {
        if (!(error instanceof TypeError && words.test(error.message))) failures.push(`${name}: ${String(error)}`);
      }
    }
  }
  expect(failures).toEqual([]);
  const withoutOptions = ['CachedAtomicNumber', 'MultiLock', 'PathTemplate', 'RecipeError'];
  // Made by recipes, not by programs.
  const made = [
    'ClaimedItem',
    'Hold',
    'HeldLease',
    'HoldSet',
    'Leadership',
    'ModelChildren',
    'ModelZnode',
    'Participation',
    'Registration',
    'ServiceCache',
    'Sessions',
    'Site',
  ];
  const base = ['Cache', 'BaseQueue', 'SimpleBarrier'];
  const all = [...Object.keys(constructorsOf(t.zk)), ...withoutOptions, ...made, ...base];
  expect(classes.map(([name]) => name).filter((name) => !all.includes(name))).toEqual([]);
});

it('every public constructor rejects a surplus argument', async () => {
  const surplus = [5] as unknown as [];
  const taken: string[] = [];
  for (const [name, make] of Object.entries(constructorsOf(t.zk))) {
    // Made by a method of a registry.
    if (name === 'ServiceProvider') continue;
    try {
      make({}, ...surplus);
      taken.push(name);
    } catch (error) {
      if (!(error instanceof TypeError && new RegExp(`^new ${name}\\(.*options\\) takes \\d arguments, not \\d`).test(error.message)))
        taken.push(`${name}: ${String(error)}`);
    }
  }
  const number = new recipes.AtomicNumber(t.zk, '/a');
  expectInputError(
    await mistake(() => new recipes.CachedAtomicNumber(number, 1, ...surplus)),
    /^new CachedAtomicNumber\(number, size\) takes 2 arguments, not 3/,
    5,
  );
  expectInputError(await mistake(() => new recipes.MultiLock([], ...surplus)), /^new MultiLock\(locks\) takes 1 argument, not 2/, 5);
  expectInputError(
    await mistake(() => new recipes.PathTemplate('/a', ...surplus)),
    /^new PathTemplate\(template\) takes 1 argument, not 2/,
    5,
  );
  expect(taken).toEqual([]);
});

/** All methods of an object, by name. Methods named by symbols are called by the engine. */
function allMethodsOf(owner: object): Map<string, () => unknown> {
  const methods = new Map<string, () => unknown>();
  for (let at = owner; at !== Object.prototype; at = Object.getPrototypeOf(at) as object) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at)))
      if (name !== 'constructor' && typeof value === 'function' && !methods.has(name)) methods.set(name, value as () => unknown);
  }
  return methods;
}

/** The number of parameters of a method or function, including those with a default. */
function parametersOf(method: () => unknown): number {
  const [, list = ''] = /^[^(]*\(([^)]*)\)/.exec(String(method))!;
  return list.trim() === '' ? 0 : list.split(',').length;
}

/** Methods that programs do not call. */
const notPublic = ['putItems', 'ensembleTimeMs', 'takeAll'];

/**
 * Methods that return no promise, and so throw; with the name of the class if another class has an
 * asynchronous method of that name.
 */
const synchronous = [
  'onStateChange',
  'onChange',
  'at',
  'cache',
  'canMatchBelow',
  'changes',
  'children',
  'choose',
  'onSession',
  'items',
  'match',
  'noteError',
  'observe',
  'parentPath',
  'path',
  'provider',
  'readLock',
  'share',
  'view',
  'watch',
  'writeLock',
  'ChildrenCache.get',
  'ServiceCache.get',
  'TreeCache.get',
  'ModelZnode.op.check',
  'ModelZnode.op.create',
  'ModelZnode.op.delete',
  'ModelZnode.op.set',
  'jsonCodec',
  'randomly',
  'roundRobin',
  'sticky',
  'buildUri',
];

it('every public method and function rejects a surplus argument, by a promise if it returns one', async () => {
  const instances = await instancesOf(t.zk);
  const made = [...instances.values()];
  expect(classes.map(([name]) => name).filter((_, at) => !made.some((one) => one instanceof classes[at]![1]))).toEqual(['RecipeError']);
  const calls: (readonly [title: string, name: string, owner: object, call: () => unknown])[] = [];
  for (const [name, object] of instances) {
    const parts = [...partsOf(object)].filter(([part]) => !(part in partsElsewhere));
    for (const [title, owner] of [[name, object] as const, ...parts.map(([part, value]) => [`${name}.${part}`, value] as const)])
      for (const [method, call] of allMethodsOf(owner)) calls.push([`${title}.${method}`, method, owner, call]);
  }
  for (const [name, each] of classes) {
    for (const [method, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each)))
      if (typeof value === 'function') calls.push([`${name}.${method}`, method, each, value as () => unknown]);
  }
  for (const [name, each] of Object.entries(recipes as Readonly<Record<string, unknown>>)) {
    if (typeof each === 'function' && !classes.some(([other]) => other === name)) calls.push([name, name, recipes, each as () => unknown]);
  }
  const failures: string[] = [];
  for (const [title, name, owner, call] of calls) {
    if (notPublic.includes(name)) continue;
    const most = parametersOf(call);
    const many = most === 0 ? 'no argument' : most === 1 ? '1 argument' : `${most} arguments`;
    const names = most === 0 ? '' : `\\w+${', \\w+'.repeat(most - 1)}`;
    let isThrown = true;
    const error = await mistake(() => {
      const result = Reflect.apply(call, owner, Array.from({ length: most + 1 }));
      isThrown = false;
      return result;
    });
    const isTold = new RegExp(`^([\\w]+\\.)*${name}\\(${names}\\) takes ${many}, not ${most + 1};`).test(error.message);
    if (!isTold || !(error instanceof TypeError)) failures.push(`${title}: ${error.message}`);
    else if (isThrown && !synchronous.includes(name) && !synchronous.includes(title)) failures.push(`${title} throws, and does not reject`);
  }
  expect(calls.map(([title]) => title)).toEqual(
    expect.arrayContaining([
      'Lock.acquire',
      'Hold.release',
      'ReadWriteLock.readLock.run',
      'ModelZnode.op.set',
      'Sessions.start',
      'buildUri',
    ]),
  );
  expect(failures).toEqual([]);
});

it('every loop rejects unknown options, at once', async () => {
  const failures: string[] = [];
  for (const [name, loop] of Object.entries(await loopsOf(t.zk))) {
    for (const given of [5, null, { singal: new AbortController().signal }, { timeoutMs: 5 }, { signal: new AbortController() }]) {
      const error = await mistake(() => loop(given));
      if (!/(options (are|must be) an object|unknown option|signal must be an AbortSignal)/.test(error.message))
        failures.push(`${name}: ${error.message}`);
    }
  }
  expect(failures).toEqual([]);
});
