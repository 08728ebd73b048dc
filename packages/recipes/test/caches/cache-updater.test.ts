/** Orders of events and replies that matter. */
import { ErrorCode } from '@tskeeper/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { type CacheChange, TreeCache, type TreeCacheOptions } from '../../src/index.ts';
import { ScriptedClient } from './scripted-client.ts';

let opened: TreeCache[] = [];

afterEach(async () => {
  for (const cache of opened) await cache.close();
  opened = [];
});

interface Scene {
  readonly zk: ScriptedClient;
  readonly cache: TreeCache;
  readonly received: string[];
}

/** A cache of /r. */
function open(options: TreeCacheOptions = {}): Scene {
  const zk = new ScriptedClient();
  const cache = new TreeCache(zk.view, '/r', options);
  opened.push(cache);
  const received: string[] = [];
  void note(cache.changes(), received);
  return { zk, cache, received };
}

async function note(changes: AsyncIterable<CacheChange>, received: string[]): Promise<void> {
  try {
    for await (const change of changes) received.push('path' in change ? `${change.kind} ${change.path}` : change.kind);
  } catch {
    received.push('failed');
  }
}

/** The same with /r/p and /r/q in it. */
async function openInStep(options: TreeCacheOptions = {}): Promise<Scene> {
  const scene = open(options);
  const { zk, cache, received } = scene;
  await zk.reread();
  await zk.answer('getData /r', { czxid: 1, numChildren: 2 });
  await zk.answer('getChildren /r', { czxid: 1, numChildren: 2 }, ['p', 'q']);
  await zk.answer('getData /r/p', { czxid: 2 });
  await zk.answer('getData /r/q', { czxid: 3 });
  expect(received).toEqual(['created /r', 'created /r/p', 'created /r/q', 'inStep']);
  received.length = 0;
  expect(cache.isSynced).toBe(true);
  return scene;
}

const czxidOf = (cache: TreeCache, path: string) => cache.get(path)?.stat.czxid;

