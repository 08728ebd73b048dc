import { inspect } from 'node:util';
import { type Client, op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bytesCodec, jsonCodec, Model, type ModelValue, RecipeError, type StandardSchema, textCodec } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

interface Order {
  readonly sum: number;
}

/** As a library would. */
function schema<Input, Output>(judge: (value: unknown) => { value: Output } | { issues: readonly { message: string; path?: string[] }[] }) {
  return { '~standard': { version: 1, vendor: 'test', validate: judge } } as StandardSchema<Input, Output>;
}

const orderSchema = schema<Order, Order>((value) => {
  const { sum } = (value ?? {}) as { sum?: unknown };
  return typeof sum === 'number'
    ? { value: { sum } }
    : { issues: [{ message: 'expected a number', path: ['sum'] }, { message: 'no order' }] };
});

const orders = new Model('/users/{user}/orders/{order}', { codec: jsonCodec(orderSchema) });
const order = (zk: Client) => orders.at(zk, { user: 7, order: 33 });
const utf8 = new TextDecoder();

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

describe('a model', () => {
  it('B27: creates, reads, writes and deletes values, each by the request of the same name', async () => {
    const { zk, lines } = await t.recorded();
    const znode = order(zk);
    expect(await t.until(znode.exists())).toBe(null);
    expect(await t.until(znode.find())).toBe(undefined);
    expect(await t.until(failureOf(znode.get()))).toMatchObject({ code: 'NoNode', path: '/users/7/orders/33' });
    await t.until(t.zk.ensurePath('/users/7/orders'));
    lines.length = 0;
    expect((await t.until(znode.create({ sum: 12 }))).path).toBe('/users/7/orders/33');
    const read = await t.until(znode.get());
    expect(read).toMatchObject({ path: '/users/7/orders/33', value: { sum: 12 }, stat: { version: 0 } });
    const stat = await t.until(znode.set({ sum: 13 }, { version: read.stat.version }));
    expect(stat.version).toBe(1);
    expect(await t.until(failureOf(znode.set({ sum: 14 }, { version: read.stat.version })))).toMatchObject({ code: 'BadVersion' });
    expect(utf8.decode((await t.until(t.zk.getData(znode.path))).data)).toBe('{"sum":13}');
    await t.until(znode.delete({ version: 1 }));
    expect(lines).toEqual([
      'create /users/7/orders/33 persistent',
      'getData /users/7/orders/33',
      'setData /users/7/orders/33',
      'setData /users/7/orders/33',
      'delete /users/7/orders/33',
    ]);
  });

  it('B27: puts a value whether or not the znode exists, and creates parents as containers by default', async () => {
    const { zk, lines } = await t.recorded();
    const znode = order(zk);
    expect((await t.until(znode.put({ sum: 1 }))).version).toBe(0);
    expect((await t.until(znode.put({ sum: 2 }))).version).toBe(1);
    expect(lines).toEqual([
      'setData /users/7/orders/33',
      'create /users/7/orders/33 persistent',
      'exists /users',
      'exists /users/7',
      'exists /users/7/orders',
      'createContainer /users container',
      'createContainer /users/7 container',
      'createContainer /users/7/orders container',
      'create /users/7/orders/33 persistent',
      'setData /users/7/orders/33',
    ]);
    const bare = new Model('/bare/{id}', { codec: textCodec, parents: false });
    expect(await t.until(failureOf(bare.at(zk, { id: 1 }).create('x')))).toMatchObject({ code: 'NoNode' });
    expect(await t.until(failureOf(bare.at(zk, { id: 1 }).put('x')))).toMatchObject({ code: 'NoNode' });
  });

  it('B27: updates a value, and concurrent updates are not lost', async () => {
    const counts = new Model('/counts/{id}', { codec: jsonCodec<number>(), mode: 'ephemeral' });
    const clients = await Promise.all([t.client(), t.client(), t.client()]);
    const countUp = async (zk: Client) => counts.at(zk, { id: 'a' }).update((value = 0) => value + 1, { create: true });
    await t.until(Promise.all(clients.flatMap((zk) => [countUp(zk), countUp(zk)])));
    const counted = await t.until(counts.at(t.zk, { id: 'a' }).get());
    expect(counted.value).toBe(6);
    expect(counted.stat.ephemeralOwner).not.toBe(0n);
    expect(await t.until(counts.at(t.zk, { id: 'a' }).update(() => undefined))).toMatchObject({
      value: 6,
      stat: { version: counted.stat.version },
    });
    expect(await t.until(failureOf(counts.at(t.zk, { id: 'b' }).update(() => 1)))).toMatchObject({ code: 'NoNode' });
    expect(await t.until(counts.at(t.zk, { id: 'b' }).update(() => undefined, { create: true }))).toBe(undefined);
  });

  it('B27: rejects data that do not fit it, and writes none that could not be read', async () => {
    const znode = order(t.zk);
    await t.until(t.zk.create(znode.path, '{"sum":"x"}', { parents: true }));
    const wrong = 'sum: expected a number; no order';
    const failure = await t.until(failureOf(znode.get()));
    expect(failure).toEqual(new RecipeError('Mismatch', `the data of /users/7/orders/33, version 0, do not fit its model: ${wrong}`));
    expect((failure as RecipeError).cause).toBeInstanceOf(TypeError);
    expect(await t.until(failureOf(orders.children(t.zk, { user: 7 }).list()))).toMatchObject({ code: 'Mismatch' });
    const refusal = { code: 'Refused', message: `the model of /users/7/orders/33 rejects the value, so nothing was written: ${wrong}` };
    for (const write of [() => znode.set({} as Order), () => znode.create({} as Order), () => znode.put({} as Order)])
      expect(await t.until(failureOf(write()))).toMatchObject(refusal);
    expect(await t.until(failureOf(znode.update(() => ({ sum: 1 }))))).toMatchObject({ code: 'Mismatch' });
    expect(() => znode.op.set({} as Order)).toThrow(refusal.message);
    expect((await t.until(znode.exists()))!.version).toBe(0);
  });

  it('B27: reads text as it was written, including a byte order mark at the beginning', () => {
    for (const text of ['', 'é', '\ufeff', '\ufeffé'])
      expect(textCodec.decode(new TextEncoder().encode(String(textCodec.encode(text))))).toBe(text);
  });

  it('B27: lists all znodes below one parent, with the parameters of their paths, and skips those that are deleted meanwhile', async () => {
    const { zk, lines } = await t.recorded();
    expect(await t.until(orders.children(zk, { user: 7 }).list())).toEqual([]);
    for (let id = 0; id < 20; id++) await t.until(orders.at(t.zk, { user: 7, order: id }).create({ sum: id }));
    lines.length = 0;
    const listed = await t.until(orders.children(zk, { user: 7 }).list());
    expect(listed.map(({ params, value }) => [params.user, Number(params.order) === value.sum])).toEqual(
      Array.from({ length: 20 }, () => ['7', true]),
    );
    expect(lines.length).toBe(21);
    const listing = orders.children(zk, { user: 7 }).list();
    const deleting = orders.at(t.zk, { user: 7, order: 19 }).delete();
    await t.until(deleting);
    expect([19, 20]).toContain((await t.until(listing)).length);
  });

  it('B27: reports data that are not JSON, without their content', async () => {
    const secret = new Model('/secret', { codec: jsonCodec() }).at(t.zk);
    await t.until(t.zk.create('/secret', 'password=hunter2'));
    expect(await t.until(failureOf(secret.get()))).toEqual(
      new RecipeError('Mismatch', 'the data of /secret, version 0, do not fit its model: not JSON'),
    );
    expect(inspect(await t.until(failureOf(secret.get())))).not.toContain('hunter2');
  });

  it('B27: stops listing at the first error', async () => {
    const { zk, lines } = await t.recorded();
    for (let at = 0; at < 100; at++) await t.until(t.zk.create(`/bad/u${at}`, at === 7 ? '[' : '{}', { parents: true }));
    lines.length = 0;
    expect(await t.until(failureOf(new Model('/bad/{name}', { codec: jsonCodec() }).children(zk).list()))).toMatchObject({
      code: 'Mismatch',
    });
    await t.pass(200);
    expect(lines.length).toBeLessThan(40);
  });

  it('B27: is watched: yields the value now and after each change, through lost connections', async () => {
    const zk = await t.client();
    const seen: (number | undefined)[] = [];
    const abort = new AbortController();
    const watching = (async () => {
      for await (const now of order(zk).watch({ signal: abort.signal })) seen.push(now?.value.sum);
    })();
    const over = failureOf(watching);
    await t.settle();
    await t.until(order(t.zk).create({ sum: 1 }));
    await t.settle();
    await t.until(t.zk.create(`${order(t.zk).path}/child`));
    t.world.break();
    await t.pass(1000);
    await t.until(order(t.zk).set({ sum: 2 }));
    await t.settle();
    await t.until(t.zk.deleteRecursive('/users'));
    await t.settle();
    expect(seen).toEqual([undefined, 1, 2, undefined]);
    abort.abort(new Error('enough'));
    expect(await t.until(over)).toMatchObject({ message: 'enough' });
  });

  it('B27: is cached, alone and with all below one parent; unreadable data are distinguished, and paths that do not match are left out', async () => {
    const deep = new Model('/users/{user}/orders/{order}/lines', { codec: textCodec });
    await using one = order(t.zk).cache();
    await using all = orders.children(t.zk, { user: 7 }).cache();
    await t.until(order(t.zk).create({ sum: 1 }));
    await t.until(t.zk.create('/users/7/orders/broken', 'x'));
    await t.until(deep.at(t.zk, { user: 7, order: 33 }).create('l'));
    await t.until(Promise.all([one.ready(), all.ready()]));
    await t.settle();
    expect(one.znode?.data).toEqual({ sum: 1 });
    expect(all.get('33')?.data).toEqual({ sum: 1 });
    expect(all.get('broken')?.decodeError).toBeInstanceOf(SyntaxError);
    await using lines = deep.children(t.zk, { user: 7, order: 33 }).cache();
    await t.until(lines.ready());
    await t.until(t.zk.create('/users/7/orders/33/other'));
    await t.settle();
    expect(lines.names).toEqual(['lines']);
    expect((await t.until(deep.children(t.zk, { user: 7, order: 33 }).list())).length).toBe(1);
  });

  it('B27: returns operations for a multi, which applies them together with others', async () => {
    await t.until(t.zk.ensurePath('/users/7/orders'));
    const [one, other] = [order(t.zk), orders.at(t.zk, { user: 7, order: 34 })];
    await t.until(
      t.zk.multi([one.op.create({ sum: 1 }), other.op.create({ sum: 2 }), one.op.set({ sum: 3 }, { version: 0 }), op.check('/users')]),
    );
    expect(await t.until(failureOf(t.zk.multi([other.op.delete(), one.op.check({ version: 7 })])))).toMatchObject({ failedIndex: 1 });
    await t.until(t.zk.multi([other.op.delete({ version: 0 }), one.op.check()]));
    expect((await t.until(orders.children(t.zk, { user: 7 }).list())).map(({ value }: ModelValue<Order>) => value)).toEqual([{ sum: 3 }]);
  });

  it('B27: creates znodes of its mode: sequential ones have a number after the last parameter, and cannot be put', async () => {
    const jobs = new Model('/jobs/{job}', { codec: bytesCodec, mode: 'persistentSequential' });
    const made = await t.until(jobs.at(t.zk, { job: 'j-' }).create(new Uint8Array([1]), { protection: true }));
    expect(jobs.template.match(made.path)?.job).toMatch(/^_c_[0-9a-f-]+-j-0000000000$/);
    expect((await t.until(jobs.children(t.zk).list()))[0]!.value).toEqual(new Uint8Array([1]));
    const refusal = new TypeError(
      'a znode of mode persistentSequential has a new path each time, so put does not work for /jobs/j-; use create',
    );
    await expect(jobs.at(t.zk, { job: 'j-' }).put(new Uint8Array())).rejects.toThrow(refusal);
    await expect(jobs.at(t.zk, { job: 'j-' }).update(() => undefined, { create: true })).rejects.toThrow(TypeError);
  });

  it('B27: leaves one znode, with protection, when the reply to a create is lost', async () => {
    await t.until(t.zk.ensurePath('/users/7/orders'));
    const znode = order(await t.client());
    const { backward } = t.world.cnxn;
    backward.cut();
    const creating = znode.create({ sum: 1 }, { idempotent: true });
    await t.settle();
    t.world.break();
    expect((await t.until(creating)).path).toBe(znode.path);
    expect((await t.until(znode.get())).stat.version).toBe(0);
  });
});
