/** The znode of a participant in a double barrier. */
import { KeeperError, op } from '@tskeeper/client';
import { childPath } from '@tskeeper/client/internal';
import { Line, Place, unlessDeleted } from '../line/line.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import type { Doors } from './doors.ts';
import { readyName } from './ready.ts';

export class ParticipantPlace extends Place {
  readonly #ready: string;
  /** Whether no other opener is left, so that `ready` goes along with this one. */
  isLast = false;
  /** Whether the server has said that it is gone, and `ready` with it. */
  isGone = false;

  private constructor(doors: Doors, path: string, czxid: bigint) {
    super(new Line(doors.zk, doors.path, [], doors), path, czxid, undefined);
    this.#ready = childPath(doors.path, readyName);
  }

  /** With a guid, so that a lost answer leaves one znode, or none, and that no name is used twice. */
  static async make(doors: Doors, signal: AbortSignal): Promise<ParticipantPlace> {
    const { zk, name, data, acl } = doors;
    const options = { mode: 'ephemeral', protection: true, parents: 'container', acl, ...untilTheEnd, signal } as const;
    const wanted = childPath(doors.path, name);
    const { path, stat } = await unlessDeleted(wanted, zk.create(wanted, data, options));
    return new ParticipantPlace(doors, path, stat.czxid);
  }

  override async leave(): Promise<void> {
    // Together: between the two of them a participant would count us for the next round. If it cannot be done now, somebody clears it away then.
    if (this.isLast) await this.#leaveWithReady();
    if (!this.isGone) await super.leave();
  }

  async #leaveWithReady(): Promise<void> {
    try {
      await this.zk.multi([op.delete(this.path), op.delete(this.#ready)]);
      this.isGone = true;
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
    }
  }
}
