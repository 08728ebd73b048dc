/**
 * How far the disk of a peer is: what it was asked for, and what it has done. Leader and learner use the storage through this class. Before a server says in an election how far it is, all of it must be there: what it says has to be true after a crash as well.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { EpochName, PeerStorage } from './peer-storage.ts';
import type { ChannelId } from './quorum-links.ts';

export interface FoundOnDisk {
  /** The last txn of the log. */
  readonly lastZxid: Zxid;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

export class DiskState implements PeerStorage {
  readonly #storage: PeerStorage;
  #acceptedEpoch: number;
  #currentEpoch: number;
  /** The last txn that was sent to the log, and the last that is durable. */
  #logged: Zxid;
  #durable: Zxid;
  /** Epoch files, TRUNC or a snapshot: how much of what was asked for is not done yet. */
  #work = 0;

  constructor({ lastZxid, acceptedEpoch, currentEpoch }: FoundOnDisk, storage: PeerStorage) {
    this.#storage = storage;
    this.#acceptedEpoch = acceptedEpoch;
    this.#currentEpoch = currentEpoch;
    this.#logged = this.#durable = lastZxid;
  }

  // ---- as PeerStorage

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#logged = zxid;
    this.#storage.append(zxid, bytes, start, end);
  }

  saveEpoch(name: EpochName, epoch: number): void {
    this.#work++;
    this.#storage.saveEpoch(name, epoch);
  }

  truncate(zxid: Zxid): void {
    this.#work++;
    this.#storage.truncate(zxid);
  }

  installSnapshot(zxid: Zxid): void {
    this.#work++;
    this.#storage.installSnapshot(zxid);
  }

  logBytesMax(): number | undefined {
    return this.#storage.logBytesMax();
  }

  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void {
    this.#storage.readLog(channel, from, isTail);
  }

  resumeLogRead(channel: ChannelId): void {
    this.#storage.resumeLogRead(channel);
  }

  stopLogRead(channel: ChannelId): void {
    this.#storage.stopLogRead(channel);
  }

  // ---- what is on the disk

  /** What a leader or a learner begins with. */
  get found(): FoundOnDisk {
    return { acceptedEpoch: this.#acceptedEpoch, currentEpoch: this.#currentEpoch, lastZxid: this.#logged };
  }

  /** The last txn that was sent to the log. */
  get logged(): Zxid {
    return this.#logged;
  }

  /** The last txn that is durable. */
  get durable(): Zxid {
    return this.#durable;
  }

  /** Besides the log: files are being written, or the log is being cut. */
  get isAtWork(): boolean {
    return this.#work > 0;
  }

  /** Everything is there that was asked for. */
  get isSettled(): boolean {
    return this.#durable >= this.#logged && !this.isAtWork;
  }

  /** Every txn up to `zxid` is durable. */
  appended(zxid: Zxid): void {
    this.#durable = zxid;
  }

  epochSaved(name: EpochName, epoch: number): void {
    this.#work--;
    if (name === 'acceptedEpoch') this.#acceptedEpoch = epoch;
    else this.#currentEpoch = epoch;
  }

  /** The log was cut, or a snapshot is in its place: the history ends with `lastZxid`. */
  replaced(lastZxid: Zxid): void {
    this.#work--;
    this.#logged = this.#durable = lastZxid;
  }

  /** The log could not be cut, and is as it was. */
  truncationRefused(): void {
    this.#work--;
  }

  fingerprint(to: Fingerprint): void {
    for (const number of [this.#acceptedEpoch, this.#currentEpoch, this.#logged, this.#durable, this.#work]) to.number(number);
  }
}
