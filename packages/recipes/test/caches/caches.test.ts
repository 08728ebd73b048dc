/** The three caches against our server, in virtual time. */
import { type Client, ClientView, creatorAcl, KeeperError, op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClientWorld } from '../../../client/test/support/client-world.ts';
import {
  type CacheChange,
  type CachedZnode,
  type CacheChanges,
  ChildrenCache,
  NodeCache,
  RecipeError,
  TreeCache,
} from '../../src/index.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  zk = await world.connect();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await world.until(Promise.all([zk.close(), other.close()]));
  await world.close();
});

const utf8 = new TextDecoder();
const text = (znode: CachedZnode | undefined) => znode && utf8.decode(znode.data ?? undefined);
const wait = <T>(promise: Promise<T>) => world.until(promise);
const word = (change: CacheChange) => ('path' in change ? `${change.kind} ${change.path}` : change.kind);

/** What a stream has yielded since the last call. */
function listen(stream: CacheChanges<Uint8Array | null>): () => Promise<string[]> {
  const words: string[] = [];
  const note = async () => {
    for await (const change of stream) words.push(word(change));
  };
  note().catch((error: Error) => words.push(error.message));
  return async () => {
    await world.settle();
    return words.splice(0);
  };
}

/**
 * Breaks the connection of `zk`, which the server has not noticed when others continue, and lets it
 * reconnect later.
 */
async function away(meanwhile: () => Promise<unknown>): Promise<void> {
  const cable = world.cnxn;
  world.wire.cut(cable.dialer.address, cable.listener.address);
  world.break(cable);
  await wait(meanwhile());
  world.wire.heal(cable.dialer.address, cable.listener.address);
}

describe('a NodeCache', () => {
  it('B21: shows a znode that is created, changed, deleted and created again', async () => {
    await using cache = new NodeCache(zk, '/a');
    const received = listen(cache.changes());
    await wait(cache.ready());
    expect(cache.znode).toBe(undefined);
    await wait(other.create('/a', 'one'));
    await world.settle();
    expect(text(cache.znode)).toBe('one');
    const stat = await wait(other.setData('/a', 'two'));
    await world.settle();
    expect([text(cache.znode), cache.znode!.stat]).toEqual(['two', stat]);
    await wait(other.create('/a/child'));
    await wait(other.delete('/a/child'));
    await wait(other.multi([op.delete('/a'), op.create('/a', 'three')]));
    await world.settle();
    expect(text(cache.znode)).toBe('three');
    await wait(other.delete('/a'));
    expect(await received()).toEqual(['inStep', 'created /a', 'changed /a', 'deleted /a', 'created /a', 'deleted /a']);
    expect(cache.znode).toBe(undefined);
  });

  it('B21: shows the result of decode, and the error that decode throws', async () => {
    await wait(other.create('/a', '{"size":1}'));
    const decode = vi.fn<(data: Uint8Array | null) => { readonly size: number }>((data) => JSON.parse(utf8.decode(data ?? undefined)));
    await using cache = new NodeCache(zk, '/a', { decode });
    await wait(cache.ready());
    expect(cache.znode!.data?.size).toBe(1);
    await wait(other.setData('/a', 'nonsense'));
    await world.settle();
    expect(cache.znode!.data).toBe(undefined);
    expect(cache.znode!.decodeError).toBeInstanceOf(SyntaxError);
    expect(cache.znode!.stat.version).toBe(1);
    await wait(other.setData('/a', '{"size":2}'));
    await world.settle();
    expect([cache.znode!.data, cache.znode!.decodeError]).toEqual([{ size: 2 }, undefined]);
    expect(decode).toHaveBeenCalledTimes(3);
  });
});

