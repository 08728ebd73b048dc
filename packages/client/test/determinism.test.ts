/** A run of the real client is determined by its seed, on which the simulator relies. */
import { SeededRandom } from '@tskeeper/runtime';
import { expect, it } from 'vitest';
import { type Client, KeeperError, type Transport } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';

/**
 * Three clients on a network that breaks now and then: everything sent, delivered and answered,
 * with its time.
 */
async function run(seed: number): Promise<string[]> {
  const world = await ClientWorld.start();
  const random = new SeededRandom(seed);
  const lines: string[] = [];
  const note = (who: string, what: string) => void lines.push(`${Math.round(world.clock.now().elapsedMs)} ${who} ${what}`);
  const clients: Client[] = [];
  for (const who of ['a', 'b', 'c']) {
    const options = world.options({ random: new SeededRandom(random.uint32()) });
    const wire = options.transport!;
    const transport: Transport = {
      resolve: (host) => wire.resolve!(host),
      connect(address, sink) {
        note(who, `dials ${address.host}`);
        const cnxn = wire.connect(address, sink);
        const send = cnxn.send.bind(cnxn);
        cnxn.send = (bytes) => {
          note(who, `sends ${Buffer.from(bytes).toString('hex')}`);
          send(bytes);
        };
        return cnxn;
      },
    };
    const zk = await world.connect({ ...options, transport });
    zk.on('state', ({ state }) => note(who, state));
    clients.push(zk);
  }
  for (let step = 0; step < 60; step++) {
    const who = random.below(3);
    const zk = clients[who]!;
    const path = `/${random.below(4)}`;
    const name = 'abc'[who]!;
    const received = ({ type }: { readonly type: string }) => note(name, `receives ${type}`);
    const calls = [
      () => zk.create(path, String(step)),
      () => zk.setData(path, String(step)),
      () => zk.delete(path),
      () => zk.getData(path, { watch: received }),
      () => zk.exists(path, { timeoutMs: 200, watch: received }),
    ];
    if (random.below(8) === 0) world.break([...world.wire.cnxns].find(({ forward }) => !forward.from.isClosed && !forward.to.isClosed));
    calls[random.below(calls.length)]!().then(
      () => note(name, 'is answered'),
      (error: unknown) => note(name, KeeperError.is(error) ? `${error.code} ${error.outcome}` : String(error)),
    );
    await world.pass(random.below(300), 50);
  }
  await world.close();
  return lines;
}

it('two runs of the real client with one seed are equal, and runs with different seeds differ', async () => {
  const [once, again, other] = [await run(1), await run(1), await run(2)];
  expect(once.length).toBeGreaterThan(150);
  expect(once.some((line) => line.includes('Disconnected'))).toBe(true);
  expect(again).toEqual(once);
  expect(other).not.toEqual(once);
});
