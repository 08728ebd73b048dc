/**
 * Answers filteredList, an operation of ClickHouse Keeper: the children of a znode that are
 * ephemeral, or those that are not. Only with tskeeper.keeperExtensions.
 *
 * A filter tells of each child whether it is ephemeral, which is a part of its Stat, so the client
 * must have READ on every child that is listed. Without a filter it is getChildren2.
 */
import { ErrorCode, type FilteredListRequest, ListFilter, Perms, type Reader, readFilteredListRequest } from '@tskeeper/protocol';
import type { Permissions } from '../auth/permissions.ts';
import { type Job, startJob, type StepBudget } from '../step-budget.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { LongReply } from './long-reply.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';

/** Looking at a child, checking its ACL and writing its name. */
const unitsPerListedChild = 4;

export class FilteredLists {
  readonly #replica: Replica;
  readonly #replies: ReadReplies;
  readonly #permissions: Permissions;
  readonly #budget: StepBudget;

  constructor(replica: Replica, replies: ReadReplies, permissions: Permissions, budget: StepBudget) {
    this.#replica = replica;
    this.#replies = replies;
    this.#permissions = permissions;
    this.#budget = budget;
  }

  /** `watch` sets the child watch on a path, and returns false if the limits refuse it. */
  handle(request: Request, reader: Reader, watch: (path: Buffer) => boolean): Job | undefined {
    const list = readFilteredListRequest(reader);
    const parent = this.#replica.tree.find(list.path);
    if (list.filter < ListFilter.all || list.filter > ListFilter.ephemeral) return this.#replies.error(request, ErrorCode.BadArguments);
    if (parent === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read, parent, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    return startJob(this.#answer(request.copy(), parent, list, watch));
  }

  *#answer(request: Request, parent: NodeId, list: FilteredListRequest, watch: (path: Buffer) => boolean): Job {
    const { tree } = this.#replica;
    const { filter } = list;
    const reply = new LongReply();
    reply.writer.int32(0);
    let count = 0;
    let bytes = 0;
    let spent = 0;
    for (let child = tree.firstChildOf(parent); child !== 0; child = tree.nextSiblingOf(child)) {
      const judgedBefore = this.#permissions.workUnits;
      if (filter === ListFilter.all || (tree.kindOf(child) === 'ephemeral') === (filter === ListFilter.ephemeral)) {
        if (filter !== ListFilter.all && !this.#replies.hasPermission(Perms.read, child, request.identities)) {
          this.#replies.error(request, ErrorCode.NoAuth);
          return;
        }
        tree.writeName(child, reply.writer);
        bytes += tree.nameLengthOf(child);
        count++;
      }
      spent += unitsPerListedChild + this.#permissions.workUnits - judgedBefore;
      if (spent < this.#budget.units) continue;
      spent = 0;
      request.now = yield;
      if (request.cnxn.isClosed) return;
    }
    // The tree has not changed since the request was admitted. A list that fails sets no watch.
    if (list.watch && !watch(Buffer.from(list.path))) {
      this.#replies.error(request, ErrorCode.ThrottledOp);
      return;
    }
    this.#replies.reportReadOf(parent, list.path, bytes);
    tree.writeStat(parent, reply.writer);
    reply.patchFirstInt32(count);
    yield* this.#replies.send(request, reply);
  }
}
