/**
 * What atomic numbers guarantee, over seeds that decide when connections break and stall, and when
 * the server dies: every acknowledged change is in the number, once, and no other is.
 */
import { ClientView, connect, KeeperError, type SetDataOp } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { ClientWorld } from '../../../client/test/support/client-world.ts';
import { AtomicNumber, textInteger } from '../../src/index.ts';
import { type Canary, itFindsOut, overSeeds } from '../support/seeds.ts';

const path = '/n';
const changes = 10;

/** How many connections were lost. */
async function run(seed: number): Promise<number> {
  const random = new SeededRandom(seed);
  const world = await ClientWorld.start();
  world.wire.conditionsOf = () => ({ delayMs: random.below(20) });
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  const trouble: unknown[] = [];
  const after: number[] = [];
  const count = async (): Promise<void> => {
    const zk = await connect('server:2181', world.options({ sessionTimeoutMs: 40_000, connectTimeoutMs: Infinity }));
    const number = new AtomicNumber(zk, path, { format: textInteger });
    for (let change = 0; change < changes; change++) {
      after.push((await number.increment()).after);
      await new Promise<void>((resolve) => world.clock.after(random.below(100), resolve));
    }
    await zk.close();
  };
  const counting = [count(), count(), count()];
  for (const each of counting) each.catch((error: unknown) => void trouble.push(error));
  let breaks = 0;
  for (let step = 0; after.length < changes * counting.length && trouble.length === 0; step++) {
    const cables = [...world.wire.cnxns].filter(({ dialer, forward }) => dialer.address !== '10.1.0.1' && !forward.from.isClosed);
    const cable = cables[random.below(Math.max(1, cables.length))];
    const dice = step > 60 ? 100 : random.below(100);
    if (dice < 35 && cable !== undefined) {
      breaks++;
      // Now, or after a reply has been delayed.
      if (random.below(2) === 0) world.break(cable);
      else cable.backward.resetAfter(cable.backward.deliveredBytes + random.below(60));
    } else if (dice < 37) {
      world.kill();
      await world.boot();
    }
    await world.pass(50, 50);
    if (step > 2000) throw new Error('it never ends');
  }
  if (trouble.length > 0) throw trouble[0];
  await world.until(Promise.all(counting));
  if (new Set(after).size !== after.length) throw new Error(`two made the same of it: ${after.toSorted((a, b) => a - b).join()}`);
  await world.untilSo(() => observer.state === 'connected');
  const value = await world.until(new AtomicNumber(observer, path, { format: textInteger }).get());
  if (value !== changes * counting.length) throw new Error(`${changes * counting.length} changes made ${value}`);
  await world.close();
  return breaks;
}

describe('clients that count together', () => {
  it('B19: count each change once, whatever is lost, over seeds', async () => {
    let breaks = 0;
    await overSeeds(12, async (seed) => {
      breaks += await run(seed);
    });
    expect(breaks).toBeGreaterThan(breadth(5, 100));
  });

  const multi = Object.getOwnPropertyDescriptor(ClientView.prototype, 'multi')!.value as ClientView['multi'];
  /**
   * The assumed outcome of a write without a reply, instead of looking it up: applied, not applied,
   * or undefined for the original lookup.
   */
  const insteadOfAsking = (decide: (zk: ClientView, write: SetDataOp) => Promise<boolean | undefined>) => () =>
    vi.spyOn(ClientView.prototype, 'multi').mockImplementation(async function (this: ClientView, ops, options) {
      try {
        return (await multi.call(this, ops, options)) as never;
      } catch (error) {
        const isDone = KeeperError.is(error, 'ConnectionLoss') ? await decide(this, ops[0] as SetDataOp) : undefined;
        if (isDone === undefined) throw error;
        if (!isDone) throw Object.assign(error as KeeperError, { code: 'BadVersion', failedIndex: 0, outcome: 'refused' });
        return ops.map(() => ({ stat: { mtime: 0 } })) as never;
      }
    });
  const canaries: Record<string, Canary> = {
    'takes a write without a reply for applied': { plant: insteadOfAsking(() => Promise.resolve(true)), finds: /two made|changes made/ },
    'takes a write without a reply for not applied': { plant: insteadOfAsking(() => Promise.resolve(false)), finds: /changes made/ },
    'takes the next version with the same data for its own': {
      plant: insteadOfAsking(async (zk, write) => {
        const { data, stat } = await zk.getData(path, { retry: { maxAttempts: Infinity } });
        return stat.version === write.version! + 1 && Buffer.compare(data!, write.data as Uint8Array) === 0 ? true : undefined;
      }),
      finds: /two made/,
    },
  };

  itFindsOut(canaries, run, { enough: 1, atMost: 40 });
});
