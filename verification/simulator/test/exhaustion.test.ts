/** F34 in the virtual world: a memory limit, and a disk that does not complete an operation. */
import { ErrorCode, openAcl } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { sendRequest, connectRawClient, VirtualWorld } from '../src/index.ts';

const limitBytes = 200_000;

/** A world with a memory limit, in which the data of the tree and each session use memory. */
function smallWorld(): VirtualWorld {
  const world = new VirtualWorld(1, { knowsMemory: true });
  world.server.memoryShare = () => usedIn(world) / limitBytes;
  return world;
}

function usedIn(world: VirtualWorld): number {
  const inspect = world.server.process?.runtime?.inspect;
  return inspect === undefined ? 0 : inspect.approximateDataBytes() + inspect.sessionCount() * 1000;
}

test('F34: a server with little memory stays within its limit, serves requests that add no data, and keeps every acknowledged write', async () => {
  const world = smallWorld();
  await world.server.start();
  const honest = await connectRawClient(world);
  await sendRequest(world, honest, 'create', { path: '/honest', data: Buffer.from('12345'), acl: openAcl, flags: 0 });
  const greedy = await connectRawClient(world);
  const acknowledged: string[] = [];
  const errors = new Set<number>();
  let most = 0;
  for (let round = 0; round < 60; round++) {
    const path = `/g${round}`;
    const { err } = await sendRequest(world, greedy, 'create', { path, data: Buffer.alloc(5000), acl: openAcl, flags: 0 });
    errors.add(err);
    if (err === 0) acknowledged.push(path);
    expect((await sendRequest(world, honest, 'setData', { path: '/honest', data: Buffer.from('54321'), version: -1 })).err).toBe(0);
    most = Math.max(most, usedIn(world));
    await world.run(100);
  }
  expect([...errors]).toEqual([0, ErrorCode.ThrottledOp]);
  expect(most).toBeGreaterThan(limitBytes * 0.85);
  expect(most).toBeLessThan(limitBytes);

  await world.server.stop();
  await world.server.start();
  await world.runUntil(() => honest.ready, 4000);
  for (const path of acknowledged) expect((await sendRequest(world, honest, 'exists', { path, watch: false })).err).toBe(0);
  await world.run(300);
  expect((await sendRequest(world, honest, 'create', { path: '/h', data: null, acl: openAcl, flags: 0 })).err).toBe(ErrorCode.ThrottledOp);
  for (const path of acknowledged.slice(0, 10)) expect((await sendRequest(world, honest, 'delete', { path, version: -1 })).err).toBe(0);
  await world.run(1500);
  expect((await sendRequest(world, honest, 'create', { path: '/h', data: null, acl: openAcl, flags: 0 })).err).toBe(0);
});

test('F34: a server whose disk does not complete a log sync ends and sends nothing more', async () => {
  const world = new VirtualWorld(1);
  const server = await world.server.start();
  const client = await connectRawClient(world);
  await sendRequest(world, client, 'create', { path: '/a', data: null, acl: openAcl, flags: 0 });
  world.server.diskDelayMs = ({ operation }) => (operation === 'sync' ? 1_000_000 : 0);
  client.send('setData', { path: '/a', data: Buffer.from('x'), version: -1 });
  const fromMs = world.clock.elapsedMs;
  expect(await world.runUntil(() => server.record.failedMs !== undefined, 60_000)).toBe(true);
  expect(server.record.failedMs! - fromMs).toBeGreaterThanOrEqual(10_000);
  expect(server.record.failedMs! - fromMs).toBeLessThan(11_000);
  expect(server.record.failure).toContain('append to the log in /data/version-2: ETIMEDOUT');
  expect(server.record.sentAfterFailure).toBe(0);
});

test('F34: the time in which a process is paused does not count towards the time limit of its disk', async () => {
  const world = new VirtualWorld(1);
  const server = await world.server.start();
  const client = await connectRawClient(world);
  await sendRequest(world, client, 'create', { path: '/a', data: null, acl: openAcl, flags: 0 });
  // The disk completes a second after the process resumes.
  world.server.diskDelayMs = ({ operation }) => (operation === 'sync' ? 61_000 : 0);
  client.send('setData', { path: '/a', data: Buffer.from('x'), version: -1 });
  await world.run(500);
  server.pause(60_000);
  world.server.diskDelayMs = () => 0;
  await world.run(70_000);
  expect(server.record.failedMs).toBeUndefined();
  const { body } = await sendRequest(world, await connectRawClient(world), 'getData', { path: '/a', watch: false });
  expect(String(body.data)).toBe('x');
});

test('F34: a server that cannot close because the disk does not complete a snapshot ends with a failure', async () => {
  const world = new VirtualWorld(1, { options: { snapCount: 4 } });
  const server = await world.server.start();
  await world.run(100);
  world.server.diskDelayMs = ({ path }) => (path.includes('snapshot') ? 1_000_000 : 0);
  const client = await connectRawClient(world);
  for (let index = 0; index < 5; index++)
    await sendRequest(world, client, 'create', { path: `/n${index}`, data: null, acl: openAcl, flags: 0 });
  await world.run(100);
  void server.close();
  await world.runUntil(() => server.record.failedMs !== undefined, 60_000);
  expect(server.record.failure).toContain('close /data: ETIMEDOUT');
});
