/**
 * The content of a data folder as the production code reads it: the same start as a server's,
 * without the server. A txn is identified by the digest of the tree after it, so two histories with
 * equal digests at a zxid are equal up to there.
 */
import type { CoreOptions } from '@tskeeper/core';
import { Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import { formatZxid, type Txn, type TxnDigest, type TxnHeader, type Zxid } from '@tskeeper/protocol';
import {
  ManualClock,
  type VirtualDisk,
  readEpoch,
  type RecoveryTarget,
  type RuntimeOptions,
  SeededRandom,
  silentLogger,
  type SnapshotSink,
  Storage,
} from '@tskeeper/runtime';

export interface FolderHistory {
  /**
   * The digest of the tree at each zxid, from the start (the snapshot's zxid or 0) to the last txn.
   */
  readonly digests: ReadonlyMap<Zxid, string>;
  readonly lastZxid: Zxid;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  /** What the epoch files hold before the start interprets what else a crash has left. */
  readonly onDisk: { readonly acceptedEpoch: number; readonly currentEpoch: number };
}

/**
 * Rejects as a start of the server would, and with an `Error` if a txn does not lead to the state
 * whose digest it carries.
 */
export async function readFolder(disk: VirtualDisk, core: CoreOptions, options: RuntimeOptions): Promise<FolderHistory> {
  const target = new DigestReader(core);
  const storage = new Storage(
    { disk: disk.attach(), clock: new ManualClock(), random: new SeededRandom(1) },
    { ...options, txnBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra },
    { logger: silentLogger, snappy: undefined },
    ignoredEvents,
  );
  const folder = storage.snapshotFolder;
  const onDisk = {
    acceptedEpoch: (await readEpoch(disk, folder, 'acceptedEpoch', true)) ?? 0,
    currentEpoch: (await readEpoch(disk, folder, 'currentEpoch', true)) ?? 0,
  };
  const { lastZxid, acceptedEpoch, currentEpoch } = await storage.openForEnsemble(target, {
    recent: { count: 0, bytes: 0 },
    canRefetch: true,
  });
  await storage.close();
  return { digests: target.digests, lastZxid, acceptedEpoch, currentEpoch, onDisk };
}

class DigestReader implements RecoveryTarget {
  readonly digests = new Map<Zxid, string>();
  readonly #options: ReturnType<typeof replicaOptions>;
  #replica: Replica;

  constructor(core: CoreOptions) {
    this.#options = replicaOptions(core, new SeededRandom(1));
    this.#replica = new Replica(this.#options);
    this.#recordDigest(0);
  }

  beginSnapshot(zxid: Zxid): SnapshotSink {
    const loader = new SnapshotLoader(this.#options);
    return {
      feed: (piece) => void loader.feed(piece),
      finish: () => {
        this.#replica = new Replica(this.#options, { snapshot: loader.finish(), zxid });
        this.digests.clear();
        this.#recordDigest(zxid);
      },
    };
  }

  apply(header: TxnHeader, txn: Txn, digest: TxnDigest | undefined): void {
    const job = this.#replica.apply(header, txn, digest);
    if (job !== undefined) while (job.next().done !== true);
    const found = this.#recordDigest(header.zxid);
    if (digest !== undefined && found !== digestText(digest.high, digest.low)) {
      throw new Error(`the tree after ${formatZxid(header.zxid)} differs from the leader's`);
    }
  }

  #recordDigest(zxid: Zxid): string {
    const { digestHigh, digestLow } = this.#replica.tree;
    const text = digestText(digestHigh, digestLow);
    this.digests.set(zxid, text);
    return text;
  }
}

function digestText(high: number, low: number): string {
  return `${high}:${low}`;
}

const ignoredEvents = {
  appended: () => undefined,
  failed: () => undefined,
  snapshotDue: () => undefined,
  synced: () => undefined,
  flushed: () => undefined,
};
