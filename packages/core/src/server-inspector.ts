/**
 * Implements `Inspector` from the parts of a server.
 */
import { type SessionId, sessionHigh, sessionIdOf, sessionLow } from '@tskeeper/protocol';
import type { CnxnTable } from './cnxn/cnxn-table.ts';
import type { CnxnInfo, EnsembleStatus, Inspector, ObserverStatus } from './inspector.ts';
import type { CnxnId } from './client-output.ts';
import type { Load } from './pending/load.ts';
import type { Replica } from './request/replica.ts';
import type { SessionDueTimes, SessionTracker } from './session/session-tracker.ts';
import type { WatchTable } from './tree/watch-table.ts';

export class ServerInspector implements Inspector {
  readonly #role: ReturnType<Inspector['role']>;
  readonly #replica: Replica;
  readonly #tracker: SessionTracker;
  readonly #watches: WatchTable;
  readonly #cnxns: CnxnTable;
  readonly #load: Load;
  readonly #hasLocalSessions: boolean;

  constructor(
    role: ReturnType<Inspector['role']>,
    replica: Replica,
    tracker: SessionTracker,
    watches: WatchTable,
    cnxns: CnxnTable,
    load: Load,
    hasLocalSessions = false,
  ) {
    this.#role = role;
    this.#replica = replica;
    this.#tracker = tracker;
    this.#watches = watches;
    this.#cnxns = cnxns;
    this.#load = load;
    this.#hasLocalSessions = hasLocalSessions;
  }

  role(): ReturnType<Inspector['role']> {
    return this.#role;
  }

  lastZxid(): number {
    return this.#replica.lastZxid;
  }

  nodeCount(): number {
    return this.#replica.tree.nodeCount;
  }

  approximateDataBytes(): number {
    return this.#replica.tree.approximateDataBytes;
  }

  ephemeralCount(): number {
    return this.#replica.tree.ephemeralCount;
  }

  watchCount(): number {
    return this.#watches.count;
  }

  quotaTotals(): ReturnType<Inspector['quotaTotals']> {
    return this.#replica.tree.quotas.totals();
  }

  outstandingRequests(): number {
    return this.#load.requests;
  }

  sessionCount(): number {
    return this.#replica.sessions.count;
  }

  localSessionCount(): number {
    return this.#tracker.localCount;
  }

  *sessions(): ReturnType<Inspector['sessions']> & Generator {
    const { sessions } = this.#replica;
    for (let slot = sessions.nextSlot(-1); slot !== -1; slot = sessions.nextSlot(slot)) {
      yield { session: sessionIdOf(sessions.high(slot), sessions.low(slot)), timeoutMs: sessions.timeoutMs(slot) };
    }
  }

  hasSession(session: SessionId): boolean {
    const [high, low] = [sessionHigh(session), sessionLow(session)];
    const { sessions } = this.#tracker;
    const slot = sessions.find(high, low);
    return this.#replica.sessions.find(high, low) !== -1 || (slot !== -1 && sessions.isLocal(slot));
  }

  cnxnCount(): number {
    return this.#cnxns.size;
  }

  *cnxns(): Generator<CnxnInfo> {
    for (const cnxn of this.#cnxns.all()) yield cnxn.info();
  }

  cnxn(id: CnxnId): CnxnInfo | undefined {
    return this.#cnxns.get(id)?.info();
  }

  sessionExpiry(): ReturnType<Inspector['sessionExpiry']> & Generator {
    return this.#dueTimes(this.#tracker.expiry);
  }

  localSessionExpiry(): ReturnType<Inspector['localSessionExpiry']> {
    return this.#hasLocalSessions ? this.#dueTimes(this.#tracker.localExpiry) : undefined;
  }

  *#dueTimes(expiry: SessionDueTimes): ReturnType<Inspector['sessionExpiry']> & Generator {
    const { sessions } = this.#tracker;
    for (const { dueMs, slots } of expiry.buckets()) {
      yield { dueMs, sessions: slots.map((slot) => sessionIdOf(sessions.high(slot), sessions.low(slot))) };
    }
  }

  *ephemerals(): ReturnType<Inspector['ephemerals']> & Generator {
    for (const [high, low] of this.#replica.tree.owners()) {
      yield { session: sessionIdOf(high, low), paths: this.#replica.ephemeralPathsLazily(high, low) };
    }
  }

  watchSummary(): ReturnType<Inspector['watchSummary']> {
    return this.#watches.summary();
  }

  *watchesByCnxn(): ReturnType<Inspector['watchesByCnxn']> & Generator {
    for (const { cnxn, paths } of this.#watches.byCnxn()) {
      yield { cnxn, session: this.#cnxns.get(cnxn)?.session ?? 0n, paths };
    }
  }

  *watchesByPath(): ReturnType<Inspector['watchesByPath']> & Generator {
    for (const { path, cnxns } of this.#watches.byPath()) {
      yield { path, sessions: [...cnxns].map((cnxn) => this.#cnxns.get(cnxn)?.session ?? 0n) };
    }
  }

  *digests(): ReturnType<Inspector['digests']> & Generator {
    for (const { zxid, high, low } of this.#replica.digests) {
      yield { zxid, digestVersion: 2, digest: BigInt.asUintN(64, sessionIdOf(high, low)) };
    }
  }

  resetCnxnStats(): void {
    for (const cnxn of this.#cnxns.all()) cnxn.resetStats();
  }

  ensemble(): EnsembleStatus | undefined {
    return undefined;
  }

  /** Only a server of an ensemble has observers; `PeerInspector` answers there. */
  observers(): Iterable<ObserverStatus> {
    return [];
  }

  resetObserverStats(): void {}
}
