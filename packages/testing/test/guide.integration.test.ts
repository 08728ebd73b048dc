import { connect, type Client } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';

let server: TestServer;
let zk: Client;

beforeEach(async () => {
  server = await TestServer.start();
  zk = await connect(server.connectString);
});

afterEach(async () => {
  await zk.close();
  await server.close();
});

test('a worker that dies is no longer listed', async () => {
  await zk.create('/workers');
  const worker = await connect(server.connectString);
  await worker.create('/workers/w-1', '10.0.0.7', { mode: 'ephemeral' });

  await server.expireSession(worker.sessionId);

  expect((await zk.getChildren('/workers')).children).toEqual([]);
});

test('a lost connection is not a lost session', async () => {
  await zk.create('/lock', 'mine', { mode: 'ephemeral' });
  const back = new Promise<void>((resolve) => {
    zk.on('state', ({ state }) => state === 'SyncConnected' && resolve());
  });

  server.cutConnections();
  await back;

  expect(await zk.exists('/lock')).not.toBeNull();
});

test('a call does not wait forever', async () => {
  const partition = server.partition();

  await expect(zk.getData('/', { timeoutMs: 50 })).rejects.toMatchObject({ code: 'RequestTimeout' });

  partition[Symbol.dispose]();
  expect((await zk.getChildren('/')).children).toEqual(['zookeeper']);
});
