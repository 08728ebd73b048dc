import type { Millis, Sid } from '@tskeeper/protocol';
import { msUntil, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/**
 * The disk works on something that must be durable before this server says in an election how far
 * its log goes, or leads, or connects to the leader that the last one has named.
 */
export class FlushingRole extends PeerRole {
  readonly name = 'flushing';
  readonly #state: PeerState;
  /** When an election may begin; undefined for at once. */
  #fromMs: Millis | undefined;
  /** The leader that follows without an election. */
  readonly #successor: Sid | undefined;

  constructor(state: PeerState, fromMs: Millis | undefined, successor: Sid | undefined) {
    super();
    this.#state = state;
    this.#fromMs = fromMs;
    this.#successor = successor;
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
    const state = this.#state;
    if (!state.disk.isFlushed) return undefined;
    if (this.#successor === undefined || !state.config.canLead(this.#successor)) return { to: 'looking' };
    state.appoint(this.#successor, now);
    return this.#successor === state.options.zab.sid
      ? { to: 'leading' }
      : { to: 'connecting', connector: state.connectTo(this.#successor, now) };
  }

  override fingerprint(to: Fingerprint, now: Now): void {
    to.number(msUntil(this.#fromMs, now.elapsedMs));
    to.number(this.#successor ?? -1);
  }
}
