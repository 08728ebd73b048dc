/**
 * Stands where a server orders its writes while the server serves in read-only mode: it has had no
 * leader for a while, and orders none. ZooKeeper's ReadOnlyZooKeeperServer does this.
 *
 * Nothing changes the state here: no txn is proposed, committed or applied. The only sessions that
 * exist are local to this server, and end with its read-only mode. read-only-requests.ts refuses
 * the writes.
 */
import type { Millis, Zxid } from '@tskeeper/protocol';
import type { CnxnTable } from '../cnxn/cnxn-table.ts';
import type { Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { Proposal } from '../pending/proposal.ts';
import { SessionExpiry } from '../session/session-expiry.ts';
import type { SessionRef } from '../session/session-ref.ts';
import type { SessionSlot } from '../session/session-table.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import { unitsPerRequest } from '../step-budget.ts';
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
  readonly #tracker: SessionTracker;
  readonly #cnxns: CnxnTable;
  readonly #opensSessions: boolean;
  readonly #sessionExpiry: SessionExpiry;
  workUnits = 0;

  constructor({ options, tracker, cnxns }: SequencerDependencies) {
    this.#tracker = tracker;
    this.#cnxns = cnxns;
    this.#opensSessions = options.localSessions !== 'disabled';
    this.#sessionExpiry = new SessionExpiry(tracker, tracker.expiry);
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
   * Called for a session that the ensemble's state does not have. A server that opens local
   * sessions knows all of its own. Any other accepts every session whose client has the password,
   * as ZooKeeper does: it knows neither that such a session has ended nor that it exists.
   */
  revalidate({ sessionHigh: high, sessionLow: low }: SessionRef, timeoutMs: Millis, now: Now): boolean {
    if (this.#tracker.findLive(high, low) !== -1) return true;
    if (this.#opensSessions) return false;
    this.#tracker.open(high, low, timeoutMs, now.elapsedMs);
    return true;
  }

  expireNow({ sessionHigh: high, sessionLow: low }: SessionRef): boolean {
    const slot = this.#tracker.findLive(high, low);
    if (slot !== -1) this.#sessionExpiry.expireNow(slot);
    return slot !== -1;
  }

  wake(_now: Now, inputWatermarkMs: Millis, isBudgetSpent: () => boolean): undefined {
    while (!isBudgetSpent()) {
      const due = this.#sessionExpiry.nextExpired(inputWatermarkMs);
      if (due === -1) return;
      this.#expireSession(due);
    }
  }

  /** A long read must not put off the end of a session, which costs little here. */
  expireSessions(now: Now, inputWatermarkMs: Millis, isBudgetSpent: () => boolean): undefined {
    this.wake(now, inputWatermarkMs, isBudgetSpent);
  }

  /** No txn: nothing in the state belongs to the session. */
  #expireSession(slot: SessionSlot): void {
    this.workUnits += unitsPerRequest;
    const cnxn = this.#cnxns.get(this.#tracker.sessions.cnxnOf(slot));
    this.#tracker.remove(slot);
    if (cnxn === undefined) return;
    cnxn.slot = -1;
    this.#cnxns.close(cnxn, 'session expired');
  }

  deadline(): Millis | undefined {
    return this.#sessionExpiry.hasForcedExpirations ? 0 : this.#tracker.expiry.deadline();
  }

  fingerprint(to: Fingerprint): void {
    to.text(this.role);
  }
}
