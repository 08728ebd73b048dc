/** Runs the code of the guide with our server and real sockets. */
import { connect } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { expect, test } from 'vitest';
import type { Cache } from '../../src/index.ts';
import * as guide from './caches.ts';

/** Consumes changes until the condition holds. */
async function until<Data>(cache: Cache<Data>, isSo: () => boolean): Promise<void> {
  const changes = cache.changes();
  while (!isSo()) await changes.next();
  await changes.return();
}

test('the guide to caches works as described', async () => {
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString);
  await using other = await connect(server.connectString);

  const settings = await guide.openSettings(zk);
  expect(settings.current()).toEqual({ colour: 'grey' });
  await other.create('/app/settings', '{"colour":"blue"}', { parents: true });
  await until(settings.cache, () => settings.current().colour === 'blue');
  await other.setData('/app/settings', '{"colour":7}');
  await until(settings.cache, () => settings.cache.znode?.decodeError !== undefined);
  expect(settings.cache.znode?.decodeError).toBeInstanceOf(TypeError);
  expect(settings.current()).toEqual({ colour: 'grey' });

  const workers = await guide.openWorkers(zk);
  expect(workers.next()).toBe(undefined);
  await other.create('/app/workers');
  for (const name of ['b', 'a']) await other.create(`/app/workers/${name}`, null, { mode: 'ephemeral' });
  await until(workers.cache, () => workers.cache.size === 2);
  expect([workers.next(), workers.next(), workers.next()]).toEqual(['a', 'b', 'a']);

  const lines: string[] = [];
  let received = () => {};
  const tell = (line: string) => {
    lines.push(line);
    received();
  };
  const isTold = async (line: string) => {
    while (!lines.includes(line)) await new Promise<void>((resolve) => (received = resolve));
  };
  const aborter = new AbortController();
  const enough = new Error('enough');
  const following = guide.follow(zk, tell, aborter.signal).catch((error: unknown) => error);
  await isTold('the state is complete');
  expect(lines).toContain('/app/settings is {"colour":7}');
  await other.delete('/app/workers/a');
  await isTold('/app/workers/a is gone');
  expect(lines.at(-1)).toBe('/app/workers/a is gone');
  aborter.abort(enough);
  expect(await following).toBe(enough);
});
