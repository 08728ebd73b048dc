/**
 * Children page by page. All children are sorted for each page; then those before the position are
 * dropped, and as many taken as the request and jute.maxbuffer allow.
 */
import { ErrorCode, Perms } from '@tskeeper/protocol';
import type { AccessRules } from './access-rules.ts';
import type { Admitted } from './admitted-request.ts';
import type { Connections } from './connections.ts';
import { byteCount, type ModelTree, statOf, type Znode } from './model-tree.ts';
import type { Body, Operation, PageChild } from './operation-types.ts';
import { requirePath } from './refusal.ts';
import type { Watches } from './watches.ts';

type PageOperation = Extract<Operation, { kind: 'getChildrenPage' | 'getChildrenDataPage' }>;

/** The number of children, the flag, the czxid and the Stat of the parent. */
const frameBytes = 4 + 1 + 8 + 68;

const utf8 = (name: string): Buffer => Buffer.from(name, 'utf8');

export class PageRequests {
  readonly #juteMaxBuffer: number;
  readonly #tree: ModelTree;
  readonly #access: AccessRules;
  readonly #connections: Connections;
  readonly #watches: Watches;

  constructor(juteMaxBuffer: number, tree: ModelTree, access: AccessRules, connections: Connections, watches: Watches) {
    this.#juteMaxBuffer = juteMaxBuffer;
    this.#tree = tree;
    this.#access = access;
    this.#connections = connections;
    this.#watches = watches;
  }

  page(operation: PageOperation, request: Admitted): Body {
    const path = requirePath(operation.path);
    const parent = this.#tree.require(path);
    this.#access.requirePermission(parent.acl, Perms.read, request.identities);
    if (operation.watch) {
      this.#watches.requireRoom(request.cnxn);
      this.#connections.get(request.cnxn).childWatches.add(path, 'standard');
    }
    const { countMax, bytesMax } = operation;
    const room = Math.max(1, this.#juteMaxBuffer - frameBytes);
    const bytes = bytesMax <= 0 ? room : Math.min(bytesMax, room);
    const rest = this.#childrenFrom(path, parent, operation);
    const children: PageChild[] = [];
    let lastZxid = -1;
    let size = 0;
    for (const [name, child] of rest) {
      if (countMax > 0 && children.length === countMax) break;
      const shown = this.#show(name, child, operation.kind, bytes, request);
      size += utf8(name).length + 4 + (shown.err === undefined ? 0 : 4) + (shown.stat === undefined ? 0 : 4 + byteCount(child.data) + 68);
      if (children.length > 0 && size > bytes) break;
      children.push(shown);
      lastZxid = child.czxid;
    }
    return { page: { children, isLast: children.length === rest.length, lastZxid }, stat: statOf(parent) };
  }

  /** The children after the position, in order. */
  #childrenFrom(path: string, parent: Znode, { afterZxid, afterName, untilZxid }: PageOperation): [string, Znode][] {
    const base = path === '/' ? '' : path;
    const all = [...parent.children].map((name): [string, Znode] => [name, this.#tree.get(`${base}/${name}`)!]);
    all.sort(([a, { czxid: x }], [b, { czxid: y }]) => x - y || Buffer.compare(utf8(a), utf8(b)));
    return all.filter(([name, { czxid }]) => {
      if (untilZxid >= 0 && czxid > untilZxid) return false;
      if (czxid !== afterZxid) return czxid > afterZxid;
      return afterName !== null && Buffer.compare(utf8(name), utf8(afterName)) > 0;
    });
  }

  #show(name: string, child: Znode, kind: PageOperation['kind'], bytesMax: number, { identities }: Admitted): PageChild {
    if (kind === 'getChildrenPage') return { name };
    if (!this.#access.isPermitted(child.acl, Perms.read, identities)) return { name, err: ErrorCode.NoAuth };
    if (4 + utf8(name).length + 4 + 4 + byteCount(child.data) + 68 > bytesMax) return { name, err: ErrorCode.MarshallingError };
    return { name, err: ErrorCode.Ok, data: child.data, stat: statOf(child) };
  }
}
