/** Recipes with any server of ZooKeeper's protocol. */
import assert from 'node:assert/strict';

import { type Client, creatorAcl, op } from '@tskeeper/client';
import { type Cache, ChildrenCache, NodeCache, TreeCache } from '@tskeeper/recipes';

import type { Check } from './checks.ts';

const utf8 = new TextDecoder();

/** Path and version of each znode. */
const versionsText = (
  znodes: Iterable<{ readonly path: string; readonly stat: { readonly czxid: bigint; readonly mzxid: bigint } }>,
): string[] => Array.from(znodes, ({ path, stat }) => `${path} ${stat.czxid} ${stat.mzxid}`).sort();

async function readVersions(zk: Client, top: string): Promise<string[]> {
  const znodes = [];
  for await (const znode of zk.walk(top)) znodes.push(znode);
  return versionsText(znodes);
}

/** Waits for changes until the condition holds. */
async function untilCache<Data>(cache: Cache<Data>, isSo: () => boolean): Promise<void> {
  const changes = cache.changes({ signal: AbortSignal.timeout(20_000) });
  while (!isSo()) await changes.next();
  await changes.return();
}

export const clientCacheChecks: readonly Check[] = [
  {
    name: 'caches that follow a tree, also after a lost connection',
    async run({ open, openThroughProxy, proxy, root }) {
      const [zk, other] = [await openThroughProxy(), await open()];
      for (const path of ['', '/a', '/a/1', '/a/1/i', '/b']) await other.create(`${root}/t${path}`, `of ${path}`);
      await using tree = new TreeCache(zk, `${root}/t`);
      await using children = new ChildrenCache(zk, `${root}/t/a`);
      await using node = new NodeCache(zk, `${root}/t/b`, { decode: (data) => utf8.decode(data ?? undefined) });
      const caches = [tree, children, node];
      await Promise.all(caches.map((cache) => cache.ready({ timeoutMs: 20_000 })));
      assert.deepEqual([...tree].length, 5);
      assert.deepEqual(children.names, ['1']);
      assert.equal(node.znode?.data, 'of /b');

      await other.setData(`${root}/t/b`, 'changed');
      await other.create(`${root}/t/a/2`);
      await other.delete(`${root}/t/a/1/i`);
      await other.multi([op.delete(`${root}/t/a/1`), op.create(`${root}/t/a/1`, 'again')]);
      await other.create(`${root}/t/last`);
      await untilCache(tree, () => tree.get(`${root}/t/last`) !== undefined);
      assert.deepEqual(versionsText(tree), await readVersions(other, `${root}/t`));
      await untilCache(children, () => utf8.decode(children.get('1')?.data ?? undefined) === 'again');
      await untilCache(node, () => node.znode?.data === 'changed');

      const lost = untilCache(tree, () => !tree.isSynced);
      proxy.cutAndHold();
      await lost;
      await other.setData(`${root}/t/b`, 'while away');
      await other.deleteRecursive(`${root}/t/a`);
      await other.create(`${root}/t/a`, 'new');
      proxy.release();
      await Promise.all(caches.map((cache) => cache.ready({ timeoutMs: 20_000 })));
      assert.deepEqual(versionsText(tree), await readVersions(other, `${root}/t`));
      assert.deepEqual([children.names, node.znode?.data], [[], 'while away']);
      // Changes are reported again on the new connection.
      await other.create(`${root}/t/a/3`);
      await untilCache(children, () => children.get('3') !== undefined);
      await other.deleteRecursive(`${root}/t`);
      await untilCache(tree, () => tree.size === 0);
    },
  },
  {
    name: 'a cache beside others on its path, and beside the watches of a lock below it',
    async run({ open, root }) {
      const [zk, other] = [await open(), await open()];
      await other.create(`${root}/l`);
      await using tree = new TreeCache(zk, `${root}/l`);
      await tree.ready({ timeoutMs: 20_000 });
      const second = new TreeCache(zk, `${root}/l`, { data: false });
      await using children = new ChildrenCache(zk, `${root}/l`);
      await Promise.all([second, children].map((cache) => cache.ready({ timeoutMs: 20_000 })));
      await other.create(`${root}/l/1`, null, { mode: 'ephemeral' });
      await untilCache(second, () => second.size === 2);
      await second.close();

      // Like a client that waits for a lock.
      let released = () => {};
      const release = new Promise<void>((resolve) => {
        released = resolve;
      });
      assert.notEqual(await zk.exists(`${root}/l/1`, { watch: ({ type }) => type === 'NodeDeleted' && released() }), null);
      await zk.getChildren(`${root}/l/1`, { watch: true });
      await other.delete(`${root}/l/1`);
      await release;
      await untilCache(tree, () => tree.size === 1);
      await other.create(`${root}/l/1`, 'x');
      await untilCache(children, () => children.get('1') !== undefined);
      await other.setData(`${root}/l/1`, 'y');
      await untilCache(tree, () => tree.get(`${root}/l/1`)?.stat.version === 1);
    },
  },
  {
    name: 'a cache of a view with an unreadable part',
    async run({ open, root }) {
      const [zk, owner] = [await open(), await open({ auth: [{ scheme: 'digest', auth: 'owner:secret' }] })];
      await owner.create(`${root}/v/mine`, null, { parents: true, acl: creatorAcl });
      await owner.setACL(`${root}/v`, (await owner.getACL(root)).acl);
      await owner.create(`${root}/v/mine/below`);
      await owner.create(`${root}/v/open`);
      await using cache = new TreeCache(zk.chroot(`${root}/v`), '/');
      await cache.ready({ timeoutMs: 20_000 });
      assert.deepEqual([cache.children('/'), cache.unreadable], [['open'], ['/mine']]);
      await owner.create(`${root}/v/open/x`, 'x');
      await untilCache(cache, () => cache.get('/open/x') !== undefined);
      assert.deepEqual(
        Array.from(cache, ({ path }) => path),
        ['/', '/open', '/open/x'],
      );
    },
  },
];
