/** Runs the program of docs/guides/moving-from-node-zookeeper-client.md. */
import { TestServer } from '@tskeeper/testing';
import { expect, test } from 'vitest';
import { connect } from '../../src/index.ts';
import { work } from './moving-from-node-zookeeper-client.ts';

test('the worker takes existing and new jobs, also after a lost connection, until the signal', async () => {
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString);
  await zk.create('/app/jobs/1', null, { parents: true });
  const done = zk.watch('/app', { recursive: true });
  const nextDone = async (): Promise<string> => {
    for (;;) {
      const { value } = await done.next();
      if (value?.type === 'NodeCreated' && value.path.startsWith('/app/done/')) return value.path;
    }
  };
  await done.next();
  const stop = new AbortController();
  const over = work(server.connectString, 'w', stop.signal);
  expect(await nextDone()).toBe('/app/done/1');
  await zk.create('/app/jobs/2');
  expect(await nextDone()).toBe('/app/done/2');
  const { children } = await zk.getChildren('/app/workers');
  expect(children).toEqual([expect.stringMatching(/^_c_[0-9a-f-]{36}-worker-0000000000$/)]);
  const stat = await zk.exists(`/app/workers/${children[0]!}`);
  server.cutConnections(stat!.ephemeralOwner);
  await zk.create('/app/jobs/3');
  expect(await nextDone()).toBe('/app/done/3');
  expect((await zk.getChildren('/app/jobs')).children).toEqual([]);
  stop.abort();
  await expect(over).rejects.toBe(stop.signal.reason);
  expect((await zk.getChildren('/app/workers')).children).toEqual([]);
});
