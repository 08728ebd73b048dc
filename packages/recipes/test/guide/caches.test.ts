/** Tests what docs/guides/caches.md says about lost connections and sessions, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './caches.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('settings, workers and changes are available after a cut, and in the next session', async () => {
  const program = await Program.start(t);
  await t.until(t.zk.ensurePath('/app/workers'));
  await t.until(t.zk.create('/app/settings', '{"colour":"blue"}'));
  const settings = await t.until(guide.openSettings(program.sessions));
  const workers = await t.until(guide.openWorkers(program.sessions));
  const lines: string[] = [];
  const stop = new AbortController();
  const following = failureOf(guide.follow(program.sessions, (line) => lines.push(line), stop.signal));
  await t.settle();
  const change = async (colour: string) => {
    await t.until(t.zk.setData('/app/settings', JSON.stringify({ colour })));
    await t.until(t.zk.create(`/app/workers/${colour}`));
  };
  const isKnown = (colour: string) => () =>
    settings.current().colour === colour &&
    workers.cache.names.includes(colour) &&
    lines.includes(`/app/settings is {"colour":"${colour}"}`);
  await program.cut();
  await change('red');
  await t.world.untilSo(isKnown('red'));
  await program.expire(() => change('green'));
  await t.world.untilSo(isKnown('green'));
  await change('yellow');
  await t.world.untilSo(isKnown('yellow'));
  expect(lines.filter((line) => line === 'the state may be out of date')).toHaveLength(2);
  stop.abort(new Error('enough'));
  expect(await t.until(following)).toMatchObject({ message: 'enough' });
  await t.until(Promise.all([settings.cache.close(), workers.cache.close(), program.sessions.close()]));
});
