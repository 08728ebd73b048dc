/** The znode of a participant in a double barrier. */
import { KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { Line, Place } from '../line/line.ts';
import { makeOwn } from '../waiting/make-own.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import type { Doors } from './doors.ts';
import { readyName } from './ready.ts';

export class ParticipantPlace extends Place {
  readonly #ready: string;
  /** Whether no other opener is left, so that `ready` is deleted together with this one. */
  isLast = false;
  /** Whether a server has confirmed that it is gone, and `ready` with it. */
  isGone = false;

  private constructor(doors: Doors, path: string, czxid: bigint) {
    super(doors.zk, new Line(doors.path, [], doors), path, czxid, undefined);
    this.#ready = childPath(doors.path, readyName);
  }

  /** With a guid, so that a lost reply leaves one znode or none, and no name is used twice. */
  static async make(doors: Doors, signal: AbortSignal): Promise<ParticipantPlace> {
    const { zk, name, data, acl } = doors;
    const { path, stat } = await makeOwn(zk, childPath(doors.path, name), data, { mode: 'ephemeral', parents: 'container', acl, signal });
    return new ParticipantPlace(doors, path, stat.czxid);
  }

  override async leave(): Promise<void> {
    // In one multi: between two deletes a participant would count us for the next round. If that
    // fails, another participant clears `ready` away later.
    if (this.isLast) await this.#leaveWithReady();
    if (!this.isGone) await super.leave();
  }

  async #leaveWithReady(): Promise<void> {
    for (;;) {
      try {
        await this.zk.multi([op.delete(this.path), op.delete(this.#ready)]);
        this.isGone = true;
        return;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // No reply: a second attempt does no harm, as our name is never used twice.
        if (!isUnanswered(error)) return;
      }
    }
  }
}
