import type { Millis } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import { earlierOf } from '../request/local-sequencer.ts';
import type { Server } from '../server.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';
import { ReadOnlyMode } from './read-only-mode.ts';

/**
 * An election is under way (election/fast-leader-election.ts). If it takes long, the server may
 * serve in read-only mode meanwhile.
 */
export class LookingRole extends PeerRole {
  readonly name = 'looking';
  readonly #state: PeerState;
  /** Undefined unless `readonlymode.enabled`. */
  readonly #readOnlyMode: ReadOnlyMode | undefined;

  constructor(state: PeerState, now: Now) {
    super();
    this.#state = state;
    this.#startElection(now);
    if (state.options.readOnlyMode === true) this.#readOnlyMode = new ReadOnlyMode(state, now);
  }

  #startElection(now: Now): void {
    const { disk, election } = this.#state;
    const { lastZxid, currentEpoch } = disk.persisted;
    election.start(lastZxid, currentEpoch, now);
  }

  override get server(): Server | undefined {
    return this.#readOnlyMode?.server;
  }

  /** The votes received were for a quorum that no longer counts. */
  override configChanged(now: Now): void {
    this.#readOnlyMode?.maybeRestart(now);
    this.#startElection(now);
  }

  override status(): RoleStatus {
    return { state: 'looking', phase: 'election', leader: undefined };
  }

  override wake(now: Now): void {
    this.#state.election.wake(now);
    this.#readOnlyMode?.wake(now);
  }

  override deadline(): Millis | undefined {
    return earlierOf(this.#state.election.deadline(), this.#readOnlyMode?.deadline());
  }

  override next(now: Now): Transition | undefined {
    const { election, observer, lookingSinceMs } = this.#state;
    if (election.outcome === undefined) return undefined;
    // Before anything of the next role: a leader may change the state, or this server may order
    // writes as one.
    this.#readOnlyMode?.stop(now);
    const { state, vote } = election.outcome;
    observer.elected(vote.leader, now.elapsedMs - lookingSinceMs);
    return state === 'leading' ? { to: 'leading' } : { to: 'connecting', connector: this.#state.connectTo(vote.leader, now) };
  }

  /** The election belongs to the state that is kept from role to role. */
  override fingerprint(to: Fingerprint, now: Now): void {
    this.#readOnlyMode?.fingerprint(to, now);
  }
}
