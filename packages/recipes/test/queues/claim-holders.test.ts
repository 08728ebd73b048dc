/**
 * Consumers that claim items, checked like all other holds (holder-story.ts): no two have one item.
 */
import { type Client, KeeperError, op } from '@tskeeper/client';
import { describe, expect, it, vi } from 'vitest';
import { breadth, isFull } from '../../../../test/breadth.ts';
import { Queue } from '../../src/index.ts';
import { ItemList } from '../../src/queues/item-list.ts';
import { IdempotencyMarkers } from '../../src/markers/idempotency-markers.ts';
import { runSeeds, runOf, type Subject } from '../support/holder-runs.ts';
import { type Canary, itFindsOut } from '../support/seeds.ts';

const path = '/jobs';

/**
 * This many items that are worked on repeatedly, and never done. Each worker keeps its queue as
 * long as its session.
 */
function itemsToWorkOn(count: number): Subject {
  const queues = new WeakMap<Client, Queue>();
  return {
    acquire: async (zk, _random, options) => {
      for (let at = 0; at < count; at++)
        await zk.create(`${path}/queue-000000000${at}`, 'x', { parents: true, idempotent: true }).catch(ignoreThere);
      const queue = queues.get(zk) ?? new Queue(zk, path);
      queues.set(zk, queue);
      const item = await queue.claim(options);
      return { held: item, paths: [item.claimPath], how: item.name, token: count === 1 ? item.fencingToken : undefined };
    },
    mayHold: (how, others) => !others.includes(how),
    znodes: async (zk) => [...(await below(zk, 'claims')), ...(await below(zk, 'consumers'))],
  };
}

async function below(zk: Client, what: string): Promise<string[]> {
  const parent = `${path}-aside/${what}`;
  if ((await zk.exists(parent)) === null) return [];
  return (await zk.getChildren(parent)).children.toSorted().map((name) => `${parent}/${name}`);
}

function ignoreThere(error: unknown): void {
  if (!KeeperError.is(error, 'NodeExists')) throw error;
}

describe('consumers that claim items', () => {
  it.each([1, 2])('B6: never hold the same one of %i items at the same time under failures, over seeds', async (count) => {
    const tally = await runSeeds(itemsToWorkOn(count), count * 100, 6);
    expect(tally[count === 1 ? 'alone' : 'beside']).toBeGreaterThan(breadth(2, 30));
    if (!isFull) return;
    for (const what of ['lost', 'suspended', 'stale', 'timedOut', 'byHand'] as const) expect(tally[what], what).toBeGreaterThan(0);
  });

  const write = Object.getOwnPropertyDescriptor(IdempotencyMarkers.prototype, 'write')!.value as IdempotencyMarkers['write'];
  const canaries: Record<string, Canary> = {
    'does not check whether the item has been claimed since': {
      plant: () => {
        let claims = 0;
        vi.spyOn(IdempotencyMarkers.prototype, 'write').mockImplementation(function (this: IdempotencyMarkers, ops, signal) {
          const careless = ops.map((each) => {
            if (each.op === 'setData') return op.setData(each.path, each.data);
            return each.op === 'create' ? { ...each, path: `${each.path}${++claims}` } : each;
          });
          return write.call(this, careless, signal);
        });
      },
      finds: /two hold|still not so|left behind/,
    },
    'does not notice released items': {
      plant: () => vi.spyOn(ItemList.prototype, 'onStale').mockReturnValue(() => undefined),
      finds: /still not so/,
    },
  };

  itFindsOut(canaries, runOf(itemsToWorkOn(1)));
});
