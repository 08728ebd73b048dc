/** Never more holders than leases, over seeds; see test/support/holder-story.ts. */
import { ClientView } from '@tskeeper/client';
import { describe, expect, it, vi } from 'vitest';
import { breadth, expectHappened } from '../../../../test/breadth.ts';
import { HoldSet, Semaphore } from '../../src/index.ts';
import { contendersIn } from '../../src/wait-queue/contender.ts';
import { QueueNode } from '../../src/wait-queue/wait-queue.ts';
import { runSeeds, runOf, type Subject } from '../support/holder-runs.ts';
import { findings } from '../support/seeds.ts';

const path = '/semaphores/x';
const size = 3;

const semaphore: Subject = {
  async acquire(zk, random, options) {
    const leases = 1 + random.below(2);
    const mine = new Semaphore(zk, path, { size });
    const held = leases === 1 ? await mine.acquire(options) : await mine.acquireMany(leases, options);
    const paths = held instanceof HoldSet ? held.holds.map((each) => each.path) : [held.path];
    return { held, paths, how: String(leases), token: undefined };
  },
  mayHold: (how, others) => others.reduce((sum, other) => sum + Number(other), Number(how)) <= size,
  znodes: async (zk) => {
    const mine = new Semaphore(zk, path, { size });
    return [...(await mine.leases()), ...(await mine.contenders())].map((each) => each.path);
  },
};

describe('holders of leases', () => {
  it('B14, C1-3: are never more than there are leases under failures, over seeds', async () => {
    const { alone, ...tally } = await runSeeds(semaphore, 0, 12);
    expect(alone).toBe(0);
    expectHappened(tally, 0);
  });

  it('are never more than the leases even if no contender waits for its turn to read, as the order of leases decides', async () => {
    vi.spyOn(QueueNode.prototype, 'waitForTurn').mockResolvedValue();
    const tally = await runSeeds(semaphore, 0, 3).finally(() => vi.restoreAllMocks());
    expect(tally.beside).toBeGreaterThan(breadth(2, 10));
  });

  it('are detected to be more than the leases when they do not see the oldest leases', async () => {
    const getChildren = Object.getOwnPropertyDescriptor(ClientView.prototype, 'getChildren')!.value as ClientView['getChildren'];
    vi.spyOn(ClientView.prototype, 'getChildren').mockImplementation(async function (this: ClientView, at, options) {
      const answer = await getChildren.call(this, at, options);
      if (!at.endsWith('/leases')) return answer;
      return {
        ...answer,
        children: contendersIn(at, answer.children, ['lease-'])
          .slice(-size)
          .map(({ name }) => name),
      };
    });
    const caught = await findings(runOf(semaphore)).finally(() => vi.restoreAllMocks());
    const two = expect.stringMatching(/two hold/);
    expect(caught).toEqual(breadth([two], [two, two, two]));
  });
});
