/** Tests what docs/guides/recipes/events.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './events.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('all clients wait for the data, and work with them', async () => {
  let worked = 0;
  const work = () => Promise.resolve(void worked++);
  const waiting = [guide.whenLoaded(t.zk, work), guide.whenLoaded(await t.client(), work)];
  await t.pass(1000);
  expect(worked).toBe(0);
  await t.until(guide.loaded(t.zk));
  await t.until(Promise.all(waiting));
  await t.until(guide.whenLoaded(t.zk, work));
  expect(worked).toBe(3);
});

test('one of two clients does the work each time it is woken', async () => {
  const stop = new AbortController();
  const worked: string[] = [];
  const running = ['one', 'two'].map(async (name) =>
    failureOf(guide.onWake(await t.client(), () => Promise.resolve(void worked.push(name)), stop.signal)),
  );
  await t.pass(500);
  for (let times = 0; times < 4; times++) {
    await t.until(guide.wake(t.zk));
    await t.pass(500);
  }
  expect(worked.length).toBe(4);
  expect(new Set(worked)).toEqual(new Set(['one', 'two']));
  stop.abort(new Error('the end'));
  expect(await t.until(Promise.all(running))).toEqual([stop.signal.reason, stop.signal.reason]);
});
