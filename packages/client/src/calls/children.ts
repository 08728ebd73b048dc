/**
 * Lists the children of a znode page by page, however many there are, while other clients may
 * change them.
 *
 * Servers of this project list children in the order of their creation, from a position that every
 * such server knows, so a page may come from another server than the one before it. Other servers
 * list all children at once; then only data and Stats are read page by page.
 *
 * Either way a child that exists all the time is yielded once. Children created after the first
 * page are left out, so that a listing ends however fast children are created.
 */
import { KeeperError } from '../keeper-error.ts';
import { type ChildCursor, type ChildrenPage, firstChild, type PageChild, type PageSettings } from '../operations/children-pages.ts';
import { childPath } from '../paths.ts';
import type { Stat } from '../stat.ts';
import type { WatchListener } from '../watched-event.ts';
import type { CallDeadline } from './call-deadline.ts';
import type { CallOptions } from './call-options.ts';
import type { ZnodeCalls } from './znode-calls.ts';

/** A child that `children` and `getChildrenWithData` return. */
export interface ListedChild {
  /** Its name, not its path. */
  readonly name: string;
  /**
   * Its data; a copy that the program may change. undefined without the option `data`, and for a
   * child that the client may not read.
   */
  readonly data: Uint8Array | null | undefined;
  /** Its Stat at the same moment; undefined as `data` is. */
  readonly stat: Stat | undefined;
  /**
   * The Stat of the parent when the page with this child was read. If `pzxid` differs from that of
   * an earlier child, children were created or deleted in between.
   */
  readonly parentStat: Stat;
}

export interface ListSettings {
  readonly pageSize: number;
  readonly data: boolean;
  readonly watch: WatchListener | true | undefined;
  readonly retry: CallOptions['retry'];
}

export interface PageCalls extends ZnodeCalls {
  /** undefined: the connected server has no pages. */
  childrenPage(
    path: string,
    settings: PageSettings,
    options: CallOptions & { readonly watch: WatchListener | true | undefined },
  ): Promise<ChildrenPage | undefined>;
  getChildren(
    path: string,
    options: CallOptions & { readonly watch?: WatchListener | true | undefined },
  ): Promise<{ readonly children: readonly string[]; readonly stat: Stat }>;
}

/** Throws NoNode if the parent does not exist, or no longer exists. */
export async function* listChildren(
  znodes: PageCalls,
  path: string,
  settings: ListSettings,
  deadline: CallDeadline,
): AsyncGenerator<ListedChild, void, undefined> {
  const { pageSize, data, retry } = settings;
  let { watch } = settings;
  let after: ChildCursor | undefined = firstChild;
  let untilZxid = -1;
  const listed = new ListedNames();
  while (after !== undefined) {
    const position: ChildCursor = after;
    const pageSettings = { after: position, untilZxid, countMax: pageSize, data };
    const page = await znodes.childrenPage(path, pageSettings, { ...deadline.requestLimits, retry, watch });
    if (page === undefined) {
      yield* listAtOnce(znodes, path, { ...settings, watch }, { after: position, untilZxid, listed: listed.toSet() }, deadline);
      return;
    }
    // Set once: the first page sets it, and each change after it is reported.
    watch = undefined;
    const { children, parentStat } = page;
    if (untilZxid === -1) untilZxid = Number(parentStat.pzxid);
    listed.add(children);
    for (const child of children) {
      if (!child.isTooLong) {
        yield { name: child.name, data: child.data, stat: child.stat, parentStat };
        continue;
      }
      const read = await readChild(znodes, path, child.name, true, retry, deadline);
      if (read !== undefined) yield { name: child.name, data: read.data, stat: read.stat, parentStat };
    }
    after = page.next;
  }
}

/** Children that a page has at most where a caller needs the names of all of them. */
const namesPerPage = 10_000;

/**
 * The names of all children, and the Stat of the parent when they were listed first. In pages where
 * the server has them, since the names of very many children do not fit into one reply. Throws as
 * `listChildren` does.
 */
