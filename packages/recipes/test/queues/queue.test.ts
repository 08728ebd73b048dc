import type { Client, ReadOptions } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Queue, type QueueItem, RecipeError } from '../../src/index.ts';
import { expire } from '../support/faults.ts';
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
const numbersOf = (lines: readonly string[], of: string) => lines.filter((line) => line.startsWith(of)).length;

describe('a queue', () => {
  it('C1-14: puts with the flags SEQUENCE and EPHEMERAL, in the seed mode, and the server numbers the items', async () => {
    const { zk, lines } = await t.recorded();
    const queue = new Queue(zk, path, { items: 'ephemeral' });
    await t.until(queue.put('a'));
    lines.length = 0;
    await t.until(queue.put('b'));
    expect(lines).toEqual(['multi: create /jobs/queue- ephemeral sequential, setData /jobs-aside/marks/guid-mark-0000000000']);
    const names = (await t.childrenOf(path)).toSorted();
    expect(names).toEqual(['queue-0000000000', 'queue-0000000001']);
    expect((await t.until(zk.exists(`${path}/${names[0]!}`)))!.ephemeralOwner).toBe(zk.sessionId);
  });

  it('C1-15: loses ephemeral items when their producer ends, and keeps persistent ones, which are the default', async () => {
    const producer = await t.client();
    await t.until(new Queue(producer, '/kept').put('a'));
    await t.until(new Queue(producer, '/gone', { items: 'ephemeral' }).put('a'));
    await t.until(producer.close());
    expect(await t.until(new Queue(t.zk, '/kept').size())).toBe(1);
    expect(await t.until(new Queue(t.zk, '/gone').size())).toBe(0);
    expect(() => new Queue(t.zk, path, { items: 'lasting' as never })).toThrow('items must be "persistent" or "ephemeral", not "lasting"');
  });

  it('C1-16: lists, takes the lowest, and does not list again before the list is used up', async () => {
    await t.until(new Queue(t.zk, path).putAll(['a', 'b', 'c']));
    const { zk, lines } = await t.recorded();
    const queue = new Queue(zk, path);
    const taken: unknown[] = [];
    for (let round = 0; round < 3; round++) {
      taken.push(textOf(await t.until(queue.take())));
      if (round === 0) await t.until(new Queue(t.zk, path).put('d'));
    }
    expect(taken).toEqual(['a', 'b', 'c']);
    expect(lines.filter((line) => !line.includes('/marks'))).toEqual([
      'getChildren /jobs',
      'getData /jobs/queue-0000000000',
      'getData /jobs/queue-0000000001',
      'getData /jobs/queue-0000000002',
    ]);
    expect(lines.filter((line) => line.startsWith('multi'))).toEqual(
      [0, 1, 2].map((at) => `multi: delete /jobs/queue-000000000${at}, setData /jobs-aside/marks/guid-mark-0000000001`),
    );
    lines.length = 0;
    expect(textOf(await t.until(queue.take()))).toBe('d');
    expect(numbersOf(lines, 'getChildren /jobs')).toBe(1);
  });

  it('C1-16: sends no requests while it is empty, but waits for the watch', async () => {
    const { zk, lines } = await t.recorded();
    const taking = new Queue(zk, path).take();
    await t.settle();
    lines.length = 0;
    await t.pass(60_000);
    expect(lines).toEqual([]);
    await t.until(new Queue(t.zk, path).put('a'));
    expect(textOf(await t.until(taking))).toBe('a');
  });

  it('C1-16: lets only the first waiting consumer set the watch, and remove it when it no longer waits', async () => {
    for (const each of [path, '/jobs-aside/consumers']) await t.until(t.zk.ensurePath(each));
    const one = await t.recorded();
    const two = await t.recorded();
    const first = failureOf(new Queue(one.zk, path).take({ timeoutMs: 1000 }));
    await t.pass(100);
    const second = new Queue(two.zk, path).claim();
    await t.pass(100);
    const inLine = (number: number) => [
      'create /jobs-aside/consumers/guid-lock- ephemeral sequential',
      `exists /jobs-aside/consumers/guid-lock-000000000${number} watch`,
      'getChildren /jobs-aside/consumers',
    ];
    expect(one.lines).toEqual(['getChildren /jobs', ...inLine(0), 'getChildren /jobs watch']);
    expect(two.lines).toEqual(['getChildren /jobs', ...inLine(1), 'exists /jobs-aside/consumers/guid-lock-0000000000 watch']);
    one.lines.length = two.lines.length = 0;
    await t.pass(1000);
    expect(await t.until(first)).toMatchObject({ code: 'TimedOut' });
    expect(one.lines).toEqual(['removeWatches /jobs', 'delete /jobs-aside/consumers/guid-lock-0000000000']);
    expect(two.lines).toEqual(['getChildren /jobs-aside/consumers', 'getChildren /jobs watch']);
    two.lines.length = 0;
    await t.until(new Queue(t.zk, path).put('a'));
    await t.until((await t.until(second)).release());
    await t.settle();
    // The watch has fired, so none is left.
    expect(two.lines).not.toContain('removeWatches /jobs');
    expect(two.lines[0]).toBe('getChildren /jobs');
  });

  it('C1-16: notices an item that is put while it lists', async () => {
    await t.until(t.zk.create(path));
    const zk = await t.client();
    const list = zk.getChildren.bind(zk);
    const listing = vi.spyOn(zk, 'getChildren').mockImplementation(async (each: string, options?: ReadOptions) => {
      const answer = await list(each, options);
      if (each === path && options?.watch !== undefined) {
        listing.mockRestore();
        await t.zk.create(`${path}/queue-`, 'a', { mode: 'persistentSequential' });
        // The watch was delivered before this reply.
        await zk.exists(path);
      }
      return answer;
    });
    expect(textOf(await t.until(new Queue(zk, path).take()))).toBe('a');
  });

  it('C1-2: wakes one of 100 waiting consumers for an item that is put, with a constant number of requests', async () => {
    const { zk, lines } = await t.recorded();
    const taken: unknown[] = [];
    // Each a queue of its own, as if each were a process.
    const waiting = Array.from({ length: 100 }, async () => taken.push(textOf(await new Queue(zk, path).take())));
    const over = Promise.allSettled(waiting);
    await t.pass(1000);
    const producer = new Queue(t.zk, path);
    await t.until(producer.put('first'));
    await t.settle();
    for (let round = 0; round < 3; round++) {
      lines.length = 0;
      await t.until(producer.put(String(round)));
      await t.settle();
      expect(taken.length).toBe(round + 2);
      // The consumer that waited: list, read, mark, delete, leave the queue. The next one: list the
      // queue, list the items.
      expect(lines.length).toBeLessThanOrEqual(9);
    }
    await t.until(zk.close());
    await t.until(over);
  });

  it('C1-16: delivers no item twice and loses none when many clients take at the same time', async () => {
    const producer = new Queue(t.zk, path);
    const wanted = Array.from({ length: 30 }, (_, at) => String(at));
    await t.until(producer.putAll(wanted));
    const consumers = await Promise.all(Array.from({ length: 5 }, () => t.client()));
    const taken: string[] = [];
    const consume = async (zk: Client) => {
      const queue = new Queue(zk, path);
      for (let item = await queue.tryTake(); item !== undefined; item = await queue.tryTake()) taken.push(textOf(item)!);
    };
    await t.until(Promise.all(consumers.flatMap((zk) => [consume(zk), consume(zk)])));
    expect(taken.toSorted((one, other) => Number(one) - Number(other))).toEqual(wanted);
  });

  it('E7: keeps the order of the numbers across their overflow', async () => {
    for (const name of ['queue-2147483647', 'queue--2147483648', 'queue--2147483647', 'queue-2147483646'])
      await t.until(t.zk.create(`${path}/${name}`, name, { parents: true }));
    await t.until(t.zk.create(`${path}/something-else`, 'no item'));
    const queue = new Queue(t.zk, path);
    const names: unknown[] = [];
    while ((await t.until(queue.size())) > 1) names.push((await t.until(queue.take())).name);
    expect(names).toEqual(['queue-2147483646', 'queue-2147483647', 'queue--2147483648', 'queue--2147483647']);
    expect(await t.until(queue.tryTake())).toBe(undefined);
    expect(await t.until(queue.peek())).toBe(undefined);
  });

  it('puts several items in a row, or none of them, and in the order of the calls', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(Promise.all([queue.put('a'), queue.putAll(['b', 'c']), queue.put('d'), queue.putAll([])]));
    expect(textOf(await t.until(queue.peek()))).toBe('a');
    const taken: unknown[] = [];
    for (let item = await t.until(queue.tryTake()); item !== undefined; item = await t.until(queue.tryTake())) taken.push(textOf(item));
    expect(taken).toEqual(['a', 'b', 'c', 'd']);
    const large = new Uint8Array(700_000);
    await expect(t.until(queue.putAll([large, large]))).rejects.toMatchObject({ outcome: 'notSent' });
    expect(await t.until(queue.size())).toBe(0);
  });

  it('stays when it is empty, since numbers that begin anew would reuse the names of earlier items', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    await t.until(queue.take());
    await t.world.pass(180_000, 5000);
    await t.until(queue.put('b'));
    expect((await t.until(queue.take())).name).toBe('queue-0000000001');
  });

  it('continues when the empty queue is deleted', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    await t.until(queue.take());
    const taking = queue.take();
    await t.settle();
    await t.until(t.zk.delete(path));
    await t.settle();
    await t.until(queue.put('b'));
    expect(textOf(await t.until(taking))).toBe('b');
  });

  it('ends at its timeout, when the signal is aborted, or when it is closed, and leaves nothing behind', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    await t.until(queue.take());
    const late = failureOf(queue.take({ timeoutMs: 500 }));
    const abort = new AbortController();
    const unwanted = failureOf(queue.take({ signal: abort.signal }));
    const closed = failureOf(queue.take());
    await t.pass(400);
    expect((await t.childrenOf('/jobs-aside/consumers')).length).toBe(3);
    abort.abort(new Error('no longer wanted'));
    await t.pass(200);
    expect(await t.until(late)).toEqual(new RecipeError('TimedOut', 'timed out after 500 ms waiting for an item of /jobs'));
    expect(await t.until(unwanted)).toMatchObject({ message: 'no longer wanted' });
    await t.until(queue.close());
    expect(await t.until(closed)).toMatchObject({ code: 'Closed', message: 'queue /jobs is closed' });
    expect(await t.until(failureOf(queue.put('b')))).toMatchObject({ code: 'Closed' });
    await t.settle();
    expect(await t.childrenOf('/jobs-aside/consumers')).toEqual([]);
    expect(await t.childrenOf('/jobs-aside/marks')).toEqual([]);
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('gives up at once while no server can be reached, if nothing was requested that could not be undone', async () => {
    const zk = await t.client();
    await t.until(new Queue(t.zk, path).put('a'));
    const queue = new Queue(zk, path);
    const { address } = t.world;
    t.world.wire.name('server', []);
    t.world.break();
    await t.settle();
    const puts = failureOf(queue.put('b', { timeoutMs: 300 }));
    const takes = failureOf(queue.take({ timeoutMs: 300 }));
    await t.pass(400);
    expect([await t.until(puts), await t.until(takes)]).toMatchObject([{ code: 'TimedOut' }, { code: 'TimedOut' }]);
    t.world.wire.name('server', [address]);
    await t.pass(3000);
    expect(await t.until(new Queue(t.zk, path).size())).toBe(1);
    expect(await t.childrenOf('/jobs-aside/marks')).toHaveLength(1);
    expect(textOf(await t.until(queue.take()))).toBe('a');
  });

  it('ends its waits when the session ends', async () => {
    const zk = await t.client();
    const taking = failureOf(new Queue(zk, path).take());
    await t.settle();
    await expire(t, zk);
    expect(await t.until(taking)).toMatchObject({ code: 'SessionExpired' });
  });

  it('is iterated until it is closed', async () => {
    const queue = new Queue(t.zk, path);
    const taken: unknown[] = [];
    const looping = (async () => {
      for await (const item of queue.items()) taken.push(textOf(item));
    })();
    await t.until(queue.putAll(['a', 'b']));
    await t.settle();
    await t.until(queue.put('c'));
    await t.settle();
    expect(taken).toEqual(['a', 'b', 'c']);
    await t.until(queue.close());
    await t.until(looping);
  });
});

