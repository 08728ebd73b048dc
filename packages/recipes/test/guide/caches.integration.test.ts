/** What the guide shows, run: our server, real sockets. */
import { connect } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { expect, test, vi } from 'vitest';
import * as guide from './caches.ts';

test('the guide to caches does what it says', async () => {
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString);
  await using other = await connect(server.connectString);

  const settings = await guide.openSettings(zk);
  expect(settings.current()).toEqual({ colour: 'grey' });
  await other.create('/app/settings', '{"colour":"blue"}', { parents: true });
  await vi.waitFor(() => expect(settings.current()).toEqual({ colour: 'blue' }));
  await other.setData('/app/settings', '{"colour":7}');
  await vi.waitFor(() => expect(settings.cache.znode?.decodeError).toBeInstanceOf(TypeError));
  expect(settings.current()).toEqual({ colour: 'grey' });

  const workers = await guide.openWorkers(zk);
  expect(workers.next()).toBe(undefined);
  await other.create('/app/workers');
  for (const name of ['b', 'a']) await other.create(`/app/workers/${name}`, null, { mode: 'ephemeral' });
  await vi.waitFor(() => expect(workers.cache.size).toBe(2));
  expect([workers.next(), workers.next(), workers.next()]).toEqual(['a', 'b', 'a']);

  const lines: string[] = [];
  const aborter = new AbortController();
  const enough = new Error('enough');
  const following = guide.follow(zk, (line) => lines.push(line), aborter.signal).catch((error: unknown) => error);
  await vi.waitFor(() => expect(lines).toContain('we know all there is'));
  expect(lines).toContain('/app/settings is {"colour":7}');
  await other.delete('/app/workers/a');
  await vi.waitFor(() => expect(lines.at(-1)).toBe('/app/workers/a is gone'));
  aborter.abort(enough);
  expect(await following).toBe(enough);
});
