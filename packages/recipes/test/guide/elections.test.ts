/** What docs/guides/recipes/elections.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Election } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './elections.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('one leads, and when its znode is deleted the next one does', async () => {
  await t.until(t.zk.create('/settings'));
  const stop = new AbortController();
  const told: string[] = [];
  const telling = guide.tellLeaders(t.zk, (leader) => told.push(leader), stop.signal);
  const work = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const running = [];
  for (const id of ['one', 'two']) {
    running.push(guide.leadForever(await t.client(), id, work, stop.signal));
    await t.settle();
  }
  const [leader] = await t.until(new Election(t.zk, '/election').candidates());
  await t.until(t.zk.delete(leader!.path));
  await t.settle();
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/settings'))).data ?? undefined)).toBe('led by two');
  expect(told).toEqual(['nobody', 'one, from now on', 'one', 'two, from now on', 'two']);
  stop.abort(new Error('the end'));
  await expect(telling).rejects.toThrow('the end');
  for (const each of await t.until(Promise.allSettled(running)))
    expect(each.status === 'fulfilled' || each.reason === stop.signal.reason).toBe(true);
});

test('something on the side while one leads, and one thing as a leader', async () => {
  const steps: string[] = [];
  const start = () => {
    steps.push('start');
    return () => steps.push('stop');
  };
  const candidate = guide.whileLeading(await t.client(), 'one', start);
  await t.until(candidate.leading());
  const once = guide.onceAsLeader(t.zk, 'two', () => Promise.resolve(void steps.push('once')));
  await t.settle();
  await t.until(candidate.close());
  await t.until(once);
  expect(steps).toEqual(['start', 'stop', 'once']);
});
