import { type Client, Perms } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Lock, SetPartitioner, type SetPartitionerOptions } from '../../src/index.ts';
import { expire } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/queues';
const items = ['q4', 'q1', 'q2', 'q3', 'q5'];
const share = (zk: Client, name: string, options: SetPartitionerOptions = {}): SetPartitioner =>
  new SetPartitioner(zk, path, name, items, () => undefined, { timeBoundaryMs: 1000, ...options });
const owned = (partitioner: SetPartitioner): string =>
  partitioner.owned
    .map(({ item }) => item)
    .sort()
    .join(' ');

describe('a set partitioner', () => {
  it('B25: distributes all items when the members have been the same for the time boundary, and again when they change', async () => {
    const alice = share(await t.client(), 'alice');
    await t.pass(900);
    expect([alice.state, owned(alice)]).toEqual(['allocating', '']);
    await t.until(alice.ready());
    expect([alice.state, owned(alice)]).toEqual(['acquired', 'q1 q2 q3 q4 q5']);
    const states: string[] = [];
    alice.onStateChange((state) => states.push(state));
    const bob = share(await t.client(), 'bob');
    await t.until(bob.ready());
    await t.until(alice.ready());
    expect([owned(alice), owned(bob)]).toEqual(['q1 q3 q5', 'q2 q4']);
    expect(states).toEqual(['allocating', 'releasing', 'acquired']);
    await t.until(bob.close());
    expect(bob.state).toBe('closed');
    await t.pass(1500);
    expect(owned(alice)).toBe('q1 q2 q3 q4 q5');
  });

  it('B25: ends when it is no longer a member, as a server rejects the creation of its znode', async () => {
    const alice = share(await t.client(), 'alice');
    await t.until(alice.ready());
    const party = `${path}/party`;
    await t.until(t.zk.setACL(party, [{ perms: Perms.all & ~Perms.create, id: { scheme: 'world', id: 'anyone' } }]));
    await t.until(t.zk.delete(`${party}/${(await t.childrenOf(party))[0]!}`));
    await t.pass(500);
    expect(alice.signal.reason).toMatchObject({ code: 'NoAuth' });
    expect([alice.state, owned(alice)]).toEqual(['closed', '']);
  });

  it("B25: ends when it may not release an item of another member's share, which would wait for it unnoticed", async () => {
    const alice = share(await t.client(), 'alice');
    await t.until(alice.ready());
    await t.until(t.zk.setACL(`${path}/locks/q2`, [{ perms: Perms.all & ~Perms.delete, id: { scheme: 'world', id: 'anyone' } }]));
    const bob = share(await t.client(), 'bob');
    await t.pass(3000);
    expect(alice.signal.reason).toMatchObject({ code: 'NoAuth', op: 'delete' });
    expect([alice.state, owned(alice)]).toEqual(['closed', '']);
    await t.until(alice.close());
    await t.until(bob.close());
  });

  it('B25: releases an item when its work is done, and not before', async () => {
    let done!: () => void;
    const asked: unknown[] = [];
    const working = new Promise<void>((resolve) => {
      done = resolve;
    });
    const alice = new SetPartitioner(
      await t.client(),
      path,
      'alice',
      items,
      async ({ item, signal }) => {
        signal.addEventListener('abort', () => asked.push([item, signal.reason.code]));
        if (item === 'q2') await working;
      },
      { timeBoundaryMs: 1000 },
    );
    await t.until(alice.ready());
    const bob = share(await t.client(), 'bob');
    await t.pass(5000);
    expect(asked).toEqual([
      ['q2', 'Revoked'],
      ['q4', 'Revoked'],
    ]);
    expect([alice.state, bob.state, owned(bob)]).toEqual(['releasing', 'allocating', 'q4']);
    done();
    await t.until(bob.ready());
    expect([alice.state, owned(alice), owned(bob)]).toEqual(['acquired', 'q1 q3 q5', 'q2 q4']);
  });

  it('B25: moves the items of a member whose session has ended, and notifies that member', async () => {
    const zk = await t.client();
    const alice = share(zk, 'alice');
    const bob = share(await t.client(), 'bob');
    await t.until(Promise.all([alice.ready(), bob.ready()]));
    const [partition] = alice.owned;
    await expire(t, zk);
    await t.settle();
    expect(alice.state).toBe('closed');
    expect(alice.signal.reason).toMatchObject({ code: 'Lost' });
    expect(partition!.signal.aborted).toBe(true);
    await expect(alice.ready()).rejects.toMatchObject({ code: 'Lost' });
    await t.until(alice.close());
    await t.pass(1500);
    expect(owned(bob)).toBe('q1 q2 q3 q4 q5');
  });

  it('acquires an item again when its lock was deleted', async () => {
    const alice = share(await t.client(), 'alice');
    await t.until(alice.ready());
    const before = alice.owned.find(({ item }) => item === 'q1')!;
    await t.until(t.zk.delete(before.hold.path));
    await t.settle();
    expect(before.signal.reason).toMatchObject({ code: 'Lost' });
    const after = alice.owned.find(({ item }) => item === 'q1')!;
    expect(after.hold.fencingToken > before.hold.fencingToken).toBe(true);
    expect(alice.state).toBe('acquired');
  });

  it('kazoo 259, 392: follows the members while it waits for an item that another client holds', async () => {
    const stranger = new Lock(t.zk, `${path}/locks/q3`, { prefix: '__lock__' });
    const theirs = await t.until(stranger.acquire());
    const alice = share(await t.client(), 'alice');
    await t.pass(1500);
    expect([alice.state, owned(alice)]).toEqual(['allocating', 'q1 q2 q4 q5']);
    const [bob, carol] = [share(await t.client(), 'bob'), share(await t.client(), 'carol')];
    await t.pass(1500);
    expect([owned(alice), owned(bob), owned(carol)]).toEqual(['q1 q4', 'q2 q5', '']);
    expect([alice.state, bob.state, carol.state]).toEqual(['acquired', 'acquired', 'allocating']);
    await t.until(theirs.release());
    await t.until(carol.ready());
    expect(owned(carol)).toBe('q3');
  });

  it('keeps the reason of its end, though a listener closes it', async () => {
    const zk = await t.client();
    const alice = share(zk, 'alice');
    alice.onStateChange((state) => {
      if (state === 'closed') void alice.close();
    });
    await t.until(alice.ready());
    await expire(t, zk);
    expect(await t.until(failureOf(alice.ready()))).toMatchObject({ code: 'Lost' });
    expect(alice.signal.reason).toMatchObject({ code: 'Lost' });
  });

  it('keeps its items while there is no connection, and then waits again for the members to stay the same', async () => {
    const alice = share(await t.client(), 'alice');
    await t.until(alice.ready());
    const bob = share(await t.client(), 'bob');
    await t.pass(500);
    const cables = [...t.world.wire.cnxns].filter(({ dialer }) => dialer.address !== '10.1.0.1');
    for (const cable of cables) t.world.break(cable);
    await t.settle();
    expect(alice.owned.map(({ hold }) => hold.state)).toEqual(items.map(() => 'suspended'));
    await t.until(bob.ready());
    await t.until(alice.ready());
    expect([owned(alice), owned(bob)]).toEqual(['q1 q3 q5', 'q2 q4']);
  });

  it('B25: shares a set with kazoo by the same names, order and locks', async () => {
    const kazoo = await t.client();
    await t.until(kazoo.create(`${path}/party/8d1b6d5d1c1f4e5a8a0f3d0f8a2a7c11-host-1`, 'host-1', { mode: 'ephemeral', parents: true }));
    const lock = await t.until(new Lock(kazoo, `${path}/locks/q2`, { prefix: '__lock__' }).acquire());
    const own = share(await t.client(), 'host-2');
    await t.pass(3000);
    expect([own.state, owned(own)]).toEqual(['allocating', 'q4']);
    await t.until(lock.release());
    await t.until(own.ready());
    expect(owned(own)).toBe('q2 q4');
  });

  it('accepts a plan of the program, reports its errors, and rejects invalid items', async () => {
    const greedy = share(await t.client(), 'alice', { plan: (_name, members, all) => (members.length === 1 ? all.slice(0, 2) : []) });
    await t.until(greedy.ready());
    expect(owned(greedy)).toBe('q1 q2');
    const broken = share(await t.client(), 'bob', {
      plan: () => {
        throw new Error('no plan');
      },
    });
    expect(await t.until(failureOf(broken.ready()))).toMatchObject({ message: 'no plan' });
    expect(broken.signal.reason).toMatchObject({ message: 'no plan' });
    expect(() => new SetPartitioner(t.zk, path, 'x', ['a/b'], () => undefined)).toThrow(
      'an item must be a non-empty string without "/", not "a/b"',
    );
    expect(await t.until(failureOf(share(await t.client(), 'c').ready({ timeoutMs: 100 })))).toMatchObject({ code: 'TimedOut' });
  });
});
