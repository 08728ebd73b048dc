/** The requests that read znodes, and leave watches. */
import { ErrorCode, Perms } from '@tskeeper/protocol';
import { type AccessRules, userOf } from './access-rules.ts';
import type { Admitted } from './admitted-request.ts';
import type { Connections } from './connections.ts';
import { type ModelTree, statOf, type Znode } from './model-tree.ts';
import type { Body, Operation, PageChild, Path, ReadStep, Stat } from './operation-types.ts';
import { Refusal, requirePath } from './refusal.ts';
import type { Watches } from './watches.ts';

export class ReadRequests {
  readonly #tree: ModelTree;
  readonly #access: AccessRules;
  readonly #connections: Connections;
  readonly #watches: Watches;

  constructor(tree: ModelTree, access: AccessRules, connections: Connections, watches: Watches) {
    this.#tree = tree;
    this.#access = access;
    this.#connections = connections;
    this.#watches = watches;
  }

  /** getData or getChildren; `watch` is separate, since a multiRead leaves no watches. */
  perform(step: ReadStep, request: Admitted, watch: boolean): Body {
    const path = requirePath(step.path);
    const znode = this.#tree.require(path);
    this.#requireRead(znode, request);
    if (watch) this.#watches.requireRoom(request.cnxn);
    const cnxn = this.#connections.get(request.cnxn);
    if (step.kind === 'getData') {
      if (watch) cnxn.dataWatches.add(path, 'standard');
      return { data: znode.data, stat: statOf(znode) };
    }
    if (watch) cnxn.childWatches.add(path, 'standard');
    return { children: [...znode.children] };
  }

  children2(path: Path, request: Admitted, watch: boolean): Body {
    const body = this.perform({ kind: 'getChildren', path, watch }, request, watch);
    return { ...body, stat: statOf(this.#tree.require(path!)) };
  }

  /** 1: those that are not ephemeral, 2: those that are. All that are returned must be readable. */
  filtered(wanted: Path, watch: boolean, filter: number, request: Admitted, showsContents = false): Body {
    const path = requirePath(wanted);
    if (filter < 0 || filter > 2) throw new Refusal(ErrorCode.BadArguments);
    const parent = this.#tree.require(path);
    this.#requireRead(parent, request);
    const children = [...parent.children].filter((name) => {
      if (filter === 0 && !showsContents) return true;
      const child = this.#tree.require(`${path === '/' ? '' : path}/${name}`);
      if (filter !== 0 && (child.owner.kind === 'ephemeral') !== (filter === 2)) return false;
      this.#requireRead(child, request);
      return true;
    });
    if (watch) {
      this.#watches.requireRoom(request.cnxn);
      this.#connections.get(request.cnxn).childWatches.add(path, 'standard');
    }
    return { children, stat: statOf(parent) };
  }

  filteredWithContents(operation: Extract<Operation, { kind: 'filteredListWithStatsAndData' }>, request: Admitted): Body {
    const { path, watch, filter, withStat, withData } = operation;
    const { children, stat } = this.filtered(path, watch, filter, request, withStat || withData);
    const contents = children!.map((name): PageChild => {
      const znode = this.#tree.require(`${path === '/' ? '' : path}/${name}`);
      return { name, ...(withStat && { stat: statOf(znode) }), ...(withData && { data: znode.data }) };
    });
    return { contents, stat: stat! };
  }

  /** All that may be read, without what is below the others. Which of them, if there are more, is not defined. */
  recursive(wanted: Path, limit: number, request: Admitted): Body {
    const top = requirePath(wanted);
    this.#requireRead(this.#tree.require(top), request);
    const found: string[] = [];
    const visit = (path: string): void => {
      for (const name of this.#tree.require(path).children) {
        const child = `${path === '/' ? '' : path}/${name}`;
        if (!this.#access.isPermitted(this.#tree.require(child).acl, Perms.read, request.identities)) continue;
        found.push(child);
        visit(child);
      }
    };
    visit(top);
    if (limit > 0 && found.length > limit) throw new Error('the model does not know where a list of descendants ends');
    return { children: limit === 0 ? [] : found };
  }

  exists(wanted: Path, request: Admitted, watch: boolean): Stat {
    const path = requirePath(wanted);
    if (path.includes('\0')) throw new Refusal(ErrorCode.BadArguments);
    const znode = this.#tree.get(path);
    if (znode !== undefined) this.#requireRead(znode, request);
    if (watch) {
      this.#watches.requireRoom(request.cnxn);
      this.#connections.get(request.cnxn).dataWatches.add(path, 'standard');
    }
    if (znode === undefined) throw new Refusal(ErrorCode.NoNode);
    return statOf(znode);
  }

  /** A client that may not administer the ACL receives it without password hashes. */
  acl(wanted: Path, request: Admitted): Body {
    const znode = this.#tree.require(requirePath(wanted));
    this.#access.requirePermission(znode.acl, Perms.read | Perms.admin, request.identities);
    const mayAdmin = this.#access.isPermitted(znode.acl, Perms.admin, request.identities);
    const acl = znode.acl.map((entry) =>
      mayAdmin || entry.scheme !== 'digest' ? entry : { ...entry, id: entry.id.replace(/:[^\n\r\u0085\u2028\u2029]*/g, ':x') },
    );
    return { acl, stat: statOf(znode) };
  }

  allChildrenNumber(wanted: Path, request: Admitted): number {
    const path = requirePath(wanted);
    this.#requireRead(this.#tree.require(path), request);
    return this.#tree.countBelow(path);
  }

  ephemerals(prefixPath: Path, { session }: Admitted): string[] {
    const prefix = prefixPath ?? '';
    const all = prefix.trim() === '' || prefix.trim() === '/';
    return this.#tree.ephemeralsOf(session).filter((path) => all || path.startsWith(prefix));
  }

  whoAmI({ identities }: Admitted): Body {
    return { clientInfo: identities.map((own) => ({ authScheme: own.scheme, user: userOf(own) })) };
  }

  #requireRead(znode: Znode, request: Admitted): void {
    this.#access.requirePermission(znode.acl, Perms.read, request.identities);
  }
}
