/**
 * Implements `Inspector` for a server of an ensemble by the inspector of its present front, so that
 * those who ask may keep one object.
 */
import type { SessionId } from '@tskeeper/protocol';
import type { CnxnId } from './client-output.ts';
import type { CnxnInfo, EnsembleStatus, Inspector, ObserverStatus } from './inspector.ts';

/** The part of a peer that is inspected. */
export interface InspectedPeer {
  readonly front: { readonly inspect: Inspector };
  status(): EnsembleStatus;
  observers(): Iterable<ObserverStatus>;
  resetObserverStats(): void;
}

export class PeerInspector implements Inspector {
  readonly #peer: InspectedPeer;

  constructor(peer: InspectedPeer) {
    this.#peer = peer;
  }

  role(): ReturnType<Inspector['role']> {
    return this.#peer.front.inspect.role();
  }

  lastZxid(): number {
    return this.#peer.front.inspect.lastZxid();
  }

  nodeCount(): number {
    return this.#peer.front.inspect.nodeCount();
  }

  approximateDataBytes(): number {
    return this.#peer.front.inspect.approximateDataBytes();
  }

  ephemeralCount(): number {
    return this.#peer.front.inspect.ephemeralCount();
  }

  watchCount(): number {
    return this.#peer.front.inspect.watchCount();
  }

  quotaTotals(): ReturnType<Inspector['quotaTotals']> {
    return this.#peer.front.inspect.quotaTotals();
  }

  outstandingRequests(): number {
    return this.#peer.front.inspect.outstandingRequests();
  }

  sessionCount(): number {
    return this.#peer.front.inspect.sessionCount();
  }

  localSessionCount(): number {
    return this.#peer.front.inspect.localSessionCount();
  }

  sessions(): ReturnType<Inspector['sessions']> {
    return this.#peer.front.inspect.sessions();
  }

  hasSession(session: SessionId): boolean {
    return this.#peer.front.inspect.hasSession(session);
  }

  cnxnCount(): number {
    return this.#peer.front.inspect.cnxnCount();
  }

  cnxns(): Iterable<CnxnInfo> {
    return this.#peer.front.inspect.cnxns();
  }

  cnxn(id: CnxnId): CnxnInfo | undefined {
    return this.#peer.front.inspect.cnxn(id);
  }

  sessionExpiry(): ReturnType<Inspector['sessionExpiry']> {
    return this.#peer.front.inspect.sessionExpiry();
  }

  localSessionExpiry(): ReturnType<Inspector['localSessionExpiry']> {
    return this.#peer.front.inspect.localSessionExpiry();
  }

  ephemerals(): ReturnType<Inspector['ephemerals']> {
    return this.#peer.front.inspect.ephemerals();
  }

  watchSummary(): ReturnType<Inspector['watchSummary']> {
    return this.#peer.front.inspect.watchSummary();
  }

  watchesByCnxn(): ReturnType<Inspector['watchesByCnxn']> {
    return this.#peer.front.inspect.watchesByCnxn();
  }

  watchesByPath(): ReturnType<Inspector['watchesByPath']> {
    return this.#peer.front.inspect.watchesByPath();
  }

  digests(): ReturnType<Inspector['digests']> {
    return this.#peer.front.inspect.digests();
  }

  resetCnxnStats(): void {
    this.#peer.front.inspect.resetCnxnStats();
  }

  ensemble(): EnsembleStatus {
    return this.#peer.status();
  }

  observers(): Iterable<ObserverStatus> {
    return this.#peer.observers();
  }

  resetObserverStats(): void {
    this.#peer.resetObserverStats();
  }
}
