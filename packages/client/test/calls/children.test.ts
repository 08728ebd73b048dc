/** Children listed page by page, from servers that have pages and from servers that do not. */
import { openAcl, Perms } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, type ListedChild, op } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { text } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

const count = 25;
const names = Array.from({ length: count }, (_, i) => `n${i}`);

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  zk = await world.connect();
  await go(other.multi([op.create('/p'), ...names.map((name) => op.create(`/p/${name}`, `data of ${name}`))]));
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const sortedNames = (children: readonly ListedChild[]): string[] => children.map(({ name }) => name).toSorted();

/** A znode at this path hides the features of the server: to clients it is like ZooKeeper's. */
async function hideFeatures(): Promise<void> {
  await go(other.create('/zookeeper/tskeeper', 'none'));
}

describe.each([{ pages: true }, { pages: false }])('children of a server with pages: $pages', ({ pages }) => {
  beforeEach(async () => {
    if (!pages) await hideFeatures();
  });

  it('D10: yields every child once, with data and Stat if requested', async () => {
    for (const pageSize of [1, 4, count, 1000]) {
      const found = await go(all(zk.children('/p', { pageSize })));
      expect(sortedNames(found)).toEqual(names.toSorted());
      expect(
        found.every(({ data, stat, parentStat }) => data === undefined && stat === undefined && parentStat.numChildren === count),
      ).toBe(true);
      const withData = await go(all(zk.children('/p', { pageSize, data: true })));
      expect(sortedNames(withData)).toEqual(names.toSorted());
      for (const { name, data, stat } of withData) {
        expect(text(data)).toBe(`data of ${name}`);
        expect(stat!.dataLength).toBe(data!.length);
      }
    }
    const returned = await go(zk.getChildrenWithData('/p', { pageSize: 7 }));
    expect(sortedNames(returned)).toEqual(names.toSorted());
    expect(text(returned.find(({ name }) => name === 'n3')!.data)).toBe('data of n3');
    expect(await go(all(zk.children('/p/n1')))).toEqual([]);
    expect(sortedNames(await go(all(zk.children('/'))))).toEqual(['p', 'zookeeper']);
    expect(sortedNames(await go(all(zk.chroot('/p').children('/', { linearizable: true }))))).toEqual(names.toSorted());
  });

  it('D10: misses and doubles no child that exists all the time', async () => {
    const found: string[] = [];
    const listing = (async () => {
      for await (const { name } of zk.children('/p', { pageSize: 3, data: true })) {
        found.push(name);
        // The last child of a page, one of the next page, and one that comes last.
        if (found.length % 3 === 0 && found.length < 12) {
          await other.delete(`/p/${name}`);
          await other.create(`/p/${name}`);
          await other.create(`/p/new${found.length}`);
        }
      }
    })();
    await go(listing);
    expect(new Set(found).size).toBe(found.length);
    expect(names.filter((name) => !found.includes(name))).toEqual([]);
    expect(found.filter((name) => name.startsWith('new'))).toEqual([]);
  });

  it('D10: reports no data of a child that the client may not read', async () => {
    await go(other.setACL('/p/n2', [{ perms: Perms.all & ~Perms.read, id: { scheme: 'world', id: 'anyone' } }]));
    const found = await go(zk.getChildrenWithData('/p'));
    expect(found).toHaveLength(count);
    expect(found.filter(({ stat }) => stat === undefined).map(({ name }) => name)).toEqual(['n2']);
    await go(other.setACL('/p', [{ perms: Perms.admin, id: { scheme: 'world', id: 'anyone' } }]));
    await expect(go(zk.getChildrenWithData('/p'))).rejects.toMatchObject({ code: 'NoAuth', op: 'getChildrenWithData', path: '/p' });
    await go(other.setACL('/p', openAcl));
  });

  it('D10: a watch reports the first change after the first page, and only one', async () => {
    const events: string[] = [];
    const listing = zk.children('/p', { pageSize: 2, watch: ({ type, path }) => events.push(`${type} ${path}`) });
    await go(listing.next());
    await go(other.create('/p/late'));
    await world.settle();
    expect(events).toEqual(['NodeChildrenChanged /p']);
    await go(all(listing));
    await go(other.create('/p/later'));
    await world.settle();
    expect(events).toHaveLength(1);
  });

  it('D10: continues after a lost connection, with retries', async () => {
    const found: string[] = [];
    const listing = (async () => {
      for await (const { name } of zk.children('/p', { pageSize: 2, data: true, retry: true })) {
        found.push(name);
        if (found.length === 5) world.cnxn.backward.resetAfter(0);
      }
    })();
    await go(listing);
    expect(found.toSorted()).toEqual(names.toSorted());
  });

  it('D10: fails with the errors of reads, and ends with its signal', async () => {
    await expect(go(zk.children('/nothing').next())).rejects.toMatchObject({ code: 'NoNode', op: 'children', path: '/nothing' });
    await expect(go(zk.children('nothing').next())).rejects.toMatchObject({ code: 'BadArguments' });
    expect(() => zk.children('/p', { pageSize: 0 })).toThrow(RangeError);
    const controller = new AbortController();
    const listing = zk.children('/p', { pageSize: 1, data: true, signal: controller.signal });
    await go(listing.next());
    controller.abort(new Error('enough'));
    await expect(go(all(listing))).rejects.toThrow('enough');
  });
});

