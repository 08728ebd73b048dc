/**
 * Shared parts of the tests of storage: a state that is easy to compare, txns for it, and a storage
 * over a disk in memory.
 */
import { crc32 } from 'node:zlib';
import {
  adler32,
  adler32Seed,
  OpCode,
  ProtocolError,
  snapshotFileHeader,
  type Txn,
  type TxnDigest,
  type TxnHeader,
  writeFileHeader,
  Writer,
  writeSeal,
  writeTxn,
  type Zxid,
} from '@tskeeper/protocol';
import {
  type Logger,
  ManualClock,
  type VirtualDisk,
  type RecoveryResult,
  type RecoveryTarget,
  runtimeDefaults,
  SeededRandom,
  silentLogger,
  type SnapshotSink,
  type SnapshotSource,
  Storage,
  type StorageOptions,
} from '@tskeeper/runtime';

/** The bytes of a txn that sets /x to `data`. */
export function txnBytes(zxid: Zxid, data: Uint8Array): Buffer {
  const writer = new Writer();
  writeTxn(writer, {
    header: { clientHigh: 1, clientLow: 2, cxid: 3, zxid, time: 4, type: OpCode.setData },
    txn: { kind: 'setData', path: '/x', data, version: 1 },
    digest: undefined,
  });
  return Buffer.from(writer.written());
}

/**
 * Bytes that depend on the seed, with runs of zeros in them, because zeros are what logs end with.
 */
export function dataOf(seed: number, length: number): Buffer {
  const random = new SeededRandom(seed);
  const data = Buffer.alloc(length);
  for (let i = 0; i < length; i++) if ((i >> 5) % 3 !== 2) data[i] = random.uint32();
  return data;
}

/** Remembers its txns: a complete history, which is the hardest state to fake. */
export class HistoryState implements RecoveryTarget {
  /** Checksum of the data, by zxid. */
  history = new Map<Zxid, number>();
  lastZxid: Zxid = 0;

  beginSnapshot(): SnapshotSink {
    const pieces: Buffer[] = [];
    return {
      feed: (piece) => {
        pieces.push(Buffer.from(piece));
      },
      finish: () => this.#load(Buffer.concat(pieces)),
    };
  }

  apply(header: TxnHeader, txn: Txn, _digest: TxnDigest | undefined): void {
    if (txn.kind !== 'setData') throw new Error(`unexpected txn ${txn.kind}`);
    this.put(header.zxid, txn.data!);
  }

  put(zxid: Zxid, data: Uint8Array): void {
    this.history.set(zxid, crc32(data));
    this.lastZxid = zxid;
  }

  /** In several slices, so that a crash can happen between them. */
  source(): SnapshotSource {
    const entries = Array.from(this.history);
    let index = -1;
    let checksum = adler32Seed;
    return {
      next: (writer) => {
        const start = writer.offset;
        if (index === -1) {
          writeFileHeader(writer, snapshotFileHeader);
          writer.int32(entries.length);
          index = 0;
        }
        for (const stop = Math.min(entries.length, index + 20); index < stop; index++) {
          writer.int64(entries[index]![0]);
          writer.int32(entries[index]![1]);
        }
        checksum = adler32(writer.bytes, start, writer.offset, checksum);
        if (index < entries.length) return false;
        writeSeal(writer, checksum);
        return true;
      },
    };
  }

  #load(bytes: Buffer): void {
    const sealAt = bytes.length - 13;
    if (sealAt < 20) throw new ProtocolError('a snapshot', 0);
    if (bytes.readUInt32BE(sealAt + 4) !== adler32(bytes, 0, sealAt)) throw new ProtocolError('a checksum that fits', sealAt);
    const count = bytes.readInt32BE(16);
    this.history = new Map();
    this.lastZxid = 0;
    for (let i = 0; i < count; i++) {
      const at = 20 + i * 12;
      this.history.set(bytes.readInt32BE(at) * 0x1_0000_0000 + bytes.readUInt32BE(at + 4), bytes.readUInt32BE(at + 8));
      this.lastZxid = bytes.readInt32BE(at) * 0x1_0000_0000 + bytes.readUInt32BE(at + 4);
    }
  }
}

