import type { Millis } from '@tskeeper/protocol';
import { msUntil, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { DiskState } from '../zab/disk-state.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';

/**
 * The disk works on something that must be durable before this server says in an election how far
 * its log goes.
 */
export class FlushingRole extends PeerRole {
  readonly name = 'flushing';
  readonly #disk: DiskState;
  /** When an election may begin; undefined for at once. */
  #fromMs: Millis | undefined;

  constructor(disk: DiskState, fromMs: Millis | undefined) {
    super();
    this.#disk = disk;
    this.#fromMs = fromMs;
  }

  override status(): RoleStatus {
    return { state: 'looking', phase: 'election', leader: undefined };
  }

  override wake(): void {}

  override deadline(): Millis | undefined {
    return this.#fromMs;
  }

  override next(now: Now): Transition | undefined {
    if (this.#fromMs !== undefined) {
      if (now.elapsedMs < this.#fromMs) return undefined;
      this.#fromMs = undefined;
    }
    return this.#disk.isFlushed ? { to: 'looking' } : undefined;
  }

  override fingerprint(to: Fingerprint, now: Now): void {
    to.number(msUntil(this.#fromMs, now.elapsedMs));
  }
}
