/** Tests what docs/guides/recipes/values.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AtomicNumber, SharedCount } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './values.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('limits are applied, raised and doubled', async () => {
  const limits = guide.limitsOf(await t.client());
  const seen: number[] = [];
  const obeying = guide.obey(limits, (limit) => seen.push(limit));
  const operator = guide.limitsOf(await t.client());
  await t.until(operator.ready());
  expect(await t.until(guide.raise(operator, 100))).toBe(true);
  await t.settle();
  expect(await t.until(guide.double(limits))).toBe(200);
  expect(await t.until(guide.double(operator))).toBe(400);
  await t.settle();
  expect(seen).toEqual([100, 200, 400]);
  await limits.close();
  await t.until(obeying);
  const stale = guide.raise(operator, 1);
  await t.until(t.zk.setData('/app/limits', '{"requestsPerSecond":7}'));
  expect(await t.until(stale)).toBe(false);
  await operator.close();
});

test('the number of workers is set', async () => {
  await t.until(guide.scale(await t.client(), 12));
  await using count = new SharedCount(t.zk, '/app/workers');
  await t.until(count.ready());
  expect(count.count).toBe(12);
});

test('orders are counted, and invoices are numbered', async () => {
  expect(await t.until(guide.countOrder(await t.client()))).toBe(1n);
  expect(await t.until(guide.countOrder(await t.client()))).toBe(2n);
  const numbers = guide.invoiceNumbers(await t.client());
  expect([await t.until(numbers.next()), await t.until(numbers.next())]).toEqual([0, 1]);
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/orders/invoices'))).data ?? undefined)).toBe('100');
  expect(await t.until(new AtomicNumber(t.zk, '/orders/count').get())).toBe(2n);
});