describe('a ChildrenCache', () => {
  it('B21: shows children and their data, and nothing deeper', async () => {
    await using cache = new ChildrenCache(zk, '/w', { include: (name) => !name.startsWith('.') });
    const received = listen(cache.changes());
    await wait(cache.ready());
    expect([cache.exists, cache.size, [...cache]]).toEqual([false, 0, []]);
    await wait(other.create('/w', 'parent'));
    for (const name of ['1', '2', '.hidden', '1/deep']) await wait(other.create(`/w/${name}`, `of ${name}`));
    await wait(other.setData('/w', 'parent again'));
    await wait(other.setData('/w/1/deep', 'x'));
    await wait(other.setData('/w/2', 'two'));
    await world.settle();
    expect([cache.exists, cache.size]).toEqual([true, 2]);
    expect(cache.names.toSorted()).toEqual(['1', '2']);
    expect([...cache].map((znode) => String(text(znode))).toSorted()).toEqual(['of 1', 'two']);
    expect([text(cache.get('2')), cache.get('1/deep'), cache.get('.hidden')]).toEqual(['two', undefined, undefined]);
    for (const name of ['/1/deep', '/1', '/2', '/.hidden', '']) await wait(other.delete(`/w${name}`));
    expect(await received()).toEqual(['inStep', 'created /w/1', 'created /w/2', 'changed /w/2', 'deleted /w/1', 'deleted /w/2']);
    expect([cache.exists, cache.size]).toEqual([false, 0]);
  });

  it('B21: works at the root of a view', async () => {
    await wait(other.create('/app/x', 'of x', { parents: true }));
    await using cache = new ChildrenCache(zk.chroot('/app'), '/');
    await wait(cache.ready());
    expect([...cache].map(({ path }) => path)).toEqual(['/x']);
    expect(text(cache.get('x'))).toBe('of x');
  });
});

describe('a TreeCache', () => {
  const build = async () => {
    for (const path of ['/t', '/t/a', '/t/a/1', '/t/a/1/i', '/t/b']) await other.create(path, `of ${path}`);
  };

  it('B20: shows a subtree, by path, by parent and by iteration', async () => {
    await wait(build());
    await using cache = new TreeCache(zk, '/t');
    await wait(cache.ready());
    expect(cache.size).toBe(5);
    expect(text(cache.get('/t/a/1/i'))).toBe('of /t/a/1/i');
    expect(cache.children('/t')?.toSorted()).toEqual(['a', 'b']);
    expect([cache.children('/t/b'), cache.children('/t/c'), cache.children('/')]).toEqual([[], undefined, undefined]);
    expect([...cache].map(({ path }) => path).toSorted()).toEqual(['/t', '/t/a', '/t/a/1', '/t/a/1/i', '/t/b']);
  });

  it('B20: accepts the root of the tree as its root', async () => {
    await wait(build());
    await using cache = new TreeCache(zk, '/', { maxDepth: 1 });
    await wait(cache.ready());
    expect(cache.children('/')?.toSorted()).toEqual(['t', 'zookeeper']);
    expect(cache.size).toBe(3);
  });

  it('B20: shows only the levels and the znodes that its options select', async () => {
    await wait(build());
    await using shallow = new TreeCache(zk, '/t', { maxDepth: 1 });
    await using chosen = new TreeCache(zk, '/t', { include: (path) => path !== '/t/a' });
    await using bare = new TreeCache(zk, '/t', { data: false });
    await wait(Promise.all([shallow, chosen, bare].map((cache) => cache.ready())));
    await wait(other.setData('/t/b', 'new'));
    await wait(other.create('/t/a/1/j'));
    await world.settle();
    const shown = (cache: TreeCache) => [...cache].map(({ path }) => path).toSorted();
    expect(shown(shallow)).toEqual(['/t', '/t/a', '/t/b']);
    expect(shown(chosen)).toEqual(['/t', '/t/b']);
    expect(shown(bare)).toEqual(['/t', '/t/a', '/t/a/1', '/t/a/1/i', '/t/a/1/j', '/t/b']);
    expect([bare.get('/t/b')!.data, bare.get('/t/b')!.stat.version]).toEqual([undefined, 1]);
  });

  it('B20: reports after a lost connection exactly the changes made meanwhile, and reads no data that it has', async () => {
    await wait(build());
    await using cache = new TreeCache(zk, '/t');
    await wait(cache.ready());
    const received = listen(cache.changes());
    const getData = vi.spyOn(ClientView.prototype, 'getData');
    await away(async () => {
      await other.setData('/t/b', 'changed');
      await other.deleteRecursive('/t/a/1');
      await other.create('/t/n');
      await other.multi([op.delete('/t/a'), op.create('/t/a')]);
    });
    expect(cache.isSynced).toBe(false);
    expect(text(cache.get('/t/b'))).toBe('of /t/b');
    await wait(cache.ready());
    const events = await received();
    expect([events[0], events.at(-1)]).toEqual(['outOfStep', 'inStep']);
    expect(events.slice(1, -1).toSorted()).toEqual(
      ['changed /t/b', 'created /t/a', 'created /t/n', 'deleted /t/a', 'deleted /t/a/1', 'deleted /t/a/1/i'].toSorted(),
    );
    expect(getData.mock.calls.map(([path]) => path).toSorted()).toEqual(['/t/a', '/t/b', '/t/n']);

    getData.mockClear();
    await away(() => other.sync('/'));
    await wait(cache.ready());
    expect(await received()).toEqual(['outOfStep', 'inStep']);
    expect(getData).not.toHaveBeenCalled();
  });

  it('CURATOR-182, CURATOR-388: caches continue when their root is deleted and created again, and do not create it themselves', async () => {
    await wait(build());
    await using tree = new TreeCache(zk, '/t');
    await using children = new ChildrenCache(zk, '/t');
    await wait(Promise.all([tree.ready(), children.ready()]));
    await wait(other.deleteRecursive('/t'));
    await world.settle();
    expect([tree.size, children.size, children.exists]).toEqual([0, 0, false]);
    expect(await wait(other.exists('/t'))).toBe(null);
    await wait(other.create('/t'));
    await wait(other.create('/t/again'));
    await world.settle();
    expect([[...tree].map(({ path }) => path), children.names]).toEqual([['/t', '/t/again'], ['again']]);
  });

  it('B20: continues without the znodes that this client may not READ, and lists them', async () => {
    await wait(build());
    await wait(other.addAuth('digest', 'u:p'));
    await using cache = new TreeCache(zk, '/t');
    await wait(cache.ready());
    const received = listen(cache.changes());
    await away(() => other.setACL('/t/a', creatorAcl));
    await wait(cache.ready());
    expect(cache.unreadable).toEqual(['/t/a']);
    expect([...cache].map(({ path }) => path).toSorted()).toEqual(['/t', '/t/b']);
    expect(await received()).toEqual(['outOfStep', 'unreadable /t/a/1/i', 'unreadable /t/a/1', 'unreadable /t/a', 'inStep']);
    await wait(other.setData('/t/b', 'still reported'));
    await world.settle();
    expect(text(cache.get('/t/b'))).toBe('still reported');
    await wait(zk.addAuth('digest', 'u:p'));
    await away(() => Promise.resolve());
    await wait(cache.ready());
    expect([cache.unreadable, cache.size]).toEqual([[], 5]);
  });
});

