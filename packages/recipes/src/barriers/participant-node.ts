/** The znode of a participant in a double barrier. */
import { KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { WaitQueue, QueueNode } from '../wait-queue/wait-queue.ts';
import { createOwnZnode, isUnanswered } from '../waiting/own-znode.ts';
import type { BarrierContext } from './barrier-context.ts';
import { readyName } from './ready.ts';

export class ParticipantNode extends QueueNode {
  readonly #ready: string;
  /** Whether no other opener is left, so that `ready` is deleted together with this one. */
  isLastOpener = false;
  /** Whether a server has confirmed that it is gone, and `ready` with it. */
  isDeleted = false;

  private constructor(context: BarrierContext, path: string, czxid: bigint) {
    super(context.zk, new WaitQueue(context.path, [], context), path, czxid, undefined);
    this.#ready = childPath(context.path, readyName);
  }

  /** With a guid, so that a lost reply leaves one znode or none, and no name is used twice. */
  static async create(context: BarrierContext, signal: AbortSignal): Promise<ParticipantNode> {
    const { zk, name, data, acl } = context;
    const { path, stat } = await createOwnZnode(zk, childPath(context.path, name), data, {
      mode: 'ephemeral',
      parents: 'container',
      acl,
      signal,
    });
    return new ParticipantNode(context, path, stat.czxid);
  }

  override async leave(): Promise<void> {
    // In one multi: between two deletes a participant would count us for the next round. If that
    // fails, another participant clears `ready` away later.
    if (this.isLastOpener) await this.#leaveWithReady();
    if (!this.isDeleted) await super.leave();
  }

  async #leaveWithReady(): Promise<void> {
    for (;;) {
      try {
        await this.zk.multi([op.delete(this.path), op.delete(this.#ready)]);
        this.isDeleted = true;
        return;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // No reply: a second attempt does no harm, as our name is never used twice.
        if (!isUnanswered(error)) return;
      }
    }
  }
}
