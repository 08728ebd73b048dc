/**
 * Code that does not compile. The compiler checks the assertions (`npm run check`); none of this is
 * run.
 */
import type { Client, ClientView, KeeperError, Stat } from '@tskeeper/client';
import { expectTypeOf, it } from 'vitest';
import { type CachedZnode, ChildrenCache, NodeCache, TreeCache } from '../../src/index.ts';

declare const zk: Client;
declare const view: ClientView;

export async function caches(): Promise<void> {
  const node = new NodeCache(zk, '/a', { decode: (data) => Number(data?.length) });
  expectTypeOf(node.znode).toEqualTypeOf<CachedZnode<number> | undefined>();
  expectTypeOf(node.znode?.data).toEqualTypeOf<number | undefined>();
  const children = new ChildrenCache(view, '/a', { include: (name) => name !== '' });
  expectTypeOf(children.get('x')?.data).toEqualTypeOf<Uint8Array | null | undefined>();
  expectTypeOf(children.get('x')?.stat).toEqualTypeOf<Stat | undefined>();

  // @ts-expect-error there are no levels below one znode
  void new NodeCache(zk, '/a', { maxDepth: 1 });
  // @ts-expect-error nor below children
  void new ChildrenCache(zk, '/a', { maxDepth: 2 });
  // @ts-expect-error what is shown cannot be changed
  if (node.znode !== undefined) node.znode.data = 7;
  // @ts-expect-error not even its Stat
  if (node.znode !== undefined) node.znode.stat.version = 7;

  const tree = new TreeCache(zk, '/a', { decode: (_data, path) => path });
  for await (const change of tree.changes()) {
    // @ts-expect-error a mark has no path: a loop that forgets marks does not compile
    void change.path;
    switch (change.kind) {
      case 'created':
        expectTypeOf(change.before).toEqualTypeOf<undefined>();
        expectTypeOf(change.after).toEqualTypeOf<CachedZnode<string>>();
        break;
      case 'changed':
        expectTypeOf(change.before).toEqualTypeOf<CachedZnode<string>>();
        break;
      case 'deleted':
        expectTypeOf(change.after).toEqualTypeOf<undefined>();
        break;
      case 'unreadable':
        expectTypeOf(change.error).toEqualTypeOf<KeeperError>();
        break;
      case 'outOfStep':
      case 'inStep':
        break;
      case 'overflowed':
        expectTypeOf(change.dropped).toEqualTypeOf<number>();
        break;
      default:
        change satisfies never;
    }
  }
}

it('the types of caches describe what they show and report', () => {
  expectTypeOf(caches).returns.resolves.toBeVoid();
});
