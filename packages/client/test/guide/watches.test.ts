/** Tests docs/guides/watches.md in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Client, op, type WatchedEvent } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import * as guide from './watches.ts';

let world: ClientWorld;
let other: Client;
let zk: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  await world.until(other.create('/a', '1'));
  await world.until(other.create('/a/b', '1'));
  zk = await world.connect();
});

afterEach(async () => {
  await world.close();
});

/** Breaks the connection of the client, and runs `doing` before it reconnects. */
async function whileAway(doing: () => Promise<unknown>): Promise<void> {
  world.break();
  const done = doing();
  await world.settle();
  expect(zk.state).toBe('suspended');
  await world.until(done);
  await world.untilSo(() => zk.state === 'connected');
  await world.settle();
}

test('a mirror is correct from the start, after each change, and after a lost connection', async () => {
  const stop = new AbortController();
  let copy: Readonly<Record<string, string>> = {};
  const over = guide.mirror(zk, '/a', (now) => (copy = Object.fromEntries(now)), stop.signal);
  await world.settle();
  expect(copy).toEqual({ '/a': '1', '/a/b': '1' });
  await world.until(other.setData('/a/b', '2'));
  await world.until(other.create('/a/c', '1'));
  await world.until(other.delete('/a/c'));
  expect(copy).toEqual({ '/a': '1', '/a/b': '2' });
  await whileAway(async () => {
    await other.delete('/a/b');
    await other.create('/a/d', '3');
  });
  expect(copy).toEqual({ '/a': '1', '/a/d': '3' });
  await world.until(other.deleteRecursive('/a'));
  expect(copy).toEqual({});
  stop.abort();
  await expect(over).rejects.toBe(stop.signal.reason);
});

/** Cuts the client off for longer than its session timeout, and runs `doing` meanwhile. */
async function untilExpired(doing: () => Promise<unknown>): Promise<void> {
  const { dialer, listener } = [...world.wire.cnxns].find(({ dialer: { address } }) => address === '10.1.0.2')!;
  world.wire.cut(dialer.address, listener.address);
  await world.pass(20_000);
  await world.until(doing());
  world.wire.heal(dialer.address, listener.address);
  await world.untilSo(() => zk.state === 'expired');
  await world.settle();
}

test('a mirror ends when its session expires, and a mirror of the next session is correct', async () => {
  const { signal } = new AbortController();
  const copies: Record<string, string>[] = [];
  const over = guide.mirror(zk, '/a', (now) => copies.push(Object.fromEntries(now)), signal).catch((error: unknown) => error);
  await world.settle();
  await untilExpired(() => other.setData('/a/b', '2'));
  expect(await over).toMatchObject({ code: 'SessionExpired', op: 'watch' });
  expect(copies).toEqual([{ '/a': '1', '/a/b': '1' }]);
  const next = await world.connect();
  void guide.mirror(next, '/a', (now) => copies.push(Object.fromEntries(now)), signal).catch(() => undefined);
  await world.settle();
  expect(copies.at(-1)).toEqual({ '/a': '1', '/a/b': '2' });
  await world.until(next.close());
});

test('a program that waits for the deletion of a znode gets SessionExpired when its session expires', async () => {
  const gone = guide.untilGone(zk, '/a').catch((error: unknown) => error);
  await world.settle();
  await untilExpired(() => other.deleteRecursive('/a'));
  expect(await gone).toMatchObject({ code: 'SessionExpired' });
});

test('a mirror is correct although its connection breaks while it reads', async () => {
  const stop = new AbortController();
  const copies: Record<string, string>[] = [];
  const over = guide.mirror(zk, '/a', (now) => copies.push(Object.fromEntries(now)), stop.signal);
  await world.settle();
  world.cnxn.backward.cut();
  const written = other.setData('/a/b', '2');
  await world.settle();
  world.break();
  await world.until(written);
  await world.untilSo(() => copies.length > 1);
  expect(copies.at(-1)).toEqual({ '/a': '1', '/a/b': '2' });
  stop.abort();
  await expect(over).rejects.toBe(stop.signal.reason);
});

