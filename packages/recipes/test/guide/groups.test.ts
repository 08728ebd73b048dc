/** What docs/guides/recipes/groups.md says, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Group } from '../../src/index.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './groups.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await t.close();
});

test('a member is listed, seen and looked up, and leaves', async () => {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const told: string[] = [];
  const zk = await t.client();
  const looking = guide.look(zk, (line) => told.push(line));
  const stop = new AbortController();
  const serving = guide.serve('server:2181', '10.0.0.7:80', stop.signal, t.world.options());
  await t.settle();
  const members = await t.until(new Group(zk, '/workers').members());
  expect(guide.addressOf({ members, inStep: true }, 'alice')).toBe('10.0.0.7:80');
  expect(guide.addressOf({ members, inStep: true }, 'bob')).toBe(undefined);
  t.world.break();
  await t.pass(1000);
  stop.abort();
  await t.until(serving);
  await t.settle();
  expect(told).toEqual(['nobody', 'alice', 'nobody']);
  expect(lines).toEqual(['/workers/alice is suspended', '/workers/alice is present', '/workers/alice is closed']);
  await t.until(zk.close());
  await t.until(looking);
});

test('a machine signs', async () => {
  const node = await t.until(guide.sign(await t.client()));
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/machines/m7'))).data ?? undefined)).toBe('up, and warm');
  await t.until(node.close());
});

test('queues are shared', async () => {
  const done = new Map<string, string[]>();
  const start = async (name: string) => {
    const own: string[] = [];
    done.set(name, own);
    return guide.share(await t.client(), name, async (queue, held) => {
      if (held.state === 'held' && own.at(-1) !== queue) own.push(queue);
      await new Promise<void>((resolve) => t.world.clock.after(1000, resolve));
    });
  };
  const one = await start('one');
  const two = await start('two');
  await t.until(Promise.all([one.ready(), two.ready()]));
  await t.pass(3000);
  expect([...new Set(done.get('one'))].toSorted()).toEqual(['mail', 'reports']);
  expect(done.get('two')).toEqual(['pictures']);
  await t.until(Promise.all([one.close(), two.close()]));
});
