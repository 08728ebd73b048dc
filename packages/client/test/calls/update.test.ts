/** update: compare and set until it succeeds, with a correct error if the result is unknown. */
import { SeededRandom } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import type { Client } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { type Cut, cutting } from '../support/cut-transport.ts';
import { settle, text } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  await world.until(other.create('/n', '0'));
  zk = await world.connect();
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);
const plusOne = (data: Uint8Array | null): string => String(Number(text(data) ?? '0') + 1);
const value = async (path = '/n') => text((await go(other.getData(path))).data);

describe('update', () => {
  it('B52: writes the result of the updater, and returns the data it wrote', async () => {
    const result = await go(zk.update('/n', plusOne));
    expect(text(result!.data)).toBe('1');
    expect(result!.stat.version).toBe(1);
    expect(await value()).toBe('1');
    const slow = await go(zk.update('/n', (data, stat) => Promise.resolve(`${text(data)} at ${stat!.version}`)));
    expect(text(slow!.data)).toBe('1 at 1');
    expect((await go(zk.update('/n', () => null)))!.data).toBe(null);
  });

  it('B52: leaves the znode unchanged if the updater returns undefined', async () => {
    const result = await go(zk.update('/n', () => undefined));
    expect([text(result!.data), result!.stat.version]).toEqual(['0', 0]);
    expect(await go(zk.update('/absent', () => undefined, { create: true }))).toBe(undefined);
  });

  it('B52: counts to fifty with fifty concurrent calls', async () => {
    const clients = [zk, other, await world.connect(), await world.connect()];
    await go(Promise.all(Array.from({ length: 50 }, (_, index) => clients[index % 4]!.update('/n', plusOne))));
    expect(await value()).toBe('50');
    expect((await go(other.exists('/n')))!.version).toBe(50);
  });

  it('B52: creates the znode if that is enabled, whichever client is first', async () => {
    expect((await go(settle(zk.update('/new', plusOne)))).outcome).toBe('NoNode refused');
    await go(Promise.all([zk, other].map((each) => each.update('/new', plusOne, { create: true }))));
    expect(await value('/new')).toBe('2');
    const ephemeral = await go(zk.update('/mine', () => 'x', { create: { mode: 'ephemeral' } }));
    expect(ephemeral!.stat.ephemeralOwner).toBe(zk.sessionId);
    const refused = await go(settle(zk.update('/s-', plusOne, { create: { mode: 'persistentSequential' } })));
    expect(refused.outcome).toBe('BadArguments notSent');
  });

  it('B52: continues if the znode is deleted between read and write, and may create it again', async () => {
    let isFirst = true;
    const deleting = async (data: Uint8Array | null) => {
      if (isFirst) await other.delete('/n');
      isFirst = false;
      return plusOne(data);
    };
    expect(text((await go(zk.update('/n', deleting, { create: true })))!.data)).toBe('1');
    isFirst = true;
    expect((await go(settle(zk.update('/n', deleting)))).outcome).toBe('NoNode refused');
  });

  it('B52: rejects with the error of the updater', async () => {
    const reason = new Error('cannot count');
    await expect(
      go(
        zk.update('/n', () => {
          throw reason;
        }),
      ),
    ).rejects.toBe(reason);
  });

  it('B50, B52: ends by its time-out or its signal, however many conflicts there are', async () => {
    const tooLate = async (data: Uint8Array | null) => {
      await other.setData('/n', 'again');
      return plusOne(data);
    };
    const { outcome } = await go(settle(zk.update('/n', tooLate, { timeoutMs: 3000 })));
    expect(outcome).toBe('RequestTimeout notSent');
    const controller = new AbortController();
    const updating = zk.update('/n', tooLate, { signal: controller.signal });
    updating.catch(() => undefined);
    await world.pass(500);
    const reason = new Error('never mind');
    controller.abort(reason);
    await expect(go(updating)).rejects.toBe(reason);
  });
});

/**
 * Loses the answer to the write while `meanwhile` changes the znode; `carriedOut`: whether the
 * request had arrived.
 */
async function losing(
  carriedOut: boolean,
  meanwhile: () => Promise<unknown>,
  options: { create?: boolean; idempotent?: boolean } = {},
  path = '/n',
) {
  const { forward, backward } = world.cnxn;
  let calls = 0;
  const updating = settle(
    zk.update(
      path,
      (data) => {
        if (calls++ === 0) (carriedOut ? backward : forward).cut();
        return plusOne(data);
      },
      options,
    ),
  );
  await world.settle();
  await go(meanwhile());
  world.break();
  return { ...(await go(updating)), calls };
}

const nothing = () => Promise.resolve();

