/**
 * Recipes with `Sessions` whose sessions expire: each continues in the next one as its meaning
 * allows.
 */
import { KeeperError, op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as recipes from '../../src/index.ts';
import type { Sessions } from '../../src/index.ts';
import { expire, forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';

let t: RecipeWorld;
let program: Program;
let sessions: Sessions;

beforeEach(async () => {
  t = await RecipeWorld.start();
  program = await Program.start(t);
  ({ sessions } = program);
});

afterEach(async () => {
  await t.until(sessions.close());
  await t.close();
});

const { textCodec } = recipes;
const text = (data: Uint8Array | null | undefined) => new TextDecoder().decode(data ?? undefined);
const path = '/r';

/**
 * How a session ends: the ensemble ends it, and the client learns of that from the server, or after
 * it was cut off for too long.
 */
const ends = {
  'by the ensemble': () => expire(t, sessions.client),
  'while it is cut off': () => program.expire(),
} as const;

type End = keyof typeof ends;

/**
 * A wait, and what it waits for: the wait has begun when `wait` was called and everything has
 * settled.
 */
interface Waiting {
  /** Blocks the wait; returns how to unblock it. */
  readonly block: (zk: recipes.SessionSource) => Promise<() => Promise<unknown>>;
  readonly wait: (source: Sessions) => Promise<unknown>;
}

const byLock = (make: (source: recipes.SessionSource) => recipes.Acquirable): Waiting => ({
  block: async (zk) => {
    const held = await make(zk).acquire();
    return () => held.release();
  },
  wait: async (source) => {
    const held = await make(source).acquire();
    expect([held.state, held.client]).toEqual(['held', source.client]);
    await held.release();
  },
});

const lease = { durationMs: 60_000 };

const waits: Readonly<Record<string, Waiting>> = {
  'Lock.acquire': byLock((source) => new recipes.Lock(source, path)),
  'ReadWriteLock.writeLock.acquire': byLock((source) => new recipes.ReadWriteLock(source, path).writeLock),
  'PriorityLock.writeLock.acquire': byLock((source) => new recipes.PriorityLock(source, path).writeLock(3)),
  'Semaphore.acquire': byLock((source) => new recipes.Semaphore(source, path, { size: 1 })),
  'MultiLock.acquire, for its first part': byLock((source) => {
    const multi = new recipes.MultiLock([new recipes.Lock(source, `${path}/a`), new recipes.Lock(source, `${path}/b`)]);
    return {
      source,
      path,
      acquire: async () => (await multi.acquire()) as never,
      tryAcquire: () => Promise.reject(new Error('not tried')),
    };
  }),
  'MultiLock.acquire, for its last part': {
    block: async (zk) => {
      const held = await new recipes.Lock(zk, `${path}/b`).acquire();
      return () => held.release();
    },
    wait: async (source) => {
      const parts = ['a', 'b'].map((name) => new recipes.Lock(source, `${path}/${name}`));
      const held = await new recipes.MultiLock(parts).acquire();
      expect([held.state, held.client, ...held.holds.map(({ state }) => state)]).toEqual(['held', source.client, 'held', 'held']);
      await held.release();
    },
  },
  'Lease.acquire': {
    block: async (zk) => {
      const held = await new recipes.Lease(zk, path, { ...lease, holder: 'other' }).acquire();
      return () => held.release();
    },
    wait: async (source) => (await new recipes.Lease(source, path, { ...lease, holder: 'me' }).acquire()).release(),
  },
  'Election.lead': {
    block: async (zk) => {
      const leadership = await new recipes.Election(zk, path).lead();
      return () => leadership.resign();
    },
    wait: async (source) => {
      const leadership = await new recipes.Election(source, path).lead();
      expect([leadership.state, leadership.client]).toEqual(['held', source.client]);
      await leadership.resign();
    },
  },
  'Election.run': {
    block: async (zk) => {
      const leadership = await new recipes.Election(zk, path).lead();
      return () => leadership.resign();
    },
    wait: async (source) => expect(await new recipes.Election(source, path).run(() => 'led')).toBe('led'),
  },
  'Barrier.wait': {
    block: async (zk) => {
      await new recipes.Barrier(zk, path).set();
      return () => new recipes.Barrier(zk, path).remove();
    },
    wait: (source) => new recipes.Barrier(source, path).wait(),
  },
  'DoubleBarrier.run': {
    block: async (zk) => () => new recipes.DoubleBarrier(zk, path, 2).run(() => undefined),
    wait: (source) => new recipes.DoubleBarrier(source, path, 2).run(() => undefined),
  },
  'SimpleBarrier.run': {
    block: async (zk) => {
      const barrier = await recipes.SimpleBarrier.create(zk, path, 2);
      return () => barrier.run(() => undefined);
    },
    wait: async (source) => (await recipes.SimpleBarrier.create(source, path, 2)).run(() => undefined),
  },
  'EventHandle.wait': {
    block: async (zk) => () => new recipes.EventHandle(zk, path).set(),
    wait: (source) => new recipes.EventHandle(source, path).wait(),
  },
  'EventHandle.wait, autoReset': {
    block: async (zk) => () => new recipes.EventHandle(zk, path, { autoReset: true }).set(),
    wait: (source) => new recipes.EventHandle(source, path, { autoReset: true }).wait(),
  },
  'Queue.take': {
    block: async (zk) => () => new recipes.Queue(zk, path).put('item'),
    wait: async (source) => expect(text((await new recipes.Queue(source, path).take()).data)).toBe('item'),
  },
  'Queue.process': {
    block: async (zk) => () => new recipes.Queue(zk, path).put('item'),
    wait: async (source) => expect(await new recipes.Queue(source, path).process(({ data }) => text(data))).toBe('item'),
  },
  'Queue.put, for room': {
    block: async (zk) => {
      await new recipes.Queue(zk, path).put('first');
      return () => new recipes.Queue(zk, path).take();
    },
    wait: (source) => new recipes.Queue(source, path, { maxItems: 1 }).put('second'),
  },
  'DelayQueue.take': {
    block: async (zk) => () => new recipes.DelayQueue(zk, path).put('item', { delayMs: 10 }),
    wait: async (source) => expect(text((await new recipes.DelayQueue(source, path).take()).data)).toBe('item'),
  },
  'TwoPhaseCommit.outcome': {
    block: async (zk) => {
      const transaction = new recipes.TwoPhaseCommit(zk, path);
      await transaction.begin(['berlin']);
      return async () => (await transaction.join('berlin')).vote('commit');
    },
    wait: async (source) => expect(await new recipes.TwoPhaseCommit(source, path).outcome()).toBe('commit'),
  },
  'Site.outcome': {
    block: async (zk) => {
      const transaction = new recipes.TwoPhaseCommit(zk, path, { watchedBy: 'coordinator' });
      await transaction.begin(['berlin', 'paris']);
      return async () => (await transaction.join('berlin')).vote('commit');
    },
    wait: async (source) => {
      const site = await new recipes.TwoPhaseCommit(source, path, { watchedBy: 'coordinator' }).join('paris');
      expect(await site.vote('commit')).toBe('commit');
      expect(await site.outcome()).toBe('commit');
      await site.acknowledge();
    },
  },
  'Migrations.migrate': {
    block: async (zk) => {
      const held = await new recipes.Lock(zk, `${path}/lock`).acquire();
      return () => held.release();
    },
    wait: async (source) => {
      const migrations = new recipes.Migrations(source, path, [{ name: 'users', ops: [op.create('/users')] }]);
      expect(await migrations.migrate()).toEqual(['users']);
    },
  },
};

describe.each(Object.keys(ends) as End[])('a session that ends %s', (how) => {
  it.each(Object.entries(waits))('B23: %s continues to wait in the next session', async (_name, { block, wait }) => {
    const other = await t.client({ sessionTimeoutMs: 60_000 });
    const goOn = await t.until(block(other));
    let outcome: unknown = 'waits';
    const waiting = wait(sessions).then(
      () => (outcome = 'done'),
      (error: unknown) => (outcome = error),
    );
    await t.settle();
    await t.pass(200);
    const { client } = sessions;
    await ends[how]();
    await t.world.untilSo(() => sessions.client !== client && other.state === 'connected');
    await t.pass(200);
    expect(outcome).toBe('waits');
    await Promise.all([t.until(goOn()), t.until(waiting)]);
    expect(outcome).toBe('done');
  });
});

describe('a wait in the next session', () => {
  it('B23: ends at the timeout or an abort of the signal of its call', async () => {
    const held = await t.until(new recipes.Lock(t.zk, path).acquire());
    const stop = new AbortController();
    const failures = [
      failureOf(new recipes.Lock(sessions, path).acquire({ timeoutMs: 20_000 })),
      failureOf(new recipes.Lock(sessions, path).acquire({ signal: stop.signal })),
    ];
    await t.settle();
    await expire(t, sessions.client);
    await t.pass(1000);
    expect(await t.childrenOf(path)).toHaveLength(3);
    stop.abort(new Error('enough'));
    await t.pass(20_000, 1000);
    expect(await t.until(Promise.all(failures))).toMatchObject([{ code: 'TimedOut' }, { message: 'enough' }]);
    expect(held.state).toBe('held');
    expect(await t.childrenOf(path)).toHaveLength(1);
  });

  it('B23: is at the end of the queue', async () => {
    const held = await t.until(new recipes.Lock(t.zk, path).acquire());
    const order: string[] = [];
    const first = new recipes.Lock(sessions, path).run(() => void order.push('first'));
    await t.settle();
    const second = new recipes.Lock(await t.client(), path).run(() => void order.push('second'));
    await t.settle();
    const { client } = sessions;
    await expire(t, client);
    await t.world.untilSo(() => sessions.client !== client);
    await t.settle();
    await t.until(held.release());
    await t.until(Promise.all([first, second]));
    expect(order).toEqual(['second', 'first']);
  });

  it('B23: ends when the Sessions end', async () => {
    await t.until(new recipes.Lock(t.zk, path).acquire());
    const waiting = failureOf(new recipes.Lock(sessions, path).acquire());
    const taking = failureOf(new recipes.Queue(sessions, '/q').take());
    await t.settle();
    await t.until(sessions.close());
    expect(await t.until(Promise.all([waiting, taking]))).toMatchObject([
      { name: 'RecipeError', code: 'Closed', message: 'the sessions were closed' },
      { name: 'RecipeError', code: 'Closed', message: 'the sessions were closed' },
    ]);
    expect(await failureOf(new recipes.Lock(sessions, path).tryAcquire())).toMatchObject({ code: 'Closed' });
  });

  it('B23: does not continue when a znode is deleted by hand and the session lives', async () => {
    await t.until(new recipes.Lock(t.zk, path).acquire());
    const waiting = failureOf(new recipes.Lock(sessions, path).acquire());
    await t.settle();
    const [, contender] = await t.until(new recipes.Lock(t.zk, path).contenders());
    await t.until(t.zk.delete(contender!.path));
    expect(await t.until(waiting)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
  });
});

describe('a hold', () => {
  it('B23: is lost with its session, and acquired again only by another call', async () => {
    const lock = new recipes.Lock(sessions, path);
    const held = await t.until(lock.acquire());
    const { client } = sessions;
    await expire(t, client);
    await t.world.untilSo(() => sessions.client !== client);
    await t.settle();
    expect([held.state, held.signal.reason.code, held.client]).toEqual(['lost', 'Lost', client]);
    expect(await t.until(failureOf(held.multi([op.create('/x')])))).toMatchObject({ code: 'Lost' });
    expect(await t.until(lock.contenders())).toEqual([]);
    const again = await t.until(lock.acquire());
    expect([again.state, again.client]).toEqual(['held', sessions.client]);
    expect(again.fencingToken).toBeGreaterThan(held.fencingToken);
    await t.until(Promise.all([held.release(), again.release()]));
  });

  it('B23: is lost with its session when it is a claim, and its item can be claimed again', async () => {
    const queue = new recipes.Queue(sessions, path);
    await t.until(queue.put('item'));
    const item = await t.until(queue.claim());
    const { client } = sessions;
    await expire(t, client);
    await t.world.untilSo(() => sessions.client !== client);
    expect(item.state).toBe('lost');
    expect(await t.until(failureOf(item.acknowledge()))).toMatchObject({ code: 'Lost' });
    const again = await t.until(queue.claim());
    expect([again.path, again.attempt]).toEqual([item.path, 2]);
    await t.until(again.acknowledge());
    expect(await t.until(queue.size())).toBe(0);
    await t.until(queue.close());
  });

  it('B23: outlives its session when it is a lease, and is renewed and released in the next', async () => {
    const taker = new recipes.Lease(sessions, path, { durationMs: 60_000, holder: 'me' });
    const held = await t.until(taker.acquire());
    const { client } = sessions;
    await expire(t, client);
    await t.world.untilSo(() => sessions.client !== client);
    await t.pass(10_000, 1000);
    expect(held.state).toBe('held');
    await t.until(held.renew());
    expect(held.remainingMs).toBeGreaterThan(59_000);
    await t.until(held.multi([op.create('/by-lease')]));
    await t.until(held.release());
    const other = new recipes.Lease(t.zk, path, { durationMs: 60_000, holder: 'other' });
    expect(await t.until(other.tryAcquire())).toBeDefined();
  });

  it('B23: is lost when it is a partition, and acquired again by the partitioner in the next session', async () => {
    const owned: string[] = [];
    const work = async ({ item, signal }: recipes.OwnedPartition) => {
      owned.push(item);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      owned.push(`${item} lost`);
    };
    const partitioner = new recipes.SetPartitioner(sessions, path, 'alice', ['a'], work, { timeBoundaryMs: 100 });
    await t.until(partitioner.ready());
    const { client } = sessions;
    await expire(t, client);
    await t.world.untilSo(() => sessions.client !== client && owned.length === 3);
    expect(owned).toEqual(['a', 'a lost', 'a']);
    await t.until(partitioner.ready());
    await t.until(partitioner.close());
  });
});

describe('a call after a session has ended', () => {
  it('B23: is answered in the next session', async () => {
    const number = new recipes.AtomicNumber(sessions, '/number');
    const cached = new recipes.CachedAtomicNumber(number, 2);
    const value = new recipes.SharedValue(sessions, '/value', textCodec);
    const model = new recipes.Model('/users/{id}', { codec: textCodec }).at(sessions, { id: '7' });
    const users = new recipes.Model('/users/{id}', { codec: textCodec }).children(sessions);
    const event = new recipes.EventHandle(sessions, '/event', { autoReset: true });
    const barrier = new recipes.Barrier(sessions, '/barrier');
    const semaphore = new recipes.Semaphore(sessions, '/semaphore');
    const election = new recipes.Election(sessions, '/election');
    const registry = new recipes.ServiceDiscovery(sessions, '/services');
    const group = new recipes.Group(sessions, '/group');
    const leases = new recipes.MultiLease(sessions, '/leases', { durationMs: 100_000, holder: 'me', count: 2 });
    const queues = [new recipes.Queue(sessions, '/queue'), new recipes.ShardedQueue(sessions, '/sharded', { shards: 2 })];
    const all = async (round: number) => {
      const before = await number.get();
      expect(await number.increment()).toEqual({ before, after: before + 1n });
      await cached.next();
      await value.set(`round ${round}`);
      const { value: updated } = await value.update((now) => `${now}, updated`);
      expect(updated).toBe(`round ${round}, updated`);
      await model.put(`user ${round}`);
      expect((await users.list()).map((each) => each.value)).toEqual([`user ${round}`]);
      expect((await model.update((now) => `${now}!`))!.value).toBe(`user ${round}!`);
      await event.set();
      await event.wait();
      expect(await event.isSet()).toBe(false);
      await barrier.set();
      await barrier.remove();
      await semaphore.resize(2);
      await semaphore.run(() => undefined);
      expect(await election.run(() => election.leader())).toBeDefined();
      expect(await registry.names()).toEqual([]);
      expect(await group.members()).toEqual([]);
      const held = await leases.tryAcquire();
      await held!.release();
      for (const queue of queues) {
        await queue.putAll(['a', 'b']);
        expect(text((await queue.take()).data)).toBe('a');
        expect(text((await queue.tryTake())!.data)).toBe('b');
        expect(await queue.size()).toBe(0);
      }
    };
    for (let round = 0; round < 3; round++) {
      await t.until(all(round));
      const { client } = sessions;
      await expire(t, client);
      // Not awaited: the calls wait for it.
      if (round === 1) await t.world.untilSo(() => sessions.client !== client);
    }
    await t.until(Promise.all([...queues, number, value].map((each) => each.close())));
  });

  it('B23: is not repeated when it may have been applied', async () => {
    const { zk, lose } = await forgetful(t);
    let isFirst = true;
    const own = await t.until(
      recipes.Sessions.start(() => {
        if (!isFirst) return t.client();
        isFirst = false;
        return Promise.resolve(zk);
      }),
    );
    const number = new recipes.AtomicNumber(own, '/number');
    const queue = new recipes.Queue(own, '/queue');
    await t.until(number.increment());
    await t.until(queue.put('first'));
    lose('multi');
    const adding = failureOf(number.increment());
    await t.world.untilSo(() => zk.state !== 'connected');
    await expire(t, zk);
    const failure = await t.until(adding);
    expect(KeeperError.is(failure) && failure.outcome).toBe('unknown');
    expect(await t.until(number.get())).toBe(2n);
    expect(await t.until(number.increment())).toEqual({ before: 2n, after: 3n });
    await t.until(own.close());
  });
});

describe('after the end of a session', () => {
  it('B23: a cache is out of step, and reports in the next session what has changed', async () => {
    await t.until(Promise.all([t.zk.ensurePath('/tree/kept'), t.zk.ensurePath('/tree/gone')]));
    const tree = new recipes.TreeCache(sessions, '/tree');
    const children = new recipes.ChildrenCache(sessions, '/tree');
    const node = new recipes.NodeCache(sessions, '/tree/kept');
    await t.until(Promise.all([tree.ready(), children.ready(), node.ready()]));
    const received: string[] = [];
    const telling = (async () => {
      for await (const change of tree.changes()) received.push('path' in change ? `${change.kind} ${change.path}` : change.kind);
      received.push('over');
    })();
    const { client } = sessions;
    await program.expire(async () => {
      expect([tree.isSynced, children.isSynced, node.isSynced, tree.get('/tree/gone') !== undefined]).toEqual([false, false, false, true]);
      await t.until(t.zk.delete('/tree/gone'));
      await t.until(t.zk.setData('/tree/kept', 'x'));
      await t.until(t.zk.create('/tree/new'));
    });
    await t.until(Promise.all([tree.ready(), children.ready(), node.ready()]));
    expect(sessions.client).not.toBe(client);
    expect([received[0], received.at(-1)]).toEqual(['outOfStep', 'inStep']);
    expect(received.slice(1, -1).sort()).toEqual(['changed /tree/kept', 'created /tree/new', 'deleted /tree/gone']);
    expect([[...children.names].sort(), text(node.znode!.data)]).toEqual([['kept', 'new'], 'x']);
    await t.until(t.zk.create('/tree/newer'));
    await t.settle();
    expect(received.at(-1)).toBe('created /tree/newer');
    await t.until(sessions.close());
    await t.until(telling);
    expect([received.at(-1), tree.isClosed, children.isClosed, node.isClosed]).toEqual(['over', true, true, true]);
  });

  it('B23: loops over leaders, values, members and instances continue in the next session', async () => {
    const stop = new AbortController();
    const { signal } = stop;
    const seen = { leaders: [] as unknown[], values: [] as unknown[], models: [] as unknown[], members: [] as unknown[] };
    const value = new recipes.SharedValue(sessions, '/value', textCodec);
    const model = new recipes.Model('/value', { codec: textCodec }).at(sessions);
    const group = new recipes.Group(sessions, '/group');
    const registry = new recipes.ServiceDiscovery(sessions, '/services');
    const provider = registry.provider('mail');
    const instances = registry.cache('mail');
    const loops = [
      async () => {
        for await (const leader of new recipes.Election(sessions, '/election').observe({ signal })) seen.leaders.push(text(leader?.data));
      },
      async () => {
        for await (const { current, isSynced } of value.changes({ signal })) if (isSynced) seen.values.push(current?.value);
      },
      async () => {
        for await (const now of model.watch({ signal })) seen.models.push(now?.value);
      },
      async () => {
        for await (const { members, isSynced } of group.observe({ signal })) if (isSynced) seen.members.push(members.length);
      },
    ].map((loop) => failureOf(loop()));
    await t.until(Promise.all([provider.ready(), instances.ready()]));
    await t.until(new recipes.Election(t.zk, '/election', { data: 'one' }).lead());
    await t.settle();
    await expire(t, sessions.client);
    const other = await t.client();
    await t.until(t.zk.create('/value', 'later'));
    await t.until(new recipes.Group(other, '/group').join('alice'));
    await t.until(new recipes.ServiceDiscovery(other, '/services').register({ name: 'mail', address: '10.0.0.1', payload: null }));
    await t.until(t.zk.deleteRecursive('/election'));
    const isSeen = () =>
      seen.leaders.at(-1) === '' && seen.values.at(-1) === 'later' && seen.models.at(-1) === 'later' && seen.members.at(-1) === 1;
    await t.world.untilSo(() => isSeen() && provider.instances.length === 1 && instances.instances.length === 1);
    expect(seen.leaders).toContain('one');
    stop.abort(new Error('enough'));
    expect((await t.until(Promise.all(loops))).map(String)).toEqual(Array(4).fill('Error: enough'));
    await t.until(Promise.all([provider.close(), instances.close(), value.close()]));
  });
});

it('B23: a recipe with a client whose session is over names Sessions as the remedy', async () => {
  const zk = await t.client();
  const lock = new recipes.Lock(zk, path);
  const queue = new recipes.Queue(zk, '/q');
  const value = new recipes.Model('/value', { codec: textCodec }).at(zk);
  await expire(t, zk);
  for (const call of [() => lock.acquire(), () => lock.contenders(), () => queue.take(), () => value.get()]) {
    const error = await t.until(failureOf(call()));
    expect(error).toMatchObject({ name: 'KeeperError', code: 'SessionExpired' });
    expect(String(error)).toMatch(/session of this client has expired; use Sessions instead of a client/);
  }
});