it('D10: E5: lists a parent whose names do not fit into a packet, and data that fill one', async () => {
  const small = await world.connect({ maxPacketBytes: 2000 });
  const long = Array.from({ length: 60 }, (_, i) => `${'long'.repeat(25)}${i}`);
  await go(other.multi([op.create('/l'), ...long.map((name) => op.create(`/l/${name}`, 'x'.repeat(1000)))]));
  await go(other.create('/l/huge', 'x'.repeat(5000)));
  expect(sortedNames(await go(all(small.children('/l'))))).toEqual([...long, 'huge'].toSorted());
  await go(other.setData('/l/huge', 'x'.repeat(1950)));
  const found = await go(small.getChildrenWithData('/l'));
  expect(sortedNames(found)).toEqual([...long, 'huge'].toSorted());
  expect(found.at(-1)!.data).toHaveLength(1950);
  // The same in one answer is too long for it.
  await expect(go(small.getChildren('/l'))).rejects.toMatchObject({ code: 'ConnectionLoss' });
});

it('D10: finishes at a server without pages what a server with pages has begun', async () => {
  const found: string[] = [];
  const listing = (async () => {
    for await (const { name } of zk.children('/p', { pageSize: 4, retry: true })) {
      found.push(name);
      if (found.length !== 10) continue;
      await other.create('/zookeeper/tskeeper', 'none');
      await other.create('/p/late');
      await other.delete('/p/n24');
      world.cnxn.backward.resetAfter(0);
    }
  })();
  await go(listing);
  expect(found.toSorted()).toEqual(names.filter((name) => name !== 'n24').toSorted());
});

it.each([false, true])(
  'D10: P26: lists a child that may not be read once, also when the next server has no pages, data: %s',
  async (data) => {
    const found: string[] = [];
    const unreadable = [{ perms: Perms.all & ~Perms.read, id: { scheme: 'world', id: 'anyone' } }];
    await go(other.setACL('/p/n1', unreadable));
    await go(other.setACL('/p/n20', unreadable));
    const listing = (async () => {
      for await (const { name } of zk.children('/p', { pageSize: 4, data, retry: true })) {
        found.push(name);
        if (found.length !== 10) continue;
        // One more that cannot be read by now, and has been listed.
        await other.setACL('/p/n2', unreadable);
        await other.create('/zookeeper/tskeeper', 'none');
        world.cnxn.backward.resetAfter(0);
      }
    })();
    await go(listing);
    expect(found.toSorted()).toEqual(names.toSorted());
  },
);