describe('caches', () => {
  it('B20, B21: share a watch, which the last cache removes when it is closed', async () => {
    await wait(other.create('/s', 'one'));
    const [first, second] = [new TreeCache(zk, '/s'), new ChildrenCache(zk, '/s')];
    await wait(Promise.all([first.ready(), second.ready()]));
    await first.close();
    await wait(other.create('/s/x'));
    await world.settle();
    expect([second.names, first.size, first.isClosed, first.isSynced]).toEqual([['x'], 1, true, false]);
    await second.close();
    await wait(zk.sync('/'));
    await expect(wait(zk.removeWatches('/s'))).rejects.toMatchObject({ code: 'NoWatcher' });
  });

  it('B20, B21: allow loops to begin and end at any time, each with all later changes', async () => {
    await using cache = new TreeCache(zk, '/s');
    await wait(cache.ready());
    const [one, two] = [cache.changes(), cache.changes()];
    await wait(other.create('/s'));
    await world.settle();
    expect((await one.next()).value).toMatchObject({ kind: 'created', path: '/s' });
    await one.return();
    expect(await one.next()).toEqual({ done: true, value: undefined });
    await wait(other.delete('/s'));
    await world.settle();
    expect((await two.next()).value).toMatchObject({ kind: 'created', path: '/s' });
    expect((await two.next()).value).toMatchObject({ kind: 'deleted', path: '/s' });
    const left = two.next();
    const aborter = new AbortController();
    const three = cache.changes({ signal: aborter.signal });
    const reason = new Error('enough');
    const asked = three.next();
    aborter.abort(reason);
    await expect(asked).rejects.toBe(reason);
    expect(await three.next()).toEqual({ done: true, value: undefined });
    const unread = cache.changes();
    await wait(other.create('/s'));
    await world.settle();
    await cache.close();
    expect(await unread.next()).toEqual({ done: true, value: undefined });
    expect((await left).value).toMatchObject({ kind: 'created', path: '/s' });
    expect(await two.next()).toEqual({ done: true, value: undefined });
    expect(await cache.changes().next()).toEqual({ done: true, value: undefined });
  });

  it('B20, B21: end a waiting loop when they are closed', async () => {
    const cache = new TreeCache(zk, '/s');
    await wait(cache.ready());
    const left = cache.changes().next();
    await cache.close();
    expect(await left).toEqual({ done: true, value: undefined });
    expect(await cache.changes().next()).toEqual({ done: true, value: undefined });
  });

  it('B20, B21: replace the queued changes of a loop by one entry when they exceed its limit', async () => {
    await using cache = new TreeCache(zk, '/s');
    await wait(cache.ready());
    const changes = cache.changes({ maxQueuedChanges: 3 });
    await wait(other.create('/s'));
    for (let times = 0; times < 5; times++) {
      await wait(other.setData('/s', String(times)));
      await world.settle();
    }
    expect(await changes.next()).toEqual({ done: false, value: { kind: 'overflowed', dropped: 6 } });
    expect(text(cache.get('/s'))).toBe('4');
    await wait(other.delete('/s'));
    await world.settle();
    expect((await changes.next()).value).toMatchObject({ kind: 'deleted', path: '/s', after: undefined });
  });

  it('B20, B21: wait to be in step until the timeout or an abort of the signal', async () => {
    const cache = new NodeCache(zk, '/a');
    await wait(cache.ready());
    await cache.ready({ timeoutMs: 0 });
    const cable = world.cnxn;
    world.wire.cut(cable.dialer.address, cable.listener.address);
    world.break(cable);
    await world.untilSo(() => !cache.isSynced);
    const late = await wait(cache.ready({ timeoutMs: 200 }).catch((error: unknown) => error));
    expect(late).toBeInstanceOf(RecipeError);
    expect(late).toMatchObject({ code: 'TimedOut', message: 'timed out after 200 ms waiting for the cache of /a' });
    const aborter = new AbortController();
    const waiting = cache.ready({ signal: aborter.signal });
    aborter.abort(new Error('no more'));
    await expect(waiting).rejects.toThrow('no more');
    await expect(cache.ready({ signal: aborter.signal })).rejects.toThrow('no more');
    const closed = cache.ready().catch((error: unknown) => error);
    await cache.close();
    expect(await closed).toMatchObject({ name: 'RecipeError', code: 'Closed' });
    await expect(cache.ready()).rejects.toMatchObject({ code: 'Closed' });
  });

  it('B20, B21: end with their session, and throw the reason after all reported changes', async () => {
    const cache = new TreeCache(zk, '/a');
    await wait(cache.ready());
    const changes = cache.changes();
    await wait(other.create('/a', 'last'));
    await world.settle();
    const cable = world.cnxn;
    world.wire.cut(cable.dialer.address, cable.listener.address);
    world.break(cable);
    await world.pass(20_000, 500);
    world.wire.heal(cable.dialer.address, cable.listener.address);
    const ready = cache.ready().catch((error: unknown) => error);
    await world.untilSo(() => cache.isClosed);
    expect(await ready).toMatchObject({ code: 'SessionExpired' });
    expect((await changes.next()).value).toMatchObject({ kind: 'created', path: '/a' });
    expect((await changes.next()).value).toEqual({ kind: 'outOfStep' });
    const failure = await changes.next().catch((error: unknown) => error);
    expect(KeeperError.is(failure, 'SessionExpired')).toBe(true);
    expect((await changes.next()).done).toBe(true);
    await expect(cache.ready()).rejects.toBe(failure);
    await expect(cache.changes().next()).rejects.toBe(failure);
    // It still shows what it showed last, and says that it may be out of date.
    expect([text(cache.get('/a')), cache.isSynced]).toEqual(['last', false]);
  });

  it('B20, B21: end when their client is closed', async () => {
    const cache = new TreeCache(zk, '/a');
    await wait(cache.ready());
    const next = cache.changes().next();
    await wait(zk.close());
    expect(await wait(next)).toEqual({ done: true, value: undefined });
    expect(cache.isClosed).toBe(true);
  });

  it('reject invalid options, at once', () => {
    expect(() => new NodeCache(zk, 'a')).toThrow('"a" is not a path of a znode: it must start with "/"');
    expect(() => new TreeCache(zk, '/a', { maxDepth: 0 })).toThrow(
      /^maxDepth must be a whole number from 1, or left out for all levels, not 0; a NodeCache has/,
    );
    expect(() => new TreeCache(zk, '/a', { concurrency: 0 })).toThrow('concurrency must be a whole number from 1, not 0');
    expect(() => new TreeCache(zk, '/a', { data: false, decode: String })).toThrow(
      /with data: false there is nothing to decode; leave out/,
    );
    const cache = new NodeCache(zk, '/a');
    expect(() => cache.changes({ maxQueuedChanges: 0.5 })).toThrow('maxQueuedChanges must be a whole number from 1, not 0.5');
    void cache.close();
  });
});
