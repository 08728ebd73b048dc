/** Tests what docs/guides/recipes/names-and-configuration.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './names-and-configuration.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('B1, C1-4: a name is held by one of the processes that want it, and found by all', async () => {
  const clients = await Promise.all([t.client(), t.client(), t.client()]);
  const bound = await t.until(Promise.all(clients.map((zk, index) => guide.bind(zk, 'printer', `10.0.0.${index}:631`))));
  expect(bound.filter((has) => has)).toHaveLength(1);
  const address = `10.0.0.${bound.indexOf(true)}:631`;
  expect(await t.until(guide.lookUp(t.zk, 'printer'))).toBe(address);
  expect(await t.until(guide.lookUp(t.zk, 'scanner'))).toBe(undefined);
  const names = await t.until(guide.allNames(t.zk));
  expect([names('printer'), names('scanner')]).toEqual([address, undefined]);
  await t.until(guide.bind(t.zk, 'scanner', '10.0.0.9:80'));
  await t.settle();
  expect(names('scanner')).toBe('10.0.0.9:80');
});

test('B1, C1-4: a configuration is followed by all processes that need it, and an invalid one is reported', async () => {
  const settings = guide.settingsOf(await t.client());
  const taken: string[] = [];
  const following = guide.configure(
    settings,
    ({ colour, cacheMb }) => taken.push(`${colour} ${cacheMb}`),
    (error) => taken.push((error as Error).message),
  );
  const operator = guide.settingsOf(t.zk);
  await t.until(operator.set({ colour: 'red', cacheMb: 64 }));
  await t.settle();
  await t.until(t.zk.setData('/config/app', '{"colour":7}'));
  await t.settle();
  await t.until(operator.set({ colour: 'blue', cacheMb: 64 }));
  await t.settle();
  expect(taken).toEqual(['red 64', 'settings are a colour and a cacheMb', 'blue 64']);
  await settings.close();
  await t.until(following);
  await operator.close();
});