describe('update without an answer to the write', () => {
  it('B52: continues if the znode is unchanged: the write was not applied', async () => {
    expect(await losing(false, nothing)).toMatchObject({ outcome: 'done', calls: 2 });
    expect(await value()).toBe('1');
  });

  it('B52: continues if the next version has other data: another client was faster', async () => {
    expect(await losing(false, () => other.setData('/n', '7'))).toMatchObject({ outcome: 'done', calls: 2 });
    expect(await value()).toBe('8');
  });

  it('B52: does not guess whether this client or another has written the same data', async () => {
    const own = await losing(true, nothing);
    expect(own.outcome).toBe('ConnectionLoss unknown');
    expect(own.error!.message).toContain(
      'the znode has the data of this call now, written by this call or by another client that wrote the same',
    );
    expect(own.error).toMatchObject({ op: 'update', path: '/n' });
    await world.untilSo(() => zk.state === 'connected');
    const theirs = await losing(false, () => other.setData('/n', '2'));
    expect(theirs.outcome).toBe('ConnectionLoss unknown');
    expect(theirs.error!.message).toBe(own.error!.message);
    // Nothing was counted twice.
    expect(await value()).toBe('2');
  });

  it('B52: with idempotent, succeeds if the data are as wanted', async () => {
    const own = await losing(true, nothing, { idempotent: true });
    expect(own).toMatchObject({ outcome: 'done', calls: 1 });
    expect(own.result!.stat.version).toBe(1);
    await world.untilSo(() => zk.state === 'connected');
    const made = await losing(true, nothing, { idempotent: true, create: true }, '/new');
    expect(made).toMatchObject({ outcome: 'done', calls: 1 });
  });

  it.each([
    ['has been changed more than once since', async () => (await other.setData('/n', '5'), await other.setData('/n', '6'))],
    ['does not exist now', () => other.delete('/n')],
    ['has been deleted and created again since', async () => (await other.delete('/n'), await other.create('/n', '1'))],
  ])('B52: rejects as unknown if the znode %s', async (words, meanwhile) => {
    const { outcome, error } = await losing(true, meanwhile);
    expect(outcome).toBe('ConnectionLoss unknown');
    expect(error!.message).toContain(`the znode ${words}`);
  });

  it('B52: rejects as unknown if the write was a create', async () => {
    const { error } = await losing(true, nothing, { create: true }, '/new');
    expect(error!.message).toContain('the znode exists now, created by this call or by another client');
    await world.untilSo(() => zk.state === 'connected');
    const absent = await losing(false, nothing, { create: true }, '/newer');
    expect(absent.outcome).toBe('ConnectionLoss unknown');
    expect(absent.error!.message).toContain('the znode does not exist now');
  });

  it('B52: rejects as unknown if the session ends meanwhile', async () => {
    const { backward } = world.cnxn;
    const updating = settle(
      zk.update('/n', (data) => {
        backward.cut();
        return plusOne(data);
      }),
    );
    await world.settle();
    world.break();
    world.kill();
    await world.pass(3000);
    await go(zk.close());
    const { outcome, error } = await go(updating);
    expect(outcome).toBe('SessionExpired unknown');
    expect(error!.message).toContain('it is not known whether the write was applied');
    await world.boot();
  });
});

describe('B52: in random runs with cuts and partitions', () => {
  it('the counter of several clients matches their results: each success counts once, each unknown once or not', async () => {
    const seen = { done: 0, unknown: 0, others: 0 };
    for (let seed = 1; seed <= breadth(10, 100); seed++) {
      const random = new SeededRandom(seed);
      const path = `/count-${seed}`;
      await go(other.create(path, '0'));
      const received: string[] = [];
      const counting = [0, 1, 2].map(async () => {
        const plan: Cut[] = [];
        for (let cuts = random.below(5); cuts > 0; cuts--) {
          plan.push({ of: random.below(2) === 0 ? 'answers' : 'requests', afterBytes: random.below(600) });
        }
        const client = await world.connect(cutting(world, world.options({ connectTimeoutMs: 60_000, retry: random.below(2) === 0 }), plan));
        for (let times = 0; times < 4; times++) received.push((await settle(client.update(path, plusOne))).outcome);
        await client.close();
      });
      await go(Promise.all(counting));
      const [done, unknown] = ['done', 'unknown'].map((word) => received.filter((outcome) => outcome.endsWith(word)).length) as [
        number,
        number,
      ];
      const count = Number(await value(path));
      expect(count, `seed ${seed}: ${received.join()}`).toBeGreaterThanOrEqual(done);
      expect(count, `seed ${seed}: ${received.join()}`).toBeLessThanOrEqual(done + unknown);
      seen.done += done;
      seen.unknown += unknown;
      seen.others += received.length - done - unknown;
    }
    expect(seen.done).toBeGreaterThan(breadth(50, 500));
    expect(seen.unknown).toBeGreaterThan(breadth(0, 20));
  });
});