describe('a cache', () => {
  it('reads a znode exactly once more when it changes during a read', async () => {
    const { zk, received } = await openInStep();
    await zk.tell(zk.changed('NodeDataChanged', '/r/p'));
    for (let times = 0; times < 5; times++) await zk.tell(zk.changed('NodeDataChanged', '/r/p'));
    expect(zk.reads).toEqual(['getData /r/p']);
    await zk.answer('getData /r/p', { czxid: 2, mzxid: 10 });
    expect(zk.reads).toEqual(['getData /r/p']);
    await zk.answer('getData /r/p', { czxid: 2, mzxid: 12 });
    expect(zk.reads).toEqual([]);
    expect(received).toEqual(['changed /r/p', 'changed /r/p']);
  });

  it('does not read a znode at an event whose change it already shows', async () => {
    const { zk, received } = await openInStep();
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 10));
    await zk.answer('getData /r/p', { czxid: 2, mzxid: 12 });
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 11), zk.changed('NodeDataChanged', '/r/p', 12));
    await zk.tell(zk.changed('NodeCreated', '/r/p', 2));
    expect(zk.reads).toEqual([]);
    expect(received).toEqual(['changed /r/p']);
  });

  it('CURATOR-476: is in step although a listed child is deleted before it is read', async () => {
    const { zk, cache, received } = open();
    await zk.reread();
    await zk.answer('getData /r', { czxid: 1, numChildren: 1 });
    await zk.answer('getChildren /r', { czxid: 1 }, ['p']);
    await zk.answer('getData /r/p', null);
    expect(cache.isSynced).toBe(true);
    expect(received).toEqual(['created /r', 'inStep']);
  });

  it('has a bounded number of reads in flight', async () => {
    const { zk } = open({ concurrency: 3 });
    await zk.reread();
    await zk.answer('getData /r', { czxid: 1, numChildren: 10 });
    const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
    await zk.answer('getChildren /r', { czxid: 1, numChildren: 10 }, names);
    for (const name of names) {
      expect(zk.reads.length).toBeLessThanOrEqual(3);
      await zk.answer(`getData /r/${name}`, { czxid: 2 });
    }
    expect(zk.reads).toEqual([]);
  });

  it('removes a deleted znode without a read, when its txn is known', async () => {
    const { zk, cache, received } = await openInStep();
    await zk.tell(zk.changed('NodeDeleted', '/r/p', 9));
    expect(zk.reads).toEqual([]);
    expect(received).toEqual(['deleted /r/p']);
    expect(cache.children('/r')).toEqual(['q']);
  });

  it('keeps a znode that was deleted and created again by one txn, and has been read by then', async () => {
    const { zk, cache, received } = await openInStep();
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 8));
    await zk.answer('getData /r/p', { czxid: 9 });
    await zk.tell(zk.changed('NodeDeleted', '/r/p', 9), zk.changed('NodeCreated', '/r/p', 9));
    expect(zk.reads).toEqual([]);
    expect(received).toEqual(['deleted /r/p', 'created /r/p']);
    expect(czxidOf(cache, '/r/p')).toBe(9n);
  });

  it('does not keep a znode whose deletion is reported before an older reply', async () => {
    const { zk, cache, received } = await openInStep();
    await zk.tell(zk.changed('NodeCreated', '/r/n', 8));
    await zk.tell(zk.changed('NodeDeleted', '/r/n', 9));
    await zk.answer('getData /r/n', { czxid: 8 });
    await zk.answer('getData /r/n', null);
    expect(received).toEqual(['created /r/n', 'deleted /r/n']);
    expect(cache.get('/r/n')).toBe(undefined);
  });

  it('does not lose a child that was read before its new parent', async () => {
    const { zk, cache } = await openInStep({ concurrency: 1 });
    await zk.tell(
      zk.changed('NodeDataChanged', '/r/q', 10),
      zk.changed('NodeCreated', '/r/p/x', 11),
      zk.changed('NodeDeleted', '/r/p/x', 12),
      zk.changed('NodeDeleted', '/r/p', 13),
      zk.changed('NodeCreated', '/r/p', 14),
      zk.changed('NodeCreated', '/r/p/x', 15),
    );
    await zk.answer('getData /r/q', { czxid: 3, mzxid: 10 });
    await zk.answer('getData /r/p/x', { czxid: 15 });
    expect(cache.get('/r/p/x')).toBe(undefined);
    await zk.answer('getData /r/p', { czxid: 14, numChildren: 1 });
    await zk.answer('getChildren /r/p', { czxid: 14, numChildren: 1 }, ['x']);
    await zk.answer('getData /r/p/x', { czxid: 15 });
    expect(czxidOf(cache, '/r/p/x')).toBe(15n);
    expect(zk.reads).toEqual([]);
  });

  it('keeps the znodes of the new tree when its parents turn out to be new one by one', async () => {
    const { zk, cache, received } = await openInStep({ concurrency: 1 });
    await zk.tell(zk.changed('NodeCreated', '/r/p/x', 6));
    await zk.answer('getData /r/p/x', { czxid: 6 });
    received.length = 0;
    // p, p/x and p/x/1 are created anew, and events do not contain the txn.
    await zk.tell(
      zk.changed('NodeDataChanged', '/r/q'),
      zk.changed('NodeCreated', '/r/p/x/1'),
      zk.changed('NodeDataChanged', '/r/p'),
      zk.changed('NodeDeleted', '/r/p/x'),
    );
    await zk.answer('getData /r/q', { czxid: 3 });
    await zk.answer('getData /r/p/x/1', { czxid: 22 });
    await zk.answer('getData /r/p', { czxid: 20 });
    expect(cache.children('/r/p')).toEqual(['x']);
    await zk.answer('getData /r/p/x', { czxid: 21 });
    expect(received).toEqual(['created /r/p/x/1', 'deleted /r/p', 'created /r/p', 'deleted /r/p/x', 'created /r/p/x']);
    expect(['/r/p', '/r/p/x', '/r/p/x/1'].map((path) => czxidOf(cache, path))).toEqual([20n, 21n, 22n]);
    expect(cache.size).toBe(5);
  });

  it('finds the children of a znode that has become readable', async () => {
    const { zk, cache, received } = open();
    await zk.reread();
    await zk.answer('getData /r', { czxid: 1, numChildren: 1 });
    await zk.answer('getChildren /r', { czxid: 1, numChildren: 1 }, ['p']);
    await zk.refuse('getData /r/p', ErrorCode.NoAuth);
    expect(received).toEqual(['created /r', 'unreadable /r/p', 'inStep']);
    expect(cache.unreadable).toEqual(['/r/p']);
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 9));
    await zk.answer('getData /r/p', { czxid: 2, mzxid: 9, numChildren: 1 });
    await zk.answer('getChildren /r/p', { czxid: 2, mzxid: 9, numChildren: 1 }, ['x']);
    await zk.answer('getData /r/p/x', { czxid: 5 });
    expect(received.slice(3)).toEqual(['created /r/p', 'created /r/p/x']);
    expect(cache.unreadable).toEqual([]);
  });

  it('removes a znode from the unreadable ones when it is deleted', async () => {
    const { zk, cache, received } = await openInStep();
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 9), zk.changed('NodeDataChanged', '/r/q', 9));
    await zk.refuse('getData /r/p', ErrorCode.NoAuth);
    await zk.refuse('getData /r/q', ErrorCode.NoAuth);
    expect(cache.unreadable).toEqual(['/r/p', '/r/q']);
    await zk.tell(zk.changed('NodeDeleted', '/r/p', 10));
    expect(cache.unreadable).toEqual(['/r/q']);
    await zk.reread('reconnected');
    await zk.answer('getChildren /r', { czxid: 1 }, []);
    expect(cache.unreadable).toEqual([]);
    expect(received).toEqual(['unreadable /r/p', 'unreadable /r/q', 'outOfStep', 'inStep']);
  });

  it('reads nothing below a znode that it does not show', async () => {
    const { zk } = await openInStep({ include: (path) => path !== '/r/z', maxDepth: 2 });
    await zk.tell(
      zk.changed('NodeCreated', '/r/z', 8),
      zk.changed('NodeCreated', '/r/z/x', 9),
      zk.changed('NodeDataChanged', '/r/z/x', 10),
    );
    await zk.tell(zk.changed('NodeCreated', '/r/p/x/1', 11), zk.changed('NodeDeleted', '/r/z/x', 12));
    expect(zk.reads).toEqual([]);
  });

  it('is in step only when everything has been read since the last Reread', async () => {
    const { zk, cache, received } = await openInStep();
    await zk.reread('overflowed');
    await zk.answer('getChildren /r', { czxid: 1 }, ['p', 'q']);
    expect(zk.reads).toEqual(['getChildren /r/p', 'getChildren /r/q']);
    // Another one, before these are answered.
    await zk.reread('overflowed');
    await zk.answer('getChildren /r/p', { czxid: 2 });
    await zk.answer('getChildren /r/q', { czxid: 3 });
    expect(cache.isSynced).toBe(false);
    await zk.answer('getChildren /r', { czxid: 1 }, ['p', 'q']);
    await zk.answer('getChildren /r/p', { czxid: 2 });
    expect(cache.isSynced).toBe(false);
    await zk.answer('getChildren /r/q', { czxid: 3 });
    expect(cache.isSynced).toBe(true);
    expect(received).toEqual(['outOfStep', 'inStep']);
  });

  it('is not in step after a reply that was in flight when events were lost', async () => {
    const { zk, cache } = open();
    await zk.reread();
    await zk.reread('overflowed');
    await zk.answer('getData /r', { czxid: 1 });
    expect(cache.isSynced).toBe(false);
    await zk.answer('getChildren /r', { czxid: 1 });
    expect(cache.isSynced).toBe(true);
  });

  it('reads nothing while there is no connection, and everything after a reconnect', async () => {
    const { zk, received } = await openInStep({ concurrency: 1 });
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 8), zk.changed('NodeDataChanged', '/r/q', 9));
    await zk.disconnect();
    expect(zk.reads).toEqual([]);
    expect(received).toEqual(['outOfStep']);
    await zk.reread('reconnected');
    await zk.answer('getChildren /r', { czxid: 1 }, ['p', 'q']);
    await zk.answer('getChildren /r/p', { czxid: 2, mzxid: 8 });
    await zk.answer('getData /r/p', { czxid: 2, mzxid: 8 });
    await zk.answer('getChildren /r/q', { czxid: 3 });
    expect(received).toEqual(['outOfStep', 'changed /r/p', 'inStep']);
  });

  it('does not count a reply to a read sent before the Reread as a reply after it', async () => {
    const { zk, cache } = open();
    await zk.reread();
    await zk.answer('getData /r', { czxid: 1, numChildren: 2 });
    // While this is in flight the survey finds the same child.
    await zk.tell(zk.changed('NodeCreated', '/r/n', 8));
    await zk.answer('getChildren /r', { czxid: 1 }, ['n', 'p']);
    await zk.answer('getData /r/n', { czxid: 8 });
    await zk.answer('getData /r/p', { czxid: 2 });
    await zk.refuse('getChildren /r/n', ErrorCode.ThrottledOp);
    await zk.disconnect();
    zk.clock.advance(1000);
    await zk.tell();
    expect(zk.reads).toEqual([]);
    expect(cache.isSynced).toBe(false);
    await zk.reread('reconnected');
    await zk.answer('getChildren /r', { czxid: 1 }, ['n', 'p']);
    expect(cache.isSynced).toBe(false);
    await zk.answer('getChildren /r/n', { czxid: 8 });
    await zk.answer('getChildren /r/p', { czxid: 2 });
    expect(cache.isSynced).toBe(true);
  });

  it('drops repeated reads when the connection is lost', async () => {
    const { zk, cache } = open();
    await zk.reread();
    await zk.answer('getData /r', { czxid: 1, numChildren: 1 });
    await zk.tell(zk.changed('NodeCreated', '/r/n', 8));
    await zk.answer('getChildren /r', { czxid: 1 }, ['n']);
    await zk.disconnect();
    expect(zk.reads).toEqual([]);
    expect(cache.isSynced).toBe(false);
  });

  it('keeps its state when it is closed, and leaves no watch and no listener behind', async () => {
    const { zk, cache } = await openInStep();
    await zk.tell(zk.changed('NodeDataChanged', '/r/p', 8), zk.changed('NodeDataChanged', '/r/q', 8));
    await zk.tell(zk.changed('NodeDataChanged', '/r/q', 9), zk.changed('NodeCreated', '/r/n', 10));
    await zk.refuse('getData /r/p', ErrorCode.ThrottledOp);
    await cache.close();
    expect([zk.listeners, zk.clock.timerCount]).toEqual([0, 0]);
    await zk.answer('getData /r/q', { czxid: 3, mzxid: 8 });
    await zk.answer('getData /r/n', { czxid: 10 });
    zk.clock.advance(10_000);
    await zk.tell();
    expect(zk.reads).toEqual([]);
    expect(cache.size).toBe(3);
    expect(cache.get('/r/q')?.stat.mzxid).toBe(3n);
  });

  it('does not read unchanged data again when it reads everything again', async () => {
    const { zk, received } = await openInStep({ maxDepth: 1 });
    await zk.reread('reconnected');
    await zk.answer('getChildren /r', { czxid: 1 }, ['p', 'q']);
    await zk.answer('exists /r/p', { czxid: 2 });
    await zk.answer('exists /r/q', { czxid: 3, mzxid: 12 });
    await zk.answer('getData /r/q', { czxid: 3, mzxid: 12 });
    expect(received).toEqual(['outOfStep', 'changed /r/q', 'inStep']);
  });

  it('repeats a read after a pause, when the server was overloaded', async () => {
    const { zk, cache } = open();
    await zk.reread();
    await zk.refuse('getData /r', ErrorCode.ThrottledOp);
    expect(zk.reads).toEqual([]);
    zk.clock.advance(1000);
    await zk.tell();
    await zk.answer('getData /r', null);
    expect(cache.isSynced).toBe(true);
  });

  it('ends with the error when a retry cannot succeed', async () => {
    const { zk, cache, received } = open();
    const ready = cache.ready().catch((error: unknown) => error);
    await zk.reread();
    await zk.refuse('getData /r', ErrorCode.Unimplemented);
    expect(await ready).toMatchObject({ code: 'Unimplemented' });
    expect(received).toEqual(['failed']);
    expect(cache.isClosed).toBe(true);
    await expect(cache.changes().next()).rejects.toMatchObject({ code: 'Unimplemented' });
  });
});
