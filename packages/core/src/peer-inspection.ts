/**
 * Implements `Inspect` for a server of an ensemble by the server of its current role.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { CnxnInfo, EnsembleInspect, Inspect } from './inspect.ts';
import type { CnxnId } from './client-output.ts';

export class PeerInspection implements Inspect {
  readonly #current: () => Inspect;
  readonly #ensemble: () => EnsembleInspect;

  /** @param current the present state; without clients while none are served. */
  constructor(current: () => Inspect, ensemble: () => EnsembleInspect) {
    this.#current = current;
    this.#ensemble = ensemble;
  }

  role(): ReturnType<Inspect['role']> {
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

  quotaTotals(): ReturnType<Inspect['quotaTotals']> {
    return this.#current().quotaTotals();
  }

  outstandingRequests(): number {
    return this.#current().outstandingRequests();
  }

  sessionCount(): number {
    return this.#current().sessionCount();
  }

  sessions(): ReturnType<Inspect['sessions']> {
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

  sessionExpiry(): ReturnType<Inspect['sessionExpiry']> {
    return this.#current().sessionExpiry();
  }

  ephemerals(): ReturnType<Inspect['ephemerals']> {
    return this.#current().ephemerals();
  }

  watchSummary(): ReturnType<Inspect['watchSummary']> {
    return this.#current().watchSummary();
  }

  watchesByCnxn(): ReturnType<Inspect['watchesByCnxn']> {
    return this.#current().watchesByCnxn();
  }

  watchesByPath(): ReturnType<Inspect['watchesByPath']> {
    return this.#current().watchesByPath();
  }

  digests(): ReturnType<Inspect['digests']> {
    return this.#current().digests();
  }

  resetCnxnStats(): void {
    this.#current().resetCnxnStats();
  }

  ensemble(): EnsembleInspect {
    return this.#ensemble();
  }
}
