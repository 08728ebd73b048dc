/**
 * Answers multiRead: many reads in one request. Each part succeeds or fails on its own; the watch
 * flag of a part has no effect.
 */
import {
  ErrorCode,
  type MultiOp,
  OpCode,
  Perms,
  ProtocolError,
  type Reader,
  readMultiRequestOp,
  type Writer,
  writeMultiEnd,
  writeMultiHeader,
} from '@tskeeper/protocol';
import type { NodeId } from '../tree/data-tree.ts';
import { LongReply, longReplyBytesMax } from './long-reply.ts';
import { toMultiWrite } from './multi-parts.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { Request } from './request.ts';
import { bytesPerUnit, copyForJob, type Job, startJob, type StepBudget, unitsPerName } from '../step-budget.ts';

/** Replaces the size for a part that has failed. */
const nothingRead = -1;
/** Looking up and starting a part of a multiRead. */
const unitsPerRead = 12;
export class MultiReads {
  readonly #replica: Replica;
  readonly #replyWriter: ReplyWriter;
  readonly #replies: ReadReplies;
  readonly #budget: StepBudget;
  /** Units spent on reading the parts, without those of jobs. */
  workUnits = 0;

  constructor(replica: Replica, replyWriter: ReplyWriter, replies: ReadReplies, budget: StepBudget) {
    this.#replica = replica;
    this.#replyWriter = replyWriter;
    this.#replies = replies;
    this.#budget = budget;
  }

  handle(request: Request, reader: Reader): Job | undefined {
    if (reader.remaining > this.#budget.shortFrameBytes)
      return this.#replies.startDecodingJob(request.copy(), (own) => this.#multiReadInSteps(own, copyForJob(reader), []));
    const ops: MultiOp[] = [];
    for (let op = readMultiRequestOp(reader); op !== undefined; op = readMultiRequestOp(reader)) ops.push(op);
    if (!this.#areReads(request, ops)) return undefined;
    const { tree } = this.#replica;
    const writer = this.#replies.begin(request);
    const end = writer.offset + this.#budget.replyBytes;
    // Counted only after all parts have been written: otherwise they will be read again.
    const sizes: number[] = [];
    let names = 0;
    for (const op of ops) {
      const node = this.#writePartHead(request, op, writer, sizes);
      if (node !== 0) names += tree.childCountOf(node);
      if (names > this.#budget.names || writer.offset > end) {
        this.#replyWriter.discard(writer);
        return startJob(this.#multiReadInSteps(request.copy(), undefined, ops));
      }
      if (node === 0) continue;
      const from = writer.offset;
      tree.writeChildren(node, writer);
      sizes[sizes.length - 1] = this.#replies.namesBytes(node, writer.offset - from);
    }
    this.workUnits += ops.length * unitsPerRead + names * unitsPerName;
    for (let i = 0; i < ops.length; i++) this.#reportPart(ops[i]!, sizes[i]!);
    writeMultiEnd(writer);
    return this.#replies.end(request, writer);
  }

  /**
   * Decodes the parts from `reader`; without one, `ops` are decoded already and known to be reads.
   */
  *#multiReadInSteps(request: Request, reader: Reader | undefined, ops: MultiOp[]): Job {
    const { cnxn } = request;
    const { tree } = this.#replica;
    if (reader !== undefined) {
      for (let op = readMultiRequestOp(reader); op !== undefined; op = readMultiRequestOp(reader)) {
        ops.push(op);
        if (ops.length % this.#budget.paths === 0) request.now = yield;
      }
      if (cnxn.isClosed || !this.#areReads(request, ops)) return;
    }
    const reply = new LongReply();
    const sizes: number[] = [];
    const steps = this.#replies.startSteps(request);
    for (const op of ops) {
      const before = reply.bytes;
      steps.beginItem();
      const node = this.#writePartHead(request, op, reply.writer, sizes);
      const from = reply.bytes;
      if (node !== 0 && tree.childCountOf(node) <= this.#replies.namesPerPiece) tree.writeChildren(node, reply.writer);
      else if (node !== 0) yield* this.#replies.gatherChildren(request, node, reply);
      const size = sizes.pop()!;
      this.#reportPart(op, node === 0 ? size : this.#replies.namesBytes(node, reply.bytes - from));
      if (reply.bytes > longReplyBytesMax) {
        this.#replies.error(request, ErrorCode.MarshallingError);
        return;
      }
      const isStepOver = steps.endItem(unitsPerRead + (reply.bytes - before) / bytesPerUnit);
      if (isStepOver && !(yield* steps.next())) return;
    }
    writeMultiEnd(reply.writer);
    yield* this.#replies.send(request, reply);
  }

  /** Whether all parts are reads; if not, the request has been answered. */
  #areReads(request: Request, ops: readonly MultiOp[]): boolean {
    const reads = ops.filter(isRead).length;
    if (reads === ops.length) return true;
    if (reads > 0) throw new ProtocolError('only reads in a multiRead', 0);
    for (const op of ops) toMultiWrite(op, false);
    // ZooKeeper finds that these are writes only after it has begun the reply: the error is
    // followed by an empty list.
    const { cnxn, xid, opCode, arrivedMs, now } = request;
    const { lastZxid } = this.#replica;
    const writer = this.#replyWriter.begin(cnxn, xid, lastZxid, ErrorCode.MarshallingError);
    writeMultiEnd(writer);
    this.#replyWriter.end(cnxn, writer, opCode, xid, lastZxid, ErrorCode.MarshallingError, arrivedMs, now.elapsedMs, false);
    return false;
  }

  /**
   * Writes the result of one part, except the names of children: then it returns the znode of the
   * children, otherwise 0. Adds the number of bytes read to `sizes`; see `#reportPart`.
   */
  #writePartHead(request: Request, op: MultiOp, writer: Writer, sizes: number[]): NodeId {
    const { tree } = this.#replica;
    const node = op.path === null ? 0 : tree.find(op.path);
    const error =
      node === 0 ? ErrorCode.NoNode : this.#replies.hasPermission(Perms.read, node, request.identities) ? ErrorCode.Ok : ErrorCode.NoAuth;
    if (error !== ErrorCode.Ok) {
      writeMultiHeader(writer, { type: OpCode.error, done: false, err: error });
      writer.int32(error);
      sizes.push(nothingRead);
      return 0;
    }
    writeMultiHeader(writer, { type: OpCode[op.kind], done: false, err: ErrorCode.Ok });
    sizes.push(op.kind === 'getChildren' ? 0 : Math.max(0, tree.dataLengthOf(node)));
    if (op.kind === 'getChildren') return node;
    tree.writeDataAndStat(node, writer);
    return 0;
  }

  #reportPart(op: MultiOp, bytes: number): void {
    if (bytes !== nothingRead) this.#replies.reportReadOf(this.#replica.tree.find(op.path!), op.path!, bytes);
  }
}

function isRead(op: MultiOp): op is Extract<MultiOp, { kind: 'getData' | 'getChildren' }> {
  return op.kind === 'getData' || op.kind === 'getChildren';
}
