import { type Client, connect, op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ClientWorld } from '../../../client/test/support/client-world.ts';
import { type Hold, Lock, RecipeError } from '../../src/index.ts';
import { recording } from '../support/requests.ts';

let world: ClientWorld;
let zk: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  zk = await world.connect();
});

afterEach(async () => {
  await world.close();
});

const path = '/locks/report';

async function childrenOf(parent: string): Promise<readonly string[]> {
  return (await world.until(zk.getChildren(parent))).children;
}

describe('a lock', () => {
  it('C1-19: takes the steps of the page: create, list without a watch, exists with a watch on the one before it, list again', async () => {
    const first = await world.until(new Lock(zk, path).acquire());
    const lines: string[] = [];
    const other = await world.until(connect('server:2181', recording(world.options(), lines)));
    lines.length = 0;
    const waiting = new Lock(other, path).acquire();
    await world.pass(1000);
    await world.until(first.release());
    const second = await world.until(waiting);
    await world.until(second.release());
    expect(lines).toEqual([
      'create /locks/report/guid-lock- ephemeral sequential',
      // Notices when another client deletes the waiter's own znode.
      'exists /locks/report/guid-lock-0000000001 watch',
      'getChildren /locks/report',
      'exists /locks/report/guid-lock-0000000000 watch',
      'getChildren /locks/report',
      'delete /locks/report/guid-lock-0000000001',
    ]);
  });

  it('C1-2, C1-20: wakes exactly one of 100 waiters when it is released, with a constant number of requests', async () => {
    const lines: string[] = [];
    const other = await world.until(connect('server:2181', recording(world.options(), lines)));
    const holds: Hold[] = [];
    const acquiring = Array.from({ length: 101 }, async () => {
      holds.push(await new Lock(other, path).acquire());
    });
    const over = Promise.allSettled(acquiring);
    await world.pass(1000);
    expect(holds.length).toBe(1);
    for (let round = 0; round < 5; round++) {
      lines.length = 0;
      await world.until(holds.at(-1)!.release());
      await world.settle();
      expect(holds.length).toBe(round + 2);
      expect(lines.length).toBe(2);
    }
    await world.until(other.close());
    await world.until(over);
  });

  it('has one holder at a time, in the order of arrival', async () => {
    const order: number[] = [];
    let inside = 0;
    const runs = [1, 2, 3, 4, 5].map(async (who) => {
      const client = await world.connect();
      await new Lock(client, path).run(async () => {
        expect(++inside).toBe(1);
        order.push(who);
        await client.sync();
        inside--;
      });
    });
    await world.until(Promise.all(runs));
    expect(order.length).toBe(5);
    expect(await childrenOf(path)).toEqual([]);
  });

  it('leaves the queue at its timeout or when the signal is aborted', async () => {
    const held = await world.until(new Lock(zk, path).acquire());
    const late = new Lock(zk, path).acquire({ timeoutMs: 500 }).catch((error: unknown) => error);
    const abort = new AbortController();
    const unwanted = new Lock(zk, path).acquire({ signal: abort.signal }).catch((error: unknown) => error);
    await world.pass(400);
    expect((await childrenOf(path)).length).toBe(3);
    abort.abort(new Error('no longer wanted'));
    await world.pass(200);
    expect(await world.until(late)).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    expect(await world.until(unwanted)).toMatchObject({ message: 'no longer wanted' });
    expect(await childrenOf(path)).toEqual([held.path.slice(path.length + 1)]);
    await expect(new Lock(zk, path).acquire({ signal: abort.signal })).rejects.toThrow('no longer wanted');
  });

  it('is tried without waiting, and leaves no znode behind when it has another holder', async () => {
    const held = (await world.until(new Lock(zk, path).tryAcquire()))!;
    expect(await world.until(new Lock(zk, path).tryAcquire())).toBe(undefined);
    expect((await childrenOf(path)).length).toBe(1);
    await world.until(held.release());
    expect(await world.until(new Lock(zk, path).tryAcquire())).toBeDefined();
  });

  it('C1-22: lists its contenders, and notifies the holder and the waiter whose znodes are deleted by hand', async () => {
    const lock = new Lock(zk, path, { data: 'me' });
    const held = await world.until(lock.acquire());
    const waiting = new Lock(zk, path).acquire().catch((error: unknown) => error);
    await world.settle();
    const contenders = await world.until(lock.contenders());
    expect(contenders.map(({ sequence }) => sequence)).toEqual([0, 1]);
    await world.until(zk.delete(contenders[1]!.path));
    expect(await world.until(waiting)).toMatchObject({
      code: 'Lost',
      message: `${contenders[1]!.path} is gone: another client has deleted it, or the session was closed`,
    });
    await world.until(zk.delete(held.path));
    await world.settle();
    expect(held.state).toBe('lost');
    expect(held.signal.reason).toEqual(
      new RecipeError('Lost', `${held.path} is gone: another client has deleted it, or the session was closed`),
    );
    expect(await childrenOf(path)).toEqual([]);
    const next = await world.until(new Lock(zk, path).tryAcquire());
    expect(next?.state).toBe('held');
    // The release of the broken hold does not affect the next one.
    await world.until(held.release());
    expect([next?.state, await childrenOf(path)]).toMatchObject(['held', { length: 1 }]);
  });
});

describe('a hold', () => {
  it('C1-21: is suspended without a connection, held again after a reconnect, and lost when the session timeout is over', async () => {
    const client = await world.connect({ sessionTimeoutMs: 6000 });
    const held = await world.until(new Lock(client, path).acquire());
    const states: string[] = [];
    held.onStateChange((state) => states.push(state));
    world.break();
    await world.settle();
    expect(held.state).toBe('suspended');
    await world.pass(1000);
    expect(states).toEqual(['suspended', 'held']);
    const { address } = world;
    world.wire.name('server', []);
    world.break();
    await world.pass(4500);
    expect(held.signal.aborted).toBe(false);
    await world.pass(1500);
    expect(states).toEqual(['suspended', 'held', 'suspended', 'lost']);
    expect(held.signal.reason).toMatchObject({ code: 'Lost' });
    world.wire.name('server', [address]);
    await world.pass(10_000);
  });

  it('B17, D4: fences writes: nothing is written when the znode of the hold is gone, and the token grows', async () => {
    await world.until(zk.create('/value', '0'));
    const held = await world.until(new Lock(zk, path).acquire());
    const [changed] = await world.until(held.multi([op.setData('/value', '1')]));
    expect(changed.stat.version).toBe(1);
    await expect(world.until(held.multi([op.setData('/none', '1')]))).rejects.toMatchObject({ code: 'NoNode', failedIndex: 0 });
    await world.until(zk.delete(held.path));
    await expect(world.until(held.multi([op.setData('/value', '2')]))).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
    expect((await world.until(zk.exists('/value')))!.version).toBe(1);
    const next = await world.until(new Lock(zk, path).acquire());
    expect(next.fencingToken > held.fencingToken).toBe(true);
    await world.until(next.release());
    expect(next.state).toBe('released');
    expect(next.signal.aborted).toBe(false);
  });
});
