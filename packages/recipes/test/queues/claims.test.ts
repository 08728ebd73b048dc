import { op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PriorityQueue, Queue, type QueueItem } from '../../src/index.ts';
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

describe('a claim', () => {
  it('B6: leaves the item in place until it is done, in four requests', async () => {
    const producer = new Queue(t.zk, path);
    await t.until(producer.putAll(['a', 'b', 'c']));
    const { zk, lines } = await t.recorded();
    const queue = new Queue(zk, path);
    await t.until((await t.until(queue.claim())).acknowledge());
    lines.length = 0;
    const claimed = await t.until(queue.claim());
    await t.settle();
    expect(textOf(claimed)).toBe('b');
    expect(await t.until(producer.size())).toBe(2);
    await t.until(claimed.acknowledge());
    await t.settle();
    expect(lines).toEqual([
      'getData /jobs/queue-0000000001',
      'multi: setData /jobs/queue-0000000001, create /jobs-aside/claims/queue-0000000001-1 ephemeral, setData /jobs-aside/marks/guid-mark-0000000001',
      // Notices when another client deletes the claim.
      'exists /jobs-aside/claims/queue-0000000001-1 watch',
      'multi: delete /jobs-aside/claims/queue-0000000001-1, delete /jobs/queue-0000000001, setData /jobs-aside/marks/guid-mark-0000000001',
    ]);
    expect(claimed.state).toBe('released');
    expect(claimed.signal.aborted).toBe(false);
    expect(await t.childrenOf('/jobs-aside/claims')).toEqual([]);
    expect(await t.until(failureOf(claimed.acknowledge()))).toMatchObject({ code: 'Closed' });
  });

  it('B6: keeps the item from others, whether they claim or take; contents() shows that it is in process', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.putAll(['a', 'b']));
    const first = await t.until(queue.claim());
    const other = new Queue(await t.client(), path);
    expect((await t.until(other.contents())).map(({ name, isClaimed }) => [name, isClaimed])).toEqual([
      ['queue-0000000000', true],
      ['queue-0000000001', false],
    ]);
    expect(textOf(await t.until(other.take()))).toBe('b');
    expect(await t.until(other.tryTake())).toBe(undefined);
    expect(await t.until(other.tryClaim())).toBe(undefined);
    expect(textOf(await t.until(other.peek()))).toBe('a');
    await t.until(first.acknowledge());
    expect(await t.until(other.contents())).toEqual([]);
  });

  it('B6: passes to one other consumer when its session ends or it is released; no waiting consumer polls', async () => {
    const producer = new Queue(t.zk, path);
    await t.until(producer.put('a'));
    const dies = await t.client();
    await t.until(new Queue(dies, path).claim());
    const { zk, lines } = await t.recorded();
    const waiting = Array.from({ length: 5 }, () => new Queue(zk, path).claim());
    await t.pass(1000);
    lines.length = 0;
    await t.pass(60_000);
    expect(lines).toEqual([]);
    t.killed(dies);
    // The item stays claimed until the session ends.
    await t.pass(dies.sessionTimeoutMs - 2000, 1000);
    expect(lines).toEqual([]);
    const second = await t.until(Promise.race(waiting));
    expect([textOf(second), second.attempt]).toEqual(['a', 2]);
    const taking = producer.take();
    await t.settle();
    await t.until(second.release());
    await t.settle();
    // The next in the queue was there before the one that takes.
    await t.until(zk.close());
    await Promise.all(waiting.map((each) => t.until(failureOf(each))));
    expect(textOf(await t.until(taking))).toBe('a');
  });

  it('B6: acknowledges nothing and writes nothing after it was lost', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    const lost = await t.until(queue.claim());
    await t.until(t.zk.delete(lost.claimPath));
    await t.settle();
    expect(lost.state).toBe('lost');
    expect(lost.signal.reason).toMatchObject({ code: 'Lost' });
    const other = await t.until(new Queue(await t.client(), path).claim());
    expect(other.fencingToken > lost.fencingToken).toBe(true);
    expect(await t.until(failureOf(lost.acknowledge([op.create('/result', 'lost')])))).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    expect(await t.until(failureOf(lost.multi([op.create('/result', 'lost')])))).toMatchObject({ code: 'Lost' });
    await t.until(other.acknowledge([op.create('/result', 'other')]));
    expect(textOf(await t.until(t.zk.getData('/result')))).toBe('other');
    expect(await t.until(queue.size())).toBe(0);
  });

  it('B6: lasts when an operation of the acknowledgement is rejected', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    await t.until(t.zk.create('/result'));
    const claimed = await t.until(queue.claim());
    expect(await t.until(failureOf(claimed.acknowledge([op.create('/result')])))).toMatchObject({ code: 'NodeExists', failedIndex: 0 });
    expect([claimed.state, await t.until(queue.size())]).toEqual(['held', 1]);
    await t.until(claimed.acknowledge());
    expect(await t.until(queue.size())).toBe(0);
  });

  it('B6: is lost when its item is deleted', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    const claimed = await t.until(queue.claim());
    await t.until(t.zk.delete(claimed.path));
    expect(await t.until(failureOf(claimed.acknowledge()))).toMatchObject({ code: 'Lost' });
    await t.until(claimed.release());
    expect(await t.childrenOf('/jobs-aside/claims')).toEqual([]);
  });

  it('B6: is suspended without a connection, and lost when the session timeout is over', async () => {
    const client = await t.client({ sessionTimeoutMs: 4000 });
    await t.until(new Queue(t.zk, path).put('a'));
    const claimed = await t.until(new Queue(client, path).claim());
    const states: string[] = [];
    claimed.onStateChange((state) => states.push(state));
    const { address } = t.world;
    t.world.wire.name('server', []);
    t.world.break();
    await t.pass(6000);
    expect(states).toEqual(['suspended', 'lost']);
    t.world.wire.name('server', [address]);
    const next = await t.until(new Queue(t.zk, path).claim());
    expect(next.attempt).toBe(2);
    await t.until(next.acknowledge());
    await t.pass(5000);
    expect(await t.until(failureOf(claimed.acknowledge()))).toMatchObject({ code: 'Lost' });
  });

  it('B6: returns the item to its place when its work fails, and acknowledges it when the work is done', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.putAll(['a', 'b']));
    const failed = queue.process(() => Promise.reject(new Error('no luck')));
    expect(await t.until(failureOf(failed))).toMatchObject({ message: 'no luck' });
    expect(await t.until(queue.process((item) => [textOf(item), item.attempt]))).toEqual(['a', 2]);
    expect(textOf(await t.until(queue.peek()))).toBe('b');
  });

  it('B6: is left alone after work that has acknowledged or released it', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.putAll(['a', 'b']));
    await t.until(queue.process((item) => item.acknowledge([op.create('/result', item.data)])));
    expect([textOf(await t.until(t.zk.getData('/result'))), await t.until(queue.size())]).toEqual(['a', 1]);
    await t.until(queue.process((item) => item.release()));
    expect(textOf(await t.until(queue.peek()))).toBe('b');
  });

  it('B6: is acknowledged once, though two calls are made at the same time', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    const claimed = await t.until(queue.claim());
    const [first, second] = await t.until(Promise.allSettled([claimed.acknowledge(), claimed.acknowledge()]));
    expect([first.status, second]).toMatchObject(['fulfilled', { reason: { code: 'Closed' } }]);
    expect([claimed.state, claimed.signal.aborted, await t.until(queue.size())]).toEqual(['released', false, 0]);
  });

  it('B6: ends with the session, with an error', async () => {
    const zk = await t.client();
    const queue = new Queue(zk, path);
    await t.until(queue.put('a'));
    const claimed = await t.until(queue.claim());
    await expire(t, zk);
    await t.settle();
    expect(claimed.state).toBe('lost');
    expect(await t.until(failureOf(claimed.acknowledge()))).toMatchObject({ code: 'Lost' });
    await t.until(claimed.release());
  });

  it('ignores a claim on an earlier item, whose name is used again', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('old'));
    const old = await t.until(queue.claim());
    await t.until(t.zk.deleteRecursive(path));
    await t.until(queue.putAll(['new', 'newer']));
    const other = new Queue(await t.client(), path);
    expect(textOf(await t.until(other.claim()))).toBe('newer');
    const waiting = other.claim();
    await t.settle();
    await t.until(old.release());
    expect(textOf(await t.until(waiting))).toBe('new');
  });

  it("B6: shares its format with kazoo's LockingQueue: items below entries, claims of their names below taken", async () => {
    const queue = new PriorityQueue(t.zk, '/q/entries', { naming: 'kazoo', claimsPath: '/q/taken' });
    await t.until(t.zk.ensurePath('/q/entries'));
    await t.until(t.zk.ensurePath('/q/taken'));
    // As kazoo puts and claims.
    const foreign = await t.client();
    for (const priority of ['100', '050'])
      await t.until(foreign.create(`/q/entries/entry-${priority}-`, priority, { mode: 'persistentSequential' }));
    await t.until(foreign.create('/q/taken/entry-050-0000000001', 'an id', { mode: 'ephemeral' }));
    await t.until(queue.put('c', { priority: 100 }));
    const claimed = await t.until(queue.claim());
    expect([claimed.claimPath, textOf(claimed)]).toEqual(['/q/taken/entry-100-0000000000', '100']);
    await t.until(claimed.acknowledge());
    expect((await t.until(queue.contents())).map(({ name, isClaimed }) => [name, isClaimed])).toEqual([
      ['entry-050-0000000001', true],
      ['entry-100-0000000002', false],
    ]);
    expect(textOf(await t.until(queue.take()))).toBe('c');
    const waiting = queue.claim();
    await t.settle();
    await t.until(foreign.delete('/q/taken/entry-050-0000000001'));
    const last = await t.until(waiting);
    expect(textOf(last)).toBe('050');
    await t.until(last.acknowledge());
    expect(await t.childrenOf('/q/taken')).toEqual([]);
  });

  it('B6: that was lost does not affect the next claim of the same name', async () => {
    const options = { claimsPath: '/q/taken' };
    const queue = new Queue(t.zk, path, options);
    await t.until(queue.put('a'));
    const lost = await t.until(queue.claim());
    await t.until(t.zk.delete(lost.claimPath));
    await t.settle();
    const next = await t.until(new Queue(await t.client(), path, options).claim());
    expect(next.claimPath).toBe(lost.claimPath);
    await t.until(lost.release());
    await t.settle();
    expect([lost.state, next.state]).toEqual(['lost', 'held']);
    expect(await t.until(failureOf(lost.acknowledge()))).toMatchObject({ code: 'Lost' });
    expect(await t.until(failureOf(lost.multi([op.create('/late')])))).toMatchObject({ code: 'Lost' });
    await t.until(next.acknowledge());
  });

  it('B6: that was released does not affect the next claim of the same name, also of clients that do not count claims', async () => {
    const queue = new Queue(t.zk, path, { claimsPath: '/q/taken' });
    await t.until(queue.put('a'));
    const released = await t.until(queue.claim());
    await t.until(released.release());
    // As kazoo claims.
    await t.until((await t.client()).create(released.claimPath, 'an id', { mode: 'ephemeral' }));
    expect(await t.until(failureOf(released.acknowledge()))).toMatchObject({ code: 'Lost' });
    expect(await t.until(failureOf(released.multi([op.create('/late')])))).toMatchObject({ code: 'Lost' });
    expect([await t.childrenOf('/q/taken'), await t.until(queue.size())]).toEqual([['queue-0000000000'], 1]);
  });

  it('B6: that was deleted by hand can be claimed again, also by the same queue', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    const lost = await t.until(queue.claim());
    const waiting = queue.claim();
    await t.settle();
    await t.until(t.zk.delete(lost.claimPath));
    const again = await t.until(waiting);
    expect([textOf(again), again.attempt, lost.state]).toEqual(['a', 2, 'lost']);
  });
});
