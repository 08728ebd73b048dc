/**
 * The disk of a server of an ensemble: the storage calls of its peer, each completed as an input of
 * the peer in its own turn. A call that the disk refuses ends the server, because the content of
 * the disk is then unknown.
 */
import type { ChannelId, CoreOptions, EpochName, Now, Peer, PeerStorage, QuorumLinks } from '@tskeeper/core';
import { Fifo, logBytesMax } from '@tskeeper/core/internal';
import type { Millis, Zxid } from '@tskeeper/protocol';
import { DiskError } from './disk.ts';
import type { Logger } from './logger.ts';
import type { MemberOptions } from './member-options.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { ReplicaRecovery } from './replica-recovery.ts';
import type { LogReading } from './storage/log-reading.ts';
import { SnapshotSpoiled } from './storage/snapshot-files.ts';
import type { Storage } from './storage/storage.ts';
import { TruncationImpossible } from './storage/truncation.ts';
import type { World } from './world.ts';

export interface EnsembleStorageParts {
  readonly world: World;
  readonly core: CoreOptions;
  readonly options: MemberOptions;
  readonly storage: Storage;
  readonly books: Pick<ServerMetrics, 'txnReceived' | 'txnLogged'>;
  readonly logger: Logger;
  /** Runs work in a turn of its own. */
  readonly turn: (work: (now: Now) => void) => void;
  /** Reports that the server cannot continue. */
  readonly failed: (error: unknown) => void;
}

/** How many times a leader's snapshot is written before the disk counts as failed. */
const installTriesMax = 3;

export class EnsembleStorage implements PeerStorage {
  readonly #parts: EnsembleStorageParts;
  readonly #links: Pick<QuorumLinks, 'channelIsFull'>;
  readonly #readings = new Map<ChannelId, LogReading | undefined>();
  /** Readings that wait until their channel has room. */
  readonly #waitingReadings = new Map<ChannelId, () => void>();
  /** Txns handed to the log and not yet durable, with their times on the wall clock. */
  readonly #logging = new Fifo<{ readonly zxid: Zxid; readonly txnMs: Millis }>();
  #peer!: Peer;
  #state: 'open' | 'closing' | 'closed' = 'open';

  constructor(parts: EnsembleStorageParts, links: Pick<QuorumLinks, 'channelIsFull'>) {
    this.#parts = parts;
    this.#links = links;
  }

  /** Sets the peer that completions go to. The peer is made later, because it calls this object. */
  attach(peer: Peer): void {
    this.#peer = peer;
  }

  /** Called before the storage closes. */
  beginClose(): void {
    this.#state = 'closing';
  }

  close(): void {
    this.#state = 'closed';
    for (const channel of this.#readings.keys()) this.stopLogRead(channel);
  }

  // ---- the log

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#noteAppend(zxid, bytes, start);
    this.#parts.storage.append(zxid, bytes, start, end);
  }

  #noteAppend(zxid: Zxid, bytes: Buffer, start: number): void {
    const { world, books, options } = this.#parts;
    // A txn begins with its header, in which session, cxid and zxid come before the time.
    const txnMs = bytes.readInt32BE(start + 20) * 2 ** 32 + bytes.readUInt32BE(start + 24);
    if (this.#peer.role === 'learning') books.txnReceived(world.clock.now().wallMs - txnMs);
    if (options.role === 'participant') this.#logging.push({ zxid, txnMs });
  }

  /** Every txn up to `zxid` is durable. */
  appended(zxid: Zxid, now: Now): void {
    for (let next = this.#logging.peek(); next !== undefined && next.zxid <= zxid; next = this.#logging.peek()) {
      this.#logging.shift();
      this.#parts.books.txnLogged(now.wallMs - next.txnMs);
    }
  }

