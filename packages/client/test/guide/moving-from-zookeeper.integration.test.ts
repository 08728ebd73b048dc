/** Runs the program of docs/guides/moving-from-zookeeper.md. */
import { TestServer } from '@tskeeper/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { connect } from '../../src/index.ts';
import { follow } from './moving-from-zookeeper.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

test('the program follows a setting before it exists, through changes and a lost connection, and counts', async () => {
  vi.spyOn(console, 'log').mockReturnValue(undefined);
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString);
  await zk.ensurePath('/settings');
  const applied: string[] = [];
  let tell = (): void => {};
  const apply = (setting: string) => {
    applied.push(setting);
    tell();
  };
  const next = (): Promise<void> => new Promise((resolve) => (tell = resolve));
  const stop = new AbortController();
  const over = follow(server.connectString, apply, stop.signal);
  let coming = next();
  await zk.create('/settings/colour', 'blue');
  await coming;
  coming = next();
  await zk.setData('/settings/colour', 'red');
  await coming;
  coming = next();
  server.cutConnections();
  await coming;
  expect([...new Set(applied)]).toEqual(['blue', 'red']);
  stop.abort();
  await expect(over).rejects.toBe(stop.signal.reason);
  const { data } = await zk.getData('/settings/applied', { retry: true });
  expect(Number(new TextDecoder().decode(data ?? undefined))).toBeGreaterThanOrEqual(2);
});
