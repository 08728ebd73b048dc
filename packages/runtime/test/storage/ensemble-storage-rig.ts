/**
 * The storage of a server of an ensemble over a disk in memory, and histories with a short
 * notation: a zxid determines the data of its txn.
 */
import { epochOf, makeZxid, type Zxid } from '@tskeeper/protocol';
import {
  ManualClock,
  type VirtualDisk,
  type RecoveryResult,
  type EnsembleRecoveryResult,
  SeededRandom,
  Storage,
  type StorageOptions,
} from '@tskeeper/runtime';
import { crc32 } from 'node:zlib';
import { dataOf, HistoryState, ListLogger, testOptions, txnBytes, txnBytesMax } from './support.ts';

export const folder = '/data/version-2';

export const recentLimits = { count: 500, bytes: 1 << 20 };

/** 12 to 700 bytes. */
export function dataOfTxn(zxid: Zxid): Buffer {
  return dataOf(zxid % 9973, 12 + (zxid % 7) * 115);
}

export function zxids(epoch: number, from: number, to: number): Zxid[] {
  return Array.from({ length: to - from + 1 }, (_, index) => makeZxid(epoch, from + index));
}

export function historyOf(list: readonly Zxid[]): Map<Zxid, number> {
  return new Map(list.map((zxid) => [zxid, crc32(dataOfTxn(zxid))]));
}

/** A state that contains these txns. */
export function stateWith(list: readonly Zxid[]): HistoryState {
  const state = new HistoryState();
  for (const zxid of list) state.put(zxid, dataOfTxn(zxid));
  return state;
}

export class EnsembleStorageRig {
  state = new HistoryState();
  readonly storage: Storage;
  readonly clock = new ManualClock();
  readonly logger = new ListLogger();
  acked: Zxid = 0;
  acceptedEpoch = 0;
  currentEpoch = 0;
  failures: unknown[] = [];
  #waiters: (() => void)[] = [];

  constructor(disk: VirtualDisk, options: Partial<StorageOptions> = {}) {
    this.storage = new Storage(
      { disk: disk.attach(), clock: this.clock, random: new SeededRandom(7) },
      { ...testOptions, ...options, txnBytesMax },
      { logger: this.logger, snappy: undefined },
      {
        appended: (zxid) => {
          this.acked = zxid;
          this.#wake();
        },
        failed: (error) => {
          this.failures.push(error);
          this.#wake();
        },
        snapshotDue: () => undefined,
        synced: () => undefined,
        flushed: () => undefined,
      },
    );
  }

  get zxids(): Zxid[] {
    return [...this.state.history.keys()];
  }

  get warnings(): string[] {
    return this.logger.lines.filter((line) => line.startsWith('warn'));
  }

  async open(recent = recentLimits, canRefetch = true): Promise<EnsembleRecoveryResult> {
    const recovered = await this.storage.openForEnsemble(this.state, { recent, canRefetch });
    this.acked = recovered.lastZxid;
    this.acceptedEpoch = recovered.acceptedEpoch;
    this.currentEpoch = recovered.currentEpoch;
    if (recovered.needsSnapshot) await this.snapshot();
    return recovered;
  }

  /**
   * Each txn gets a sync of its own. A new epoch is joined as by a learner: accepted first, and
   * current when its first txn is durable.
   */
  async write(list: readonly Zxid[]): Promise<void> {
    for (const zxid of list) {
      await this.accept(epochOf(zxid));
      const data = dataOfTxn(zxid);
      const bytes = txnBytes(zxid, data);
      this.storage.append(zxid, bytes, 0, bytes.length);
      this.storage.flush();
      while (this.acked < zxid && this.failures.length === 0) {
        await new Promise<void>((resolve) => this.#waiters.push(resolve));
      }
      this.state.put(zxid, data);
      if (this.failures.length === 0) await this.establish(epochOf(zxid));
    }
  }

  async accept(epoch: number): Promise<void> {
    if (epoch > this.acceptedEpoch) await this.storage.saveEpoch('acceptedEpoch', epoch);
    this.acceptedEpoch = Math.max(this.acceptedEpoch, epoch);
  }

  async establish(epoch: number): Promise<void> {
    if (epoch > this.currentEpoch) await this.storage.saveEpoch('currentEpoch', epoch);
    this.currentEpoch = Math.max(this.currentEpoch, epoch);
  }

  snapshot(): Promise<boolean> {
    return this.storage.takeSnapshot(this.state.lastZxid, this.state.source());
  }

  async truncate(zxid: Zxid): Promise<RecoveryResult> {
    const state = new HistoryState();
    const recovered = await this.storage.truncate(zxid, state);
    this.state = state;
    this.acked = recovered.lastZxid;
    return recovered;
  }

  /**
   * Installs the leader's state after these txns, with a zxid of its own if it is not named by the
   * last txn.
   */
  async replace(list: readonly Zxid[], zxid: Zxid = list.at(-1)!): Promise<boolean> {
    const state = stateWith(list);
    await this.accept(epochOf(zxid));
    const done = await this.storage.installSnapshot(zxid, state.source());
    if (done) {
      this.state = state;
      this.acked = zxid;
      await this.establish(epochOf(zxid));
    }
    return done;
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}

/** Starts a server, and closes it in good order. */
export async function withEnsembleStorage<T>(
  disk: VirtualDisk,
  work: (rig: EnsembleStorageRig, recovered: EnsembleRecoveryResult) => Promise<T>,
  options: Partial<StorageOptions> = {},
): Promise<T> {
  const rig = new EnsembleStorageRig(disk, options);
  const recovered = await rig.open();
  try {
    return await work(rig, recovered);
  } finally {
    await rig.storage.close();
  }
}

export function namesIn(disk: VirtualDisk): string[] {
  return disk
    .files()
    .filter((path) => path.startsWith(`${folder}/`))
    .map((path) => path.slice(folder.length + 1));
}

export function filesOf(disk: VirtualDisk): [string, Buffer][] {
  return disk.files().map((path) => [path, disk.contents(path)]);
}
