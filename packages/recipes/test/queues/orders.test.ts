import * as recipes from '@tskeeper/recipes';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DelayQueue, IdQueue, PriorityQueue, Queue, type QueueItem, ShardedQueue } from '../../src/index.ts';
import { fated } from '../support/fates.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/jobs';
const textOf = (item: Pick<QueueItem, 'data'> | undefined) => item && new TextDecoder().decode(item.data ?? undefined);

describe('a priority queue', () => {
  it('C1-17: names items queue-YY, and delivers the lower first, those of one priority in the order of arrival', async () => {
    const queue = new PriorityQueue(t.zk, path);
    for (const [data, priority] of [
      ['b', 7],
      ['d', 20],
      ['a', 0],
      ['c', 7],
    ] as const)
      await t.until(queue.put(data, { priority }));
    expect((await t.childrenOf(path)).toSorted()).toEqual([
      'queue-000000000002',
      'queue-070000000000',
      'queue-070000000003',
      'queue-200000000001',
    ]);
    const taken: unknown[] = [];
    for (let item = await t.until(queue.tryTake()); item !== undefined; item = await t.until(queue.tryTake()))
      taken.push([textOf(item), item.priority]);
    expect(taken).toEqual([
      ['a', 0],
      ['b', 7],
      ['c', 7],
      ['d', 20],
    ]);
    await expect(queue.put('x', { priority: 100 })).rejects.toThrow('a priority must be a whole number from 0 to 99, lower first, not 100');
    expect(() => new PriorityQueue(t.zk, path, { naming: 'other' as never })).toThrow(
      'naming must be "page", "kazoo" or "curator", not "other"',
    );
  });

  it('C1-18: drops its list when the watch fires, so an urgent item is the next', async () => {
    const producer = new PriorityQueue(t.zk, path);
    await t.until(producer.putAll(['a', 'b', 'c'], { priority: 50 }));
    const { zk, lines } = await t.recorded();
    const queue = new PriorityQueue(zk, path);
    expect(textOf(await t.until(queue.take()))).toBe('a');
    await t.until(producer.put('urgent', { priority: 1 }));
    await t.settle();
    lines.length = 0;
    expect(textOf(await t.until(queue.take()))).toBe('urgent');
    expect(lines[0]).toBe('getChildren /jobs');
    expect(textOf(await t.until(queue.take()))).toBe('b');
  });

  it('rejects an invalid priority at once, though there is no room', async () => {
    const queue = new PriorityQueue(t.zk, path, { maxItems: 1 });
    await t.until(queue.put('a', { priority: 1 }));
    expect(await t.until(failureOf(queue.put('b', { priority: 100, timeoutMs: 1000 })))).toMatchObject({
      message: 'a priority must be a whole number from 0 to 99, lower first, not 100',
    });
  });

  it("B7: shares a path with kazoo's Queue by its names", async () => {
    const queue = new PriorityQueue(t.zk, path, { naming: 'kazoo' });
    await t.until(queue.put('b', { priority: 100 }));
    expect(await t.childrenOf(path)).toEqual(['entry-100-0000000000']);
    await t.until(t.zk.create(`${path}/entry-009-`, 'a', { mode: 'persistentSequential' }));
    await t.until(t.zk.create(`${path}/entry-other`, 'no item'));
    expect([textOf(await t.until(queue.take())), textOf(await t.until(queue.take()))]).toEqual(['a', 'b']);
    await expect(queue.put('x', { priority: 1000 })).rejects.toThrow('from 0 to 999');
  });

  it("B7: shares a path with Curator's DistributedPriorityQueue by its names, where negative priorities come first", async () => {
    const queue = new PriorityQueue(t.zk, path, { naming: 'curator' });
    const names = ['100000005', '0FFFFFFFF', '0FFFFFFFE', '17FFFFFFF', '080000000'];
    for (const priority of [5, -1, -2, 2 ** 31 - 1, -(2 ** 31)]) await t.until(queue.put(String(priority), { priority }));
    expect((await t.childrenOf(path)).toSorted()).toEqual(names.map((name, index) => `queue-${name}000000000${index}`).toSorted());
    await t.until(t.zk.create(`${path}/queue-100000004`, '4', { mode: 'persistentSequential' }));
    for (const other of ['queue-', 'queue-0000000000', 'queue-200000000'])
      await t.until(t.zk.create(`${path}/${other}`, 'no item', { mode: 'persistentSequential' }));
    const taken: unknown[] = [];
    for (let item = await t.until(queue.tryTake()); item !== undefined; item = await t.until(queue.tryTake())) {
      expect(textOf(item)).toBe(String(item.priority));
      taken.push(item.priority);
    }
    expect(taken).toEqual([-(2 ** 31), -2, -1, 4, 5, 2 ** 31 - 1]);
    await expect(queue.put('x', { priority: 2 ** 31 })).rejects.toThrow('from -2147483648 to 2147483647');
  });
});

