import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Hold, Semaphore } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/semaphores/mail';
const textOf = async (at: string) => new TextDecoder().decode((await t.until(t.zk.getData(at))).data ?? undefined);

describe('a semaphore', () => {
  it('B14: is acquired by a place in the queue, a lease, and a read of the leases, with a watch only while none is free', async () => {
    const first = await t.until(new Semaphore(t.zk, path, { size: 1 }).acquire());
    const { zk, lines } = await t.recorded();
    const waiting = new Semaphore(zk, path, { size: 1 }).acquire();
    await t.pass(1000);
    await t.until(first.release());
    const second = await t.until(waiting);
    await t.until(second.release());
    expect(lines).toEqual([
      'getData /semaphores/mail',
      'create /semaphores/mail/locks/guid-lock- ephemeral sequential',
      'exists /semaphores/mail/locks/guid-lock-0000000001 watch',
      'getChildren /semaphores/mail/locks',
      'create /semaphores/mail/leases/guid-lease- ephemeral sequential',
      'exists /semaphores/mail/leases/guid-lease-0000000001 watch',
      'getChildren /semaphores/mail/leases',
      'getChildren /semaphores/mail/leases watch',
      'getChildren /semaphores/mail/leases',
      'delete /semaphores/mail/locks/guid-lock-0000000001',
      'delete /semaphores/mail/leases/guid-lease-0000000001',
    ]);
  });

  it('B14, C1-2: wakes exactly one of 100 waiters for each released lease, with a constant number of requests', async () => {
    const { zk, lines } = await t.recorded();
    const holds: Hold[] = [];
    const acquiring = Array.from({ length: 103 }, async () => {
      holds.push(await new Semaphore(zk, path, { size: 3 }).acquire());
    });
    const over = Promise.allSettled(acquiring);
    await t.pass(1000);
    expect(holds.length).toBe(3);
    for (let round = 0; round < 5; round++) {
      lines.length = 0;
      await t.until(holds[round]!.release());
      await t.settle();
      expect(holds.length).toBe(round + 4);
      expect(lines.length).toBe(8);
    }
    expect((await t.until(new Semaphore(t.zk, path).contenders())).length).toBe(95);
    await t.until(zk.close());
    await t.until(over);
  });

  it('has as many holders as leases, in the order of arrival, and tokens that grow', async () => {
    const order: number[] = [];
    const tokens: bigint[] = [];
    let inside = 0;
    let most = 0;
    const runs = [0, 1, 2, 3, 4, 5, 6].map(async (who) => {
      const zk = await t.client();
      await new Semaphore(zk, path, { size: 2 }).run(async (held) => {
        order.push(who);
        tokens.push(held.fencingToken);
        most = Math.max(most, ++inside);
        await new Promise<void>((resolve) => t.world.clock.after(300, resolve));
        inside--;
      });
    });
    await t.until(Promise.all(runs));
    expect(most).toBe(2);
    expect(order.length).toBe(7);
    expect(tokens).toEqual(tokens.toSorted((one, other) => Number(one - other)));
    expect(await t.childrenOf(`${path}/leases`)).toEqual([]);
    expect(await t.childrenOf(`${path}/locks`)).toEqual([]);
  });

  it('grants several leases at once, and two contenders that want many never wait for each other', async () => {
    const semaphore = new Semaphore(t.zk, path, { size: 4 });
    const three = await t.until(semaphore.acquireMany(3));
    const [many, fewer, one] = [semaphore.acquireMany(3), semaphore.acquireMany(2), semaphore.acquire()];
    await t.pass(1000);
    expect(three.holds.length).toBe(3);
    expect(await t.until(semaphore.tryAcquire())).toBe(undefined);
    await t.until(three.release());
    const again = await t.until(many);
    expect(again.state).toBe('held');
    await t.until(again.release());
    expect([(await t.until(fewer)).state, (await t.until(one)).state]).toEqual(['held', 'held']);
    await expect(semaphore.acquireMany(5)).rejects.toThrow(RangeError);
    await expect(semaphore.acquireMany(0)).rejects.toThrow('the number of leases must be from 1 to 999999999, not 0');
  });

  it('is tried without waiting, and leaves no znode behind', async () => {
    const semaphore = new Semaphore(t.zk, path, { size: 1 });
    const held = (await t.until(semaphore.tryAcquire()))!;
    expect(held.state).toBe('held');
    expect(await t.until(semaphore.tryAcquire())).toBe(undefined);
    const waiting = semaphore.acquire();
    await t.settle();
    await t.until(held.release());
    expect(await t.until(semaphore.tryAcquire())).toBe(undefined);
    await t.until((await t.until(waiting)).release());
    expect(await t.childrenOf(`${path}/leases`)).toEqual([]);
    expect(await t.childrenOf(`${path}/locks`)).toEqual([]);
  });

  it('leaves its queues at its timeout, when the signal is aborted, or when one of its znodes is deleted', async () => {
    const semaphore = new Semaphore(t.zk, path, { size: 1, data: 'me' });
    const held = await t.until(semaphore.acquire());
    const late = failureOf(semaphore.acquire({ timeoutMs: 500 }));
    expect(await t.until(late)).toMatchObject({
      code: 'TimedOut',
      message: `timed out after 500 ms waiting for a lease of semaphore ${path}`,
    });
    const stop = new AbortController();
    const stopped = failureOf(semaphore.acquire({ signal: stop.signal }));
    await t.settle();
    stop.abort(new Error('no longer wanted'));
    expect(await t.until(stopped)).toEqual(new Error('no longer wanted'));
    for (const line of ['locks', 'leases']) {
      const broken = failureOf(semaphore.acquire());
      await t.settle();
      const victim = (await t.until(line === 'locks' ? semaphore.contenders() : semaphore.leases())).at(-1)!;
      expect(await textOf(victim.path)).toBe('me');
      await t.until(t.zk.delete(victim.path));
      expect(await t.until(broken)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
    }
    await t.settle();
    expect(await t.until(semaphore.leases())).toMatchObject([{ path: held.path }]);
    expect(await t.childrenOf(`${path}/locks`)).toEqual([]);
    await t.until(t.zk.delete(held.path));
    await t.settle();
    expect(held.state).toBe('lost');
  });

  it('writes its size to the znode, and rejects a contender with another size', async () => {
    await t.until(new Semaphore(t.zk, path, { size: 2 }).acquire());
    expect(await textOf(path)).toBe('2');
    expect(await t.until(failureOf(new Semaphore(t.zk, path, { size: 3 }).acquire()))).toMatchObject({
      code: 'Mismatch',
      message: `semaphore ${path} has size 2 in the ensemble, and 3 in this program; use the same size everywhere`,
    });
    expect(() => new Semaphore(t.zk, path, { size: 0 })).toThrow(RangeError);
    // Created by a client that writes no size: Curator writes an address, or nothing.
    await t.until(t.zk.create('/empty'));
    await t.until(new Semaphore(t.zk, '/empty', { size: 3 }).acquire());
    expect(await textOf('/empty')).toBe('3');
    await t.until(t.zk.create('/address', '10.0.0.1'));
    await t.until(new Semaphore(t.zk, '/address', { size: 3 }).acquire());
    expect(await textOf('/address')).toBe('10.0.0.1');
  });

  it('uses the size in its znode, also after changes, when the program has none', async () => {
    const semaphore = new Semaphore(t.zk, path);
    expect(await t.until(failureOf(semaphore.acquire()))).toMatchObject({ code: 'Mismatch' });
    await t.until(semaphore.resize(1));
    const first = await t.until(semaphore.acquire());
    const other = new Semaphore(await t.client(), path);
    const waiting = [other.acquire(), other.acquire(), other.acquire()];
    await t.pass(500);
    await t.until(semaphore.resize(3));
    const [second, third] = await t.until(Promise.all(waiting.slice(0, 2)));
    await t.until(semaphore.resize(1));
    await t.until(first.release());
    await t.until(second!.release());
    await t.pass(500);
    expect([third!.state, (await t.until(semaphore.leases())).length]).toEqual(['held', 2]);
    await t.until(third!.release());
    await t.until(waiting[2]!);
    await expect(new Semaphore(t.zk, path, { size: 1 }).resize(2)).rejects.toThrow(TypeError);
  });
});
