/** Tests what docs/guides/recipes/discovery.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ServiceDiscovery } from '../../src/index.ts';
import { expire } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './discovery.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const other = { name: 'api', address: '10.0.0.2', port: 8080, uriSpec: 'http://{address}', payload: { zone: 'eu' } };

test('an instance is found as long as its process wants it, whatever happens to its sessions', async () => {
  const lines: string[] = [];
  const abort = new AbortController();
  const reporting = failureOf(guide.report(t.zk, (line) => lines.push(line), abort.signal));
  const sessions = await t.until(guide.openSessions('server:2181', t.world.options()));
  const registration = await t.until(guide.announce(sessions, 'eu'));
  await t.settle();
  await expire(t, sessions.client);
  await t.world.untilSo(() => lines.length === 3);
  await t.until(registration.unregister());
  await t.settle();
  const [come, gone] = ['10.0.0.1:8080 joined', '10.0.0.1:8080 left'];
  expect(lines).toEqual([come, gone, come, gone]);
  abort.abort();
  await t.until(reporting);
  await t.until(sessions.close());
});

test('instances that do not answer, or are disabled, are skipped', async () => {
  const sessions = await t.until(guide.openSessions('server:2181', t.world.options()));
  await t.until(guide.announce(sessions, 'eu'));
  await t.until(new ServiceDiscovery<guide.Zone>(t.zk, '/services').register(other));
  const provider = guide.near(t.zk, 'eu', () => 0);
  const asked: string[] = [];
  const get = (uri: string) => {
    asked.push(uri);
    return uri.includes('10.0.0.1') ? Promise.reject(new Error('refused')) : Promise.resolve('answered');
  };
  expect(await t.until(guide.ask(provider, get))).toBe('answered');
  expect(asked).toEqual(['http://10.0.0.1:8080', 'http://10.0.0.1:8080', 'http://10.0.0.2']);
  await t.until(guide.setEnabled(t.zk, '10.0.0.2:8080', false));
  await t.settle();
  expect(await t.until(failureOf(guide.ask(provider, get)))).toMatchObject({ message: 'no instance of the service answers' });
  const far = guide.near(t.zk, 'us');
  expect(await t.until(failureOf(guide.ask(far, get)))).toBeInstanceOf(Error);
  await provider.close();
  await far.close();
  await t.until(sessions.close());
});

test('a client finds instances, and an operator receives their changes, after a cut and in the next session', async () => {
  const [server, client] = [await Program.start(t), await Program.start(t)];
  const registration = await t.until(guide.announce(server.sessions, 'eu'));
  const provider = guide.near(client.sessions, 'eu');
  const lines: string[] = [];
  const stop = new AbortController();
  const reporting = failureOf(guide.report(client.sessions, (line) => lines.push(line), stop.signal));
  const ask = () => t.until(guide.ask(provider, (uri) => Promise.resolve(uri)));
  for (const trouble of [() => client.cut(), () => server.cut(), () => client.expire(), () => server.expire()]) {
    await trouble();
    await t.world.untilSo(() => provider.isSynced && provider.instances.length === 1);
    expect(await ask()).toBe('http://10.0.0.1:8080');
  }
  expect(lines.at(-1)).toBe('10.0.0.1:8080 joined');
  await t.until(guide.setEnabled(client.sessions, '10.0.0.1:8080', false));
  await t.world.untilSo(() => provider.instances.length === 0);
  stop.abort(new Error('enough'));
  expect(await t.until(reporting)).toMatchObject({ message: 'enough' });
  await t.until(Promise.all([registration.unregister(), provider.close()]));
  await t.until(Promise.all([server.sessions.close(), client.sessions.close()]));
});
