/**
 * The disk of a server of an ensemble: the storage calls of its peer, each completed as an input of
 * the peer in its own turn. A call that the disk refuses ends the server, because the content of
 * the disk is then unknown.
 */
import type { ChannelId, CoreOptions, EpochName, Now, Peer, PeerStorage, QuorumLinks } from '@tskeeper/core';
import { Fifo, logBytesMax } from '@tskeeper/core/internal';
import type { Millis, QuorumConfig, Zxid } from '@tskeeper/protocol';
import { DiskError } from './disk.ts';
import type { Logger } from './logger.ts';
import type { EnsembleOptions } from './ensemble-options.ts';
import type { ServerMetrics } from './metrics/server-metrics.ts';
import { ReplicaRecovery } from './replica-recovery.ts';
import type { ConfigFiles } from './storage/config-files.ts';
import type { TxnLogIterator } from './storage/txn-log-iterator.ts';
import { SnapshotReadBackFailed } from './storage/snapshot-files.ts';
import type { Storage } from './storage/storage.ts';
import { TruncationImpossible } from './storage/truncation.ts';
import type { World } from './world.ts';

export interface EnsembleStorageParts {
  readonly world: World;
  readonly core: CoreOptions;
  readonly options: EnsembleOptions;
  readonly storage: Storage;
  readonly metrics: Pick<ServerMetrics, 'txnReceived' | 'txnLogged'>;
  readonly logger: Logger;
  /** Runs work in a turn of its own. */
  readonly runTurn: (work: (now: Now) => void) => void;
  /** Reports that the server cannot continue. */
  readonly failed: (error: unknown) => void;
}

/** How many times a leader's snapshot is written before the disk counts as failed. */
const installTriesMax = 3;

/**
 * The time at which its leader made a txn. It begins with its header, in which session, cxid and
 * zxid come before the time.
 */
export function txnTimeOf(bytes: Buffer, start: number): Millis {
  return bytes.readInt32BE(start + 20) * 2 ** 32 + bytes.readUInt32BE(start + 24);
}

export class EnsembleStorage implements PeerStorage {
  readonly #dependencies: EnsembleStorageParts;
  readonly #links: Pick<QuorumLinks, 'channelIsFull'>;
  readonly #logIterators = new Map<ChannelId, TxnLogIterator | undefined>();
  /** Readings that wait until their channel has room. */
  readonly #pausedLogIterators = new Map<ChannelId, () => void>();
  /** Txns handed to the log and not yet durable, with their times on the wall clock. */
  readonly #unsyncedTxns = new Fifo<{ readonly zxid: Zxid; readonly txnMs: Millis }>();
  readonly #configFiles: ConfigFiles | undefined;
  /** The configurations being stored, one after the other, and how many. */
  #storingConfigs: Promise<void> = Promise.resolve();
  #unstoredConfigs = 0;
  /** The last txn appended; 0 before the first. */
  #appended: Zxid = 0;
  /** The one before the first that was appended while a configuration is being stored. */
  #heldAfter: Zxid | undefined;
  /** The last txn that is durable. */
  #durable: Zxid = 0;
  /** The last txn that the peer knows to be durable. */
  #reported: Zxid = 0;
  #peer!: Peer;
  /** False for an observer with syncEnabled=false: it stores only promises and configurations here. */
  keepsLog = true;
  #state: 'open' | 'closing' | 'closed' = 'open';

