/**
 * Answers listRecursive, an operation of ClickHouse Keeper: the paths of all znodes below one, level
 * by level. Only with tskeeper.keeperExtensions.
 *
 * A znode that the client may not read is left out, and with it all below. The list ends at the
 * limit of the request, and does not show that it has ended there; a client asks for one more than it
 * can use.
 */
import { ErrorCode, Perms, ProtocolError, type Reader, readRecursiveRequest } from '@tskeeper/protocol';
import { bytesPerUnit, type Job, startJob, unitsPerPath } from '../step-budget.ts';
import type { NodeId } from '../tree/data-tree.ts';
import { LongReply, longReplyBytesMax } from './long-reply.ts';
import type { ReadReplies } from './read-replies.ts';
import type { Replica } from './replica.ts';
import type { Request } from './request.ts';

export class RecursiveLists {
  readonly #replica: Replica;
  readonly #replies: ReadReplies;

  constructor(replica: Replica, replies: ReadReplies) {
    this.#replica = replica;
    this.#replies = replies;
  }

  handle(request: Request, reader: Reader): Job | undefined {
    const { path, limit } = readRecursiveRequest(reader);
    if (path === null) throw new ProtocolError('a path', reader.offset);
    const top = this.#replica.tree.find(path);
    if (top === 0) return this.#replies.error(request, ErrorCode.NoNode);
    if (!this.#replies.hasPermission(Perms.read, top, request.identities)) return this.#replies.error(request, ErrorCode.NoAuth);
    return startJob(this.#answer(request.copy(), path, top, limit));
  }

  *#answer(request: Request, path: string, top: NodeId, limit: number): Job {
    const { tree } = this.#replica;
    const reply = new LongReply();
    reply.writer.int32(0);
    /** Znodes whose children are listed, in the order in which they were. */
    const parents: NodeId[] = [top];
    let count = 0;
    const steps = this.#replies.startSteps(request);
    for (let at = 0; at < parents.length && count < limit; at++) {
      for (let child = tree.firstChildOf(parents[at]!); child !== 0 && count < limit; child = tree.nextSiblingOf(child)) {
        steps.beginItem();
        const before = reply.bytes;
        if (this.#replies.hasPermission(Perms.read, child, request.identities)) {
          reply.writer.ustring(tree.pathOf(child));
          count++;
          if (tree.childCountOf(child) > 0) parents.push(child);
        }
        if (reply.bytes > longReplyBytesMax) {
          this.#replies.error(request, ErrorCode.MarshallingError);
          return;
        }
        const isStepOver = steps.endItem(unitsPerPath + (reply.bytes - before) / bytesPerUnit);
        if (isStepOver && !(yield* steps.next())) return;
      }
    }
    this.#replies.reportReadOf(top, path, reply.bytes);
    reply.patchFirstInt32(count);
    yield* this.#replies.send(request, reply);
  }
}
