/** Nobody polls, and no herd wakes up: by the counters of a real server. `npm run interop -- --only recipes` says the same of Apache ZooKeeper. */
import type { Client } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sample } from '../breadth.ts';
import { oneByOne } from '../../interop/src/recipes/herd.ts';
import { bySquares } from '../../interop/src/recipes/everybody.ts';
import { queueScenes } from '../../interop/src/recipes/queue-herd.ts';
import { forAll } from '../../interop/src/recipes/together.ts';
import { crowdTimeoutMs, type Gather, type Scene, steps, type Traffic, trafficOf, withCrowd } from '../../interop/src/recipes/traffic.ts';

/** Clients of a server that has no others. */
class Ground {
  readonly #server: TestServer;
  readonly clients: readonly Client[];
  readonly close: () => Promise<void>;

  private constructor(server: TestServer, clients: readonly Client[], close: () => Promise<void>) {
    this.#server = server;
    this.clients = clients;
    this.close = close;
  }

  static async of(count: number): Promise<Ground> {
    const server = await TestServer.start({
      // Containers stay, so that none has to be made again in the moment between one who leaves it and the next who comes.
      config: {
        maxClientCnxns: 0,
        maxSessionTimeout: crowdTimeoutMs,
        '4lw.commands.whitelist': 'mntr',
        'znode.container.checkIntervalMs': 0,
      },
    });
    let leave!: () => void;
    const over = new Promise<void>((resolve) => (leave = resolve));
    let gone!: Promise<void>;
    const clients = await new Promise<readonly Client[]>((resolve, reject) => {
      gone = withCrowd(server.connectString, count, (came) => {
        resolve(came);
        return over;
      });
      gone.catch(reject);
    });
    return new Ground(server, clients, async () => {
      leave();
      await gone;
      await server.close();
    });
  }

  traffic(gather: Gather, path: string): Promise<readonly Traffic[]> {
    return trafficOf(gather, this.#server.connectString, this.clients, path);
  }
}

let few: Ground;
let many: Ground;

beforeAll(async () => {
  // The fewest that a scene can do with.
  [few, many] = await Promise.all([Ground.of(3 + steps), Ground.of(101)]);
});

afterAll(async () => {
  await Promise.all([few.close(), many.close()]);
});

async function check(name: string, { gather, costs, atMost }: Scene): Promise<void> {
  const path = `/${name.replaceAll(/\W+/g, '-')}`;
  for (const [{ clients }, traffic] of await Promise.all(
    [few, many].map(async (each) => [each, await each.traffic(gather, path)] as const),
  )) {
    const most = costs(clients.length);
    const cut = ({ received, sent }: Traffic) => ({ received: Math.max(received, most.received), sent: Math.max(sent, most.sent) });
    expect(atMost === true ? traffic.map(cut) : traffic).toEqual(traffic.map(() => most));
  }
}

test.each(sample(Object.entries({ ...oneByOne, ...queueScenes }), 6))(
  'C1-2: with 100 that wait, %s, and no more is asked and told than with a few',
  async (name, scene) => {
    expect(scene.costs(101)).toEqual(scene.costs(0));
    await check(name, scene);
  },
);

test.each(sample(Object.entries(forAll), 3))(
  'C1-2, C1-11, C1-27, C1-36: %s, and each of 100 asks and is told as often as each of a few',
  check,
);

test.each(sample(Object.entries(bySquares), 1))(
  'C1-2, C1-36: %s, for which all n ask n others, as the page of the recipe has it, and no more',
  check,
);

/** Everybody watches everybody: what the recipes avoid. */
const herd: Gather = async ([first, ...others], path) => {
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
};

test('a herd is seen by these counters', async () => {
  for (const { received, sent } of await many.traffic(herd, '/herd')) {
    expect(received).toBeGreaterThan(100);
    expect(sent).toBeGreaterThan(200);
  }
});
