/**
 * No recipe polls, and no change wakes all waiters: by the counters of a real server. `npm run
 * interop -- --only recipes` shows the same with Apache ZooKeeper.
 */
import type { Client } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sample } from '../../../test/breadth.ts';
import { handoverTraffic } from '../src/recipes/handover-traffic.ts';
import { quadraticTraffic } from '../src/recipes/quadratic-traffic.ts';
import { queueTraffic } from '../src/recipes/queue-traffic.ts';
import { broadcastTraffic } from '../src/recipes/broadcast-traffic.ts';
import {
  crowdTimeoutMs,
  type SetUpCrowd,
  type TrafficCase,
  stepsPerCase,
  type Traffic,
  trafficOf,
  withCrowd,
} from '../src/recipes/traffic.ts';

/** Clients of a server without other clients. */
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
      // Containers stay, so that none has to be created again between one client that leaves it and
      // the next one.
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

  traffic(gather: SetUpCrowd, path: string): Promise<readonly Traffic[]> {
    return trafficOf(gather, this.#server.connectString, this.clients, path);
  }
}

let few: Ground;
let many: Ground;

beforeAll(async () => {
  // The fewest that a scene needs.
  [few, many] = await Promise.all([Ground.of(3 + stepsPerCase), Ground.of(101)]);
});

afterAll(async () => {
  await Promise.all([few.close(), many.close()]);
});

async function check(name: string, { setUp, expected, isUpperBound }: TrafficCase): Promise<void> {
  const path = `/${name.replaceAll(/\W+/g, '-')}`;
  for (const [{ clients }, traffic] of await Promise.all(
    [few, many].map(async (each) => [each, await each.traffic(setUp, path)] as const),
  )) {
    const most = expected(clients.length);
    const cut = ({ received, sent }: Traffic) => ({ received: Math.max(received, most.received), sent: Math.max(sent, most.sent) });
    expect(isUpperBound === true ? traffic.map(cut) : traffic).toEqual(traffic.map(() => most));
  }
}

test.each(sample(Object.entries({ ...handoverTraffic, ...queueTraffic }), 6))(
  'C1-2: with 100 waiters, %s, and the server gets no more requests and sends no more events than with a few',
  async (name, scene) => {
    expect(scene.expected(101)).toEqual(scene.expected(0));
    await check(name, scene);
  },
);

test.each(sample(Object.entries(broadcastTraffic), 3))(
  'C1-2, C1-11, C1-27, C1-36: %s, and each of 100 sends and receives as much as each of a few',
  check,
);

test.each(sample(Object.entries(quadraticTraffic), 1))(
  'C1-2, C1-36: %s, for which all n read the znodes of n others, as the page of the recipe says, and no more',
  check,
);

/** Every client watches every other one: what the recipes avoid. */
const herd: SetUpCrowd = async ([first, ...others], path) => {
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

test('the counters of requests and events detect a herd', async () => {
  for (const { received, sent } of await many.traffic(herd, '/herd')) {
    expect(received).toBeGreaterThan(100);
    expect(sent).toBeGreaterThan(200);
  }
});
