/**
 * Places that a server does not delete, as an ACL forbids it, from the beginning or after a change.
 */
import type { Acl, Client } from '@tskeeper/client';
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Election, EventHandle, Lock, MultiLock, PriorityLock, Queue, Semaphore } from '../../src/index.ts';
import { fated } from '../support/fates.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/kept';
const withoutDelete: readonly Acl[] = [{ perms: 0b10111, id: { scheme: 'world', id: 'anyone' } }];
const all: readonly Acl[] = [{ perms: 0b11111, id: { scheme: 'world', id: 'anyone' } }];

describe('a client that may not leave the queue of waiters', () => {
  const ways: Record<string, { readonly line: string; readonly holds: string; readonly have: (zk: Client) => Promise<unknown> }> = {
    'Semaphore.acquire': { line: 'locks', holds: 'leases', have: (zk) => new Semaphore(zk, path, { size: 2 }).acquire() },
    'Semaphore.acquireMany': { line: 'locks', holds: 'leases', have: (zk) => new Semaphore(zk, path, { size: 2 }).acquireMany(2) },
    'Semaphore.tryAcquire': { line: 'locks', holds: 'leases', have: (zk) => new Semaphore(zk, path, { size: 2 }).tryAcquire() },
    'PriorityLock.acquire': { line: 'waiting', holds: 'holding', have: (zk) => new PriorityLock(zk, path).writeLock(1).acquire() },
    'PriorityLock.tryAcquire': { line: 'waiting', holds: 'holding', have: (zk) => new PriorityLock(zk, path).readLock(1).tryAcquire() },
  };

  it.each(Object.entries(ways))('is rejected, and holds nothing that it could not release: %s', async (_name, { line, holds, have }) => {
    await t.until(t.zk.create(path, '2'));
    await t.until(t.zk.create(`${path}/${line}`, '', { acl: withoutDelete }));
    const zk = await t.client();
    expect(await t.until(failureOf(have(zk)))).toMatchObject({ name: 'KeeperError', code: 'NoAuth', op: 'delete' });
    await t.settle();
    expect(await t.childrenOf(`${path}/${holds}`)).toEqual([]);
    // It blocks the queue until it is deleted, or the session ends.
    expect(await t.childrenOf(`${path}/${line}`)).toHaveLength(1);
    await t.until(zk.close());
    await t.until(t.zk.setACL(`${path}/${line}`, all));
    expect(await t.until(have(t.zk))).toBeDefined();
  });
});

describe('a hold that may not be released', () => {
  it('can be released later, when that is allowed', async () => {
    const zk = await t.client();
    const lock = await t.until(new Lock(zk, `${path}/a`).acquire());
    const again = lock.share();
    const both = await t.until(new MultiLock([new Lock(zk, `${path}/b`), new Lock(zk, `${path}/c`)]).acquire());
    const leadership = await t.until(new Election(zk, `${path}/d`).lead());
    const ways = [() => again.release(), () => both.release(), () => leadership.resign()];
    for (const each of ['a', 'b', 'd']) await t.until(t.zk.setACL(`${path}/${each}`, withoutDelete));
    await t.until(lock.release());
    for (const giveBack of ways) expect(await t.until(failureOf(giveBack()))).toMatchObject({ code: 'NoAuth' });
    expect([again.state, both.state, leadership.state]).toEqual(['released', 'released', 'released']);
    for (const each of ['a', 'b', 'd']) await t.until(t.zk.setACL(`${path}/${each}`, all));
    for (const giveBack of ways) await t.until(giveBack());
    for (const each of ['a', 'b', 'c', 'd']) expect(await t.childrenOf(`${path}/${each}`)).toEqual([]);
  });
});

describe('a client that has got what it queued for, and then may not leave the queue', () => {
  const refusing = () => fated(t, ({ opCode }) => (opCode === OpCode.delete ? { refused: ErrorCode.NoAuth } : undefined));

  it('resolves if it has taken an event, which no other waiter can take', async () => {
    const event = new EventHandle(await refusing(), path, { autoReset: true });
    await t.until(new EventHandle(t.zk, path, { autoReset: true }).set());
    await t.until(event.wait());
    expect(await t.until(event.isSet())).toBe(false);
  });

  it('is rejected, as its next put would wait for its own place; the item is still put', async () => {
    const queue = new Queue(await refusing(), path, { maxItems: 2 });
    expect(await t.until(failureOf(queue.put('a')))).toMatchObject({ code: 'NoAuth', op: 'delete' });
    expect(await t.until(queue.size())).toBe(1);
  });
});
