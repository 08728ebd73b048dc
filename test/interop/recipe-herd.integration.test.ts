/** Nobody polls, and no herd wakes up: by the counters of a real server. `npm run interop -- --only recipes` says the same of Apache ZooKeeper. */
import type { Client } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { crowdTimeoutMs, scenes, steps, trafficOf, withCrowd } from '../../interop/src/recipes/herd.ts';

let server: TestServer;
let crowd: readonly Client[];
let leave!: () => void;
let gone: Promise<void>;

beforeAll(async () => {
  server = await TestServer.start({ config: { maxClientCnxns: 0, maxSessionTimeout: crowdTimeoutMs, '4lw.commands.whitelist': 'mntr' } });
  const over = new Promise<void>((resolve) => (leave = resolve));
  await new Promise<void>((resolve) => {
    gone = withCrowd(server.connectString, 101, (clients) => {
      crowd = clients;
      resolve();
      return over;
    });
  });
});

afterAll(async () => {
  leave();
  await gone;
  await server.close();
});

test.each(Object.entries(scenes))(
  'C1-2: with 100 that wait, %s, and no more is asked and told than with one',
  async (name, { gather, costs }) => {
    for (const few of [crowd.slice(0, 3 + steps), crowd]) {
      const traffic = await trafficOf(gather, server.connectString, few, `/${name.replaceAll(' ', '-')}-${few.length}`);
      expect(traffic).toEqual(traffic.map(() => costs));
    }
  },
);

/** Everybody watches everybody: what the recipes avoid. */
async function herd(clients: readonly Client[], path: string) {
  const [first, ...others] = clients;
  await first!.create(path);
  let listed = 0;
  const list = async (zk: Client): Promise<void> => {
    await zk.getChildren(path, { watch: () => void list(zk).catch(() => undefined) });
    listed++;
  };
  await Promise.all(others.map(list));
  return {
    watches: others.length,
    async step() {
      listed = 0;
      await first!.create(`${path}/n-`, null, { mode: 'persistentSequential' });
      while (listed < others.length) await first!.exists(path);
    },
  };
}

test('a herd is seen by these counters', async () => {
  for (const { received, sent } of await trafficOf(herd, server.connectString, crowd, '/herd')) {
    expect(received).toBeGreaterThan(100);
    expect(sent).toBeGreaterThan(200);
  }
});
