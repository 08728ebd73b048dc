/** Walks over subtrees. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, KeeperError, op, type WalkedZnode } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { text } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  zk = await world.connect();
  const paths = ['/t', ...[0, 1, 2, 3, 4].flatMap((one) => [`/t/${one}`, ...[0, 1, 2, 3, 4].map((two) => `/t/${one}/${two}`)])];
  await go(other.multi(paths.map((path) => op.create(path, path))));
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

async function all(items: AsyncIterable<WalkedZnode>): Promise<WalkedZnode[]> {
  const found: WalkedZnode[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('walk', () => {
  it('B53: yields every znode once, before its children, with Stat, and with data if requested', async () => {
    const found = await go(all(zk.walk('/t')));
    expect(found).toHaveLength(31);
    expect(new Set(found.map(({ path }) => path)).size).toBe(31);
    for (const [index, { path }] of found.entries()) {
      const parent = path.slice(0, path.lastIndexOf('/'));
      if (path !== '/t') expect(found.findIndex((each) => each.path === parent)).toBeLessThan(index);
    }
    expect(found.every(({ stat, path, data }) => stat.dataLength === path.length && data === undefined)).toBe(true);
    const withData = await go(all(zk.walk('/t', { data: true, concurrency: 1 })));
    expect(withData.map(({ path }) => path).toSorted()).toEqual(found.map(({ path }) => path).toSorted());
    expect(withData.every(({ path, data }) => text(data) === path)).toBe(true);
    expect((await go(all(zk.walk('/')))).map(({ path }) => path)).toContain('/zookeeper/config');
  });

  it('B53: has no more pending requests than its concurrency', async () => {
    const { forward, backward } = world.cnxn;
    for (const concurrency of [1, 3, 16]) {
      backward.cut();
      const before = forward.deliveredBytes;
      const walking = all(zk.walk('/t', { concurrency }));
      await world.settle();
      // The top is alone, with one request of 36 or 47 bytes; its children follow.
      const first = forward.deliveredBytes - before;
      backward.heal();
      expect(await go(walking)).toHaveLength(31);
      expect(first).toBeLessThan(60);
    }
    // A loop that does not continue stops the walk.
    const walking = zk.walk('/t', { concurrency: 3 });
    await go(walking.next());
    await go(walking.next());
    await world.settle();
    const stopped = forward.deliveredBytes;
    await world.pass(100);
    expect(forward.deliveredBytes).toBe(stopped);
    await go(walking.return(undefined));
  });

  it('B53: skips znodes that are deleted meanwhile, but fails without its top', async () => {
    const found: string[] = [];
    const walking = (async () => {
      for await (const { path } of zk.walk('/t', { concurrency: 1, data: true })) {
        found.push(path);
        if (path === '/t') await other.deleteRecursive('/t/3');
      }
    })();
    await go(walking);
    expect(found).toHaveLength(25);
    const error = await go(all(zk.walk('/missing')).catch((thrown: unknown) => thrown));
    expect(KeeperError.is(error, 'NoNode')).toBe(true);
    expect(error).toMatchObject({ op: 'walk', path: '/missing' });
  });

  it('B53: ends with its signal, its time-out, or a lost connection, at any point', async () => {
    const reason = new Error('never mind');
    const controller = new AbortController();
    const seen: string[] = [];
    const walking = (async () => {
      for await (const { path } of zk.walk('/t', { concurrency: 1, signal: controller.signal })) {
        seen.push(path);
        if (seen.length === 3) controller.abort(reason);
      }
    })();
    await expect(go(walking)).rejects.toBe(reason);
    expect(seen.length).toBeLessThan(6);
    const { backward } = world.cnxn;
    backward.conditions.delayMs = 100;
    await expect(go(all(zk.walk('/t', { concurrency: 1, timeoutMs: 350 })))).rejects.toMatchObject({ code: 'RequestTimeout', op: 'walk' });
    backward.resetAfter(backward.deliveredBytes + 700);
    await expect(go(all(zk.walk('/t')))).rejects.toMatchObject({ code: 'ConnectionLoss', outcome: 'unknown' });
    world.cnxn.backward.resetAfter(world.cnxn.backward.deliveredBytes + 700);
    expect(await go(all(zk.walk('/t', { retry: true })))).toHaveLength(31);
  });

  it('B53: D10: E5: walks over a parent whose names do not fit into a packet, and deletes it', async () => {
    const small = await world.connect({ maxPacketBytes: 2000 });
    const names = Array.from({ length: 60 }, (_, i) => `${'long'.repeat(25)}${i}`);
    await go(other.multi([op.create('/t/l'), ...names.map((name) => op.create(`/t/l/${name}`))]));
    for (const data of [false, true]) {
      const found = await go(all(small.walk('/t/l', { data })));
      expect(found.map(({ path }) => path).toSorted()).toEqual(['/t/l', ...names.map((name) => `/t/l/${name}`)].toSorted());
      expect(found[0]!.stat.numChildren).toBe(60);
    }
    expect(await go(small.deleteRecursive('/t'))).toEqual({ deleted: 92, unknown: 0 });
  });

  it('B53: rejects an invalid path or concurrency', async () => {
    await expect(go(all(zk.walk('t')))).rejects.toMatchObject({ code: 'BadArguments', op: 'walk' });
    expect(() => zk.walk('/t', { concurrency: 0 })).toThrow('walk: concurrency must be a whole number >= 1, not 0');
  });
});
