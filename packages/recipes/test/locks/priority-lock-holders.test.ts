/** Many readers or one writer, with priorities, over seeds; see test/support/holder-story.ts. */
import { describe, expect, it, vi } from 'vitest';
import { breadth, expectHappened } from '../../../../test/breadth.ts';
import { PriorityLock } from '../../src/index.ts';
import { QueueNode } from '../../src/wait-queue/wait-queue.ts';
import { runSeeds, runOf, type Subject } from '../support/holder-runs.ts';
import { findings } from '../support/seeds.ts';

const path = '/locks/x';

const priorityLock: Subject = {
  async acquire(zk, random, options) {
    const lock = new PriorityLock(zk, path);
    const isShared = random.below(3) === 0;
    const priority = random.below(3);
    // Without `deleteAfterMs`: that is like a deletion by hand, which a holder may notice after the
    // next one holds.
    const preempt = random.below(3) === 0;
    const onRevocation = random.below(2) === 0 ? () => undefined : undefined;
    const side = isShared ? lock.readLock(priority, { preempt }) : lock.writeLock(priority, { preempt });
    const held = await side.acquire({ ...options, onRevocation });
    return { held, paths: [held.path], how: isShared ? 'shared' : 'alone', token: isShared ? undefined : held.fencingToken };
  },
  mayHold: (how, others) => others.length === 0 || (how === 'shared' && !others.includes('alone')),
  znodes: async (zk) => {
    const lock = new PriorityLock(zk, path);
    return [...(await lock.holders()), ...(await lock.contenders())].map((each) => each.path);
  },
};

describe('holders of a priority lock', () => {
  it('C1-41, C1-3: never hold it together if they exclude each other, under failures, over seeds', async () => {
    const tally = await runSeeds(priorityLock, 0, 8);
    expectHappened(tally, 0);
  });

  const blocker = Object.getOwnPropertyDescriptor(QueueNode.prototype, 'currentBlocker')!.value as QueueNode['currentBlocker'];

  it('never hold it together if they exclude each other, even if all pass the gate at once', async () => {
    vi.spyOn(QueueNode.prototype, 'currentBlocker').mockImplementation(function (this: QueueNode, ahead, signal) {
      return this.path.includes('/waiting/') ? Promise.resolve(undefined) : blocker.call(this, ahead, signal);
    });
    const tally = await runSeeds(priorityLock, 0, 3).finally(() => vi.restoreAllMocks());
    expect(tally.alone).toBeGreaterThan(breadth(2, 10));
  });

  it('are detected to hold it together when they read only the gate', async () => {
    vi.spyOn(QueueNode.prototype, 'currentBlocker').mockImplementation(function (this: QueueNode, ahead, signal) {
      return this.path.includes('/holding/') ? Promise.resolve(undefined) : blocker.call(this, ahead, signal);
    });
    vi.spyOn(PriorityLock.prototype, 'holders').mockResolvedValue([]);
    const caught = await findings(runOf({ ...priorityLock, znodes: () => Promise.resolve([]) })).finally(() => vi.restoreAllMocks());
    const two = expect.stringMatching(/two hold/);
    expect(caught).toEqual(breadth([two], [two, two, two]));
  });
});
