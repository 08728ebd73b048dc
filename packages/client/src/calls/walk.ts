/**
 * Over a subtree, with a bounded number of requests under way. Nobody stops the world for it: a znode that goes while the walk is on
 * is passed over, and one that comes may be seen or not.
 */
import { KeeperError } from '../keeper-error.ts';
import type { Stat } from '../stat.ts';
import type { CallOptions } from '../session/operation.ts';
import type { Bounds } from './bounds.ts';
import { childPath } from '../paths.ts';
import type { Znodes } from './znodes.ts';

/** A znode as a walk comes by it. */
export interface WalkedZnode {
  /** From the client's root on. */
  readonly path: string;
  /** As it was when its children were listed. */
  readonly stat: Stat;
  /** undefined unless `data` was asked for. */
  readonly data: Uint8Array | null | undefined;
}

export interface WalkSettings {
  readonly concurrency: number;
  readonly data: boolean;
  readonly retry: CallOptions['retry'];
}

interface Visit {
  readonly znode: WalkedZnode;
  readonly children: readonly string[];
}

/** Each znode ahead of what is below it. Throws NoNode when the top is not there. */
export async function* walk(
  znodes: Znodes,
  top: string,
  { concurrency, data, retry }: WalkSettings,
  bounds: Bounds,
): AsyncGenerator<WalkedZnode, void, undefined> {
  /** The youngest is visited first: so no more is kept than the siblings along one way down. */
  const ahead = [top];
  const underWay = new Set<Promise<void>>();
  const arrived: Visit[] = [];
  let failure: { readonly error: unknown } | undefined;

  const seek = async (path: string) => {
    try {
      const seen = await visit(znodes, path, path === top, data, retry, bounds);
      if (seen === undefined) return;
      arrived.push(seen);
      for (const name of seen.children) ahead.push(childPath(path, name));
    } catch (error) {
      failure ??= { error };
    }
  };
  const begin = (path: string) => {
    const visiting: Promise<void> = seek(path).finally(() => underWay.delete(visiting));
    underWay.add(visiting);
  };

  while (ahead.length > 0 || underWay.size > 0 || arrived.length > 0) {
    // What nobody has asked for yet counts as under way, so a slow reader slows the walk.
    while (ahead.length > 0 && underWay.size + arrived.length < concurrency) begin(ahead.pop()!);
    const next = arrived.shift();
    if (next !== undefined) yield next.znode;
    else await Promise.race(underWay);
    if (failure !== undefined) throw failure.error;
  }
}

async function visit(
  znodes: Znodes,
  path: string,
  isTop: boolean,
  withData: boolean,
  retry: CallOptions['retry'],
  bounds: Bounds,
): Promise<Visit | undefined> {
  try {
    if (!withData) {
      const { children, stat } = await znodes.getChildren(path, { ...bounds.left, retry });
      return { znode: { path, stat, data: undefined }, children };
    }
    const { data, stat } = await znodes.getData(path, { ...bounds.left, retry });
    return { znode: { path, stat, data }, children: stat.numChildren === 0 ? [] : await childrenOf(znodes, path, retry, bounds) };
  } catch (error) {
    if (!isTop && KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

/** What was there a moment ago is told of, though it has gone since. */
async function childrenOf(znodes: Znodes, path: string, retry: CallOptions['retry'], bounds: Bounds): Promise<readonly string[]> {
  try {
    const { children } = await znodes.getChildren(path, { ...bounds.left, retry });
    return children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