describe('a delay queue', () => {
  it('B8: delivers an item when it is due, by the time of the ensemble, and not before; it sends no requests meanwhile', async () => {
    const producer = new DelayQueue(t.zk, path);
    const { zk, lines } = await t.recorded();
    const queue = new DelayQueue(zk, path);
    const startMs = t.world.clock.now().elapsedMs;
    const passed = () => t.world.clock.now().elapsedMs - startMs;
    await t.until(producer.put('late', { delayMs: 10_000 }));
    const taken: unknown[] = [];
    const taking = (async () => {
      while (taken.length < 3) taken.push([textOf(await queue.take()), Math.round(passed() / 1000)]);
    })();
    await t.pass(1000);
    lines.length = 0;
    await t.pass(1000);
    expect(lines).toEqual([]);
    await t.until(producer.put('early', { delayMs: 3000 }));
    await t.pass(2500);
    expect(taken).toEqual([]);
    await t.until(producer.put('at once', { dueAtMs: 0 }));
    await t.until(taking);
    expect(taken).toEqual([
      ['at once', 5],
      ['early', 5],
      ['late', 10],
    ]);
  });

  it('B8: does not wake a consumer for an item that is not due, and shows when it is', async () => {
    const queue = new DelayQueue(t.zk, path);
    await t.until(queue.put('a', { dueAtMs: 4_000_000_000_000 }));
    expect(await t.until(queue.tryTake())).toBe(undefined);
    expect(await t.until(queue.peek())).toMatchObject({ dueAtMs: 4_000_000_000_000, name: 'queue-|3A352944000|0000000000' });
    expect(await t.until(failureOf(queue.take({ timeoutMs: 100 })))).toMatchObject({ code: 'TimedOut' });
    await expect(queue.put('b', { delayMs: -1 })).rejects.toThrow('delayMs must be a number of milliseconds from 0, not -1');
    await expect(queue.put('b', { dueAtMs: 0.5 })).rejects.toThrow('a time must be a whole number of milliseconds since 1970, not 0.5');
  });

  it("B8: delivers nothing too early when the leader's clock is set back meanwhile, which it reads when an item seems to be due", async () => {
    const wallMs = () => t.world.clock.now().wallMs;
    const { zk, lines } = await t.recorded();
    let takenMs: number | undefined;
    const taking = new DelayQueue(zk, path).take().then(() => (takenMs = wallMs()));
    await t.settle();
    const dueAtMs = wallMs() + 600_000;
    await t.until(new DelayQueue(t.zk, path).put('a', { dueAtMs }));
    await t.settle();
    lines.length = 0;
    t.world.clock.setWall(wallMs() - 300_000);
    await t.pass(590_000, 1000);
    expect(lines).toEqual([]);
    await t.pass(400_000, 1000);
    await t.until(taking);
    expect(takenMs! - dueAtMs).toBeGreaterThanOrEqual(0);
    expect(takenMs! - dueAtMs).toBeLessThan(2000);
    expect(lines.filter((line) => line.startsWith('multi'))).toEqual([
      'multi: setData /jobs-aside/marks/guid-mark-0000000000',
      'multi: setData /jobs-aside/marks/guid-mark-0000000000',
      expect.stringMatching(/^multi: delete /),
    ]);
  });

  it('B8: waits no longer than the timeout of the call for the time of the ensemble and for room', async () => {
    await t.until(new DelayQueue(t.zk, path).put('x', { delayMs: 0 }));
    let requests = 0;
    const slowly = () => t.until(new Promise<void>((resolve) => void t.zk.clock.after(900, resolve)));
    const zk = await fated(t, () => (requests++ === 0 ? { ahead: slowly } : undefined));
    const startMs = zk.clock.now().elapsedMs;
    const late = failureOf(new DelayQueue(zk, path, { maxItems: 1 }).put('y', { delayMs: 0, timeoutMs: 1000 }));
    expect(await t.until(late)).toMatchObject({ code: 'TimedOut' });
    expect(zk.clock.now().elapsedMs - startMs).toBeLessThan(1100);
  });
});

describe('an id queue', () => {
  it('B8: removes items by id, except those in process', async () => {
    const queue = new IdQueue(t.zk, path);
    await t.until(queue.putAll(['a', 'b'], { id: 'order 12' }));
    await t.until(queue.put('c', { id: 'order 13' }));
    const claimed = await t.until(queue.claim());
    expect(claimed.id).toBe('order 12');
    expect(await t.until(queue.remove('order 12'))).toBe(1);
    expect(await t.until(queue.remove('order 14'))).toBe(0);
    await t.until(claimed.release());
    expect((await t.until(queue.contents())).map(({ id }) => id)).toEqual(['order 12', 'order 13']);
    expect(await t.until(queue.remove('order 12'))).toBe(1);
    expect(textOf(await t.until(queue.take()))).toBe('c');
    await expect(queue.put('x', { id: 'a/b' })).rejects.toThrow('an id must be a non-empty string without "/" and "|", not "a/b"');
  });
});

