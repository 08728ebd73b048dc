/** Tests what docs/guides/recipes/coming-from-curator-and-kazoo.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Lock, Sessions } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './coming-from-curator-and-kazoo.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('a lock is released when its work fails', async () => {
  const failing = guide.rewriteReport(t.zk, () => Promise.reject(new Error('no paper')));
  await expect(t.until(failing)).rejects.toThrow('no paper');
  expect(await t.until(new Lock(t.zk, '/locks/report').contenders())).toEqual([]);
});

test('a hold distinguishes suspended from lost', async () => {
  const zk = await t.client();
  const received: string[] = [];
  let end!: () => void;
  const done = new Promise<void>((resolve) => (end = resolve));
  const stop = () => {
    received.push('stop');
    end();
  };
  const working = guide.watchedWork(zk, { pause: () => received.push('pause'), goOn: () => received.push('go on'), stop, done });
  await t.settle();
  t.world.break(t.world.cnxn);
  await t.pass(5000);
  expect(received).toEqual(['pause', 'go on']);
  const [contender] = await t.until(new Lock(t.zk, '/locks/index').contenders());
  await t.until(t.zk.delete(contender!.path));
  await t.until(working);
  expect(received).toEqual(['pause', 'go on', 'stop']);
});

test('a latch uses the names of Curator', async () => {
  const sessions = await t.until(Sessions.start(() => t.client()));
  const received: boolean[] = [];
  const candidate = guide.latch(sessions, 'berlin', (leads) => received.push(leads));
  const { path } = await t.until(candidate.waitForLeadership());
  expect(path).toMatch(/^\/election\/_c_[-0-9a-f]{36}-latch-\d{10}$/);
  await t.until(candidate.close());
  expect(received).toEqual([true, false]);
  await t.until(sessions.close());
});
