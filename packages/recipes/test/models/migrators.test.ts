/**
 * What migrations promise, held over seeds that decide when connections break, and stay away until sessions have expired, when the server dies, and when somebody
 * breaks the lock by hand: each is made once, in the order of the list, whoever comes with it, and however often it is tried.
 */
import { type Client, connect, KeeperError, op } from '@tskeeper/client';
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { ClientWorld } from '../../../client/test/support/client-world.ts';
import { Held, Lock, Migrations, RecipeError } from '../../src/index.ts';

const names = ['a', 'b', 'c', 'd'];
const list = names.map((name) => ({ name, ops: [op.create('/log/e-', name, { mode: 'persistentSequential' })] }));

class Tally {
  applied = 0;
  waited = 0;
  lost = 0;
  byHand = 0;
}

async function run(seed: number, tally: Tally): Promise<void> {
  const random = new SeededRandom(seed);
  const world = await ClientWorld.start();
  world.wire.mannersOf = () => ({ delayMs: random.below(40) });
  const observer = await world.connect({ sessionTimeoutMs: 40_000 });
  await world.until(observer.ensurePath('/log'));
  const migrate = async (): Promise<void> => {
    let zk: Client | undefined;
    for (;;) {
      if (zk === undefined || zk.closedBecause !== undefined)
        zk = await connect('server:2181', world.options({ sessionTimeoutMs: 3000, connectTimeoutMs: Infinity }));
      try {
        const applied = await new Migrations(zk, '/migrations', list).migrate();
        tally.applied += applied.length;
        if (applied.length < list.length) tally.waited++;
        return await zk.close();
      } catch (error) {
        // NoNode: of the lock, whose znode was deleted by hand before the answer to its making had come.
        const isLost = error instanceof RecipeError ? error.code === 'Lost' : KeeperError.is(error, 'SessionExpired', 'NoNode');
        if (!isLost) throw error;
        tally.lost++;
      }
    }
  };
  const over: string[] = [];
  const running = Promise.all([migrate(), migrate(), migrate()]).then(
    () => over.push('done'),
    (error: unknown) => over.push(String(error)),
  );
  const heals: (() => void)[] = [];
  for (let step = 0; step < 12 && over.length === 0; step++) {
    const cables = [...world.wire.cnxns].filter(({ dialer, forward }) => dialer.address !== '10.1.0.1' && !forward.from.gone);
    const cable = cables[random.below(Math.max(1, cables.length))];
    const dice = random.below(10);
    if (dice < 4 && cable !== undefined) world.break(cable);
    else if (dice < 6 && cable !== undefined) {
      const [from, to] = [cable.dialer.address, cable.listener.address];
      world.wire.cut(from, to);
      heals.push(() => world.wire.heal(from, to));
    } else if (dice < 8) {
      const [holder] = await world.until(new Lock(observer, '/migrations/lock').contenders()).catch(() => []);
      if (holder !== undefined) {
        tally.byHand++;
        void observer.delete(holder.path).catch(() => undefined);
      }
    }
    await world.pass(random.below(4) * 30 + 10, 30);
    if (random.below(3) === 0) heals.shift()?.();
  }
  for (const heal of heals) heal();
  await world.until(running, 300_000);
  if (over[0] !== 'done') throw new Error(over[0]);
  await world.untilSo(() => observer.state === 'connected');
  const { children } = await world.until(observer.getChildren('/log'));
  const entries = await world.until(Promise.all(children.toSorted().map((name) => observer.getData(`/log/${name}`))));
  const made = entries.map(({ data }) => new TextDecoder().decode(data ?? undefined)).join('');
  if (made !== names.join('')) throw new Error(`made were ${made}`);
  await world.until(observer.close());
  await world.close();
}

describe('those who migrate', () => {
  it('B28: make each change once and in order, whatever happens, over forty seeds', async () => {
    const tally = new Tally();
    for (let seed = 1; seed <= 40; seed++) {
      await run(seed, tally).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      });
    }
    for (const [what, times] of Object.entries(tally)) expect(times, what).toBeGreaterThan(5);
  }, 60_000);

  const multi = Object.getOwnPropertyDescriptor(Held.prototype, 'multi')!.value as Held['multi'];
  const canaries: Record<string, { readonly plant: () => void; readonly finds: RegExp }> = {
    'records a change in a txn of its own': {
      plant: () =>
        vi.spyOn(Held.prototype, 'multi').mockImplementation(async function (this: Held, ops, options) {
          await multi.call(this, ops.slice(0, -1), options);
          return (await multi.call(this, ops.slice(-1), options)) as never;
        }),
      finds: /made were/,
    },
    'does it all without a record': {
      plant: () =>
        vi.spyOn(Held.prototype, 'multi').mockImplementation(async function (this: Held, ops, options) {
          return (await multi.call(this, ops.slice(0, -1), options)) as never;
        }),
      finds: /made were/,
    },
  };

  it.each(Object.keys(canaries))(
    'are found out when one %s',
    async (name) => {
      const { plant, finds } = canaries[name]!;
      plant();
      const caught: string[] = [];
      try {
        for (let seed = 1; seed <= 60 && caught.length < 2; seed++)
          await run(seed, new Tally()).catch((error: unknown) => void caught.push(String(error)));
      } finally {
        vi.restoreAllMocks();
      }
      expect(caught).toEqual([expect.stringMatching(finds), expect.stringMatching(finds)]);
    },
    60_000,
  );
});
