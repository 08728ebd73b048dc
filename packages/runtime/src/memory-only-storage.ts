/**
 * The disk of an observer with syncEnabled=false: it writes no txn and no snapshot. What it has
 * received is in memory, and a restart fetches it anew.
 *
 * The folder stays as the last start with a log has left it, which is a history that its own epoch
 * file belongs to. So nothing on the disk can lie:
 *
 *   - No txn is appended, so there is no log with a hole after a run of this kind, whatever
 *     syncEnabled is next time.
 *   - currentEpoch is not saved, since it says that the history with which that epoch began is on
 *     this disk. ZooKeeper saves it; if such a server becomes a voter, its vote beats those of
 *     servers that have more of the history. acceptedEpoch is saved: it is a promise, and a larger
 *     one is safe.
 *   - A TRUNC is refused: the txns to be removed are in memory only. The observer then asks for a
 *     snapshot, and a snapshot replaces what is in memory.
 */
import type { ChannelId, EpochName, Now, Peer, PeerStorage } from '@tskeeper/core';
import type { QuorumConfig, Zxid } from '@tskeeper/protocol';
import type { Clock } from './clock.ts';
import { txnTimeOf } from './ensemble-storage.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';

export interface MemoryOnlyStorageParts {
  /** Saves acceptedEpoch, and the configuration. */
  readonly storage: Pick<PeerStorage, 'saveEpoch' | 'saveConfig'>;
  readonly clock: Pick<Clock, 'now' | 'setImmediate'>;
  readonly metrics: Pick<ServerMetrics, 'txnReceived'>;
  /** Runs work in a turn of its own. */
  readonly runTurn: (work: (now: Now) => void) => void;
}

export class MemoryOnlyStorage implements PeerStorage {
  readonly #parts: MemoryOnlyStorageParts;
  #peer!: Peer;
  /** The last txn received in this turn; undefined if the peer knows of it. */
  #received: Zxid | undefined;

  constructor(parts: MemoryOnlyStorageParts) {
    this.#parts = parts;
  }

  attach(peer: Peer): void {
    this.#peer = peer;
  }

  /** As durable as it gets. */
  append(zxid: Zxid, bytes: Buffer, start: number): void {
    const { clock, metrics } = this.#parts;
    if (this.#peer.role === 'learning') metrics.txnReceived(clock.now().wallMs - txnTimeOf(bytes, start));
    const isAnnounced = this.#received !== undefined;
    this.#received = zxid;
    if (!isAnnounced) this.#complete((now) => this.#appended(now));
  }

  #appended(now: Now): void {
    const zxid = this.#received!;
    this.#received = undefined;
    this.#peer.appended(zxid, now);
  }

  saveEpoch(name: EpochName, epoch: number): void {
    if (name === 'acceptedEpoch') this.#parts.storage.saveEpoch(name, epoch);
    else this.#complete((now) => this.#peer.epochSaved(name, epoch, now));
  }

  saveConfig(active: QuorumConfig, lastSeen: QuorumConfig | undefined): void {
    this.#parts.storage.saveConfig(active, lastSeen);
  }

  truncate(): void {
    this.#complete((now) => this.#peer.truncationRefused(now));
  }

  installSnapshot(zxid: Zxid): void {
    this.#complete((now) => this.#peer.installed(zxid, now));
  }

  /** A completion is an input of the peer: it comes in a later turn, as from a disk. */
  #complete(work: (now: Now) => void): void {
    const { clock, runTurn } = this.#parts;
    clock.setImmediate(() => runTurn(work));
  }

  // ---- Observers have no learners, to which a log would be sent.

  logBytesMax(): undefined {
    return undefined;
  }

  readLog(channel: ChannelId): void {
    this.#complete((now) => this.#peer.logReadRefused(channel, now));
  }

  resumeLogRead(): void {}

  stopLogRead(): void {}
}