describe('a sharded queue', () => {
  it('B8: spreads its items over several znodes, and delivers each once', async () => {
    const queue = new ShardedQueue(t.zk, path, { shards: 3 });
    for (let at = 0; at < 9; at++) await t.until(queue.put(String(at)));
    expect(await Promise.all(['00', '01', '02'].map((shard) => t.childrenOf(`${path}/shard-${shard}`)))).toMatchObject([
      { length: 3 },
      { length: 3 },
      { length: 3 },
    ]);
    expect([await t.until(queue.size()), (await t.until(queue.contents())).length]).toEqual([9, 9]);
    const other = new ShardedQueue(await t.client(), path, { shards: 3 });
    const taken: string[] = [];
    for (let at = 0; at < 8; at++) taken.push(textOf(await t.until((at % 2 === 0 ? queue : other).take()))!);
    const claimed = await t.until(other.claim());
    taken.push(textOf(claimed)!);
    expect(taken.toSorted()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
    const waiting = queue.claim();
    await t.settle();
    await t.until(claimed.release());
    expect((await t.until(waiting)).attempt).toBe(2);
    expect(() => new ShardedQueue(t.zk, path, { shards: 0 })).toThrow('shards must be a whole number from 1 to 100, not 0');
  });

  it('B8: spreads the items of a client that takes one for each that it puts', async () => {
    const queue = new ShardedQueue(t.zk, path, { shards: 2 });
    await t.until(queue.put('x'));
    const shards: Record<string, number> = {};
    for (let at = 0; at < 8; at++) {
      const item = await t.until(queue.take());
      const shard = item.path.split('/')[2]!;
      shards[shard] = (shards[shard] ?? 0) + 1;
      await t.until(queue.put('x'));
    }
    expect(shards).toEqual({ 'shard-00': 4, 'shard-01': 4 });
  });

  it('B8: wakes a waiting consumer when an item is put into any shard', async () => {
    const queue = new ShardedQueue(t.zk, path, { shards: 4 });
    for (let at = 0; at < 6; at++) {
      const taking = queue.take();
      await t.settle();
      await t.until(new ShardedQueue(t.zk, path, { shards: 4 }).put(String(at)));
      expect(textOf(await t.until(taking))).toBe(String(at));
    }
  });
});

describe('the names of items', () => {
  it('C1-42: are those of existing queues and locks', async () => {
    const held = await t.until(new recipes.Lock(t.zk, '/lock').acquire());
    expect(await t.until(new recipes.Lock(t.zk, '/lock').tryAcquire())).toBe(undefined);
    await t.until(held.release());
    const queue = new recipes.Queue(t.zk, path);
    await t.until(queue.putAll(['first', 'second']));
    expect(await t.childrenOf(path)).toEqual(['queue-0000000000', 'queue-0000000001']);
    expect([textOf(await t.until(queue.take())), textOf(await t.until(queue.take()))]).toEqual(['first', 'second']);
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('are distinguished from foreign ones, which are neither taken nor read', async () => {
    for (const name of ['lost+found', 'queue-', 'queue-12', 'entry-100-0000000000', 'queue-0000000001-'])
      await t.until(t.zk.create(`${path}/${name}`, 'not an item', { parents: true }));
    const { zk, lines } = await t.recorded();
    const queue = new Queue(zk, path);
    expect([await t.until(queue.tryTake()), await t.until(queue.tryClaim()), await t.until(queue.peek())]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    const taking = queue.take();
    await t.settle();
    expect(lines.filter((line) => line.startsWith('getData'))).toEqual([]);
    lines.length = 0;
    await t.pass(60_000);
    expect(lines).toEqual([]);
    await t.until(new Queue(t.zk, path).put('a'));
    expect(textOf(await t.until(taking))).toBe('a');
    expect(await t.childrenOf(path)).toHaveLength(5);
  });

  it("B5: can be those of ZooKeeper's DistributedQueue and Curator's SimpleDistributedQueue", async () => {
    const queue = new Queue(t.zk, path, { prefix: 'qn-' });
    await t.until(queue.put('a'));
    expect(await t.childrenOf(path)).toEqual(['qn-0000000000']);
    await t.until(t.zk.create(`${path}/qn-`, 'b', { mode: 'persistentSequential' }));
    expect([textOf(await t.until(queue.take())), textOf(await t.until(queue.take()))]).toEqual(['a', 'b']);
    expect(() => new Queue(t.zk, path, { prefix: 'a/' })).toThrow('the prefix of items must be a non-empty string without "/", not "a/"');
  });
});
