import { CreateMode, openAcl } from '@tskeeper/protocol';
import { type VirtualDisk, SeededRandom } from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { RawClient, VirtualWorld } from '../src/index.ts';

/** A server and a client whose writes are on their way to a slow disk. */
async function midWrite(fault?: VirtualDisk['fault']): Promise<{ readonly world: VirtualWorld; readonly client: RawClient }> {
  const world = new VirtualWorld(1);
  await world.server.start();
  const client = new RawClient(world, new SeededRandom(2), { name: 'client', address: '10.9.0.1', timeoutMs: 4000 });
  await world.runUntil(() => client.ready, 1000);
  world.server.diskDelayMs = () => 20;
  world.server.disk.fault = fault;
  for (let index = 0; index < 700; index++) {
    client.send('create', { path: '/n-', data: Buffer.from('x'), acl: openAcl, flags: CreateMode.persistentSequential });
  }
  await world.run(5);
  return { world, client };
}

test('a server that is closed twice answers every request that it had accepted', async () => {
  const { world, client } = await midWrite();
  const { requests } = client.cnxn!.record!;
  const runtime = world.server.process!.runtime!;
  await world.until(Promise.all([runtime.close(), runtime.close()]), 10_000);
  await world.run(5);
  expect(requests.filter(({ reply }) => reply === undefined)).toEqual([]);
});

test('a server whose disk fails while it closes ends and sends nothing more', async () => {
  const { world, client } = await midWrite(({ operation, path }) =>
    operation === 'sync' && path.endsWith('log.1') ? { code: 'EIO' } : undefined,
  );
  const { requests } = client.cnxn!.record!;
  const answered = requests.filter(({ reply }) => reply !== undefined).length;
  await world.until(world.server.process!.runtime!.close(), 10_000);
  await world.run(5);
  expect(world.server.process!.record).toMatchObject({ failure: expect.stringContaining('EIO'), sentAfterFailure: 0 });
  expect(requests.filter(({ reply }) => reply !== undefined)).toHaveLength(answered);
});

test('a server that closes while it receives a snapshot ends without a failure, however much of the snapshot has arrived', async () => {
  const world = new VirtualWorld(3, { servers: 3, ensemble: {} });
  const [first, second, third] = world.servers;
  await first!.start();
  await second!.start();
  await world.runUntil(() => [first!, second!].every(({ role }) => role === 'leader' || role === 'follower'), 10_000);
  let cutShort = 0;
  for (let passedMs = 0; passedMs < 12; passedMs++) {
    third!.wipe();
    third!.diskDelayMs = () => 1;
    const process = await third!.start();
    await world.runUntil(() => third!.logLines.some((line) => line.includes('election finished')), 5000);
    third!.logLines.length = 0;
    await world.run(passedMs);
    if (third!.role === 'looking') cutShort++;
    await third!.stop();
    expect(process.record.failure, `closed ${passedMs} ms after it had found the leader`).toBe('');
  }
  expect(cutShort).toBeGreaterThan(0);
});
