import { connect } from '@tskeeper/client';
import { TestEnsemble, TestServer } from '@tskeeper/testing';
import { expect, test } from 'vitest';
import { Worker } from './worker.ts';

/** `next` resolves with the path of the worker's next entry. */
function listings() {
  const received: ((path: string) => void)[] = [];
  const paths: string[] = [];
  const listed = (path: string) => (received.length > 0 ? received.shift()!(path) : void paths.push(path));
  const next = () => new Promise<string>((resolve) => (paths.length > 0 ? resolve(paths.shift()!) : void received.push(resolve)));
  return { listed, next };
}

test('a worker is listed anew when its session has expired', async () => {
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString);
  const { listed, next } = listings();
  const worker = new Worker(() => connect(server.connectString), 'a', listed);
  await worker.start();
  const first = await next();

  const { ephemeralOwner } = (await zk.exists(first))!;
  await server.expireSession(ephemeralOwner);

  const second = await next();
  expect((await zk.getChildren('/workers')).children).toEqual([second.slice('/workers/'.length)]);
  await worker.stop();
  expect((await zk.getChildren('/workers')).children).toEqual([]);
});

test('a worker that loses its connection is listed once', async () => {
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString);
  const worker = new Worker(() => connect(server.connectString), 'a');
  const started = worker.start();
  server.cutConnections();
  await started;
  server.cutConnections();

  expect((await zk.getChildren('/workers', { retry: true })).children).toHaveLength(1);
  await worker.stop();
});

test('the entry of a worker that is silent for longer than its session lasts is deleted', async () => {
  await using server = await TestServer.start();
  await using zk = await connect(server.connectString, { clock: server.clock });
  const { listed, next } = listings();
  const worker = new Worker(() => connect(server.connectString, { sessionTimeoutMs: 10_000 }), 'a', listed);
  await worker.start();
  const path = await next();

  // Moves the clock of the server and of `zk`, not of the worker's client. Sessions expire at a tick, hence more than ten seconds.
  await server.advance(15_000);

  expect(await zk.exists(path)).toBeNull();
  await worker.stop();
});

test('a worker stays listed when the leader fails', async () => {
  await using ensemble = await TestEnsemble.start({ servers: 3 });
  const { listed, next } = listings();
  const worker = new Worker(() => connect(ensemble.connectString), 'a', listed);
  await worker.start();
  const path = await next();

  await ensemble.leader.kill();
  const leader = await ensemble.elected();

  await using zk = await connect(leader.connectString);
  expect(await zk.exists(path)).not.toBeNull();
  await worker.stop();
});
