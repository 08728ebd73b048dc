/**
 * Answers filteredList and filteredListWithStatsAndData, operations of ClickHouse Keeper: the children
 * of a znode, or only those that are ephemeral, or only the others; and what they contain. Only with
 * tskeeper.keeperExtensions.
 *
 * A filter tells of each child whether it is ephemeral, which is a part of its Stat, so the client
 * must have READ on every child that is listed. Without a filter, Stats and data it is getChildren2.
 */
import {
  ErrorCode,
  type FilteredListWithStatsAndDataRequest,
  ListFilter,
  OpCode,
  Perms,
  type Reader,
  readFilteredListRequest,
  readFilteredListWithStatsAndDataRequest,
  statBytes,
} from '@tskeeper/protocol';
import { bytesPerUnit, type Job, startJob } from '../step-budget.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { LongReply, longReplyBytesMax } from './long-reply.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';

/** Looking at a child, checking its ACL and writing what is wanted of it. */
const unitsPerListedChild = 4;
const lengthBytes = 4;

export class FilteredLists {
  readonly #replica: Replica;
  readonly #replies: ReadReplies;

  constructor(replica: Replica, replies: ReadReplies) {
    this.#replica = replica;
    this.#replies = replies;
  }

  /** `watch` sets the child watch on a path, and returns false if the limits refuse it. */
  handle(request: Request, reader: Reader, watch: (path: string) => boolean): Job | undefined {
    const list =
      request.opCode === OpCode.filteredList
        ? { ...readFilteredListRequest(reader), withStat: false, withData: false }
        : readFilteredListWithStatsAndDataRequest(reader);
    const parent = this.#replica.tree.find(list.path);
    if (list.filter < ListFilter.all || list.filter > ListFilter.ephemeral) return this.#replies.error(request, ErrorCode.BadArguments);
    if (parent === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read, parent, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    return startJob(this.#answer(request.copy(), parent, list, watch));
  }

  *#answer(request: Request, parent: NodeId, list: FilteredListWithStatsAndDataRequest, watch: (path: string) => boolean): Job {
    const { tree } = this.#replica;
    const { filter, withStat, withData } = list;
    const showsContent = filter !== ListFilter.all || withStat || withData;
    const reply = new LongReply();
    reply.writer.int32(0);
    let count = 0;
    let nameBytes = 0;
    let dataBytes = 0;
    let error: number = ErrorCode.Ok;
    yield* this.#forEachListed(request, parent, filter, (child) => {
      if (showsContent && !this.#replies.hasPermission(Perms.read, child, request.identities)) {
        error = ErrorCode.NoAuth;
        return false;
      }
      tree.writeName(child, reply.writer);
      nameBytes += tree.nameLengthOf(child);
      count++;
      if (!withStat && !withData) return true;
      if (withData) dataBytes += lengthBytes + Math.max(0, tree.dataLengthOf(child));
      const isTooLong = reply.bytes + dataBytes + (withStat ? count * statBytes : 0) > longReplyBytesMax;
      if (isTooLong) error = ErrorCode.MarshallingError;
      return !isTooLong;
    });
    if (request.cnxn.isClosed) return;
    // The tree has not changed since the request was admitted. A list that fails sets no watch.
    if (error === ErrorCode.Ok && list.watch && !watch(list.path)) error = ErrorCode.ThrottledOp;
    if (error !== ErrorCode.Ok) {
      this.#replies.error(request, error);
      return;
    }
    this.#replies.reportReadOf(parent, list.path, nameBytes + dataBytes);
    tree.writeStat(parent, reply.writer);
    reply.patchFirstInt32(count);
    if (request.opCode === OpCode.filteredListWithStatsAndData) {
      reply.writer.int32(withStat ? count : 0);
      if (withStat) yield* this.#forEachListed(request, parent, filter, (child) => tree.writeStat(child, reply.writer));
      reply.writer.int32(withData ? count : 0);
      if (withData) yield* this.#forEachListed(request, parent, filter, (child) => tree.writeData(child, reply.writer));
    }
    yield* this.#replies.send(request, reply);
  }

  /** Visits the children that are listed, until `visit` returns false or the connection is closed. */
  *#forEachListed(request: Request, parent: NodeId, filter: number, visit: (child: NodeId) => boolean | void): Job {
    const { tree } = this.#replica;
    const steps = this.#replies.startSteps(request);
    for (let child = tree.firstChildOf(parent); child !== 0; child = tree.nextSiblingOf(child)) {
      steps.beginItem();
      const isListed = filter === ListFilter.all || (tree.kindOf(child) === 'ephemeral') === (filter === ListFilter.ephemeral);
      if (isListed && visit(child) === false) return;
      const isStepOver = steps.endItem(unitsPerListedChild + Math.max(0, tree.dataLengthOf(child)) / bytesPerUnit);
      if (isStepOver && !(yield* steps.next())) return;
    }
  }
}
