/** Tests what docs/guides/recipes/models.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './models.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('values are incremented, listed and cancelled', async () => {
  expect(await t.until(Promise.all([1, 2, 3].map((more) => guide.addTo(t.zk, 'ann', 'tea', more))))).toContain(6);
  await t.until(guide.orders.at(t.zk, { user: 'ann', order: 'milk' }).create({ item: 'milk', count: 1 }));
  expect(await t.until(guide.countsOf(t.zk, 'ann'))).toEqual(
    new Map([
      ['tea', 6],
      ['milk', 1],
    ]),
  );
  expect(await t.until(guide.cancel(t.zk, 'ann', 'milk', () => Promise.resolve(false)))).toBe(false);
  const meanwhile = async () => {
    await guide.addTo(t.zk, 'ann', 'milk', 1);
    return true;
  };
  expect(await t.until(failureOf(guide.cancel(t.zk, 'ann', 'milk', meanwhile)))).toMatchObject({ code: 'BadVersion' });
  expect(await t.until(guide.cancel(t.zk, 'ann', 'milk', () => Promise.resolve(true)))).toBe(true);
});

test('changes are reported, and invalid orders are distinguished', async () => {
  const lines: string[] = [];
  const abort = new AbortController();
  const reporting = failureOf(guide.report(await t.client(), 'ann', (line) => lines.push(line), abort.signal));
  await t.until(guide.addTo(t.zk, 'ann', 'tea', 2));
  await t.settle();
  await t.until(t.zk.setData('/users/ann/orders/tea', '{}'));
  await t.settle();
  abort.abort();
  await t.until(reporting);
  expect(lines).toEqual(['/users/ann/orders/tea: 2', '/users/ann/orders/tea: TypeError: an order has an item and a count']);
});

test('a guarded client restricts recipes and models to the schemas', async () => {
  await t.until(
    guide.lead(await t.client(), async (zk) => {
      await guide.orders.at(zk, { user: 'ann', order: 'tea' }).create({ item: 'tea', count: 1 });
      await expect(zk.delete('/users/ann')).rejects.toMatchObject({ code: 'Refused' });
      await expect(zk.create('/elsewhere')).rejects.toMatchObject({ code: 'Refused' });
    }),
  );
  expect(await t.until(failureOf(guide.guarded(t.zk).setData('/users/ann/orders/tea', 'x')))).toMatchObject({ code: 'Refused' });
});

test('migrations are applied once', async () => {
  expect(await t.until(guide.prepare(t.zk))).toEqual(['users', 'orders of the admin']);
  expect(await t.until(guide.prepare(await t.client()))).toEqual([]);
});
