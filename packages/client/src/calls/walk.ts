/**
 * Walks over a subtree with a limited number of pending requests. Other clients may change it
 * meanwhile: a znode that is deleted is skipped, and a new one may be seen or not.
 */
import { KeeperError } from '../keeper-error.ts';
import type { Stat } from '../stat.ts';
import type { CallOptions } from '../session/operation.ts';
import type { Bounds } from './bounds.ts';
import { childPath } from '../paths.ts';
import type { Znodes } from './znodes.ts';

/** A znode that a walk yields. */
export interface WalkedZnode {
  /** Path from the client's root. */
  readonly path: string;
  /** The Stat when its children were listed. */
  readonly stat: Stat;
  /** undefined without the option `data`. */
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

/** Yields each znode before its descendants. Throws NoNode if the top does not exist. */
export async function* walk(
  znodes: Znodes,
  top: string,
  { concurrency, data, retry }: WalkSettings,
  bounds: Bounds,
): AsyncGenerator<WalkedZnode, void, undefined> {
  /**
   * Visits the newest path first, so that it keeps no more than the siblings along one path to a
   * leaf.
   */
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
    // Results that the caller has not taken yet count as pending, so a slow caller slows the walk.
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

/** A znode that was read a moment ago is yielded even if it has been deleted since. */
async function childrenOf(znodes: Znodes, path: string, retry: CallOptions['retry'], bounds: Bounds): Promise<readonly string[]> {
  try {
    const { children } = await znodes.getChildren(path, { ...bounds.left, retry });
    return children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
