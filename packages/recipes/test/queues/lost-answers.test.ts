/** Each reply that a queue can lose, once: the operation is applied once. */
import type { OpCode } from '@tskeeper/protocol';
import { op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DelayQueue, IdQueue, Queue, type QueueItem } from '../../src/index.ts';
import { expire, forgetful } from '../support/faults.ts';
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
async function below(top: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const { path: each } of t.zk.walk(top)) paths.push(each);
  return paths;
}

const kinds: readonly (keyof typeof OpCode)[] = ['create2', 'createContainer', 'multi', 'exists', 'getChildren2', 'getData', 'delete'];

describe('C1-3: a lost reply', () => {
  it.each(kinds)('to the first %s of each step leaves the expected items, and nothing else', async (kind) => {
    const client = await forgetful(t);
    const queue = new Queue(client.zk, path, { maxItems: 10 });
    const other = new Queue(t.zk, path);
    const steps: [string, () => Promise<unknown>][] = [
      ['put', () => queue.put('a')],
      ['put, with a mark at hand', () => queue.putAll(['b', 'c'])],
      ['take', async () => expect(textOf(await queue.take())).toBe('a')],
      ['claim', async () => (await queue.claim()).release()],
      ['process', async () => expect(await queue.process(textOf)).toBe('b')],
      ['look', async () => expect([textOf(await queue.peek()), await queue.size()]).toEqual(['c', 1])],
      [
        'wait',
        async () => {
          await queue.take();
          const waiting = queue.take();
          await other.put('d');
          expect(textOf(await waiting)).toBe('d');
        },
      ],
    ];
    for (const [, step] of steps) {
      client.lose(kind);
      await t.until(step());
    }
    expect(client.lost).toBeGreaterThan(1);
    expect(await t.childrenOf(path)).toEqual([]);
    await t.until(Promise.all([queue.close(), other.close()]));
    await t.settle();
    expect((await t.until(below('/jobs-aside'))).filter((each) => /\d$/.test(each))).toEqual([]);
  });

  it('of a put whose item was taken meanwhile does not put it again', async () => {
    const client = await forgetful(t);
    const queue = new Queue(client.zk, path);
    await t.until(queue.put('a'));
    const consumer = new Queue(t.zk, path);
    await t.until(consumer.take());
    client.lose('multi');
    const putting = queue.put('b');
    expect(textOf(await t.until(consumer.take()))).toBe('b');
    await t.until(putting);
    expect(client.lost).toBe(1);
    expect(await t.until(consumer.tryTake())).toBe(undefined);
  });

  it('of a take that found the item gone does not deliver it', async () => {
    const client = await forgetful(t);
    const queue = new Queue(client.zk, path);
    await t.until(queue.put('a'));
    const [name] = await t.childrenOf(path);
    // Between its read and its delete another consumer takes it.
    const { zk } = client;
    const multi = zk.multi.bind(zk);
    zk.multi = (async (...args: Parameters<typeof multi>) => {
      zk.multi = multi;
      await t.zk.delete(`${path}/${name!}`);
      client.lose('multi');
      return multi(...args);
    }) as typeof zk.multi;
    expect(await t.until(queue.tryTake())).toBe(undefined);
    expect(client.lost).toBe(1);
  });

  it('of an acknowledgement writes its operations once', async () => {
    await t.until(t.zk.create('/results'));
    const client = await forgetful(t);
    const queue = new Queue(client.zk, path);
    await t.until(queue.put('a'));
    const claimed = await t.until(queue.claim());
    client.lose('multi');
    await t.until(claimed.acknowledge([op.create('/results/r-', 'x', { mode: 'persistentSequential' })]));
    await t.settle();
    expect(client.lost).toBe(1);
    expect(claimed.signal.aborted).toBe(false);
    expect([await t.childrenOf('/results'), await t.childrenOf(path)]).toEqual([['r-0000000000'], []]);
  });

  it('of an acknowledgement after which the session ends leaves its outcome unknown', async () => {
    const client = await forgetful(t);
    const queue = new Queue(client.zk, path);
    await t.until(queue.put('a'));
    const claimed = await t.until(queue.claim());
    client.lose('multi');
    const { address } = t.world;
    t.world.wire.name('server', []);
    const finishing = failureOf(claimed.acknowledge());
    await t.pass(12_000);
    t.world.wire.name('server', [address]);
    expect(await t.until(finishing)).toMatchObject({ name: 'KeeperError', outcome: 'unknown' });
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('of a delayed put or of a remove does not lead to a second one', async () => {
    const client = await forgetful(t);
    const delayed = new DelayQueue(client.zk, '/later');
    client.lose('create2');
    await t.until(delayed.put('a', { delayMs: 1000 }));
    client.lose('multi');
    expect(textOf(await t.until(delayed.take()))).toBe('a');
    const queue = new IdQueue(client.zk, path);
    await t.until(queue.putAll(['a', 'b'], { id: 'x' }));
    client.lose('multi');
    expect(await t.until(queue.remove('x'))).toBe(2);
    expect(client.lost).toBe(3);
  });

  it('can be detected by a new mark when the old one was deleted', async () => {
    const queue = new Queue(t.zk, path);
    await t.until(queue.put('a'));
    await t.until(t.zk.delete(`/jobs-aside/marks/${(await t.childrenOf('/jobs-aside/marks'))[0]!}`));
    await t.until(queue.put('b'));
    expect((await t.childrenOf('/jobs-aside/marks')).length).toBe(1);
    expect((await t.childrenOf(path)).length).toBe(2);
    const other = await t.client();
    const gone = new Queue(other, path);
    await expire(t, other);
    expect(await t.until(failureOf(gone.put('c')))).toMatchObject({ code: 'SessionExpired' });
  });
});
