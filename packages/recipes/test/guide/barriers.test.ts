/** Tests what docs/guides/recipes/barriers.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './barriers.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const pause = (ms: number) => new Promise<void>((resolve) => t.world.clock.after(ms, () => resolve()));

test('workers wait while the schema is changed', async () => {
  const done: string[] = [];
  const job = async () => {
    await pause(500);
    done.push('job');
  };
  const working = guide.workOn(await t.client(), [job, job, job]);
  await t.pass(600);
  const migrating = guide.migrate(t.zk, async () => {
    await pause(5000);
    done.push('schema');
  });
  await t.until(Promise.all([working, migrating]));
  expect(done).toEqual(['job', 'job', 'schema', 'job']);
});

test('three participants go from step to step together', async () => {
  await t.until(t.zk.create('/results'));
  const begun = [0, 0, 0];
  const ended = [0, 0, 0];
  const compute = (ms: number) => async (step: number) => {
    begun[step]!++;
    await pause(ms);
    expect(begun[step]).toBe(3);
    if (step > 0) expect(ended[step - 1]).toBe(3);
    ended[step]!++;
    return 'x';
  };
  await t.until(Promise.all([10, 200, 3000].map(async (ms) => guide.simulate(await t.client(), 3, compute(ms)))));
  expect((await t.childrenOf('/results')).length).toBe(9);
  expect(await t.childrenOf('/barriers/simulation')).toEqual([]);
});

test('no worker serves before all have loaded', async () => {
  let loaded = 0;
  let served = 0;
  const runs = [100, 200, 3000].map(async (ms) => {
    const load = async () => {
      await pause(ms);
      loaded++;
    };
    await guide.start(await t.client(), load, async () => {
      expect(loaded).toBe(3);
      await pause(ms);
      served++;
    });
    expect(served).toBe(3);
  });
  await t.until(Promise.all(runs));
});
