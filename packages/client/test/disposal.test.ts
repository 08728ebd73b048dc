/** Automatic ends: a client and a loop at the end of their block, a call by its signal. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ClientWorld } from './support/client-world.ts';
import { methods, methodsOfClient } from './support/methods.ts';

let world: ClientWorld;
beforeEach(async () => {
  world = await ClientWorld.start();
});
afterEach(() => world.close());

const waiting = Symbol('still waiting');

describe('a signal', () => {
  it('is an option of every method that can wait', () => {
    expect(Object.keys(methods).sort()).toEqual(methodsOfClient());
  });

  it.each(Object.entries(methods))('B33: ends %s at once with its reason', async (_, call) => {
    const zk = await world.connect();
    world.kill();
    await world.untilSo(() => zk.connectedServer === undefined);
    const controller = new AbortController();
    const called = call(zk, '/a', { signal: controller.signal }).catch((error: unknown) => error);
    expect(await Promise.race([called, world.settle().then(() => waiting)])).toBe(waiting);
    controller.abort('enough');
    await expect(called).resolves.toBe('enough');
    await expect(call(zk, '/a', { signal: controller.signal })).rejects.toBe('enough');
    await world.until(zk.close());
  });
});

describe('the end of a block', () => {
  it('B33: closes the client, and its ephemerals are deleted', async () => {
    const other = await world.connect();
    await world.until(
      (async () => {
        await using zk = await world.connect();
        await zk.create('/mine', null, { mode: 'ephemeral' });
        expect(await other.exists('/mine')).not.toBe(null);
      })(),
    );
    expect(await world.until(other.exists('/mine'))).toBe(null);
    await world.until(other.close());
  });

  it('B33: leaves a loop, and its watch is removed', async () => {
    const zk = await world.connect();
    await world.until(
      (async () => {
        await using loop = zk.watch('/a');
        await loop.next();
      })(),
    );
    await expect(world.until(zk.removeWatches('/a'))).rejects.toMatchObject({ code: 'NoWatcher' });
    await world.until(zk.close());
  });
});
