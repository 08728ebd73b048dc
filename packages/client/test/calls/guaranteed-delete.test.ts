/** Deletes with the option `guaranteed`. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { settle } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  zk = await world.connect();
  await world.until(other.create('/a', 'x'));
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

describe('a guaranteed delete', () => {
  it('B53: works like a delete if nothing fails', async () => {
    await go(zk.delete('/a', { guaranteed: true }));
    expect(await go(other.exists('/a'))).toBe(null);
    expect((await go(settle(zk.delete('/a', { guaranteed: true })))).outcome).toBe('NoNode refused');
  });

  it('B53: without an answer rejects and continues in the background', async () => {
    const { forward } = world.cnxn;
    forward.cut();
    const deleting = settle(zk.delete('/a', { guaranteed: true }));
    await world.settle();
    world.break();
    const { outcome, error } = await go(deleting);
    expect(outcome).toBe('ConnectionLoss unknown');
    expect(error!.message).toMatch(/; the delete continues in the background\)$/);
    await world.pass(2000);
    expect(await go(other.exists('/a'))).toBe(null);
  });

  it('B53: that could not be sent continues in the background, through crashes of servers', async () => {
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    expect((await go(settle(zk.delete('/a', { guaranteed: true })))).outcome).toBe('ConnectionLoss notSent');
    await world.pass(3000);
    await world.boot();
    await world.pass(6000);
    await world.untilSo(() => other.state === 'connected');
    expect(await go(other.exists('/a'))).toBe(null);
  });

  it('B53: continues after its time-out, but not after its signal', async () => {
    await go(other.create('/b'));
    const { forward } = world.cnxn;
    forward.cut();
    const late = settle(zk.delete('/a', { guaranteed: true, timeoutMs: 100 }));
    const controller = new AbortController();
    const aborted = zk.delete('/b', { guaranteed: true, signal: controller.signal });
    await world.settle();
    const reason = new Error('never mind');
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect((await go(late)).outcome).toBe('RequestTimeout unknown');
    world.break();
    await world.pass(3000);
    expect(await go(other.exists('/a'))).toBe(null);
    expect(await go(other.exists('/b'))).not.toBe(null);
  });

  it('B53: with a version ends with BadVersion if the znode has changed, also in the background', async () => {
    expect((await go(settle(zk.delete('/a', { version: 7, guaranteed: true })))).outcome).toBe('BadVersion refused');
    const { forward } = world.cnxn;
    forward.cut();
    const deleting = settle(zk.delete('/a', { version: 0, guaranteed: true }));
    await world.settle();
    await go(other.setData('/a', 'y'));
    world.break();
    expect((await go(deleting)).outcome).toBe('ConnectionLoss unknown');
    await world.pass(20_000);
    expect((await go(other.exists('/a')))!.version).toBe(1);
  });

  it('B53: ends with its session, and leaves no timer', async () => {
    const timers: number[] = [];
    for (const guaranteed of [false, true]) {
      const client = await world.connect();
      world.kill();
      await world.untilSo(() => client.state === 'suspended');
      expect((await go(settle(client.delete('/a', { guaranteed })))).outcome).toBe('ConnectionLoss notSent');
      await world.pass(4000);
      const before = world.clock.timerCount;
      await go(client.close());
      await world.settle();
      timers.push(world.clock.timerCount - before);
      await world.boot();
    }
    // The client's timers, and in the second case the timer of the pause or the attempt too.
    expect(timers[0]).toBe(-1);
    expect(timers[1]).toBeLessThanOrEqual(-1);
    await world.pass(20_000);
    await world.untilSo(() => other.state !== 'suspended');
    expect(await go((await world.connect()).exists('/a'))).not.toBe(null);
  });

  it('B51, B53: with retry is repeated before the call rejects, and NoNode is then success if it is idempotent', async () => {
    const { backward } = world.cnxn;
    backward.cut();
    const deleting = settle(zk.delete('/a', { guaranteed: true, idempotent: true }));
    await world.settle();
    world.break();
    expect((await go(deleting)).outcome).toBe('done');
  });
});
