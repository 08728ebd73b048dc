/**
 * Stands where a server orders its writes while the server serves in read-only mode: it has had no
 * leader for a while, and orders none. ZooKeeper's ReadOnlyZooKeeperServer does this.
 *
 * Nothing changes the state here: no txn is proposed, committed or applied. The only sessions that
 * exist are local ones (local-sessions.ts), which end with the read-only mode. The writes are
 * refused (read-only-requests.ts).
 */
import type { Millis, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Proposal } from '../pending/proposal.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { SequencerDependencies } from './local-sequencer.ts';
import type { WriteSequencer } from './write-sequencer.ts';

export class ReadOnlySequencer implements WriteSequencer {
  readonly role = 'read-only';
  readonly isReadOnly = true;
  readonly forwardsToLeader = false;
  readonly leader = undefined;
  readonly acceptsTransfers = false;
  readonly acceptsKeeperWrites = false;
  readonly queuedBytes = 0;
  readonly isCaughtUp = true;
  readonly hasCommitted = false;
  readonly workUnits = 0;
  readonly preparingWrite = undefined;
  readonly #tracker: SessionTracker;
  readonly #opensSessions: boolean;

  constructor({ options, tracker }: SequencerDependencies) {
    this.#tracker = tracker;
    this.#opensSessions = options.localSessions !== 'disabled';
  }

  // ---- writes: none reaches this server's order

  submitWrite(): never {
    throw new Error('submitWrite() was called in read-only mode');
  }

  openSession(): void {
    throw new Error('openSession() was called in read-only mode');
  }

  sync(): void {
    throw new Error('sync() was called in read-only mode');
  }

  synced(): void {
    throw new Error('synced() was called in read-only mode');
  }

  takeSynced(): undefined {
    return undefined;
  }

  appended(): void {
    throw new Error('appended() was called in read-only mode');
  }

  takeCommitted(): Proposal {
    throw new Error('takeCommitted() was called in read-only mode');
  }

  forgetApplied(_zxid: Zxid): boolean {
    return true;
  }

  drainUnapplied(): Proposal[] {
    return [];
  }

  // ---- sessions

  /**
   * Called for a session that neither the ensemble's state has nor this server. A server that opens
   * local sessions knows all of its own. Any other accepts every session whose client has the
   * password, as ZooKeeper does: it knows neither that such a session has ended nor that it exists.
   */
  revalidate({ sessionHigh: high, sessionLow: low }: SessionRef, timeoutMs: Millis, now: Now): boolean {
    if (this.#opensSessions) return false;
    this.#tracker.openLocal(high, low, timeoutMs, now.elapsedMs);
    return true;
  }

  expireNow(): boolean {
    return false;
  }

  wake(): undefined {
    return undefined;
  }

  expireSessions(): undefined {
    return undefined;
  }

  deadline(): undefined {
    return undefined;
  }

  fingerprint(to: Fingerprint): void {
    to.text(this.role);
  }
}