export async function childNames(
  znodes: PageCalls,
  path: string,
  retry: CallOptions['retry'],
  deadline: CallDeadline,
): Promise<{ readonly children: readonly string[]; readonly stat: Stat }> {
  const names: string[] = [];
  let after: ChildCursor | undefined = firstChild;
  let stat: Stat | undefined;
  while (after !== undefined) {
    const settings: PageSettings = { after, untilZxid: stat === undefined ? -1 : Number(stat.pzxid), countMax: namesPerPage, data: false };
    const options = { ...deadline.requestLimits, retry, watch: undefined };
    const page: ChildrenPage | undefined = await znodes.childrenPage(path, settings, options);
    if (page === undefined) return znodes.getChildren(path, { ...deadline.requestLimits, retry });
    stat ??= page.parentStat;
    // Not spread into one call: its arguments are on the stack.
    for (const { name } of page.children) names.push(name);
    after = page.next;
  }
  return { children: names, stat: stat! };
}

/** What other servers have listed so far. */
interface Listed {
  /** The position of the last child. */
  readonly after: ChildCursor;
  /** Children with a later czxid are left out; -1 for none. */
  readonly untilZxid: number;
  /** The names of all children. */
  readonly listed: ReadonlySet<string>;
}

/**
 * The names in the pages so far: a server without pages does not show the position of a child that may
 * not be read. One text for each page takes little more memory than the names themselves.
 */
class ListedNames {
  readonly #pages: string[] = [];

  add(children: readonly PageChild[]): void {
    if (children.length > 0) this.#pages.push(children.map(({ name }) => name).join('/'));
  }

  toSet(): Set<string> {
    return new Set(this.#pages.flatMap((page) => page.split('/')));
  }
}

/** For servers without pages: after pages of another server, only the children after the position. */
async function* listAtOnce(
  znodes: PageCalls,
  path: string,
  { pageSize, data, watch, retry }: ListSettings,
  before: Listed,
  deadline: CallDeadline,
): AsyncGenerator<ListedChild, void, undefined> {
  const { children, stat: parentStat } = await znodes.getChildren(path, { ...deadline.requestLimits, retry, watch });
  if (!data && before.after === firstChild) {
    for (const name of children) yield { name, data: undefined, stat: undefined, parentStat };
    return;
  }
  for (let start = 0; start < children.length; start += pageSize) {
    const names = children.slice(start, start + pageSize);
    const read = await Promise.all(names.map((name) => readChild(znodes, path, name, data, retry, deadline)));
    for (const [i, child] of read.entries()) {
      const name = names[i]!;
      if (child === undefined || (child.stat === undefined ? before.listed.has(name) : !isNext(child.stat, name, before))) continue;
      yield { name, data: child.data, stat: data ? child.stat : undefined, parentStat };
    }
  }
}

/** Whether a child is after the position, and was created when the listing began. */
function isNext({ czxid }: Stat, name: string, { after, untilZxid }: Listed): boolean {
  const created = Number(czxid);
  if (untilZxid !== -1 && created > untilZxid) return false;
  if (created !== after.czxid) return created > after.czxid;
  return after.name !== null && compareBytes(name, after.name) > 0;
}

/** Compares UTF-8: unlike UTF-16, its order is that of the code points. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** undefined for a child that has been deleted; without data and Stat for one that may not be read. */
async function readChild(
  znodes: PageCalls,
  parent: string,
  name: string,
  withData: boolean,
  retry: CallOptions['retry'],
  deadline: CallDeadline,
): Promise<Pick<PageChild, 'data' | 'stat'> | undefined> {
  const path = childPath(parent, name);
  const options = { ...deadline.requestLimits, retry };
  try {
    if (withData) return await znodes.getData(path, options);
    const stat = await znodes.exists(path, options);
    return stat === null ? undefined : { data: undefined, stat };
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    if (KeeperError.is(error, 'NoAuth')) return { data: undefined, stat: undefined };
    throw error;
  }
}
