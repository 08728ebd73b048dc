import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { coreDefaults } from '@tskeeper/core';
import { Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import { type Txn, type TxnDigest, type TxnHeader, Writer, type Zxid } from '@tskeeper/protocol';
import {
  loseAll,
  ManualClock,
  VirtualDisk,
  numberedFiles,
  SeededRandom,
  type SnapshotCompression,
  type SnapshotSink,
  Storage,
} from '@tskeeper/runtime';
import { compress, uncompress } from 'snappyjs';
import { describe, expect, test } from 'vitest';
import { ReplicaRecovery } from '../../src/replica-recovery.ts';
import { ListLogger, testOptions, txnBytesMax } from './support.ts';

const snappy = {
  compress: (bytes: Uint8Array) => compress(Buffer.from(bytes)),
  uncompress: (bytes: Uint8Array, maxBytes: number) => uncompress(Buffer.from(bytes), maxBytes),
};

function fixture(name: string): Buffer {
  return readFileSync(fileURLToPath(new URL(`../../../../fixtures/${name}`, import.meta.url)));
}

const options = replicaOptions({ ...coreDefaults, extendedTypesEnabled: true }, new SeededRandom(1));

/** The real tree. */
class ReplicaTarget {
  replica = new Replica(options);
  beginSnapshot(zxid: Zxid): SnapshotSink {
    const loader = new SnapshotLoader(options);
    return {
      feed: (piece) => loader.feed(piece),
      finish: () => {
        this.replica = new Replica(options, { snapshot: loader.finish(), zxid });
      },
    };
  }
  apply(header: TxnHeader, txn: Txn, digest: TxnDigest | undefined): void {
    this.replica.apply(header, txn, digest)?.next();
  }
}

function open(disk: VirtualDisk, logger: ListLogger, compression: SnapshotCompression = 'none') {
  const storage = new Storage(
    { disk, clock: new ManualClock(), random: new SeededRandom(1) },
    { ...testOptions, snapshotCompression: compression, txnBytesMax },
    { logger, snappy },
    { appended: () => undefined, failed: () => undefined, snapshotDue: () => undefined, synced: () => undefined, flushed: () => undefined },
  );
  const target = new ReplicaTarget();
  return { storage, target, recovered: storage.open(target) };
}

describe.each(['3.9.5', '3.8.0'])('the data folder of a ZooKeeper %s', (version) => {
  const listing = JSON.parse(fixture(`disk-${version}/listing.json`).toString()) as {
    files: { 'snapshot.22': { digest: { digest: number }; nodes: { path: string }[] } };
  };
  const snapshot = listing.files['snapshot.22'];
  const plant = (disk: VirtualDisk, names: readonly string[]) => {
    for (const name of names) disk.putFile(`/data/version-2/${name}`, fixture(`disk-${version}/${name}`));
  };
  const digestOf = (target: ReplicaTarget) => {
    const { tree } = target.replica;
    return (tree.digestHigh >>> 0) * 0x1_0000_0000 + (tree.digestLow >>> 0);
  };

  test('A74, D1: loads from its newest snapshot, with nothing to replay', async () => {
    const disk = new VirtualDisk();
    plant(disk, ['log.1', 'snapshot.0', 'snapshot.22']);
    const logger = new ListLogger();
    const { target, recovered } = open(disk, logger);
    expect(await recovered).toMatchObject({ lastZxid: 0x22, snapshotZxid: 0x22, txnCount: 0, warnings: [] });
    expect(digestOf(target)).toBe(snapshot.digest.digest);
  });

  test('loads the same tree from its empty snapshot and the whole log', async () => {
    const disk = new VirtualDisk();
    plant(disk, ['log.1', 'snapshot.0']);
    const { target, recovered } = open(disk, new ListLogger());
    expect(await recovered).toMatchObject({ lastZxid: 0x22, snapshotZxid: 0, txnCount: 0x22, logCount: 1, warnings: [] });
    expect(digestOf(target)).toBe(snapshot.digest.digest);
    const missing = snapshot.nodes.filter(({ path }) => target.replica.tree.find(path) === 0);
    expect(missing).toEqual([]);
  });

  test.each(['none', 'gz', 'snappy'] as const)(
    'is written as a snapshot (%s), survives a power loss, and loads the same',
    async (compression) => {
      const disk = new VirtualDisk();
      plant(disk, ['log.1', 'snapshot.0']);
      const first = open(disk, new ListLogger(), compression);
      await first.recovered;
      const source = first.target.replica.snapshot(true);
      expect(await first.storage.takeSnapshot(0x22, source)).toBe(true);
      disk.crash(loseAll);
      disk.eraseFile('/data/version-2/log.1');
      expect(numberedFiles(await disk.list('/data/version-2'), 'snapshot')).toHaveLength(2);
      const second = open(disk, new ListLogger(), compression);
      expect(await second.recovered).toMatchObject({ lastZxid: 0x22, snapshotZxid: 0x22, txnCount: 0, warnings: [] });
      expect(digestOf(second.target)).toBe(snapshot.digest.digest);
    },
  );

  test.each([0x1, 0x15, 0x21])('is cut after txn %i, and contains the txns of the log up to it', async (zxid) => {
    const core = { ...coreDefaults, extendedTypesEnabled: true };
    const disk = new VirtualDisk();
    plant(disk, ['log.1', 'snapshot.0', 'snapshot.22']);
    // ZooKeeper names a snapshot by the txn at which it began to write it, and may include later
    // ones.
    disk.putFile('/data/version-2/snapshot.1', fixture(`disk-${version}/snapshot.22`));
    const { storage, recovered } = open(disk, new ListLogger());
    await recovered;
    const target = new ReplicaRecovery(core, new SeededRandom(1), new ListLogger());
    expect(await storage.truncate(zxid, target)).toMatchObject({ lastZxid: zxid, snapshotZxid: 0, txnCount: zxid });
    await storage.close();
    expect(numberedFiles(await disk.list('/data/version-2'), 'snapshot').map(({ name }) => name)).toEqual(['snapshot.0']);
    const again = open(disk, new ListLogger());
    expect(await again.recovered).toMatchObject({ lastZxid: zxid, snapshotZxid: 0, txnCount: zxid, warnings: [] });
    const { tree } = target.finish();
    expect([tree.digestHigh, tree.digestLow]).toEqual([again.target.replica.tree.digestHigh, again.target.replica.tree.digestLow]);
  });

  test('A74, D1: continues with a log of our own, which loads again', async () => {
    const disk = new VirtualDisk();
    plant(disk, ['log.1', 'snapshot.0', 'snapshot.22']);
    const { storage, recovered } = open(disk, new ListLogger());
    await recovered;
    const writer = new Writer();
    writer.raw(fixture(`disk-${version}/log.1`), 16 + 12, 16 + 12 + 48);
    // The first txn again, under the next zxid.
    writer.patchInt32(16, 0x23);
    storage.append(0x23, writer.bytes, 0, writer.offset);
    storage.flush();
    await storage.close();
    expect(await open(disk, new ListLogger()).recovered).toMatchObject({ lastZxid: 0x23, txnCount: 1 });
  });
});

test.each(['gz', 'snappy'] as const)('a snapshot that ZooKeeper compressed with %s loads', async (compression) => {
  const disk = new VirtualDisk();
  disk.putFile(`/data/version-2/snapshot.6.${compression}`, fixture(`disk-compressed/snapshot.6.${compression}`));
  const { target, recovered } = open(disk, new ListLogger());
  expect(await recovered).toMatchObject({ lastZxid: 6, snapshotZxid: 6 });
  expect(target.replica.tree.find('/n4')).toBeGreaterThan(0);
});
