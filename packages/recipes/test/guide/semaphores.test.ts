/** Tests what docs/guides/recipes/semaphores.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Semaphore } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './semaphores.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const pause = (ms: number) => new Promise<void>((resolve) => t.world.clock.after(ms, resolve));

test('five pages are fetched at a time, or two per site', async () => {
  let now = 0;
  let most = 0;
  const fetchIt = async () => {
    most = Math.max(most, ++now);
    await pause(500);
    now--;
    return 'page';
  };
  const site = guide.fetchSite(t.zk, async (atATime) => {
    now += atATime;
    await pause(1200);
    now -= atATime;
  });
  const pages = Array.from({ length: 12 }, () => guide.fetchPage(t.zk, fetchIt));
  expect(new Set(await t.until(Promise.all(pages)))).toEqual(new Set(['page']));
  await t.until(site);
  expect(most).toBe(5);
});

test('the size of a semaphore can be changed', async () => {
  await t.until(guide.atMost(t.zk, 1));
  const semaphore = new Semaphore(t.zk, '/semaphores/mail');
  await t.until(semaphore.acquire());
  expect(await t.until(semaphore.tryAcquire())).toBe(undefined);
  await t.until(guide.atMost(t.zk, 2));
  expect(await t.until(semaphore.tryAcquire())).toBeDefined();
});