test('a wait for the deletion of a znode resolves at once, later, or after a deletion during a lost connection', async () => {
  await world.until(guide.untilGone(zk, '/none'));
  const later = guide.untilGone(zk, '/a/b');
  await world.settle();
  await world.until(Promise.all([later, other.delete('/a/b')]));
  await world.until(other.create('/a/b'));
  const away = guide.untilGone(zk, '/a/b');
  await world.settle();
  await whileAway(() => other.delete('/a/b'));
  await world.until(away);
  const closed = guide.untilGone(zk, '/a');
  await world.settle();
  await Promise.all([expect(closed).rejects.toThrow('the client has been closed'), world.until(zk.close())]);
});

test('a one-shot watch delivers the next change, also a missed one, and the end of the session', async () => {
  const next = guide.nextChange(zk, '/a');
  await world.settle();
  await world.until(other.setData('/a', '2'));
  expect(await next).toMatchObject({ type: 'NodeDataChanged', path: '/a' });
  const missed = guide.nextChange(zk, '/a');
  await world.settle();
  await whileAway(() => other.setData('/a', '3'));
  expect(await missed).toMatchObject({ type: 'NodeDataChanged', zxid: undefined });
  const never = guide.nextChange(zk, '/a');
  await world.settle();
  await Promise.all([expect(never).rejects.toThrow('the session has ended: Closed'), world.until(zk.close())]);
});

test.each<[string, string, (zk: Client, watch: (event: WatchedEvent) => void) => Promise<unknown>, (by: Client) => Promise<unknown>]>([
  ['data changed', 'NodeDataChanged', (on, watch) => on.getData('/a/b', { watch }), (by) => by.setData('/a/b', '2')],
  ['a child was created', 'NodeChildrenChanged', (on, watch) => on.getChildren('/a', { watch }), (by) => by.create('/a/c')],
  ['it was deleted', 'NodeDeleted', (on, watch) => on.getData('/a/b', { watch }), (by) => by.delete('/a/b')],
  [
    'it was deleted and created again',
    'NodeDataChanged',
    (on, watch) => on.getData('/a/b', { watch }),
    (by) => by.multi([op.delete('/a/b'), op.create('/a/b')]),
  ],
  ['it was created', 'NodeCreated', (on, watch) => on.exists('/new', { watch }), (by) => by.create('/new')],
])('a one-shot watch delivers once, after the reconnect, that %s', async (_, type, set, change) => {
  const received: string[] = [];
  await world.until(set(zk, (event) => event.type !== 'None' && received.push(event.type)));
  await whileAway(() => change(other));
  expect(received).toEqual([type]);
});

test('a one-shot watch does not deliver a znode that was created and deleted during a lost connection', async () => {
  let received = false;
  const next = guide.nextChange(zk, '/new').then(() => (received = true));
  await world.settle();
  await whileAway(async () => {
    await other.create('/new');
    await other.delete('/new');
  });
  expect(received).toBe(false);
  await world.until(other.create('/new'));
  await world.until(next);
});

test('a persistent watch misses changes during a lost connection, and the Reread says since when', async () => {
  const lines: string[] = [];
  const end = await world.until(guide.report(zk, '/a', (line) => lines.push(line)));
  await world.until(other.setData('/a/b', '2'));
  await whileAway(() => other.setData('/a/b', '3'));
  await world.until(other.setData('/a/b', '4'));
  await world.until(end());
  await world.until(other.setData('/a/b', '5'));
  expect(lines).toEqual([
    'NodeDataChanged /a/b',
    'from here on changes may be missing',
    'NodeDataChanged /a/b',
    'PersistentWatchRemoved /a',
  ]);
});
