/**
 * Walks over a subtree with a limited number of pending requests. Other clients may change it
 * meanwhile: a znode that is deleted is skipped, and a new one may be seen or not.
 */
import { KeeperError } from '../keeper-error.ts';
import type { Stat } from '../stat.ts';
import type { CallOptions } from './call-options.ts';
import type { CallDeadline } from './call-deadline.ts';
import { childNames, type PageCalls } from './children.ts';
import { childPath } from '../paths.ts';

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
  znodes: PageCalls,
  root: string,
  { concurrency, data, retry }: WalkSettings,
  deadline: CallDeadline,
): AsyncGenerator<WalkedZnode, void, undefined> {
  /**
   * Visits the newest path first, so that it keeps no more than the siblings along one path to a
   * leaf.
   */
  const stack = [root];
  const inFlight = new Set<Promise<void>>();
  const ready: Visit[] = [];
  let failure: { readonly error: unknown } | undefined;

  const visitPath = async (path: string) => {
    try {
      const seen = await visit(znodes, path, path === root, data, retry, deadline);
      if (seen === undefined) return;
      ready.push(seen);
      for (const name of seen.children) stack.push(childPath(path, name));
    } catch (error) {
      failure ??= { error };
    }
  };
  const startVisit = (path: string) => {
    const visiting: Promise<void> = visitPath(path).finally(() => inFlight.delete(visiting));
    inFlight.add(visiting);
  };

  while (stack.length > 0 || inFlight.size > 0 || ready.length > 0) {
    // Results that the caller has not taken yet count as pending, so a slow caller slows the walk.
    while (stack.length > 0 && inFlight.size + ready.length < concurrency) startVisit(stack.pop()!);
    const next = ready.shift();
    if (next !== undefined) yield next.znode;
    else await Promise.race(inFlight);
    if (failure !== undefined) throw failure.error;
  }
}

async function visit(
  znodes: PageCalls,
  path: string,
  isRoot: boolean,
  withData: boolean,
  retry: CallOptions['retry'],
  deadline: CallDeadline,
): Promise<Visit | undefined> {
  try {
    if (!withData) {
      const { children, stat } = await childNames(znodes, path, retry, deadline);
      return { znode: { path, stat, data: undefined }, children };
    }
    const { data, stat } = await znodes.getData(path, { ...deadline.requestLimits, retry });
    return { znode: { path, stat, data }, children: stat.numChildren === 0 ? [] : await childrenOf(znodes, path, retry, deadline) };
  } catch (error) {
    if (!isRoot && KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

/** A znode that was read a moment ago is yielded even if it has been deleted since. */
async function childrenOf(
  znodes: PageCalls,
  path: string,
  retry: CallOptions['retry'],
  deadline: CallDeadline,
): Promise<readonly string[]> {
  try {
    const { children } = await childNames(znodes, path, retry, deadline);
    return children;
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