  /** @param configFiles undefined: configurations are stored in the log only. */
  constructor(parts: EnsembleStorageParts, links: Pick<QuorumLinks, 'channelIsFull'>, configFiles: ConfigFiles | undefined) {
    this.#dependencies = parts;
    this.#links = links;
    this.#configFiles = configFiles;
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
    for (const channel of this.#logIterators.keys()) this.stopLogRead(channel);
  }

  // ---- the log

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#recordAppend(zxid, bytes, start);
    if (this.#unstoredConfigs > 0) this.#heldAfter ??= this.#appended;
    this.#appended = zxid;
    this.#dependencies.storage.append(zxid, bytes, start, end);
  }

  #recordAppend(zxid: Zxid, bytes: Buffer, start: number): void {
    const { world, metrics } = this.#dependencies;
    const txnMs = txnTimeOf(bytes, start);
    if (this.#peer.role === 'learning') metrics.txnReceived(world.clock.now().wallMs - txnMs);
    if (this.#peer.votes) this.#unsyncedTxns.push({ zxid, txnMs });
  }

  /** Every txn up to `zxid` is durable. */
  appended(zxid: Zxid, now: Now): void {
    for (let next = this.#unsyncedTxns.peek(); next !== undefined && next.zxid <= zxid; next = this.#unsyncedTxns.peek()) {
      this.#unsyncedTxns.shift();
      this.#dependencies.metrics.txnLogged(now.wallMs - next.txnMs);
    }
    this.#durable = zxid;
    this.#reportDurable(now);
  }

  /**
   * A txn that follows a configuration is acknowledged after both are stored: the leader that counts the
   * acknowledgement relies on both.
   */
  #reportDurable(now: Now): void {
    const upTo = Math.min(this.#durable, this.#heldAfter ?? Infinity);
    if (upTo === this.#reported) return;
    this.#reported = upTo;
    this.#peer.appended(upTo, now);
  }

  /** What was durable before says nothing about the txns that follow now. */
  #historyReplaced(zxid: Zxid): void {
    this.#appended = this.#durable = this.#reported = zxid;
    this.#heldAfter = undefined;
  }

  truncate(zxid: Zxid): void {
    void this.#then(this.#truncate(zxid), (done, now) => {
      if (done === undefined) {
        this.#peer.truncationRefused(now);
        return;
      }
      this.#historyReplaced(done.lastZxid);
      this.#peer.truncated(done.recovery.finish(), done.lastZxid, now);
    });
  }

