/**
 * Each request of one participant of a barrier is lost, once, and each reply, and the connection
 * with it: the participant continues, each has one znode while all are inside, none waits forever,
 * and nothing is left behind.
 */
import type { Client } from '@tskeeper/client';
import { nameOf } from '@tskeeper/client/internal';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Barrier, DoubleBarrier, type Participation, SimpleBarrier } from '../../src/index.ts';
import { withEachLoss } from '../support/each-loss.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;
let others: readonly [Client, Client];

beforeEach(async () => {
  // Containers stay, however long a story takes.
  t = await RecipeWorld.start({ containerCheckIntervalMs: 0 });
  others = [await t.client(), await t.client()];
});

afterEach(async () => {
  await t.close();
});

/** One way to enter and leave it. */
type Enter = (zk: Client) => Promise<Participation>;

/** Where the participant that loses something enters and leaves. */
const orders = [
  { place: 'first', order: [0, 1, 2] },
  { place: 'last', order: [1, 2, 0] },
];

/** One round of three, which enter and leave in these orders. */
async function round(
  path: string,
  clients: readonly Client[],
  enter: Enter,
  coming: readonly number[],
  going: readonly number[],
): Promise<void> {
  const entering: Promise<Participation>[] = [];
  for (const index of coming) {
    entering[index] = enter(clients[index]!);
    await new Promise<void>((resolve) => t.world.clock.after(10, resolve));
  }
  const inside = await Promise.all(entering);
  const { children } = await t.zk.getChildren(path, { linearizable: true });
  expect(children.filter((name) => name !== 'ready').toSorted()).toEqual(inside.map((each) => nameOf(each.path)).toSorted());
  const leaving: Promise<void>[] = [];
  for (const index of going) {
    leaving.push(inside[index]!.leave());
    await new Promise<void>((resolve) => t.world.clock.after(10, resolve));
  }
  await Promise.all(leaving);
  expect(inside.map(({ state }) => state)).toEqual(['released', 'released', 'released']);
}

describe('C1-3: the loss of any one request or reply of a participant', () => {
  it.each(orders)('of a double barrier that enters $place blocks no round', async ({ order }) => {
    const runs = await withEachLoss(t, async (zk, path) => {
      await round(path, [zk, ...others], (each) => new DoubleBarrier(each, path, 3).enter(), order, order.toReversed());
    });
    expect(runs).toBeGreaterThan(2 * 6);
  });

  it('that is both the first and the last does not leave the barrier open', async () => {
    const runs = await withEachLoss(t, (zk, path) => new DoubleBarrier(zk, path, 1).run(() => 'inside'));
    expect(runs).toBeGreaterThan(2 * 6);
  });

  it.each(orders)('of a simple barrier that enters $place blocks no participant', async ({ order }) => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const enter: Enter = async (each) => (await SimpleBarrier.create(each, path, 3)).enter();
      await round(path, [zk, ...others], enter, order, order.toReversed());
    });
    expect(runs).toBeGreaterThan(2 * 4);
  });

  it('of a barrier does not affect set, wait and remove', async () => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const [own, other] = [new Barrier(zk, path), new Barrier(others[0], path)];
      await own.set();
      const waiting = other.wait().then(() => 'through');
      await own.remove();
      expect(await waiting).toBe('through');
      await other.set();
      const going = own.wait().then(() => 'through');
      await new Promise<void>((resolve) => t.world.clock.after(10, resolve));
      await other.remove();
      return await going;
    });
    expect(runs).toBeGreaterThan(2 * 4);
  });
});
