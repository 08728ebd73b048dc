import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/** An election is under way (election/fast-leader-election.ts). */
export class LookingRole extends PeerRole {
  readonly name = 'looking';
  readonly #state: PeerState;

  constructor(state: PeerState, now: Now) {
    super();
    this.#state = state;
    this.#startElection(now);
  }

  #startElection(now: Now): void {
    const { disk, election } = this.#state;
    const { lastZxid, currentEpoch } = disk.persisted;
    election.start(lastZxid, currentEpoch, now);
  }

  /** The votes received were for a quorum that no longer counts. */
  override configChanged(now: Now): void {
    this.#startElection(now);
  }

  override status(): RoleStatus {
    return { state: 'looking', phase: 'election', leader: undefined };
  }

  override wake(now: Now): void {
    this.#state.election.wake(now);
  }

  override deadline(): Millis | undefined {
    return this.#state.election.deadline();
  }

  override next(now: Now): Transition | undefined {
    const { election, observer, lookingSinceMs } = this.#state;
    if (election.outcome === undefined) return undefined;
    const { state, vote } = election.outcome;
    observer.elected(vote.leader, now.elapsedMs - lookingSinceMs);
    return state === 'leading' ? { to: 'leading' } : { to: 'connecting', connector: this.#state.connectTo(vote.leader, now) };
  }

  /** The election belongs to the state that is kept from role to role. */
  override fingerprint(_to: Fingerprint): void {}
}
