/**
 * Answers getChildrenPage and getChildrenDataPage, which ZooKeeper does not have: the children of a
 * znode from a position on, with or without their data (protocol/client/children-pages.ts,
 * docs/decisions/pages-of-children.md).
 *
 * What a page contains depends on the request and the tree alone. A page may take several steps, as
 * a long getChildren does, but its size does not depend on them.
 */
import { type ChildrenPageRequest, ErrorCode, OpCode, Perms, type Reader, readChildrenPageRequest, statBytes } from '@tskeeper/protocol';
import { bytesPerUnit, type Job, startJob, type StepBudget } from '../step-budget.ts';
import type { NodeId } from '../tree/data-tree.ts';
import type { Ordering } from '../tree/child-order.ts';
import { LongReply } from './long-reply.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';

/** The length of a name. */
const lengthBytes = 4;
/** Lengths of name and data, the error, and the Stat. */
const childWithDataBytes = 12 + statBytes;
const lastFlagBytes = 1;
const zxidBytes = 8;
/** What follows the list, and the number in front of it. */
const pageFrameBytes = 4 + lastFlagBytes + zxidBytes + statBytes;
/** Looking up, checking and copying a child with its data. */
const unitsPerChild = 12;
/** Finding a child's place in the order and writing its name. */
const unitsPerOrderedName = 4;

export class ChildrenPages {
  readonly #replica: Replica;
  readonly #replies: ReadReplies;
  readonly #budget: StepBudget;
  readonly #bytesMax: number;

  /** `packetBytesMax`: jute.maxbuffer, which no page exceeds. */
  constructor(replica: Replica, replies: ReadReplies, budget: StepBudget, packetBytesMax: number) {
    this.#replica = replica;
    this.#replies = replies;
    this.#budget = budget;
    this.#bytesMax = Math.max(1, packetBytesMax - pageFrameBytes);
  }

  /** `watch` sets the child watch on a path, and returns false if the limits refuse it. */
  handle(request: Request, reader: Reader, watch: (path: string) => boolean): Job | undefined {
    const page = readChildrenPageRequest(reader);
    const { tree } = this.#replica;
    const parent = tree.find(page.path);
    if (parent === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read, parent, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    if (page.watch && !watch(page.path)) return this.#replies.error(request, ErrorCode.ThrottledOp);
    return startJob(this.#answer(request.copy(), parent, page));
  }

  *#answer(request: Request, parent: NodeId, page: ChildrenPageRequest): Job {
    const { tree } = this.#replica;
    const { childOrder } = tree;
    const { afterZxid, afterName, untilZxid } = page;
    const countMax = page.countMax <= 0 ? Infinity : page.countMax;
    const bytesMax = page.bytesMax <= 0 ? this.#bytesMax : Math.min(page.bytesMax, this.#bytesMax);
    const withData = request.opCode === OpCode.getChildrenDataPage;

    const reply = new LongReply();
    reply.writer.int32(0);
    let count = 0;
    let bytes = 0;
    let bytesRead = 0;
    let isLast = true;
    let lastZxid = -1;
    let runZxid = -1;
    let node: NodeId = tree.firstChildOf(parent);
    if (afterZxid >= 0 || tree.isUnordered(parent)) {
      const child = afterName === null ? 0 : tree.find(childPath(page.path, afterName));
      const name = afterName === null ? undefined : Buffer.from(afterName);
      // A name from a client may contain a slash.
      const own = child !== 0 && tree.parentOf(child) === parent ? child : 0;
      const seeking = childOrder.after(parent, afterZxid, name, own, this.#budget.visits);
      const found = yield* this.#order(request, seeking);
      if (found === undefined) return;
      node = found;
      // The others of that txn are in order already.
      runZxid = afterZxid;
    }
    const steps = this.#replies.startSteps(request);
    while (node !== 0) {
      const czxid = tree.czxidOf(node);
      if (untilZxid >= 0 && czxid > untilZxid) break;
      if (czxid !== runZxid) {
        const first = yield* this.#order(request, childOrder.settle(parent, node, this.#budget.visits));
        if (first === undefined) return;
        node = first;
        runZxid = czxid;
      }
      if (count === countMax) {
        isLast = false;
        break;
      }
      steps.beginItem();
      const nameBytes = tree.nameLengthOf(node);
      const dataBytes = withData ? Math.max(0, tree.dataLengthOf(node)) : 0;
      let err: number = ErrorCode.Ok;
      let size = lengthBytes + nameBytes;
      if (withData) {
        if (!this.#replies.hasPermission(Perms.read, node, request.identities)) err = ErrorCode.NoAuth;
        else if (childWithDataBytes + nameBytes + dataBytes > bytesMax) err = ErrorCode.MarshallingError;
        size += err === ErrorCode.Ok ? childWithDataBytes - lengthBytes + dataBytes : lengthBytes;
      }
      if (count > 0 && bytes + size > bytesMax) {
        isLast = false;
        break;
      }
      const { writer } = reply;
      tree.writeName(node, writer);
      if (withData) {
        writer.int32(err);
        if (err === ErrorCode.Ok) tree.writeDataAndStat(node, writer);
      }
      count++;
      bytes += size;
      bytesRead += nameBytes + (err === ErrorCode.Ok ? dataBytes : 0);
      lastZxid = czxid;
      node = tree.nextSiblingOf(node);
      const isStepOver = steps.endItem((withData ? unitsPerChild : unitsPerOrderedName) + size / bytesPerUnit);
      if (isStepOver && !(yield* steps.next())) return;
    }
    this.#replies.reportReadOf(parent, page.path, bytesRead);
    const { writer } = reply;
    writer.boolean(isLast);
    writer.int64(lastZxid);
    tree.writeStat(parent, writer);
    reply.patchFirstInt32(count);
    yield* this.#replies.send(request, reply);
  }

  /** Runs it to its end; returns undefined if the connection has closed meanwhile. */
  *#order(request: Request, ordering: Ordering<NodeId>): Generator<void, NodeId | undefined, Request['now']> {
    for (;;) {
      const step = ordering.next();
      if (step.done === true) return step.value;
      request.now = yield;
      if (request.cnxn.isClosed) return undefined;
    }
  }
}

function childPath(parent: string, name: string): string {
  return parent === '/' ? `/${name}` : `${parent}/${name}`;
}
