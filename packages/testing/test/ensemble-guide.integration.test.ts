import { connect, type Client } from '@tskeeper/client';
import { TestEnsemble } from '@tskeeper/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';

let ensemble: TestEnsemble;
let zk: Client;

beforeEach(async () => {
  ensemble = await TestEnsemble.start({ servers: 3 });
  zk = await connect(ensemble.connectString);
});

afterEach(async () => {
  await zk.close();
  await ensemble.close();
});

test('a session outlives the leader', async () => {
  await zk.create('/lock', 'mine', { mode: 'ephemeral' });

  await ensemble.leader.kill();
  const leader = await ensemble.elected();

  await using other = await connect(leader.connectString);
  expect((await other.exists('/lock'))?.ephemeralOwner).toBe(zk.sessionId);
});

test('a client that is cut off with the leader gets no reply, and no client receives an event of a write that was not committed', async () => {
  await zk.create('/config', 'old');
  const { leader } = ensemble;
  await using behind = await connect(leader.connectString);
  const partition = ensemble.partition([leader]);

  await expect(behind.setData('/config', 'lost', { timeoutMs: 50 })).rejects.toMatchObject({ code: 'RequestTimeout' });
  await using ahead = await connect((await ensemble.elected()).connectString);
  await ahead.setData('/config', 'new');

  partition[Symbol.dispose]();
  await ensemble.synced();
  for (const { connectString } of ensemble.servers) {
    await using client = await connect(connectString);
    expect(Buffer.from((await client.getData('/config')).data!).toString()).toBe('new');
  }
});

test('a worker that is silent for too long is no longer listed', async () => {
  await using alive = await connect(ensemble.connectString, { clock: ensemble.clock });
  await alive.create('/workers');
  await alive.create('/workers/alive', '', { mode: 'ephemeral' });
  await using silent = await connect(ensemble.connectString, { sessionTimeoutMs: 10_000 });
  await silent.create('/workers/silent', '', { mode: 'ephemeral' });

  await ensemble.advance(11_000);

  await alive.sync('/');
  expect((await alive.getChildren('/workers')).children).toEqual(['alive']);
});
