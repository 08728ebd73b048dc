/**
 * Implements `Inspector` for a server of an ensemble by the server of its current role.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { CnxnInfo, EnsembleStatus, Inspector } from './inspector.ts';
import type { CnxnId } from './client-output.ts';

export class PeerInspector implements Inspector {
  readonly #current: () => Inspector;
  readonly #ensemble: () => EnsembleStatus;

  /** @param current the present state; without clients while none are served. */
  constructor(current: () => Inspector, ensemble: () => EnsembleStatus) {
    this.#current = current;
    this.#ensemble = ensemble;
  }

  role(): ReturnType<Inspector['role']> {
    return this.#current().role();
  }

  lastZxid(): number {
    return this.#current().lastZxid();
  }

  nodeCount(): number {
    return this.#current().nodeCount();
  }

  approximateDataBytes(): number {
    return this.#current().approximateDataBytes();
  }

  ephemeralCount(): number {
    return this.#current().ephemeralCount();
  }

  watchCount(): number {
    return this.#current().watchCount();
  }

  quotaTotals(): ReturnType<Inspector['quotaTotals']> {
    return this.#current().quotaTotals();
  }

  outstandingRequests(): number {
    return this.#current().outstandingRequests();
  }

  sessionCount(): number {
    return this.#current().sessionCount();
  }

  sessions(): ReturnType<Inspector['sessions']> {
    return this.#current().sessions();
  }

  hasSession(session: SessionId): boolean {
    return this.#current().hasSession(session);
  }

  cnxnCount(): number {
    return this.#current().cnxnCount();
  }

  cnxns(): Iterable<CnxnInfo> {
    return this.#current().cnxns();
  }

  cnxn(id: CnxnId): CnxnInfo | undefined {
    return this.#current().cnxn(id);
  }

  sessionExpiry(): ReturnType<Inspector['sessionExpiry']> {
    return this.#current().sessionExpiry();
  }

  ephemerals(): ReturnType<Inspector['ephemerals']> {
    return this.#current().ephemerals();
  }

  watchSummary(): ReturnType<Inspector['watchSummary']> {
    return this.#current().watchSummary();
  }

  watchesByCnxn(): ReturnType<Inspector['watchesByCnxn']> {
    return this.#current().watchesByCnxn();
  }

  watchesByPath(): ReturnType<Inspector['watchesByPath']> {
    return this.#current().watchesByPath();
  }

  digests(): ReturnType<Inspector['digests']> {
    return this.#current().digests();
  }

  resetCnxnStats(): void {
    this.#current().resetCnxnStats();
  }

  ensemble(): EnsembleStatus {
    return this.#ensemble();
  }
}
