/**
 * Protected creates in an ensemble: when the client looks for its znode, the request can be
 * anywhere between the server that the client left and a quorum.
 */
import { connect } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { sample } from '../../../test/breadth.ts';
import { serverPort } from '../src/clients/client-world.ts';
import { WireTransport } from '../src/clients/wire-transport.ts';
import { VirtualWorld } from '../src/world/virtual-world.ts';

const address = '10.9.0.1';
const rounds = 40;

describe('a protected create of a client that must change servers', () => {
  it.each(sample([1, 2, 3, 4, 5, 6], 1))('B52: creates exactly one znode, however slow the left server is (seed %i)', async (seed) => {
    const world = new VirtualWorld(seed, { servers: 3, ensemble: {} });
    const random = new SeededRandom(seed);
    world.wire.conditionsOf = () => ({ delayMs: 0.5 });
    for (const server of world.servers) await server.start();
    const servers = world.servers.map(({ name }) => `${name}:${serverPort}`).join();
    const clientAt = (number: number) =>
      world.until(
        connect(servers, {
          transport: new WireTransport(world.clientNetwork(`client-${number}`, `10.9.0.${number}`)),
          clock: world.clock,
          random: new SeededRandom(number),
          sessionTimeoutMs: 10_000,
          connectTimeoutMs: 20_000,
          retry: true,
        }),
        30_000,
      );
    const [zk, other] = [await clientAt(1), await clientAt(2)];
    const go = <Result>(promise: Promise<Result>) => world.until(promise, 30_000);
    // Often longer than the client needs to reconnect: then the first request is not yet committed
    // when the client looks.
    for (const server of world.servers) server.diskDelayMs = () => random.below(random.below(3) === 0 ? 12 : 700);
    const made = new Map<string, string>();
    for (let round = 0; round < rounds; round++) {
      const parent = `/r${round}`;
      await go(other.ensurePath(parent));
      const mode = round % 2 === 0 ? 'persistentSequential' : 'ephemeral';
      const creating = zk.create(`${parent}/x-`, null, { mode, protection: true });
      for (let breaks = 1 + random.below(3); breaks > 0; breaks--) {
        await world.run(random.below(breaks === 1 ? 30 : 600));
        for (const { forward, dialer } of world.wire.cnxns) if (dialer.address === address) forward.from.stack.reset(forward.from.stream);
      }
      const { path } = await go(creating);
      made.set(parent, path);
    }
    // Time for requests that may still be in progress.
    await world.run(3000);
    for (const [parent, path] of made) {
      const { children, stat } = await go(other.getChildren(parent, { linearizable: true }));
      expect([children, stat.cversion], parent).toEqual([[path.slice(parent.length + 1)], 1]);
    }
    expect(made.size).toBe(rounds);
    await go(zk.close());
    await go(other.close());
  });
});
