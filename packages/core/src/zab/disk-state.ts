/**
 * How far the disk of a peer is: what it has been asked for, and what it has done. Leader and learner ask for it through `out`, so nothing goes
 * by unseen. Before a server says in an election how far it is, all of it must be there: what it says has to be true after a crash as well.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { Fingerprint } from '../fingerprint.ts';
import type { LearnerOut } from './learner.ts';
import type { EpochName } from './zab-out.ts';

export interface FoundOnDisk {
  /** The last txn of the log. */
  readonly lastZxid: Zxid;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
}

export class DiskState {
  readonly out: LearnerOut;
  #acceptedEpoch: number;
  #currentEpoch: number;
  /** The last txn that was sent to the log, and the last that is durable. */
  #logged: Zxid;
  #durable: Zxid;
  /** Epoch files, TRUNC or a snapshot: what has been asked for and is not done yet. */
  #work = 0;

  constructor({ lastZxid, acceptedEpoch, currentEpoch }: FoundOnDisk, out: LearnerOut) {
    this.#acceptedEpoch = acceptedEpoch;
    this.#currentEpoch = currentEpoch;
    this.#logged = this.#durable = lastZxid;
    this.out = {
      packets: (channel) => out.packets(channel),
      share: (channel, bytes, start) => out.share(channel, bytes, start),
      channelIsFull: (channel) => out.channelIsFull(channel),
      closeChannel: (channel, reason) => out.closeChannel(channel, reason),
      append: (zxid, bytes, from, to) => {
        this.#logged = zxid;
        out.append(zxid, bytes, from, to);
      },
      saveEpoch: (name, epoch) => {
        this.#work++;
        out.saveEpoch(name, epoch);
      },
      truncate: (zxid) => {
        this.#work++;
        out.truncate(zxid);
      },
      installSnapshot: (zxid) => {
        this.#work++;
        out.installSnapshot(zxid);
      },
    };
  }

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
