import { CreateMode, openAcl } from '@tskeeper/protocol';
import { type MemoryDisk, SeededRandom } from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { RawClient, VirtualWorld } from '../src/index.ts';

/** A server with a client whose writes are on their way to a slow disk. */
async function midWrite(fault?: MemoryDisk['fault']): Promise<{ readonly world: VirtualWorld; readonly client: RawClient }> {
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

test('a server that is told twice to close answers everything it has taken in', async () => {
  const { world, client } = await midWrite();
  const { requests } = client.cnxn!.record!;
  const runtime = world.server.process!.runtime!;
  await world.until(Promise.all([runtime.close(), runtime.close()]), 10_000);
  await world.run(5);
  expect(requests.filter(({ reply }) => reply === undefined)).toEqual([]);
});

test('a disk that fails while the server closes is the end, without another word', async () => {
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
