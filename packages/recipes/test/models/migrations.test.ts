import { type Client, digestId, op, Perms } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Lock, type Migration, Migrations } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/app/migrations';
const users: Migration = { name: 'users', ops: [op.create('/users'), op.create('/users/admin', '{}')] };
const orders: Migration = { name: 'orders', ops: [op.create('/orders', new Uint8Array([1])), op.setData('/users/admin', '{"orders":0}')] };
const tidy: Migration = { name: 'tidy', ops: [op.delete('/orders'), op.check('/users', { version: 0 })] };
const utf8 = new TextDecoder();

const dataOf = async (of: string) => utf8.decode((await t.until(t.zk.getData(of))).data ?? undefined);
const migrate = (zk: Client, ...list: Migration[]) => new Migrations(zk, path, list).migrate();

describe('migrations', () => {
  it('B28: are applied once each, under a lock, with their record in the same txn', async () => {
    const { zk, lines } = await t.recorded();
    expect(await t.until(migrate(t.zk, users))).toEqual(['users']);
    expect(await t.until(migrate(zk, users, orders, tidy))).toEqual(['orders', 'tidy']);
    expect(lines).toEqual([
      'getChildren /app/migrations/applied',
      'getData /app/migrations/applied/0000000001',
      // The parent of the records must stay.
      'exists /app',
      'exists /app/migrations',
      'exists /app/migrations/applied',
      'create /app/migrations/lock/guid-lock- ephemeral sequential',
      'exists /app/migrations/lock/guid-lock-0000000001 watch',
      'getChildren /app/migrations/lock',
      'getChildren /app/migrations/applied',
      'getData /app/migrations/applied/0000000001',
      'multi: create /orders persistent, setData /users/admin, create /app/migrations/applied/0000000002 persistent, check /app/migrations/lock/guid-lock-0000000001',
      'multi: delete /orders, check /users, create /app/migrations/applied/0000000003 persistent, check /app/migrations/lock/guid-lock-0000000001',
      'delete /app/migrations/lock/guid-lock-0000000001',
    ]);
    lines.length = 0;
    expect(await t.until(migrate(zk, users, orders, tidy))).toEqual([]);
    // Nothing is missing, so it does not wait for the lock.
    expect(lines.filter((line) => !line.startsWith('get'))).toEqual([]);
    expect(await dataOf('/users/admin')).toBe('{"orders":0}');
    const applied = await t.until(new Migrations(zk, path, []).applied());
    expect(applied.map(({ number, name }) => [number, name])).toEqual([
      [1, 'users'],
      [2, 'orders'],
      [3, 'tidy'],
    ]);
    expect(applied.every(({ checksum, appliedAtMs }) => /^[0-9a-f]{64}$/.test(checksum) && appliedAtMs > 0)).toBe(true);
  });

  it('B28: are applied by one of many processes that migrate at the same time', async () => {
    const clients = await Promise.all(Array.from({ length: 5 }, () => t.client()));
    const done = await t.until(Promise.all(clients.map((zk) => migrate(zk, users, orders, tidy))));
    expect(done.filter((names) => names.length > 0)).toEqual([['users', 'orders', 'tidy']]);
    expect((await t.until(t.zk.exists('/users/admin')))!.version).toBe(1);
  });

  it('B28: are rejected when the applied ones are not the beginning of the list', async () => {
    await t.until(migrate(t.zk, users, orders));
    const other: Migration = { name: 'orders', ops: [op.create('/orders')] };
    const changed = await t.until(failureOf(migrate(t.zk, users, other, tidy)));
    expect(changed).toMatchObject({ name: 'RecipeError', code: 'Mismatch' });
    expect((changed as Error).message).toMatch(
      /^migration 2 of \/app\/migrations was applied as "orders" with the checksum [0-9a-f]{64}, and is "orders" with [0-9a-f]{64} in this program: an applied migration must not change; put the change into a new migration$/,
    );
    expect(await t.until(failureOf(migrate(t.zk, users)))).toMatchObject({
      code: 'Mismatch',
      message: '/app/migrations has 2 applied migrations, and this program knows 1: it is too old, or lacks "orders"',
    });
    await t.until(t.zk.setData(`${path}/applied/0000000002`, '{}'));
    expect(await t.until(failureOf(migrate(t.zk, users, orders)))).toMatchObject({
      message: `${path}/applied/0000000002 is not a record of a migration; find out which client has written it, and what was applied`,
    });
    await t.until(t.zk.delete(`${path}/applied/0000000001`));
    await t.until(t.zk.setData(`${path}/applied/0000000002`, '{"name":"a","checksum":"b"}'));
    expect(await t.until(failureOf(migrate(t.zk, users, orders)))).toMatchObject({
      message: `record 1 of ${path}/applied is missing, but record 2 exists`,
    });
    expect(await t.until(t.zk.exists('/orders'))).not.toBe(null);
  });

  it('B28: are recognised as the same however they are written', async () => {
    await t.until(migrate(t.zk, { name: 'a', ops: [op.create('/a', 'x'), op.setData('/a', 'y'), op.delete('/a')] }));
    const bytes = new TextEncoder();
    const same: Migration = {
      name: 'renamed',
      ops: [
        op.create('/a', bytes.encode('x'), { mode: 'persistent' }),
        { op: 'setData', path: '/a', data: bytes.encode('y') },
        op.delete('/a', { version: -1 }),
      ],
    };
    expect(await t.until(migrate(t.zk, same))).toEqual([]);
    const acl = [{ perms: Perms.all, id: { scheme: 'digest', id: digestId('a:b') } }];
    for (const ops of [
      [op.create('/a', 'x')],
      [op.create('/a', 'x', { acl }), ...same.ops.slice(1)],
      [...same.ops.slice(0, 2), op.check('/a')],
    ])
      expect(await t.until(failureOf(migrate(t.zk, { name: 'a', ops })))).toMatchObject({ code: 'Mismatch' });
  });

  it('B28: stop at one that a server rejects; those before it stay, and it leaves nothing behind', async () => {
    const wrong: Migration = { name: 'wrong', ops: [op.create('/orders'), op.create('/users')] };
    const failure = await t.until(failureOf(migrate(t.zk, users, wrong, tidy)));
    expect(failure).toMatchObject({ code: 'Refused', cause: { code: 'NodeExists', failedIndex: 1 } });
    expect((failure as Error).message).toMatch(/^migration 2 of \/app\/migrations, "wrong", was not applied: /);
    expect(await t.until(t.zk.exists('/orders'))).toBe(null);
    expect(await t.until(migrate(t.zk, users, orders))).toEqual(['orders']);
    expect(await t.until(new Lock(t.zk, `${path}/lock`).contenders())).toEqual([]);
  });

  it.each([true, false])(
    'B28: survive the loss of the reply to each of their requests, with the request applied: %s',
    async (carriedOut) => {
      for (let lost = 1; ; lost++) {
        const [base, top] = [`/m${lost}`, `/top${lost}`];
        const list: Migration[] = [
          { name: 'one', ops: [op.create(top, '0'), op.setData(top, '1')] },
          { name: 'two', ops: [op.create(`${top}/x`), op.setData(top, '2')] },
        ];
        const { zk, lines } = await t.recorded();
        const { cnxn } = t.world;
        const migrating = new Migrations(zk, base, list).migrate();
        await whenAsked(lines, lost, () => (carriedOut ? cnxn.backward : cnxn.forward).cut());
        const asked = lines.length;
        t.world.break(cnxn);
        expect(await t.until(migrating)).toEqual(['one', 'two']);
        expect((await t.until(t.zk.exists(top)))!.version).toBe(2);
        expect((await t.childrenOf(`${base}/applied`)).length).toBe(2);
        await t.until(zk.close());
        if (asked < lost) break;
      }
    },
  );

  it('B28: are not written by a process whose lock was broken, however late its requests arrive', async () => {
    let lost = 0;
    for (let at = 1; ; at++) {
      const base = `/m${at}`;
      const list: Migration[] = [{ name: 'one', ops: [op.create(`/top${at}`)] }];
      const { zk, lines } = await t.recorded();
      const { forward } = t.world.cnxn;
      const migrating = failureOf(new Migrations(zk, base, list).migrate());
      await whenAsked(lines, at, () => forward.cut());
      // The znode does not exist before it is requested, nor at the end.
      const [holder] = await t.until(new Lock(t.zk, `${base}/lock`).contenders());
      if (holder !== undefined) await t.until(failureOf(t.zk.delete(holder.path)));
      forward.heal();
      const outcome = (await t.until(migrating)) as { code?: string };
      const isApplied = (await t.until(new Migrations(t.zk, base, list).applied())).length === 1;
      expect((await t.until(t.zk.exists(`/top${at}`))) !== null).toBe(isApplied);
      if (outcome.code === 'Lost') lost++;
      else expect(isApplied).toBe(true);
      expect(await t.until(new Migrations(t.zk, base, list).migrate())).toEqual(isApplied ? [] : ['one']);
      await t.until(zk.close());
      if (lines.length < at) break;
    }
    expect(lost).toBeGreaterThan(2);
  });

  it('B28: are reported by the process that has applied them, not by one whose lock was broken before its own attempt', async () => {
    let lost = 0;
    for (let at = 1; ; at++) {
      const base = `/m${at}`;
      const own = [{ name: 'one', ops: [op.setData('/', 'one')] }];
      const { zk, lines } = await t.recorded();
      const { forward } = t.world.cnxn;
      const migrating = new Migrations(zk, base, own).migrate().catch((error: unknown) => error as Error);
      await whenAsked(lines, at, () => forward.cut());
      const [holder] = await t.until(new Lock(t.zk, `${base}/lock`).contenders());
      if (holder !== undefined) await t.until(failureOf(t.zk.delete(holder.path)));
      const others = await t.until(new Migrations(t.zk, base, own).migrate());
      forward.heal();
      const outcome = await t.until(migrating);
      if (outcome instanceof Error) {
        expect(outcome).toMatchObject({ code: 'Lost' });
        lost++;
      } else expect([...outcome, ...others]).toEqual(['one']);
      await t.until(zk.close());
      if (lines.length < at) break;
    }
    expect(lost).toBeGreaterThan(2);
  });

  it('B28: reject with Lost when the session ends, at whichever request', async () => {
    let lost = 0;
    for (let at = 1; ; at++) {
      const [base, top] = [`/m${at}`, `/top${at}`];
      const { zk, lines } = await t.recorded();
      const { cnxn } = t.world;
      const migrating = new Migrations(zk, base, [{ name: 'one', ops: [op.create(top)] }]).migrate().catch((error: unknown) => error);
      await whenAsked(lines, at, () => cnxn.backward.cut());
      const asked = lines.length;
      t.world.break(cnxn);
      t.world.wire.name('server', []);
      const session = { id: zk.sessionId, password: zk.sessionPassword };
      t.world.wire.name('server', [t.world.address]);
      await t.until((await t.client({ session })).close());
      const outcome = await t.until(migrating);
      if (!Array.isArray(outcome)) {
        lost++;
        expect(outcome).toMatchObject({ name: 'RecipeError', code: 'Lost' });
      }
      await t.until(zk.close());
      if (asked < at) break;
    }
    expect(lost).toBeGreaterThan(3);
  });

  it('B28: are waited for until the timeout or an abort of the signal', async () => {
    await t.until(t.zk.ensurePath(path));
    const held = await t.until(new Lock(t.zk, `${path}/lock`).acquire());
    const late = failureOf(new Migrations(await t.client(), path, [users]).migrate({ timeoutMs: 500 }));
    const abort = new AbortController();
    const unwanted = failureOf(new Migrations(await t.client(), path, [users]).migrate({ signal: abort.signal }));
    await t.pass(600);
    abort.abort(new Error('no longer wanted'));
    expect(await t.until(late)).toMatchObject({ code: 'TimedOut' });
    expect(await t.until(unwanted)).toMatchObject({ message: 'no longer wanted' });
    expect(await t.until(t.zk.exists('/users'))).toBe(null);
    expect((await t.until(new Lock(t.zk, `${path}/lock`).contenders())).map((each) => each.path)).toEqual([held.path]);
  });

  it('B28: are rejected when they are invalid', () => {
    const make =
      (...list: Migration[]) =>
      () =>
        new Migrations(t.zk, path, list);
    expect(make(users, users)).toThrow(new TypeError('two migrations of /app/migrations have the name "users"; give each another name'));
    expect(make({ name: 'none', ops: [] })).toThrow(new TypeError('migration 1 of /app/migrations, "none", has no operations'));
    expect(make({ name: 'brief', ops: [op.create('/x', null, { mode: 'ephemeral' })] })).toThrow(
      new TypeError(
        'migration 1 of /app/migrations, "brief", creates an ephemeral, which would end with the session of the migrating process; use another mode',
      ),
    );
  });
});

/**
 * Calls `act` when this many requests have been sent, before the last of them arrives. Continues
 * until nothing more happens.
 */
async function whenAsked(lines: string[], count: number, act: () => void): Promise<void> {
  const push = lines.push.bind(lines);
  lines.push = (...more) => {
    if (lines.length < count && lines.length + more.length >= count) act();
    return push(...more);
  };
  await t.settle();
}
