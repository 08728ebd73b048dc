/**
 * The operations of ClickHouse Keeper that change nothing: lists of children, and checks that are not
 * part of a multi. Only with tskeeper.keeperExtensions. They concern one server, so it does not matter
 * which operations the leader has.
 */
import {
  type CheckStatRequest,
  type DeleteRequest,
  ErrorCode,
  OpCode,
  Perms,
  pathError,
  readCheckStatRequest,
  type Reader,
  readDeleteRequest,
  sessionIdOf,
  type Stat,
} from '@tskeeper/protocol';
import type { Job } from '../step-budget.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { FilteredLists } from './filtered-lists.ts';
import type { ReadReplies } from './read-replies.ts';
import { RecursiveLists } from './recursive-lists.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';
import { isStatOf } from './stat-check.ts';

export class KeeperReads {
  readonly #replica: Replica;
  readonly #replies: ReadReplies;
  readonly #filteredLists: FilteredLists;
  readonly #recursiveLists: RecursiveLists;

  constructor(replica: Replica, replies: ReadReplies) {
    this.#replica = replica;
    this.#replies = replies;
    this.#filteredLists = new FilteredLists(replica, replies);
    this.#recursiveLists = new RecursiveLists(replica, replies);
  }

  /** `watch` sets the child watch on a path, and returns false if the limits refuse it. */
  handle(request: Request, reader: Reader, watch: (path: string) => boolean): Job | undefined {
    switch (request.opCode) {
      case OpCode.checkNotExists:
        return this.#replies.error(request, this.#checkNotExists(request, readDeleteRequest(reader)));
      case OpCode.checkStat:
        return this.#replies.error(request, this.#checkStat(request, readCheckStatRequest(reader)));
      case OpCode.listRecursive:
        return this.#recursiveLists.handle(request, reader);
      default:
        return this.#filteredLists.handle(request, reader, watch);
    }
  }

  /** As in a multi: see `KeeperWrites`. */
  #checkNotExists(request: Request, { path, version }: DeleteRequest): number {
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const { tree } = this.#replica;
    const node = tree.find(path);
    if (node === 0) return ErrorCode.Ok;
    if (!this.#replies.hasPermission(Perms.read, node, request.identities)) return ErrorCode.NoAuth;
    return version === -1 || version === tree.versionOf(node) ? ErrorCode.NodeExists : ErrorCode.Ok;
  }

  #checkStat(request: Request, { path, version, stat }: CheckStatRequest): number {
    if (path === null || pathError(path) !== undefined) return ErrorCode.BadArguments;
    const { tree } = this.#replica;
    const node = tree.find(path);
    if (node === 0) return ErrorCode.NoNode;
    if (!this.#replies.hasPermission(Perms.read, node, request.identities)) return ErrorCode.NoAuth;
    const agrees = (version === -1 || version === tree.versionOf(node)) && isStatOf(stat, this.#statOf(node));
    return agrees ? ErrorCode.Ok : ErrorCode.BadVersion;
  }

  #statOf(node: NodeId): Stat {
    const { tree } = this.#replica;
    const numChildren = tree.childCountOf(node);
    return {
      czxid: tree.czxidOf(node),
      mzxid: tree.mzxidOf(node),
      ctime: tree.ctimeOf(node),
      mtime: tree.mtimeOf(node),
      version: tree.versionOf(node),
      cversion: (2 * tree.cversionOf(node) - numChildren) | 0,
      aversion: tree.aversionOf(node),
      ephemeralOwner: tree.kindOf(node) === 'ephemeral' ? sessionIdOf(tree.ownerHighOf(node), tree.ownerLowOf(node)) : 0n,
      dataLength: Math.max(0, tree.dataLengthOf(node)),
      numChildren,
      pzxid: tree.pzxidOf(node),
    };
  }
}
