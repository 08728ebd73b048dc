import { op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HeldLease, Lease, MultiLease } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/leases/cleanup';
const holderPath = `${path}/lease_holder`;
const textOf = async (at: string) => new TextDecoder().decode((await t.until(t.zk.getData(at))).data ?? undefined);
const leaseOf = (holder: string, durationMs = 10_000, zk = t.zk) => new Lease(zk, path, { holder, durationMs });

describe('a lease', () => {
  it("B24: sends the expected requests, and writes kazoo's record", async () => {
    const { zk, lines } = await t.recorded();
    const held = await t.until(leaseOf('one', 70_000, zk).tryAcquire());
    expect(lines.slice(-8)).toEqual([
      'create /leases/cleanup/guid-__lock__ ephemeral sequential',
      'exists /leases/cleanup/guid-__lock__0000000000 watch',
      'getChildren /leases/cleanup',
      'create /leases/cleanup/guid-lease- sequential',
      'getData /leases/cleanup/lease_holder',
      'getChildren /leases/cleanup',
      'multi: create /leases/cleanup/lease_holder persistent, setData /leases/cleanup/lease_holder, check /leases/cleanup/guid-__lock__0000000000, check /leases/cleanup/guid-lease-0000000001',
      'delete /leases/cleanup/guid-__lock__0000000000',
    ]);
    const record = JSON.parse(await textOf(holderPath)) as { version: number; holder: string; end: string };
    expect(Object.keys(record)).toEqual(['version', 'holder', 'end']);
    expect(record).toMatchObject({ version: 1, holder: 'one' });
    const { ctime } = (await t.until(t.zk.exists(held!.path)))!;
    expect(Date.parse(`${record.end}Z`) - ctime).toBeGreaterThanOrEqual(70_000);
    expect(Date.parse(`${record.end}Z`) - ctime).toBeLessThan(71_000);
  });

  it('B24: is held for its time, independent of the session, and acquired by the next holder after that, not before', async () => {
    const client = await t.client({ sessionTimeoutMs: 4000 });
    const first = (await t.until(leaseOf('one', 10_000, client).tryAcquire()))!;
    await t.until(client.close());
    await t.pass(9000);
    expect([first.state, first.remainingMs > 0]).toEqual(['held', true]);
    expect(await t.until(leaseOf('two').tryAcquire())).toBe(undefined);
    await t.pass(1000);
    expect([first.state, first.remainingMs, first.signal.reason]).toMatchObject(['lost', 0, { code: 'Lost' }]);
    await t.pass(1000);
    const second = (await t.until(leaseOf('two').tryAcquire()))!;
    expect(second.fencingToken > first.fencingToken).toBe(true);
    // A failed try leaves no znode behind.
    expect((await t.childrenOf(path)).toSorted()).toEqual([second.path.slice(path.length + 1), 'lease_holder']);
  });

  it('B24: is renewed, and expires for a holder that does not renew, which cannot write once the next one holds it', async () => {
    await t.until(t.zk.create('/value', '0'));
    const first = (await t.until(leaseOf('one').tryAcquire()))!;
    for (let times = 0; times < 3; times++) {
      await t.pass(8000);
      await t.until(first.renew());
    }
    expect(await t.until(leaseOf('two').tryAcquire())).toBe(undefined);
    await t.until(first.multi([op.setData('/value', '1')]));
    await t.pass(12_000);
    expect(first.state).toBe('lost');
    await expect(t.until(first.renew())).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
    await t.until(leaseOf('two').tryAcquire());
    await expect(t.until(first.multi([op.setData('/value', '2')]))).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
    await t.until(first.release());
    expect(await textOf('/value')).toBe('1');
    expect(await textOf(holderPath)).toContain('two');
  });

  it('B24: passes at once to a holder with the same name, and the former one notices when it renews', async () => {
    const first = (await t.until(leaseOf('one').tryAcquire()))!;
    const again = (await t.until(leaseOf('one').tryAcquire()))!;
    expect(first.state).toBe('held');
    await expect(t.until(first.renew())).rejects.toMatchObject({
      code: 'Lost',
      message: expect.stringContaining('another process has taken'),
    });
    expect([first.state, first.signal.aborted]).toEqual(['lost', true]);
    await t.until(again.renew());
    await t.until(again.release());
    await t.until(again.release());
    expect(await t.until(failureOf(again.renew()))).toMatchObject({ code: 'Lost' });
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('B24, C1-2: is acquired in the order of arrival, when it is released or expired, with a constant number of requests', async () => {
    const first = (await t.until(leaseOf('one', 5000).tryAcquire()))!;
    const { zk, lines } = await t.recorded();
    const order: number[] = [];
    const waiting = Array.from({ length: 60 }, async (_, who) => {
      const held = await leaseOf(`waiter ${who}`, 5000, zk).acquire();
      order.push(who);
      return held;
    });
    const over = Promise.allSettled(waiting);
    await t.pass(1000);
    expect(order).toEqual([]);
    await t.until(first.release());
    await t.pass(100);
    for (let round = 0; round < 3; round++) {
      lines.length = 0;
      await t.until((await waiting[round]!).release());
      await t.pass(100);
      expect(order.length).toBe(round + 2);
      expect(lines.length).toBe(20);
    }
    // No release: its time runs out.
    await t.pass(7000);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    await t.until(zk.close());
    await t.until(over);
  });

  it("B24: shares its queue with kazoo's lock, and honours and takes over kazoo's records", async () => {
    await t.until(t.zk.create(path, '', { parents: true }));
    const kazooLock = await t.until(
      t.zk.create(`${path}/0123456789abcdef0123456789abcdef__lock__`, 'host', { mode: 'ephemeralSequential' }),
    );
    const trying = leaseOf('one').tryAcquire();
    await t.pass(2000);
    expect(await t.until(t.zk.exists(holderPath))).toBe(null);
    const end = (inMs: number) => new Date(kazooLock.stat.ctime + inMs).toISOString().slice(0, 19);
    await t.until(t.zk.create(holderPath, `{"version": 1, "holder": "host", "end": "${end(30_000)}"}`));
    await t.until(t.zk.delete(kazooLock.path));
    expect(await t.until(trying)).toBe(undefined);
    await t.pass(31_000);
    const held = (await t.until(leaseOf('one').tryAcquire()))!;
    expect(held.state).toBe('held');
    // kazoo uses its own clock, takes the lease, and creates the znode anew: the znode of our hold
    // is not deleted.
    await t.until(t.zk.delete(holderPath));
    await t.until(t.zk.create(holderPath, `{"version": 1, "holder": "host", "end": "${end(90_000)}"}`));
    await t.until(held.release());
    expect(await textOf(holderPath)).toContain('host');
  });

  it('B24: allows no write and no delete to a holder from which kazoo has taken it, by its clock or by the same name', async () => {
    const writes = {
      renew: (held: HeldLease) => held.renew(),
      multi: (held: HeldLease) => held.multi([op.create('/written', null)]),
    };
    for (const write of Object.values(writes)) {
      for (const holder of ['one', 'host']) {
        const held = (await t.until(leaseOf('one').tryAcquire()))!;
        await t.until(held.multi([op.setData(path, 'still held')]));
        await t.until(t.zk.delete(holderPath));
        await t.until(t.zk.create(holderPath, `{"version": 1, "holder": "${holder}", "end": "2100-01-01T00:00:00"}`));
        expect(await t.until(failureOf(write(held)))).toMatchObject({
          name: 'RecipeError',
          code: 'Lost',
          message: expect.stringContaining('another process has taken'),
        });
        expect([held.state, held.signal.aborted]).toEqual(['lost', true]);
        expect(await textOf(holderPath)).toContain('2100');
        expect(await t.until(t.zk.exists('/written'))).toBe(null);
        await t.until(t.zk.delete(holderPath));
      }
    }
  });

  it('B24, C1-3: continues when the reply to a renewal is lost, whether or not it was applied', async () => {
    const { zk, lose } = await forgetful(t);
    const held = (await t.until(leaseOf('one', 60_000, zk).tryAcquire()))!;
    lose('multi');
    expect(await t.until(failureOf(held.renew()))).toMatchObject({ code: 'ConnectionLoss' });
    expect(held.state).toBe('held');
    await t.until(held.multi([op.create('/written', null)]));
    lose('multi');
    expect(await t.until(failureOf(held.renew()))).toMatchObject({ code: 'ConnectionLoss' });
    await t.until(held.renew());
    expect(held.state).toBe('held');
    lose('multi');
    expect(await t.until(failureOf(held.renew()))).toMatchObject({ code: 'ConnectionLoss' });
    await t.until(held.release());
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('B24: rejects znodes that are not leases, and is given up at the timeout or an abort of the signal', async () => {
    expect(() => leaseOf('one', 0)).toThrow('durationMs must be a positive number of milliseconds, up to a hundred years, not 0');
    const held = (await t.until(leaseOf('one').tryAcquire()))!;
    expect(await t.until(failureOf(leaseOf('two').acquire({ timeoutMs: 500 })))).toMatchObject({ code: 'TimedOut' });
    expect((await t.childrenOf(path)).length).toBe(2);
    await t.until(held.release());
    for (const text of ['', '[]', '{"version":2}', '{"version":1,"holder":"x","end":"tomorrow"}']) {
      await t.until(t.zk.create(holderPath, text));
      expect(await t.until(failureOf(leaseOf('one').tryAcquire()))).toMatchObject({ code: 'Mismatch' });
      await t.until(t.zk.delete(holderPath));
    }
    expect(await t.childrenOf(path)).toEqual([]);
  });
});

it('B24: a MultiLease has as many holders as leases', async () => {
  const options = { durationMs: 5000, count: 2 };
  const had = [];
  for (const holder of ['one', 'two', 'three'])
    had.push(await t.until(new MultiLease(t.zk, '/leases/crawl', { ...options, holder }).tryAcquire()));
  expect(had.map((each) => each?.path.split('/')[3])).toEqual(['0', '1', undefined]);
  await t.until(had[0]!.release());
  expect((await t.until(new MultiLease(t.zk, '/leases/crawl', { ...options, holder: 'three' }).tryAcquire()))?.path.split('/')[3]).toBe(
    '0',
  );
  expect(() => new MultiLease(t.zk, '/leases/crawl', { ...options, holder: 'x', count: 0 })).toThrow(RangeError);
});