describe('a queue with maxItems', () => {
  it('holds no more items, however many clients put at the same time, and wakes one producer for each item that is taken', async () => {
    const { zk, lines } = await t.recorded();
    const producers = [zk, await t.client(), await t.client()].map((each) => new Queue(each, path, { maxItems: 3 }));
    let most = 0;
    const putting = Promise.all(producers.flatMap((queue) => [queue.put('x'), queue.putAll(['y', 'z'])]));
    const consumer = new Queue(t.zk, path);
    await t.pass(1000);
    expect(await t.until(consumer.size())).toBe(3);
    lines.length = 0;
    await t.pass(10_000);
    expect(lines).toEqual([]);
    for (let taken = 0; taken < 9; taken++) {
      await t.until(consumer.take());
      await t.settle();
      most = Math.max(most, await t.until(consumer.size()));
    }
    await t.until(putting);
    expect(most).toBeLessThanOrEqual(3);
    expect(most).toBeGreaterThan(1);
    await expect(producers[0]!.putAll(['a', 'b', 'c', 'd'])).rejects.toThrow(
      '4 items at once exceed maxItems, which is 3; put fewer, or raise maxItems',
    );
    expect(() => new Queue(t.zk, path, { maxItems: 0 })).toThrow('maxItems must be a whole number from 1, not 0');
  });

  it('lets the next producer put when a producer gives up waiting for room', async () => {
    const queue = new Queue(t.zk, path, { maxItems: 1 });
    await t.until(queue.put('a'));
    const late = failureOf(queue.put('b', { timeoutMs: 500 }));
    const next = new Queue(await t.client(), path, { maxItems: 1 }).put('c');
    await t.pass(1000);
    expect(await t.until(late)).toMatchObject({ code: 'TimedOut', message: 'timed out after 500 ms waiting for room in /jobs' });
    expect(textOf(await t.until(queue.take()))).toBe('a');
    await t.until(next);
    expect(textOf(await t.until(queue.take()))).toBe('c');
    await t.settle();
    expect(await t.childrenOf('/jobs-aside/producers')).toEqual([]);
  });
});
