import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { getEventListeners } from 'node:events';
import { ChangeStream } from '../../src/caches/change-stream.ts';
import { jsonCodec, SharedCount, SharedValue } from '../../src/index.ts';
import { expire, forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

interface Colours {
  readonly text: string;
  readonly paper?: string;
}

const path = '/app/colours';
const codec = jsonCodec<Colours>();

describe('a shared value', () => {
  it('B18: is read from memory, and follows changes by others', async () => {
    const { zk, lines } = await t.recorded();
    await using shared = new SharedValue(zk, path, codec);
    await t.until(shared.ready());
    expect(shared.current).toBe(undefined);
    await using other = new SharedValue(t.zk, path, codec);
    await t.until(other.set({ text: 'black' }));
    await t.settle();
    lines.length = 0;
    expect(shared.current).toMatchObject({ value: { text: 'black' }, stat: { version: 0 } });
    expect(shared.isSynced).toBe(true);
    await t.until(other.set({ text: 'grey' }));
    await t.settle();
    expect(shared.current!.value.text).toBe('grey');
    expect(lines).toEqual(['getData /app/colours']);
    await t.until(t.zk.delete(path));
    await t.settle();
    expect(shared.current).toBe(undefined);
  });

  it('B18: is set only if its version is unchanged and its znode is the same', async () => {
    await using one = new SharedValue(await t.client(), path, codec);
    await using two = new SharedValue(await t.client(), path, codec);
    const made = await t.until(one.compareAndSet(undefined, { text: 'black' }));
    expect(made).toMatchObject({ value: { text: 'black' }, stat: { version: 0 } });
    expect(await t.until(two.compareAndSet(undefined, { text: 'red' }))).toBe(undefined);
    const next = await t.until(two.compareAndSet(made, { text: 'grey' }));
    expect(next!.stat.version).toBe(1);
    expect(await t.until(one.compareAndSet(made, { text: 'blue' }))).toBe(undefined);
    await t.until(t.zk.delete(path));
    await t.until(t.zk.create(path, '{"text":"green"}'));
    expect(await t.until(one.compareAndSet(made, { text: 'blue' }))).toBe(undefined);
    await t.pass(100);
    expect(two.current!.value).toEqual({ text: 'green' });
  });

  it('B18: is updated from its current value, by several clients', async () => {
    const clients = await Promise.all([t.client(), t.client(), t.client()]);
    const counts = clients.map((zk) => new SharedCount(zk, '/a/b/count'));
    await t.until(Promise.all(counts.flatMap((count) => [1, 2, 3].map(() => count.update((value) => (value ?? 0) + 1)))));
    await t.settle();
    expect(counts.map(({ count }) => count)).toEqual([9, 9, 9]);
    const { data } = await t.until(t.zk.getData('/a/b/count'));
    expect([...data!]).toEqual([0, 0, 0, 9]);
    await Promise.all(counts.map((count) => count.close()));
    expect(new SharedCount(t.zk, '/none').count).toBe(0);
  });

  it('reports its changes, data that cannot be decoded, and a lost connection', async () => {
    const zk = await t.client();
    const shared = new SharedValue(zk, path, codec);
    const seen: string[] = [];
    const over = (async () => {
      for await (const { current, decodeError, isSynced } of shared.changes()) {
        seen.push(`${current?.value.text ?? (decodeError === undefined ? 'none' : 'no value')}${isSynced ? '' : ' ?'}`);
      }
      return 'closed';
    })();
    await t.settle();
    await t.until(shared.set({ text: 'black' }));
    await t.settle();
    await t.until(t.zk.setData(path, '{'));
    await t.settle();
    expect(shared.decodeError).toBeInstanceOf(SyntaxError);
    expect(await t.until(failureOf(shared.update((value) => value!)))).toBeInstanceOf(SyntaxError);
    await t.until(shared.set({ text: 'red' }));
    await t.settle();
    const [cable] = [...t.world.wire.cnxns].filter(({ dialer }) => dialer.address === '10.1.0.2');
    t.world.break(cable);
    await t.pass(1000);
    expect(seen).toEqual(['none', 'black', 'no value', 'red', 'red ?', 'red']);
    const late: string[] = [];
    const looking = (async () => {
      for await (const { current } of shared.changes()) late.push(current!.value.text);
    })();
    await t.settle();
    expect(late).toEqual(['red']);
    await shared.close();
    expect(await t.until(over)).toBe('closed');
    await t.until(looking);
    const doomed = await t.client();
    const ended = new SharedValue(doomed, path, codec);
    await t.until(ended.ready());
    await expire(t, doomed);
    expect(await t.until(failureOf(ended.changes().next()))).toMatchObject({ code: 'SessionExpired' });
  });

  it('reports nothing to a loop that has ended, and keeps only the latest state for a slow one', async () => {
    await using shared = new SharedValue(await t.client(), path, codec);
    await t.until(shared.ready());
    const streams = vi.spyOn(ChangeStream.prototype, 'push');
    const abort = new AbortController();
    for (let times = 0; times < 5; times++) for await (const { isSynced } of shared.changes({ signal: abort.signal })) if (isSynced) break;
    await t.until(shared.set({ text: 'black' }));
    await t.settle();
    expect(streams).not.toHaveBeenCalled();
    expect(getEventListeners(abort.signal, 'abort')).toEqual([]);
    const slow = shared.changes();
    expect((await slow.next()).value).toMatchObject({ current: { value: { text: 'black' } } });
    for (let times = 0; times < 20; times++) await t.until(shared.set({ text: String(times) }));
    await t.settle();
    const taken = vi.spyOn(ChangeStream.prototype, 'next');
    expect((await t.until(slow.next())).value).toMatchObject({ current: { value: { text: '19' } } });
    const next = slow.next();
    await t.settle();
    expect(taken.mock.calls.length).toBeLessThan(5);
    taken.mockRestore();
    await shared.close();
    expect(await next).toMatchObject({ done: true });
    streams.mockRestore();
  });

  it('C1-3: is set though a reply is lost, and reports an unknown outcome if another client may have written the same', async () => {
    const { zk, lose } = await forgetful(t);
    await using shared = new SharedValue(zk, path, codec);
    lose('create2');
    await t.until(shared.set({ text: 'black' }));
    lose('setData');
    await t.until(shared.set({ text: 'grey' }));
    await t.settle();
    expect(shared.current!.value.text).toBe('grey');
    lose('setData');
    expect(await t.until(failureOf(shared.compareAndSet(shared.current, { text: 'red' })))).toMatchObject({ outcome: 'unknown' });
    expect(await t.until(failureOf(shared.set({ text: 'x' }, { timeoutMs: 0 })))).toMatchObject({ code: 'TimedOut' });
  });
});
