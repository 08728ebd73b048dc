/** Caches against our server, over real sockets. */
import { type Client, connect } from '@tskeeper/client';
import { TestServer } from '@tskeeper/testing';
import { expect, it } from 'vitest';
import { type Cache, type CacheChange, ChildrenCache, NodeCache, TreeCache } from '../../src/index.ts';

const width = 40;

async function build(zk: Client): Promise<void> {
  await zk.create('/big', 'root');
  const parents = Array.from({ length: width }, (_, index) => `/big/${index}`);
  await Promise.all(parents.map((path) => zk.create(path, path)));
  await Promise.all(parents.flatMap((path) => parents.map((_, index) => zk.create(`${path}/${index}`, `${path}/${index}`))));
}

const paths = (znodes: Iterable<{ readonly path: string; readonly stat: { readonly mzxid: bigint } }>) =>
  Array.from(znodes, ({ path, stat }) => `${path} ${stat.mzxid}`).toSorted();

async function read(zk: Client): Promise<string[]> {
  const znodes = [];
  for await (const znode of zk.walk('/big')) znodes.push(znode);
  return paths(znodes);
}

/** Consumes changes until the condition holds. */
async function until<Data>(cache: Cache<Data>, isSo: () => boolean): Promise<void> {
  const changes = cache.changes();
  while (!isSo()) await changes.next();
  await changes.return();
}

it('B20, B21: caches follow a tree of 1,641 znodes through churn, lost connections and restarts of the server', async () => {
  await using server = await TestServer.start();
  await using writer = await connect(server.connectString, { retry: true });
  await using zk = await connect(server.connectString);
  await build(writer);
  await using tree = new TreeCache(zk, '/big');
  await using children = new ChildrenCache(zk, '/big/0');
  await using node = new NodeCache(zk, '/big/1/1');
  await Promise.all([tree, children, node].map((cache) => cache.ready()));
  expect([tree.size, children.size]).toEqual([1 + width + width * width, width]);

  const replayed = new Map<string, bigint>([...tree].map(({ path, stat }) => [path, stat.mzxid]));
  const marks: CacheChange['kind'][] = [];
  let received = () => {};
  const note = async () => {
    for await (const change of tree.changes()) {
      if (!('path' in change)) marks.push(change.kind);
      else if (change.after === undefined) replayed.delete(change.path);
      else replayed.set(change.path, change.after.stat.mzxid);
      received();
    }
  };
  const replay = () => Array.from(replayed, ([path, mzxid]) => `${path} ${mzxid}`).toSorted();
  const noting = note();

  const troubles = [() => server.cutConnections(zk.sessionId), () => server.restart()];
  for (const [round, trouble] of troubles.entries()) {
    const writes = Array.from({ length: width }, async (_, index) => {
      await writer.setData(`/big/1/${index}`, `new ${round}`, { idempotent: true });
      await writer.delete(`/big/${2 + round}/${index}`, { idempotent: true });
      await writer.update(`/big/2/again ${index}`, () => `in round ${round}`, { create: true, idempotent: true });
    });
    await trouble();
    await Promise.all(writes);
  }
  const last = await writer.setData('/big/1/1', 'the last');
  await writer.create('/big/0/more');
  const expected = await read(writer);
  const isReplayed = () =>
    replayed.get('/big/1/1') === last.mzxid && replayed.size === expected.length && replay().join() === expected.join();
  while (!isReplayed() || marks.length < 2) await new Promise<void>((resolve) => (received = resolve));
  expect(paths(tree)).toEqual(expected);
  expect(marks.slice(0, 2)).toEqual(['outOfStep', 'inStep']);
  await until(children, () => children.get('more') !== undefined);
  await until(node, () => node.znode?.stat.mzxid === last.mzxid);
  expect(node.znode?.stat).toEqual(last);
  await tree.ready();
  await tree.close();
  await noting;
});
