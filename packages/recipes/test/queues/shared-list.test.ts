/** Concurrent calls of one queue, which share one list. */
import type { ReadOptions } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Queue } from '../../src/index.ts';
import { IdempotencyMarkers } from '../../src/markers/idempotency-markers.ts';
import { plainNaming } from '../../src/queues/item-names.ts';
import { QueueShard } from '../../src/queues/queue-shard.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/jobs';

describe('calls that share a list', () => {
  it('B6: notice the end of a claim that another of them has found', async () => {
    const other = new Queue(await t.client(), path);
    await t.until(other.putAll(['taken here', 'taken by the other']));
    const znode = new QueueShard(t.zk, new IdempotencyMarkers(t.zk, '/jobs-aside/marks', undefined), {
      path,
      naming: plainNaming('queue-'),
      mode: 'persistentSequential',
      acl: undefined,
      isRanked: false,
      isTimed: false,
      claimsPath: '/jobs-aside/claims',
      claimsNamedAsItems: false,
    });
    const { signal } = new AbortController();
    await t.until(znode.first(znode.take, signal, false));
    await t.until(other.take());
    await t.until(other.put('claimed by the other'));
    const claim = await t.until(other.claim());
    // The first works through the rest of the list, whose items no longer exist, and takes the
    // claimed item from the list of the second.
    const both = [znode.first(znode.claim, signal, false), znode.first(znode.claim, signal, true)];
    expect(await t.until(Promise.all(both))).toEqual([undefined, undefined]);
    expect(znode.list.isCurrent).toBe(true);
    await t.until(claim.release());
    await t.settle();
    expect(znode.list.isCurrent).toBe(false);
  });

  it('C1-16: remove the watch of a list whose reply arrives after the last call has ended', async () => {
    for (const each of [path, '/jobs-aside/consumers']) await t.until(t.zk.ensurePath(each));
    const { zk, lines } = await t.recorded();
    const abort = new AbortController();
    const list = zk.getChildren.bind(zk);
    vi.spyOn(zk, 'getChildren').mockImplementation((each: string, options?: ReadOptions) => {
      const asked = list(each, options);
      if (each === path && options?.watch !== undefined) abort.abort(new Error('no longer wanted'));
      return asked;
    });
    expect(await t.until(failureOf(new Queue(zk, path).take({ signal: abort.signal })))).toMatchObject({ message: 'no longer wanted' });
    await t.settle();
    expect(lines.slice(-3)).toEqual([
      'getChildren /jobs watch',
      'delete /jobs-aside/consumers/guid-lock-0000000000',
      'removeWatches /jobs',
    ]);
    // With the next connection it would set any remaining watches again.
    lines.length = 0;
    t.world.break();
    await t.world.untilSo(() => zk.state !== 'connected');
    await t.world.untilSo(() => zk.state === 'connected');
    await t.settle();
    expect(lines).toEqual([]);
  });
});
