import type { Millis } from '@tskeeper/protocol';
import type { FastLeaderElection } from '../election/fast-leader-election.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { LeaderConnector, ConnectFailure } from '../zab/leader-connector.ts';
import type { ChannelId } from '../zab/quorum-links.ts';
import { PeerRole, type RoleStatus, type Transition } from './peer-role.ts';
import type { PeerState } from './peer-state.ts';

/**
 * For how many times initLimit a leader that does not answer is not voted for, unless a new
 * connection with it is made.
 */
const unresponsiveInitLimits = 3;

/**
 * Stops the connector of a leader that, as the election knows by now, no longer leads or does not
 * receive from this server.
 */
export function stopIfLeaderIsLost(connector: LeaderConnector, election: FastLeaderElection): void {
  if (election.isLeaderNotReceiving && !connector.usesMasters) connector.leaderNotReceiving();
  else if (election.isLeaderGone) connector.abandon();
}

/** The elected leader is dialled (zab/leader-connector.ts). */
export class ConnectingRole extends PeerRole {
  readonly name = 'connecting';
  readonly #state: PeerState;
  readonly #connector: LeaderConnector;

  constructor(state: PeerState, connector: LeaderConnector) {
    super();
    this.#state = state;
    this.#connector = connector;
  }

  override status(): RoleStatus {
    return { state: this.#state.learnerState, phase: 'discovery', leader: this.#connector.leader };
  }

  override peersChanged(): void {
    stopIfLeaderIsLost(this.#connector, this.#state.election);
  }

  override dialled(channel: ChannelId): Transition {
    return { to: 'learning', channel, connector: this.#connector };
  }

  override dialFailed(outcome: ConnectFailure, now: Now): void {
    this.#connector.attemptFailed(outcome, now);
    this.peersChanged();
  }

  override wake(now: Now): void {
    this.#connector.wake(now);
  }

  override deadline(): Millis | undefined {
    return this.#connector.deadline();
  }

  override next(now: Now): Transition | undefined {
    if (!this.#connector.isExhausted) return undefined;
    const { leader, isUnanswered } = this.#connector;
    const { io, election, options } = this.#state;
    // The next leader may be dialled only after a while. A stream to this one that opens meanwhile
    // would pass for a stream to that one.
    io.quorum.cancelDial();
    // Nothing is known of the leader itself.
    if (this.#connector.usesMasters) return { to: 'flushing', delayMs: 0 };
    this.#state.leaderAttemptFailed(leader, now, !isUnanswered);
    if (isUnanswered) {
      const { initLimitTicks, tickTimeMs } = options.zab;
      election.eligibility.markUnresponsive(leader, now.elapsedMs + unresponsiveInitLimits * initLimitTicks * tickTimeMs);
      io.election.reconnect(leader);
    }
    return { to: 'flushing', delayMs: 0 };
  }

  override fingerprint(to: Fingerprint, now: Now): void {
    this.#connector.fingerprint(to, now);
  }
}