  truncate(zxid: Zxid): void {
    void this.#then(this.#truncate(zxid), (done, now) => {
      if (done === undefined) this.#peer.truncationRefused(now);
      else this.#peer.truncated(done.recovery.finish(), done.lastZxid, now);
    });
  }

  async #truncate(zxid: Zxid): Promise<{ readonly recovery: ReplicaRecovery; readonly lastZxid: Zxid } | undefined> {
    const { core, world, logger, storage } = this.#parts;
    const recovery = new ReplicaRecovery(core, world.random, logger);
    try {
      const { lastZxid } = await storage.truncate(zxid, recovery);
      return { recovery, lastZxid };
    } catch (error) {
      if (!(error instanceof TruncationImpossible)) throw error;
      // The leader names a txn that this log does not have. The two histories agree up to the txn
      // before it, and are compared again from there.
      if (error.heldZxid !== undefined && error.heldZxid < zxid) return await this.#truncate(error.heldZxid);
      logger.warn(`${error.message}; the leader is asked for a snapshot`, { event: 'txnlog.not-truncated', reason: error.message });
      return undefined;
    }
  }

  // ---- epochs and snapshots

  saveEpoch(name: EpochName, epoch: number): void {
    void this.#then(this.#parts.storage.saveEpoch(name, epoch), (_, now) => this.#peer.epochSaved(name, epoch, now));
  }

  installSnapshot(zxid: Zxid): void {
    void this.#then(this.#replaceBySnapshot(zxid, installTriesMax), (_, now) => this.#peer.installed(zxid, now));
  }

  /**
   * The leader's snapshot is in memory as received, so one that the disk has spoiled is written
   * again.
   */
  async #replaceBySnapshot(zxid: Zxid, triesLeft: number): Promise<void> {
    const { storage, logger } = this.#parts;
    const source = this.#peer.snapshot();
    try {
      if (!(await storage.replaceBySnapshot(zxid, source))) throw new Error('the server is closing');
      return;
    } catch (error) {
      if (!(error instanceof SnapshotSpoiled)) throw error;
      logger.warn(`${error.message}; ${triesLeft > 1 ? 'writing it again' : 'this server stops'}. Check the disk.`, {
        event: 'snapshot.spoiled',
        path: error.path,
      });
      if (triesLeft <= 1) throw new DiskError('EIO', 'read back', error.path, error);
    } finally {
      source.abandon();
    }
    await this.#replaceBySnapshot(zxid, triesLeft - 1);
  }

  // ---- reading the log for learners

  logBytesMax(): number | undefined {
    return this.#parts.options.snapshotSizeFactor < 0 ? undefined : Infinity;
  }

  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void {
    this.#readLog(channel, from, isTail).catch((error: unknown) => {
      this.#workFailed(error);
    });
  }

  /**
   * Reads the log for a learner, piece by piece, until its stream closes or another reading for it
   * starts.
   */
  async #readLog(channel: ChannelId, from: Zxid, isTail: boolean): Promise<void> {
    const { storage, turn, options } = this.#parts;
    this.stopLogRead(channel);
    this.#readings.set(channel, undefined);
    const reading = await storage.readFrom(from);
    if (!this.#readings.has(channel) || this.#readings.get(channel) !== undefined) {
      void reading?.close();
      return;
    }
    const bytesMax = isTail ? Infinity : (logBytesMax(options.snapshotSizeFactor, reading?.snapshotBytes ?? 0) ?? 0);
    if (reading === undefined || reading.logBytes > bytesMax) {
      this.#readings.delete(channel);
      void reading?.close();
      turn((now) => this.#peer.logRefused(channel, now));
      return;
    }
    this.#readings.set(channel, reading);
    for (;;) {
      const piece = await reading.next();
      if (this.#readings.get(channel) !== reading) return;
      const isEnd = piece.kind !== 'txns';
      if (isEnd) this.#readings.delete(channel);
      turn(() => this.#peer.logRead(channel, piece.kind === 'txns' ? piece.txns : [], isEnd));
      if (isEnd) return;
      // The disk is faster than most networks, and pieces that a learner has not received wait in
      // memory.
      if (this.#links.channelIsFull(channel)) await new Promise<void>((resolve) => this.#waitingReadings.set(channel, resolve));
    }
  }

  stopLogRead(channel: ChannelId): void {
    void this.#readings.get(channel)?.close();
    this.#readings.delete(channel);
    this.resumeLogRead(channel);
  }

  /** Resumes the reading that waits; one that was stopped ends. */
  resumeLogRead(channel: ChannelId): void {
    this.#waitingReadings.get(channel)?.();
    this.#waitingReadings.delete(channel);
  }

  // ---- completions

  async #then<T>(work: Promise<T>, done: (result: T, now: Now) => void): Promise<void> {
    let result: T;
    try {
      result = await work;
    } catch (error) {
      this.#workFailed(error);
      return;
    }
    this.#parts.turn((now) => done(result, now));
  }

  /**
   * Storage that is closing accepts no more work and abandons what it can; that is not a failure.
   * An error of the disk is one.
   */
  #workFailed(error: unknown): void {
    if (this.#state === 'closed' || (this.#state === 'closing' && !(error instanceof DiskError))) return;
    this.#parts.failed(error);
  }
}
