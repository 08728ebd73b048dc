/** Mutual exclusion of locks, over seeds; see test/support/holder-story.ts. */
import { ClientView, KeeperError } from '@tskeeper/client';
import { describe, it, vi } from 'vitest';
import { expectHappened } from '../../../../test/breadth.ts';
import { type Hold, Lock, ReadWriteLock } from '../../src/index.ts';
import { Hold as HeldClass } from '../../src/wait-queue/hold.ts';
import { WaitQueue, QueueNode } from '../../src/wait-queue/wait-queue.ts';
import { clientOf, runSeeds, runOf, type Subject } from '../support/holder-runs.ts';
import { type Canary, itFindsOut } from '../support/seeds.ts';

const path = '/locks/x';

const sharedLock: Subject = {
  async acquire(zk, random, options) {
    const lock = new ReadWriteLock(zk, path);
    const isShared = random.below(3) === 0;
    const held = await (isShared ? lock.readLock : lock.writeLock).acquire(options);
    return { held, paths: [held.path], how: isShared ? 'shared' : 'alone', token: isShared ? undefined : held.fencingToken };
  },
  mayHold: (how, others) => others.length === 0 || (how === 'shared' && !others.includes('alone')),
  znodes: async (zk) => (await new Lock(zk, path, { prefix: '-' }).contenders()).map(({ path: each }) => each),
};

describe('holders of a lock', () => {
  it('C1-21, C1-3: never hold it at the same time under failures, over seeds', async () => {
    const tally = await runSeeds(sharedLock, 0, 50);
    expectHappened(tally, 10);
  });

  const join = Object.getOwnPropertyDescriptor(WaitQueue.prototype, 'join')!.value as WaitQueue['join'];
  const blocker = Object.getOwnPropertyDescriptor(QueueNode.prototype, 'currentBlocker')!.value as QueueNode['currentBlocker'];
  const canaries: Record<string, Canary> = {
    'does not wait for its turn': {
      plant: () => vi.spyOn(QueueNode.prototype, 'waitForTurn').mockResolvedValue(),
      finds: /two hold/,
    },
    'reads beside a writer that is not the first in the queue': {
      plant: () =>
        vi.spyOn(QueueNode.prototype, 'currentBlocker').mockImplementation(async function (this: QueueNode, ahead, signal) {
          const found = await blocker.call(this, ahead, signal);
          return found?.prefix === 'write-' && this.path.includes('read-') ? undefined : found;
        }),
      finds: /two hold/,
    },
    'does not look for its znode after a lost reply': {
      plant: () =>
        vi.spyOn(WaitQueue.prototype, 'join').mockImplementation(async function (this: WaitQueue, zk, kind, data, signal) {
          for (;;) {
            try {
              const { path: own, stat } = await zk.create(`${path}/${kind}`, data, {
                mode: 'ephemeralSequential',
                parents: 'container',
                signal,
              });
              return new QueueNode(zk, this, own, stat.czxid, undefined);
            } catch (error) {
              if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
            }
          }
        }),
      finds: /still not so/,
    },
    'stays in the queue when it gives up': {
      plant: () =>
        vi.spyOn(WaitQueue.prototype, 'join').mockImplementation(async function (this: WaitQueue, zk, kind, data, signal) {
          const place = await join.call(this, zk, kind, data, signal);
          const leave = place.leave.bind(place);
          place.leave = () => (signal.aborted ? Promise.resolve() : leave());
          return place;
        }),
      finds: /still not so|left behind/,
    },
    'writes without checking its hold': {
      plant: () =>
        vi.spyOn(HeldClass.prototype, 'multi').mockImplementation(async function (this: Hold, ops) {
          return (await clientOf.get(this)!.multi(ops)) as never;
        }),
      finds: /and still wrote|follows one of holder/,
    },
    'relies on its session forever': {
      plant: () => vi.spyOn(ClientView.prototype, 'sessionRemainingMs', 'get').mockReturnValue(1_000_000),
      finds: /two hold/,
    },
  };

  itFindsOut(canaries, runOf(sharedLock));
});
