import { makeZxid } from '@tskeeper/protocol';
import { VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { RecentTxns } from '../../src/storage/recent-txns.ts';
import {
  dataOfTxn,
  folder,
  historyOf,
  EnsembleStorageRig,
  namesIn,
  recentLimits,
  withEnsembleStorage,
  zxids,
} from './ensemble-storage-rig.ts';
import { Server, txnBytes } from './support.ts';

describe('a server of an ensemble that starts', () => {
  test('over an empty folder reports that nothing was found, and accepts no txn before its first snapshot', async () => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    const recovered = await rig.storage.openForEnsemble(rig.state, { recent: recentLimits, canRefetch: true });
    expect(recovered).toMatchObject({ lastZxid: 0, hasData: false, needsSnapshot: true, acceptedEpoch: 0, currentEpoch: 0, recent: [] });
    expect(namesIn(disk)).toEqual(['acceptedEpoch', 'currentEpoch']);
    expect(() => rig.storage.append(1, Buffer.alloc(40), 0, 40)).toThrow(/before the first snapshot is durable/);
  });

  test('over a folder with data needs no snapshot, and writes none', async () => {
    const disk = new VirtualDisk();
    await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, 1, 3)));
    const before = namesIn(disk);
    await withEnsembleStorage(disk, async (_member, recovered) => {
      expect(recovered).toMatchObject({ hasData: true, needsSnapshot: false, txnCount: 3, acceptedEpoch: 1, currentEpoch: 1 });
    });
    expect(namesIn(disk)).toEqual(before);
  });

  test('over the folder of a standalone server has the epoch of its last txn', async () => {
    const disk = new VirtualDisk();
    const server = new Server(disk);
    await server.open();
    await server.write(Buffer.from('a'), Buffer.from('b'));
    await server.storage.close();
    await withEnsembleStorage(disk, async (_member, recovered) => {
      expect(recovered).toMatchObject({ hasData: true, lastZxid: 2, acceptedEpoch: 0, currentEpoch: 0 });
    });
    expect(disk.contents(`${folder}/acceptedEpoch`).toString()).toBe('0');
  });
});

describe('the last txns read at the start', () => {
  const open = async (disk: VirtualDisk, recent = recentLimits) => {
    const rig = new EnsembleStorageRig(disk);
    const recovered = await rig.open(recent);
    await rig.storage.close();
    return recovered;
  };

  test('are returned as stored in the log, from before the snapshot too', async () => {
    const disk = new VirtualDisk();
    await withEnsembleStorage(disk, async (rig) => {
      await rig.write(zxids(1, 1, 4));
      await rig.snapshot();
      await rig.write(zxids(1, 5, 6));
    });
    const { recent, snapshotZxid } = await open(disk);
    expect(snapshotZxid).toBe(makeZxid(1, 4));
    expect(recent).toEqual(zxids(1, 1, 6).map((zxid) => ({ zxid, bytes: txnBytes(zxid, dataOfTxn(zxid)) })));
  });

  test('are as many as requested', async () => {
    const disk = new VirtualDisk();
    await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, 1, 40)));
    expect((await open(disk, { count: 7, bytes: 1e6 })).recent.map(({ zxid }) => zxid)).toEqual(zxids(1, 34, 40));
    expect((await open(disk, { count: 0, bytes: 1e6 })).recent).toEqual([]);
  });

  test('are limited in bytes, but include at least the last', async () => {
    const disk = new VirtualDisk();
    await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, 1, 40)));
    const { recent } = await open(disk, { count: 500, bytes: 3000 });
    expect(recent.at(-1)!.zxid).toBe(makeZxid(1, 40));
    const sum = recent.reduce((bytes, txn) => bytes + txn.bytes.length, 0);
    expect(sum).toBeLessThanOrEqual(3000);
    expect(sum + 12 + 6 * 115 + 60).toBeGreaterThan(3000);
    expect((await open(disk, { count: 500, bytes: 1 })).recent.map(({ zxid }) => zxid)).toEqual([makeZxid(1, 40)]);
  });

  test('are none when the snapshot is later than the end of the log', async () => {
    const disk = new VirtualDisk();
    await withEnsembleStorage(disk, async (rig) => {
      await rig.write(zxids(1, 1, 9));
      await rig.snapshot();
    });
    disk.eraseFile(`${folder}/snapshot.0`);
    await withEnsembleStorage(disk, (rig) => rig.truncate(makeZxid(1, 9)));
    const snapshot = disk.contents(`${folder}/snapshot.${makeZxid(1, 9).toString(16)}`);
    disk.putFile(`${folder}/snapshot.${makeZxid(1, 30).toString(16)}`, snapshot);
    expect((await open(disk)).recent).toEqual([]);
  });

  test('E17: begin after the last hole, within an epoch or at its end (ZOOKEEPER-4925)', () => {
    const kept = (list: readonly number[], snapshots: readonly number[] = []) => {
      const recent = new RecentTxns(recentLimits, snapshots);
      for (const zxid of list) recent.add(zxid, Buffer.alloc(9), 2, 8);
      return recent.upTo(list.at(-1)!).map(({ zxid }) => zxid);
    };
    expect(kept([...zxids(1, 1, 3), ...zxids(1, 5, 6)])).toEqual(zxids(1, 5, 6));
    expect(kept([...zxids(1, 1, 3), ...zxids(2, 1, 2)])).toEqual([...zxids(1, 1, 3), ...zxids(2, 1, 2)]);
    expect(kept([...zxids(1, 1, 3), ...zxids(2, 1, 2)], [makeZxid(1, 9)])).toEqual(zxids(2, 1, 2));
    expect(kept([...zxids(1, 1, 3), ...zxids(2, 1, 2)], [makeZxid(2, 0)])).toEqual(zxids(2, 1, 2));
    expect(kept([...zxids(1, 1, 3), ...zxids(2, 1, 2)], [makeZxid(1, 3)])).toEqual([...zxids(1, 1, 3), ...zxids(2, 1, 2)]);
    expect(kept([...zxids(1, 1, 3), ...zxids(2, 2, 3)])).toEqual(zxids(2, 2, 3));
  });
});

test('the storage of a server can append, truncate, install a snapshot and append again', async () => {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, async (rig) => {
    await rig.write(zxids(1, 1, 20));
    await rig.truncate(makeZxid(1, 15));
    await rig.write(zxids(2, 1, 5));
    await rig.snapshot();
    await rig.write(zxids(2, 6, 8));
    await rig.replace([...zxids(1, 1, 15), ...zxids(2, 1, 7), ...zxids(4, 1, 60)]);
    await rig.write(zxids(5, 1, 3));
    await rig.truncate(makeZxid(5, 2));
  });
  await withEnsembleStorage(disk, async (rig, recovered) => {
    expect(rig.state.history).toEqual(historyOf([...zxids(1, 1, 15), ...zxids(2, 1, 7), ...zxids(4, 1, 60), ...zxids(5, 1, 2)]));
    expect(recovered.recent.map(({ zxid }) => zxid)).toEqual(zxids(5, 1, 2));
    expect(rig.warnings).toEqual([]);
  });
});