  async #truncate(zxid: Zxid): Promise<{ readonly recovery: ReplicaRecovery; readonly lastZxid: Zxid } | undefined> {
    const { core, world, logger, storage } = this.#dependencies;
    const recovery = new ReplicaRecovery(core, world.random, logger);
    try {
      const { lastZxid } = await storage.truncate(zxid, recovery);
      return { recovery, lastZxid };
    } catch (error) {
      if (!(error instanceof TruncationImpossible)) throw error;
      // The leader names a txn that this log does not have. The two histories agree up to the txn
      // before it, and are compared again from there.
      if (error.nearestZxid !== undefined && error.nearestZxid < zxid) return await this.#truncate(error.nearestZxid);
      logger.warn(`${error.message}; the leader is asked for a snapshot`, { event: 'txnlog.not-truncated', reason: error.message });
      return undefined;
    }
  }

  // ---- configurations, epochs and snapshots

  /** Resolves when the configurations so far are in their files, or could not be written. */
  get configsStored(): Promise<void> {
    return this.#storingConfigs;
  }

  saveConfig(active: QuorumConfig, lastSeen: QuorumConfig | undefined): void {
    this.#unstoredConfigs++;
    this.#storingConfigs = this.#storingConfigs.then(() => this.#saveConfig(active, lastSeen));
    void this.#then(this.#storingConfigs, (_, now) => {
      this.#unstoredConfigs--;
      this.#peer.configSaved(now);
      if (this.#unstoredConfigs > 0 || this.#heldAfter === undefined) return;
      const wasHeldBack = this.#durable > this.#heldAfter;
      this.#heldAfter = undefined;
      if (wasHeldBack) this.#reportDurable(now);
    });
  }

  /**
   * Where the files cannot be written, only a snapshot shows after a restart that the last configuration of
   * the log is committed: then the one that it replaced no longer counts (`Configuration.readFrom`). A server
   * without a log writes none: the txns between its last log and that snapshot would be missing.
   */
  async #saveConfig(active: QuorumConfig, lastSeen: QuorumConfig | undefined): Promise<void> {
    const { options, storage } = this.#dependencies;
    const isStored = this.#configFiles !== undefined && (await this.#configFiles.save(active, lastSeen, options.zab.sid));
    if (!isStored && lastSeen === undefined && this.keepsLog) storage.requestSnapshot();
  }

  saveEpoch(name: EpochName, epoch: number): void {
    const { storage } = this.#dependencies;
    const saved =
      this.#unstoredConfigs === 0 ? storage.saveEpoch(name, epoch) : this.#storingConfigs.then(() => storage.saveEpoch(name, epoch));
    void this.#then(saved, (_, now) => this.#peer.epochSaved(name, epoch, now));
  }

  installSnapshot(zxid: Zxid): void {
    void this.#then(this.#replaceBySnapshot(zxid, installTriesMax), (_, now) => {
      this.#historyReplaced(zxid);
      this.#peer.installed(zxid, now);
    });
  }

  /**
   * The leader's snapshot is in memory as received, so one that the disk has spoiled is written
   * again.
   */
  async #replaceBySnapshot(zxid: Zxid, triesLeft: number): Promise<void> {
    const { storage, logger } = this.#dependencies;
    const source = this.#peer.snapshot();
    try {
      if (!(await storage.installSnapshot(zxid, source))) throw new Error('the server is closing');
      return;
    } catch (error) {
      if (!(error instanceof SnapshotReadBackFailed)) throw error;
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
    return this.#dependencies.options.snapshotSizeFactor < 0 ? undefined : Infinity;
  }

  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void {
    this.#readLog(channel, from, isTail).catch((error: unknown) => {
      this.#onDiskWorkFailed(error);
    });
  }

  /**
   * Reads the log for a learner, piece by piece, until its stream closes or another reading for it
   * starts.
   */
  async #readLog(channel: ChannelId, from: Zxid, isTail: boolean): Promise<void> {
    const { storage, runTurn, options } = this.#dependencies;
    this.stopLogRead(channel);
    this.#logIterators.set(channel, undefined);
    const reading = await storage.iterateLog(from);
    if (!this.#logIterators.has(channel) || this.#logIterators.get(channel) !== undefined) {
      void reading?.close();
      return;
    }
    const bytesMax = isTail ? Infinity : (logBytesMax(options.snapshotSizeFactor, reading?.snapshotBytes ?? 0) ?? 0);
    if (reading === undefined || reading.logBytes > bytesMax) {
      this.#logIterators.delete(channel);
      void reading?.close();
      runTurn((now) => this.#peer.logReadRefused(channel, now));
      return;
    }
    this.#logIterators.set(channel, reading);
    for (;;) {
      const piece = await reading.next();
      if (this.#logIterators.get(channel) !== reading) return;
      const isEnd = piece.kind !== 'txns';
      if (isEnd) this.#logIterators.delete(channel);
      runTurn(() => this.#peer.logRead(channel, piece.kind === 'txns' ? piece.txns : [], isEnd));
      if (isEnd) return;
      // The disk is faster than most networks, and pieces that a learner has not received wait in
      // memory.
      if (this.#links.channelIsFull(channel)) await new Promise<void>((resolve) => this.#pausedLogIterators.set(channel, resolve));
    }
  }

  stopLogRead(channel: ChannelId): void {
    void this.#logIterators.get(channel)?.close();
    this.#logIterators.delete(channel);
    this.resumeLogRead(channel);
  }

  /** Resumes the reading that waits; one that was stopped ends. */
  resumeLogRead(channel: ChannelId): void {
    this.#pausedLogIterators.get(channel)?.();
    this.#pausedLogIterators.delete(channel);
  }

  // ---- completions

  async #then<T>(work: Promise<T>, done: (result: T, now: Now) => void): Promise<void> {
    let result: T;
    try {
      result = await work;
    } catch (error) {
      this.#onDiskWorkFailed(error);
      return;
    }
    this.#dependencies.runTurn((now) => done(result, now));
  }

  /**
   * Storage that is closing accepts no more work and abandons what it can; that is not a failure.
   * An error of the disk is one.
   */
  #onDiskWorkFailed(error: unknown): void {
    if (this.#state === 'closed' || (this.#state === 'closing' && !(error instanceof DiskError))) return;
    this.#dependencies.failed(error);
  }
}
