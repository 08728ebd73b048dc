import { CreateMode, openAcl } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { join, VirtualWorld } from '../src/index.ts';

test('E28: behind a standstill nobody expires who has spoken meanwhile, even when what others ask for takes many steps', async () => {
  const world = new VirtualWorld(1);
  const server = await world.server.start();
  const busy = await join(world, 1000);
  const others = [await join(world, 1000), await join(world, 1000)];
  server.pause(3000);
  busy.send('multi', {
    ops: Array.from({ length: 5000 }, () => ({
      kind: 'create' as const,
      path: '/n-',
      data: Buffer.from('x'),
      acl: openAcl,
      flags: CreateMode.persistentSequential,
    })),
  });
  for (const client of others) client.send('ping', undefined);
  await world.run(3500);
  expect([busy, ...others].map(({ lost }) => lost)).toEqual([[], [], []]);
});
