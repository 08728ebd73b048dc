/**
 * The state of a peer's disk: what was requested, and what is done. Leader and learner use the
 * storage through this class. Before a server votes, everything requested must be durable: its vote
 * must be true after a crash as well.
 */
import type { QuorumConfig, Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { DurableState, EpochName } from './peer-storage.ts';

export interface PersistedState {
  /** The last txn of the log. */
  readonly lastZxid: Zxid;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

export class DiskState implements DurableState {
  readonly #storage: DurableState;
  #acceptedEpoch: number;
  #currentEpoch: number;
  /** The last txn that was appended to the log, and the last that is durable. */
  #logged: Zxid;
  #durable: Zxid;
  /** Pending writes of epoch files, TRUNC or snapshots. */
  #pendingOperations = 0;

  constructor({ lastZxid, acceptedEpoch, currentEpoch }: PersistedState, storage: DurableState) {
    this.#storage = storage;
    this.#acceptedEpoch = acceptedEpoch;
    this.#currentEpoch = currentEpoch;
    this.#logged = this.#durable = lastZxid;
  }

  // ---- as DurableState

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#logged = zxid;
    this.#storage.append(zxid, bytes, start, end);
  }

  saveConfig(active: QuorumConfig, lastSeen: QuorumConfig | undefined): void {
    this.#pendingOperations++;
    this.#storage.saveConfig(active, lastSeen);
  }

  saveEpoch(name: EpochName, epoch: number): void {
    this.#pendingOperations++;
    this.#storage.saveEpoch(name, epoch);
  }

  truncate(zxid: Zxid): void {
    this.#pendingOperations++;
    this.#storage.truncate(zxid);
  }

  installSnapshot(zxid: Zxid): void {
    this.#pendingOperations++;
    this.#storage.installSnapshot(zxid);
  }

  // ---- content of the disk

  /** The state with which a leader or a learner starts. */
  get persisted(): PersistedState {
    return { acceptedEpoch: this.#acceptedEpoch, currentEpoch: this.#currentEpoch, lastZxid: this.#logged };
  }

  /** The last txn that was appended to the log. */
  get logged(): Zxid {
    return this.#logged;
  }

  /** The last txn that is durable. */
  get durable(): Zxid {
    return this.#durable;
  }

  /** Besides appends: files are being written, or the log is being truncated. */
  get isBusy(): boolean {
    return this.#pendingOperations > 0;
  }

  /** Everything requested is durable. */
  get isFlushed(): boolean {
    return this.#durable >= this.#logged && !this.isBusy;
  }

  /** Every txn up to `zxid` is durable. */
  appended(zxid: Zxid): void {
    this.#durable = zxid;
  }

  configSaved(): void {
    this.#pendingOperations--;
  }

  epochSaved(name: EpochName, epoch: number): void {
    this.#pendingOperations--;
    if (name === 'acceptedEpoch') this.#acceptedEpoch = epoch;
    else this.#currentEpoch = epoch;
  }

  /** The log was truncated, or replaced by a snapshot: the history ends with `lastZxid`. */
  replaced(lastZxid: Zxid): void {
    this.#pendingOperations--;
    this.#logged = this.#durable = lastZxid;
  }

  /** The log could not be truncated, and is unchanged. */
  truncationRefused(): void {
    this.#pendingOperations--;
  }

  fingerprint(to: Fingerprint): void {
    for (const number of [this.#acceptedEpoch, this.#currentEpoch, this.#logged, this.#durable, this.#pendingOperations]) to.number(number);
  }
}
