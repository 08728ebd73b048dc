import { op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Lock, MultiLock, Semaphore, ReadWriteLock } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

describe('a MultiLock', () => {
  it('B13: acquires its parts by their paths, in whatever order they are listed, and releases them in reverse', async () => {
    const { zk, lines } = await t.recorded();
    const held = await t.until(new MultiLock([new Lock(zk, '/c'), new Lock(zk, '/a'), new Lock(zk, '/b')]).acquire());
    expect(lines.filter((line) => line.includes('create')).map((line) => line.split(' ')[1])).toEqual(
      expect.arrayContaining(['/a/guid-lock-', '/b/guid-lock-', '/c/guid-lock-']),
    );
    expect(held.holds.map(({ path }) => path[1])).toEqual(['a', 'b', 'c']);
    lines.length = 0;
    await t.until(held.release());
    expect(lines.map((line) => line.slice(0, 9))).toEqual(['delete /c', 'delete /b', 'delete /a']);
    expect([held.state, held.signal.aborted]).toEqual(['released', false]);
  });

  it('B13: never deadlocks, over every order in which five clients list three of four locks', async () => {
    let inside = 0;
    let turns = 0;
    const names = ['/a', '/b', '/c', '/d'];
    const runs = Array.from({ length: 5 }, async (_, who) => {
      const zk = await t.client();
      for (let turn = 0; turn < 4; turn++) {
        const mine = names.map((_name, at) => names[(at * (who % 2 === 0 ? 1 : 3) + who + turn) % 4]!).slice(0, 3);
        await new MultiLock(mine.map((path) => new Lock(zk, path))).run(async () => {
          // Three of four: any two have one in common.
          expect(++inside).toBe(1);
          await zk.sync();
          inside--;
          turns++;
        });
      }
    });
    await t.until(Promise.all(runs));
    expect(turns).toBe(20);
  });

  it('B13: releases what it holds when it cannot hold all: timed out, out of turn, or one of them lost', async () => {
    const b = await t.until(new Lock(t.zk, '/b').acquire());
    const both = new MultiLock([new Lock(t.zk, '/a'), new Lock(t.zk, '/b')]);
    const late = failureOf(both.acquire({ timeoutMs: 500 }));
    expect(await t.until(late)).toMatchObject({ code: 'TimedOut', message: 'timed out after 500 ms waiting for all of /a, /b' });
    expect(await t.childrenOf('/a')).toEqual([]);
    expect(await t.until(both.tryAcquire())).toBe(undefined);
    expect(await t.childrenOf('/a')).toEqual([]);
    const broken = failureOf(both.acquire());
    await t.settle();
    const [a] = await t.until(new Lock(t.zk, '/a').contenders());
    await t.until(t.zk.delete(a!.path));
    expect(await t.until(broken)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    expect((await t.childrenOf('/b')).length).toBe(1);
    await t.until(b.release());
    expect((await t.until(both.tryAcquire()))!.state).toBe('held');
  });

  it('B13: is lost with its first part, and then writes nothing', async () => {
    await t.until(t.zk.create('/value', '0'));
    const client = await t.client({ sessionTimeoutMs: 6000 });
    const parts = [new Lock(client, '/a'), new ReadWriteLock(client, '/b').readLock, new Semaphore(client, '/c', { size: 2 })];
    const held = await t.until(new MultiLock(parts).acquire());
    const states: string[] = [];
    const forget = held.onStateChange((state) => states.push(state));
    await t.until(held.multi([op.setData('/value', '1')]));
    await expect(t.until(held.multi([op.setData('/none', '1')]))).rejects.toMatchObject({ code: 'NoNode', failedIndex: 0 });
    t.world.break();
    await t.pass(1000);
    expect(states).toEqual(['suspended', 'held']);
    await t.until(t.zk.delete(held.holds[1]!.path));
    await t.settle();
    expect(states).toEqual(['suspended', 'held', 'lost']);
    expect(held.signal.reason).toBe(held.holds[1]!.signal.reason);
    const refused = await t.until(failureOf(held.multi([op.setData('/value', '2')])));
    expect(refused).toMatchObject({ code: 'Lost', message: `${held.holds[1]!.path} is lost, so nothing was written` });
    expect((await t.until(t.zk.exists('/value')))!.version).toBe(1);
    forget();
    await t.until(held.release());
    expect(await t.childrenOf('/a')).toEqual([]);
    expect(await t.childrenOf('/c/leases')).toEqual([]);
  });

  it('rejects an empty list, two parts with the same path, and parts of different clients', async () => {
    const lock = new ReadWriteLock(t.zk, '/a');
    expect(() => new MultiLock([])).toThrow('a MultiLock must have at least one part');
    expect(() => new MultiLock([lock.readLock, new Lock(t.zk, '/b'), lock.writeLock])).toThrow('/a is listed twice');
    const other = await t.client();
    expect(() => new MultiLock([new Lock(t.zk, '/a'), new Lock(other, '/b')])).toThrow(
      'the parts of a MultiLock must have the same client',
    );
  });
});
