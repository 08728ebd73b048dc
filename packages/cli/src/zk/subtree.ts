/** Walks a subtree while other clients change it; skips znodes that are deleted during the walk. */
import { type CallOptions, type Client, KeeperError, type Stat, type WatchListener } from '@tskeeper/client';

/** Maximum number of requests in flight. */
const concurrency = 16;

export function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

/**
 * The znode and all its descendants, parents before children. Rejects with NoNode if the top does
 * not exist.
 */
export async function pathsBelow(client: Client, top: string, options: CallOptions): Promise<string[]> {
  const paths = [top];
  for (let at = 0; at < paths.length;) {
    const parents = paths.slice(at, at + concurrency);
    at += parents.length;
    const lists = await Promise.all(
      parents.map(async (parent) => {
        const children = parent === top ? await namesOf(client, parent, options) : await childrenOrNone(client, parent, options);
        return children.map((name) => childPath(parent, name));
      }),
    );
    // Not spread into one call: its arguments are on the stack.
    for (const list of lists) for (const path of list) paths.push(path);
  }
  return paths;
}

type ListOptions = CallOptions & { readonly watch?: WatchListener | undefined };

/** Children that a page has at most. */
const pageSize = 10_000;

/**
 * The names of all children and the Stat of the parent, in pages where the server has them: very many
 * do not fit into one reply.
 */
export async function allChildren(
  client: Client,
  path: string,
  options: ListOptions,
): Promise<{ children: readonly string[]; stat: Stat }> {
  const children: string[] = [];
  let stat: Stat | undefined;
  for await (const { name, parentStat } of client.children(path, { ...options, pageSize })) {
    children.push(name);
    stat ??= parentStat;
  }
  if (stat !== undefined) return { children, stat };
  // Only a child shows the Stat of its parent. The watch is set.
  const { watch: _, ...others } = options;
  return client.getChildren(path, others);
}

async function namesOf(client: Client, path: string, options: ListOptions): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of client.children(path, { ...options, pageSize })) names.push(name);
  return names;
}

async function childrenOrNone(client: Client, path: string, options: ListOptions): Promise<string[]> {
  try {
    return await namesOf(client, path, options);
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}

/**
 * The znode and all its descendants in the order of zkCli's `ls -R`: all children of a znode by
 * name, then the subtree of the first child, and so on. Sets a child watch on each znode, and a
 * data watch on the top.
 */
export async function* walkSubtree(client: Client, top: string, options: ListOptions): AsyncGenerator<string, void, undefined> {
  await client.getData(top, options);
  yield top;
  yield* walkChildren(client, top, childrenOrNone(client, top, options), options);
}

async function* walkChildren(
  client: Client,
  parent: string,
  listing: ReturnType<typeof childrenOrNone>,
  options: ListOptions,
): AsyncGenerator<string, void, undefined> {
  const paths = (await listing).map((name) => childPath(parent, name)).toSorted();
  yield* paths;
  // Request the next few lists before they are needed, to avoid one round trip per znode.
  const lists: ReturnType<typeof childrenOrNone>[] = [];
  for (const [index, path] of paths.entries()) {
    while (lists.length < Math.min(paths.length, index + concurrency)) {
      const list = childrenOrNone(client, paths[lists.length]!, options);
      // `walkChildren` receives the failure when it awaits this list; if it never does, the
      // failure does not matter.
      list.catch(() => undefined);
      lists.push(list);
    }
    yield* walkChildren(client, path, lists[index]!, options);
  }
}
