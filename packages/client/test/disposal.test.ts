/** What ends by itself: a client and a loop at the end of their block, a call by its signal. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CallOptions, type Client, ClientView, op } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';

let world: ClientWorld;
beforeEach(async () => {
  world = await ClientWorld.start();
});
afterEach(() => world.close());

const calls: Readonly<Record<string, (zk: Client, options: CallOptions) => Promise<unknown>>> = {
  addAuth: (zk, options) => zk.addAuth('digest', 'a:b', options),
  addWatch: (zk, options) => zk.addWatch('/a', { ...options, watch: true }),
  create: (zk, options) => zk.create('/a', null, options),
  delete: (zk, options) => zk.delete('/a', options),
  deleteRecursive: (zk, options) => zk.deleteRecursive('/a', options),
  ensurePath: (zk, options) => zk.ensurePath('/a', options),
  exists: (zk, options) => zk.exists('/a', options),
  getACL: (zk, options) => zk.getACL('/a', options),
  getAllChildrenNumber: (zk, options) => zk.getAllChildrenNumber('/a', options),
  getChildren: (zk, options) => zk.getChildren('/a', options),
  getConfig: (zk, options) => zk.getConfig(options),
  getData: (zk, options) => zk.getData('/a', options),
  getEphemerals: (zk, options) => zk.getEphemerals('/a', options),
  multi: (zk, options) => zk.multi([op.delete('/a')], options),
  multiRead: (zk, options) => zk.multiRead([op.getData('/a')], options),
  reconfig: (zk, options) => zk.reconfig({ leavingServers: '2', ...options }),
  removeWatches: (zk, options) => zk.removeWatches('/a', options),
  setACL: (zk, options) => zk.setACL('/a', [], options),
  setData: (zk, options) => zk.setData('/a', 'x', options),
  sync: (zk, options) => zk.sync('/a', options),
  update: (zk, options) => zk.update('/a', () => 'x', options),
  walk: (zk, options) => zk.walk('/a', options).next(),
  watch: (zk, { signal }) => zk.watch('/a', { signal }).next(),
  whoAmI: (zk, options) => zk.whoAmI(options),
};

const waiting = Symbol('still waiting');

describe('a signal', () => {
  it('is taken by every method that can wait', () => {
    const cannotWait = ['constructor', 'chroot', 'on'];
    const methods = Object.entries(Object.getOwnPropertyDescriptors(ClientView.prototype))
      .filter(([, { value }]) => typeof value === 'function')
      .map(([name]) => name);
    expect(methods.filter((name) => !cannotWait.includes(name)).sort()).toEqual(Object.keys(calls).sort());
  });

  it.each(Object.entries(calls))('B33: ends %s with its reason, at once', async (_, call) => {
    const zk = await world.connect();
    world.kill();
    await world.untilSo(() => zk.connectedTo === undefined);
    const controller = new AbortController();
    const called = call(zk, { signal: controller.signal }).catch((error: unknown) => error);
    expect(await Promise.race([called, world.settle().then(() => waiting)])).toBe(waiting);
    controller.abort('enough');
    await expect(called).resolves.toBe('enough');
    await expect(call(zk, { signal: controller.signal })).rejects.toBe('enough');
    await world.until(zk.close());
  });
});

describe('the end of a block', () => {
  it('B33: closes the client, and its ephemerals go', async () => {
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

  it('B33: leaves a loop, and its watch goes', async () => {
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
