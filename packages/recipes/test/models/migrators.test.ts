/**
 * What migrations guarantee, over seeds that decide when connections break, and stay away until
 * sessions have expired, when the server dies, and when the lock is broken by hand: each is applied
 * once, in the order of the list, whichever process comes with it, and however often it tries.
 */
import { type Client, connect, KeeperError, op } from '@tskeeper/client';
import { describe, it, vi } from 'vitest';
import { expectHappened } from '../../../../test/breadth.ts';
import { Hold, Lock, Migrations, RecipeError } from '../../src/index.ts';
import { entriesOf } from '../support/log.ts';
import { type Canary, itFindsOut, overSeeds } from '../support/seeds.ts';
import { Storm, storyWorld } from '../support/storm.ts';

const names = ['a', 'b', 'c', 'd'];
const list = names.map((name) => ({ name, ops: [op.create('/log/e-', name, { mode: 'persistentSequential' })] }));

class Tally {
  applied = 0;
  waited = 0;
  lost = 0;
  byHand = 0;
}

async function run(seed: number, tally: Tally): Promise<void> {
  const { world, random } = await storyWorld(seed, 40);
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  await world.until(observer.ensurePath('/log'));
  const migrate = async (): Promise<void> => {
    let zk: Client | undefined;
    for (;;) {
      if (zk === undefined || zk.endReason !== undefined)
        zk = await connect('server:2181', world.options({ sessionTimeoutMs: 3000, connectTimeoutMs: Infinity }));
      try {
        const applied = await new Migrations(zk, '/migrations', list).migrate();
        tally.applied += applied.length;
        if (applied.length < list.length) tally.waited++;
        return await zk.close();
      } catch (error) {
        // NoNode: the znode of the lock was deleted by hand before the reply to its creation.
        const isLost = error instanceof RecipeError ? error.code === 'Lost' : KeeperError.is(error, 'SessionExpired', 'NoNode');
        if (!isLost) throw error;
        tally.lost++;
      }
    }
  };
  const over: string[] = [];
  const running = Promise.all([migrate(), migrate(), migrate()]).then(
    () => over.push('done'),
    (error: unknown) => over.push(String(error)),
  );
  const breakLock = async () => {
    const [holder] = await world.until(new Lock(observer, '/migrations/lock').contenders()).catch(() => []);
    if (holder === undefined) return;
    tally.byHand++;
    void observer.delete(holder.path).catch(() => undefined);
  };
  const storm = new Storm(world, random, {
    steps: 12,
    breaks: 40,
    cuts: 20,
    restarts: 0,
    mishaps: [[20, breakLock]],
    cutSteps: () => 1 + random.below(6),
    stepMsMax: 120,
    parts: 4,
    isOver: () => over.length > 0,
  });
  await storm.pass();
  await world.until(running, 300_000);
  if (over[0] !== 'done') throw new Error(over[0]);
  const made = (await entriesOf(world, observer, '/log')).join('');
  if (made !== names.join('')) throw new Error(`made were ${made}`);
  await world.until(observer.close());
  await world.close();
}

describe('processes that migrate', () => {
  it('B28: apply each migration once and in order under failures, over seeds', async () => {
    const tally = new Tally();
    await overSeeds(40, (seed) => run(seed, tally));
    expectHappened(tally, 5);
  });

  const multi = Object.getOwnPropertyDescriptor(Hold.prototype, 'multi')!.value as Hold['multi'];
  const canaries: Record<string, Canary> = {
    'records a change in a txn of its own': {
      plant: () =>
        vi.spyOn(Hold.prototype, 'multi').mockImplementation(async function (this: Hold, ops, options) {
          await multi.call(this, ops.slice(0, -1), options);
          return (await multi.call(this, ops.slice(-1), options)) as never;
        }),
      finds: /made were/,
    },
    'applies changes without a record': {
      plant: () =>
        vi.spyOn(Hold.prototype, 'multi').mockImplementation(async function (this: Hold, ops, options) {
          return (await multi.call(this, ops.slice(0, -1), options)) as never;
        }),
      finds: /made were/,
    },
  };

  itFindsOut(canaries, (seed) => run(seed, new Tally()), { enough: 2, quick: 'applies changes without a record' });
});
