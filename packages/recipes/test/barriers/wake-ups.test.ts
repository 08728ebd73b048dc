/** Events that wake waiting participants of a double barrier, and are not what they wait for. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DoubleBarrier } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/b';

describe('a double barrier', () => {
  it('C1-8: is not opened by a lost and restored connection, nor by foreign writes to its znodes', async () => {
    const one = await t.client();
    let isIn = false;
    const first = new DoubleBarrier(one, path, 2).enter();
    void first.then(() => (isIn = true));
    await t.settle();
    for (let round = 0; round < 3; round++) {
      t.world.break();
      await t.world.untilSo(() => one.state !== 'connected');
      await t.world.untilSo(() => one.state === 'connected');
      await t.until(t.zk.setData(path, `round ${round}`));
      await t.pass(500);
      expect(isIn, `round ${round}`).toBe(false);
    }
    const second = await t.until(new DoubleBarrier(t.zk, path, 2).enter());
    await t.until(Promise.all([(await t.until(first)).leave(), second.leave()]));
  });

  it('C1-10: keeps a leaving participant waiting while others arrive for the next round', async () => {
    const clients = await Promise.all([1, 2, 3, 4].map(() => t.client()));
    const barrier = (at: number) => new DoubleBarrier(clients[at]!, path, 2);
    const inside = await t.until(Promise.all([barrier(0).enter(), barrier(1).enter()]));
    const order = inside.toSorted((a, b) => (a.path < b.path ? -1 : 1));
    let isOut = false;
    // The lowest, which waits for the other while its own znode still exists.
    const lowest = order[0]!.leave().then(() => (isOut = true));
    await t.settle();
    const late = await t.until(barrier(2).enter());
    await t.until(late.leave({ timeoutMs: 100 }).catch(() => undefined));
    await t.pass(1000);
    expect([isOut, order[0]!.state]).toEqual([false, 'held']);
    await t.until(order[1]!.leave());
    await t.until(lowest);
  });
});
