/** Deletes of subtrees that other clients change. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, op } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { settle } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  zk = await world.connect();
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

/** Creates `/t` with `width` children, each with `width` children of its own. */
async function plant(width: number): Promise<number> {
  const paths = ['/t'];
  for (let one = 0; one < width; one++) {
    paths.push(`/t/${one}`);
    for (let two = 0; two < width; two++) paths.push(`/t/${one}/${two}`);
  }
  for (let at = 0; at < paths.length; at += 500) await go(other.multi(paths.slice(at, at + 500).map((path) => op.create(path))));
  return paths.length;
}

describe('deleteRecursive', () => {
  it('B53: deletes children first and returns the number of deleted znodes', async () => {
    const count = await plant(30);
    const order: string[] = [];
    await go(other.addWatch('/t', { mode: 'persistentRecursive', watch: ({ path }) => path !== null && order.push(path) }));
    expect(await go(zk.deleteRecursive('/t'))).toEqual({ deleted: count, unknown: 0 });
    expect(await go(other.exists('/t'))).toBe(null);
    expect(order).toHaveLength(count);
    for (const [index, path] of order.entries())
      expect(order.slice(0, index).every((earlier) => !path.startsWith(`${earlier}/`))).toBe(true);
    expect(await go(zk.deleteRecursive('/t'))).toEqual({ deleted: 0, unknown: 0 });
  });

  it('B53: rejects the znodes that servers need, and deletes the root of a chroot', async () => {
    for (const path of ['/', '/zookeeper', '/zookeeper/quota']) {
      expect((await go(settle(zk.deleteRecursive(path)))).outcome).toBe('BadArguments notSent');
    }
    await plant(2);
    expect(await go(zk.chroot('/t').deleteRecursive('/'))).toEqual({ deleted: 7, unknown: 0 });
    expect((await go(settle(zk.chroot('/zookeeper').deleteRecursive('/config')))).outcome).toBe('BadArguments notSent');
  });

  it('B53: deletes each znode exactly once if two calls run on the same tree', async () => {
    const count = await plant(20);
    const results = await go(Promise.all([zk.deleteRecursive('/t'), other.deleteRecursive('/t')]));
    expect(results[0].deleted + results[1].deleted).toBe(count);
    expect(await go(zk.exists('/t'))).toBe(null);
  });

  it('B53: lists the subtree again while other clients create znodes', async () => {
    const count = await plant(10);
    let made = 0;
    const creator = (async () => {
      for (let index = 0; index < 40; index++) {
        const results = await Promise.allSettled([other.create(`/t/5/new-${index}`), other.create(`/t/new-${index}`)]);
        made += results.filter(({ status }) => status === 'fulfilled').length;
      }
    })();
    const { deleted } = await go(zk.deleteRecursive('/t'));
    await go(creator);
    expect(made).toBeGreaterThan(0);
    expect(deleted).toBe(count + made);
    expect(await go(zk.exists('/t'))).toBe(null);
  });

  /** Breaks the connection between the answers to deletes. */
  async function breakAmongDeletes(): Promise<void> {
    const { backward } = world.cnxn;
    const before = backward.deliveredBytes;
    for await (const { path } of inTime(zk.walk('/t'))) expect(path).toMatch(/^\/t/);
    const walked = backward.deliveredBytes - before;
    backward.resetAfter(backward.deliveredBytes + walked + 905);
  }

  async function* inTime<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
    for (let next = await go(items.next()); next.done !== true; next = await go(items.next())) yield next.value;
  }

  it('B53: rejects with the number of deleted znodes after a lost connection', async () => {
    const count = await plant(20);
    await breakAmongDeletes();
    const { outcome, error } = await go(settle(zk.deleteRecursive('/t')));
    expect(outcome).toBe('ConnectionLoss unknown');
    const [, certain, perhaps] = /; (\d+) znodes were deleted, and perhaps (\d+) more\)$/.exec(error!.message)!.map(Number);
    const gone = count - 1 - (await go(other.getAllChildrenNumber('/t')));
    expect(certain).toBeGreaterThan(0);
    expect(gone).toBeGreaterThanOrEqual(certain!);
    expect(gone).toBeLessThanOrEqual(certain! + perhaps!);
    expect(error).toMatchObject({ op: 'deleteRecursive', path: '/t' });
  });

  it('B51, B53: with retry continues after a lost connection, and counts unknown deletes separately', async () => {
    const count = await plant(20);
    await breakAmongDeletes();
    const { deleted, unknown } = await go(zk.deleteRecursive('/t', { retry: true }));
    expect(deleted + unknown).toBe(count);
    expect(unknown).toBeGreaterThan(0);
    expect(unknown).toBeLessThanOrEqual(64);
    expect(await go(zk.exists('/t'))).toBe(null);
  });

  it('B53: applies its time-out to the whole call', async () => {
    await plant(20);
    const { backward } = world.cnxn;
    backward.conditions.delayMs = 100;
    backward.conditionsChanged();
    const started = world.clock.now().elapsedMs;
    const { outcome, error } = await go(settle(zk.deleteRecursive('/t', { timeoutMs: 450 })));
    expect(outcome).toMatch(/^RequestTimeout (?:notSent|unknown)$/);
    expect(error!.message).toMatch(/\d+ znodes were deleted/);
    expect(world.clock.now().elapsedMs - started).toBeLessThan(600);
  });
});
