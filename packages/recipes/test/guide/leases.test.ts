/** What docs/guides/recipes/leases.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './leases.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('the job stays with its host, until that fails', async () => {
  const done: string[] = [];
  const hourly = (host: string) => t.until(guide.hourly(t.zk, host, () => Promise.resolve(void done.push(host))));
  expect(await hourly('one')).toBe(true);
  expect(await hourly('two')).toBe(false);
  await t.pass(60 * 60_000, 60_000);
  expect(await hourly('one')).toBe(true);
  await t.pass(71 * 60_000, 60_000);
  expect(await hourly('two')).toBe(true);
  expect(done).toEqual(['one', 'one', 'two']);
});

test('parts that take longer together than the lease', async () => {
  const aborted: boolean[] = [];
  const part = async (signal: AbortSignal) => {
    await new Promise<void>((resolve) => t.world.clock.after(50_000, resolve));
    aborted.push(signal.aborted);
  };
  await t.until(guide.allParts(t.zk, 'one', [part, part, part]), 200_000);
  expect(aborted).toEqual([false, false, false]);
});

test('three hosts of four crawl', async () => {
  const may: boolean[] = [];
  for (const host of ['a', 'b', 'c', 'd']) may.push(await t.until(guide.mayCrawl(t.zk, host)));
  expect(may).toEqual([true, true, true, false]);
});
