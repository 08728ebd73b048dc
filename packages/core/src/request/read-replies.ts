/**
 * Writes the replies to reads, short ones at once and long ones in steps, and reports what was
 * read.
 *
 * Every part of the server that answers reads uses it. On the common path it allocates nothing: a
 * reply is written into the connection's output in wire form.
 */
import { ErrorCode, ProtocolError, type Reader, type Writer } from '@tskeeper/protocol';
import type { Identities } from '../auth/identities.ts';
import type { Permissions } from '../auth/permissions.ts';
import type { Observer } from '../observer.ts';
import type { NodeId } from '../tree/data-tree.ts';
import type { LongReply } from './long-reply.ts';
import { ReplySteps } from './reply-steps.ts';
import type { Replica } from './replica.ts';
import type { ReplyWriter } from './reply-writer.ts';
import type { Request } from './request.ts';
import { type Job, startJob, type StepBudget } from '../step-budget.ts';

/** Length prefix of a string or vector. */
const lengthBytes = 4;
/** Names written between two checks of how full a piece is. */
const namesPerPieceMax = 1024;

export class ReadReplies {
  readonly #replica: Replica;
  readonly #replyWriter: ReplyWriter;
  readonly #permissions: Permissions;
  readonly #observer: Observer;
  readonly #budget: StepBudget;
  readonly namesPerPiece: number;

  constructor(replica: Replica, replyWriter: ReplyWriter, permissions: Permissions, observer: Observer, budget: StepBudget) {
    this.#replica = replica;
    this.#replyWriter = replyWriter;
    this.#permissions = permissions;
    this.#observer = observer;
    this.#budget = budget;
    this.namesPerPiece = Math.min(namesPerPieceMax, budget.names);
  }

  /** Begins the reply to a read that has succeeded. */
  begin(request: Request): Writer {
    return this.#replyWriter.begin(request.cnxn, request.xid, this.#replica.lastZxid, ErrorCode.Ok);
  }

  end(request: Request, writer: Writer): undefined {
    const { cnxn, opCode, xid, arrivedMs, now } = request;
    this.#replyWriter.end(cnxn, writer, opCode, xid, this.#replica.lastZxid, ErrorCode.Ok, arrivedMs, now.elapsedMs, false);
  }

  /** A reply that consists of its header only. */
  ok(request: Request): undefined {
    return this.error(request, ErrorCode.Ok);
  }

  /** A reply without a body. */
  error(request: Request, error: number): undefined {
    const { cnxn, opCode, xid, arrivedMs, now } = request;
    this.#replyWriter.replyWithoutBody(cnxn, opCode, xid, this.#replica.lastZxid, error, arrivedMs, now.elapsedMs, false);
  }

  hasPermission(perms: number, node: NodeId, identities: Identities): boolean {
    return this.#permissions.permits(this.#replica.tree.aclOf(node), perms, identities);
  }

  /** For a job that collects a reply of many items. */
  startSteps(request: Request): ReplySteps {
    return new ReplySteps(request, this.#permissions, this.#budget.units);
  }

  /**
   * Starts a job that decodes while it runs, and so may find late that the request is malformed.
   */
  startDecodingJob(request: Request, job: (request: Request) => Job): Job | undefined {
    return startJob(this.#decodingJob(request, job(request)));
  }

  *#decodingJob(request: Request, job: Job): Job {
    try {
      yield* job;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (!request.cnxn.isClosed) this.error(request, ErrorCode.MarshallingError);
    }
  }

  /** Writes the names of all children in steps; the vector begins with their number. */
  *gatherChildren(request: Request, node: NodeId, reply: LongReply): Job {
    const { tree } = this.#replica;
    reply.writer.int32(tree.childCountOf(node));
    let child = tree.firstChildOf(node);
    let names = 0;
    while (child !== 0) {
      // A piece of 64 KiB has at most 16,384 names.
      child = tree.writeNames(child, reply.writer, this.namesPerPiece, reply.end);
      names += this.namesPerPiece;
      if (names < this.#budget.names) continue;
      names = 0;
      request.now = yield;
      if (request.cnxn.isClosed) return;
    }
  }

  /** Total length of the names of a znode's children, given the size of their vector. */
  namesBytes(node: NodeId, bytes: number): number {
    return bytes - (1 + this.#replica.tree.childCountOf(node)) * lengthBytes;
  }

  /** Reports a read of `bytes` bytes; its path is in the reader's range. */
  reportRead(node: NodeId, reader: Reader, bytes: number): void {
    this.#observer.znodeRead(this.#replica.tree.namespaceOf(node), reader.rangeEnd - reader.rangeStart + bytes);
  }

  /** Reports a read whose path is given as text. */
  reportReadOf(node: NodeId, path: string, bytes: number): void {
    this.#observer.znodeRead(this.#replica.tree.namespaceOf(node), Buffer.byteLength(path) + bytes);
  }

  /** Sends a reply that has been collected. */
  *send(request: Request, reply: LongReply): Job {
    const { cnxn, opCode, xid, arrivedMs } = request;
    const { lastZxid } = this.#replica;
    const { bytes } = reply;
    if (cnxn.isClosed) return;
    this.#replyWriter.beginLong(cnxn, xid, lastZxid, ErrorCode.Ok, bytes);
    let sent = 0;
    for (const piece of reply.take()) {
      if (sent >= this.#budget.replyBytes) {
        sent = 0;
        request.now = yield;
        // The id of the connection may have been reused.
        if (cnxn.isClosed) return;
      }
      this.#replyWriter.writePiece(cnxn, piece.bytes, piece.offset);
      sent += piece.offset;
    }
    this.#replyWriter.endLong(cnxn, opCode, xid, lastZxid, ErrorCode.Ok, arrivedMs, request.now.elapsedMs, bytes, false);
  }
}