/** Twice the default frame. */
export const txnBytesMax = 2 * 0xfffff;

export const testOptions: StorageOptions = {
  ...runtimeDefaults,
  dataDir: '/data',
  dataLogDir: '/data',
  preAllocSizeBytes: 4096,
  purgeIntervalMs: 0,
};

export class ListLogger implements Logger {
  readonly lines: string[] = [];
  debug(message: string): void {
    this.lines.push(`debug ${message}`);
  }
  info(message: string): void {
    this.lines.push(`info ${message}`);
  }
  warn(message: string): void {
    this.lines.push(`warn ${message}`);
  }
  error(message: string): void {
    this.lines.push(`error ${message}`);
  }
}

/**
 * A running storage over a state, as a runtime would keep it: txns are applied when they are
 * durable.
 */
export class Server {
  readonly state = new HistoryState();
  readonly storage: Storage;
  readonly clock: ManualClock;
  acked: Zxid = 0;
  failure: unknown;
  snapshotsAsked = 0;
  #next: Zxid = 1;
  readonly #handedOver = new Map<Zxid, Buffer>();
  #waiters: { zxid: Zxid; resolve: () => void }[] = [];

  constructor(disk: VirtualDisk, options: Partial<StorageOptions> = {}, logger: Logger = silentLogger, clock = new ManualClock()) {
    this.clock = clock;
    this.storage = new Storage(
      { disk: disk.attach(), clock, random: new SeededRandom(7) },
      { ...testOptions, ...options, txnBytesMax },
      { logger, snappy: undefined },
      {
        appended: (zxid) => {
          if (this.failure !== undefined) throw new Error('acknowledged after a failure');
          for (const [applied, data] of this.#handedOver) {
            if (applied > zxid) break;
            this.state.put(applied, data);
            this.#handedOver.delete(applied);
          }
          this.acked = zxid;
          this.#wakeWaiters();
        },
        failed: (error) => {
          if (this.failure !== undefined) throw new Error('failed twice');
          this.failure = error;
          this.#wakeWaiters();
        },
        snapshotDue: () => {
          this.snapshotsAsked++;
        },
        synced: () => undefined,
        flushed: () => undefined,
      },
    );
  }

  async open(): Promise<RecoveryResult> {
    const recovered = await this.storage.open(this.state);
    if (recovered.snapshotZxid === undefined) await this.snapshot();
    this.acked = recovered.lastZxid;
    this.#next = recovered.lastZxid + 1;
    return recovered;
  }

  /** Hands over one txn; returns its zxid. */
  append(data: Buffer): Zxid {
    const zxid = this.#next++;
    const bytes = txnBytes(zxid, data);
    this.#handedOver.set(zxid, data);
    this.storage.append(zxid, bytes, 0, bytes.length);
    return zxid;
  }

  /** Resolves when the txn is acknowledged, or when no further txn will be acknowledged. */
  async settled(zxid: Zxid): Promise<void> {
    if (this.acked >= zxid || this.failure !== undefined) return;
    await new Promise<void>((resolve) => this.#waiters.push({ zxid, resolve }));
  }

  async write(...datas: Buffer[]): Promise<void> {
    let zxid = 0;
    for (const data of datas) zxid = this.append(data);
    this.storage.flush();
    await this.settled(zxid);
  }

  snapshot(): Promise<boolean> {
    return this.storage.takeSnapshot(this.state.lastZxid, this.state.source());
  }

  #wakeWaiters(): void {
    const due = this.#waiters.filter(({ zxid }) => this.failure !== undefined || zxid <= this.acked);
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { resolve } of due) resolve();
  }
}

/** Runs all work in progress as far as possible without the clock. */
export async function quiesce(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
}
