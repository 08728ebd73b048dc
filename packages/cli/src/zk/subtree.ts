/** Walks over a tree that others change meanwhile: a znode that goes while it is on the way is passed over. */
import { type CallOptions, type Client, KeeperError, type WatchListener } from '@tskeeper/client';

/** How many requests are under way at once. */
const ahead = 16;

export function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}

/** The znode and everything below it, parents before their children. Rejects with NoNode when the top is not there. */
export async function pathsBelow(client: Client, top: string, options: CallOptions): Promise<string[]> {
  const paths = [top];
  for (let at = 0; at < paths.length;) {
    const parents = paths.slice(at, at + ahead);
    at += parents.length;
    const lists = await Promise.all(
      parents.map(async (parent) => {
        const children = parent === top ? await client.getChildren(parent, options) : await childrenOrNone(client, parent, options);
        return children.children.map((name) => childPath(parent, name));
      }),
    );
    for (const list of lists) paths.push(...list);
  }
  return paths;
}

async function childrenOrNone(client: Client, path: string, options: CallOptions & { readonly watch?: WatchListener | undefined }) {
  try {
    return await client.getChildren(path, options);
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return { children: [] };
    throw error;
  }
}

/**
 * The znode and everything below it in the order of zkCli's `ls -R`: all children of a znode by name, then what is below the first of
 * them, and so on. A watch is set on each znode's list of children, and on the data of the top.
 */
export async function* visitBelow(
  client: Client,
  top: string,
  options: CallOptions & { readonly watch?: WatchListener | undefined },
): AsyncGenerator<string, void, undefined> {
  await client.getData(top, options);
  yield top;
  yield* visitChildren(client, top, childrenOrNone(client, top, options), options);
}

async function* visitChildren(
  client: Client,
  parent: string,
  asked: ReturnType<typeof childrenOrNone>,
  options: CallOptions & { readonly watch?: WatchListener | undefined },
): AsyncGenerator<string, void, undefined> {
  const paths = (await asked).children.map((name) => childPath(parent, name)).toSorted();
  yield* paths;
  // The next few are asked for before they are needed, so that not every znode costs a round trip.
  const lists: ReturnType<typeof childrenOrNone>[] = [];
  for (const [index, path] of paths.entries()) {
    while (lists.length < Math.min(paths.length, index + ahead)) {
      const list = childrenOrNone(client, paths[lists.length]!, options);
      // Whoever gets to it hears of a failure; if nobody does, nobody has to.
      list.catch(() => undefined);
      lists.push(list);
    }
    yield* visitChildren(client, path, lists[index]!, options);
  }
}
