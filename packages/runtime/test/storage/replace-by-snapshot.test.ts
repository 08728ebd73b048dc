import { makeZxid, type Writer, type Zxid } from '@tskeeper/protocol';
import { DiskError, VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { SnapshotReadBackFailed } from '../../src/storage/snapshot-files.ts';
import {
  dataOfTxn,
  filesOf,
  historyOf,
  EnsembleStorageRig,
  namesIn,
  stateWith,
  withEnsembleStorage,
  zxids,
} from './ensemble-storage-rig.ts';
import { quiesce, txnBytes } from './support.ts';

/** Two logs of epoch 1 with four txns each, a snapshot after each, and two txns more. */
async function oldHistory(): Promise<VirtualDisk> {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, async (rig) => {
    await rig.write(zxids(1, 1, 4));
    await rig.snapshot();
  });
  await withEnsembleStorage(disk, async (rig) => {
    await rig.write(zxids(1, 5, 8));
    await rig.snapshot();
    await rig.write(zxids(1, 9, 10));
  });
  return disk;
}

const leaders: readonly [string, Zxid[]][] = [
  ['far ahead', [...zxids(1, 1, 10), ...zxids(2, 1, 30)]],
  ['of a diverged history', [...zxids(1, 1, 3), ...zxids(2, 1, 2)]],
  ['that ends before ours', zxids(1, 1, 9)],
  ['that ends before our snapshots', zxids(1, 1, 2)],
  ['at our last txn', zxids(1, 1, 10)],
];

describe.each(leaders)('a snapshot of a leader %s', (_title, history) => {
  const zxid = history.at(-1)!;

  test('replaces all earlier data', async () => {
    const disk = await oldHistory();
    await withEnsembleStorage(disk, async (rig) => {
      expect(await rig.replace(history)).toBe(true);
      expect(namesIn(disk)).toEqual(['acceptedEpoch', 'currentEpoch', `snapshot.${zxid.toString(16)}`]);
    });
    await withEnsembleStorage(disk, async (rig, recovered) => {
      expect(recovered).toMatchObject({ lastZxid: zxid, snapshotZxid: zxid, txnCount: 0, hasData: true, needsSnapshot: false });
      expect(rig.state.history).toEqual(historyOf(history));
      expect(rig.warnings).toEqual([]);
    });
  });

  test('is followed by a new log', async () => {
    const disk = await oldHistory();
    const after = zxids(3, 1, 3);
    await withEnsembleStorage(disk, async (rig) => {
      await rig.replace(history);
      await rig.write(after);
    });
    expect(namesIn(disk)).toContain(`log.${after[0]!.toString(16)}`);
    await withEnsembleStorage(disk, async (rig) => expect(rig.state.history).toEqual(historyOf([...history, ...after])));
  });
});

test('a snapshot of a leader that has begun an epoch and written nothing is named by the epoch', async () => {
  const disk = await oldHistory();
  const history = zxids(1, 1, 9);
  const zxid = makeZxid(4, 0);
  await withEnsembleStorage(disk, async (rig) => {
    await rig.replace(history, zxid);
    await rig.write(zxids(4, 1, 2));
  });
  await withEnsembleStorage(disk, async (rig, recovered) => {
    expect(recovered).toMatchObject({ snapshotZxid: zxid, lastZxid: makeZxid(4, 2), currentEpoch: 4 });
    expect(rig.state.history).toEqual(historyOf([...history, ...zxids(4, 1, 2)]));
  });
});

test('an empty folder that is not trusted to be new gets its data by a snapshot of a leader', async () => {
  const disk = new VirtualDisk();
  const options = { dbAutocreate: false };
  const rig = new EnsembleStorageRig(disk, options);
  const recovered = await rig.storage.openForEnsemble(rig.state, { recent: { count: 0, bytes: 0 }, canRefetch: true });
  expect(recovered).toMatchObject({ lastZxid: -1, hasData: false, needsSnapshot: true });
  await rig.replace(zxids(2, 1, 5));
  await rig.write(zxids(2, 6, 6));
  await rig.storage.close();
  await withEnsembleStorage(disk, async (next) => expect(next.zxids).toEqual(zxids(2, 1, 6)), options);
});

test('a snapshot of a leader replaces txns handed over before, durable or not', async () => {
  const disk = await oldHistory();
  await withEnsembleStorage(disk, async (rig) => {
    const data = dataOfTxn(makeZxid(1, 11));
    const bytes = txnBytes(makeZxid(1, 11), data);
    rig.storage.append(makeZxid(1, 11), bytes, 0, bytes.length);
    await rig.replace(zxids(1, 1, 9));
  });
  await withEnsembleStorage(disk, async (rig) => expect(rig.zxids).toEqual(zxids(1, 1, 9)));
});

test.each(['gz', 'none'] as const)(
  'a snapshot of a leader replaces one with the same zxid in another format, and is loaded: %s',
  async (snapshotCompression) => {
    const disk = new VirtualDisk();
    const other = { snapshotCompression: snapshotCompression === 'gz' ? ('none' as const) : ('gz' as const) };
    await withEnsembleStorage(
      disk,
      async (rig) => {
        await rig.write(zxids(1, 1, 4));
        await rig.snapshot();
      },
      other,
    );
    await withEnsembleStorage(disk, (rig) => rig.replace(zxids(1, 1, 4)), { snapshotCompression });
    expect(namesIn(disk).filter((name) => name.startsWith('snapshot'))).toHaveLength(1);
    await withEnsembleStorage(disk, async (rig) => expect(rig.zxids).toEqual(zxids(1, 1, 4)), { snapshotCompression });
  },
);

describe('the content of a snapshot from another server', () => {
  const history = [...zxids(1, 1, 10), ...zxids(2, 1, 30)];
  const zxid = history.at(-1)!;
  const written = (source: ReturnType<ReturnType<typeof stateWith>['source']>) => (writer: Writer, bytes: number) =>
    source.next(writer, bytes);

  test('is awaited when it arrives later', async () => {
    const disk = await oldHistory();
    await withEnsembleStorage(disk, async (rig) => {
      const next = written(stateWith(history).source());
      const done = rig.storage.installSnapshot(zxid, {
        next: async (writer, bytes) => {
          await quiesce();
          rig.clock.advance(0);
          return next(writer, bytes);
        },
      });
      expect(await done).toBe(true);
    });
    expect(namesIn(disk)).toContain(`snapshot.${zxid.toString(16)}`);
  });

  test('changes nothing when it breaks off, and the server continues', async () => {
    const disk = await oldHistory();
    await withEnsembleStorage(disk, async (rig) => {
      const before = filesOf(disk);
      const broken = { next: () => Promise.reject(new Error('the leader has gone')) };
      await expect(rig.storage.installSnapshot(zxid, broken)).rejects.toThrow('the leader has gone');
      expect(filesOf(disk)).toEqual(before);
      await rig.write(zxids(1, 11, 11));
    });
    await withEnsembleStorage(disk, async (rig) => expect(rig.zxids).toEqual(zxids(1, 1, 11)));
  });

  test('is refused and changes nothing when it is cut short', async () => {
    const disk = await oldHistory();
    await withEnsembleStorage(disk, async (rig) => {
      const before = filesOf(disk);
      const next = written(stateWith(history).source());
      const short = {
        next: (writer: Writer, bytes: number) => {
          next(writer, bytes);
          return true;
        },
      };
      await expect(rig.storage.installSnapshot(zxid, short)).rejects.toBeInstanceOf(SnapshotReadBackFailed);
      expect(filesOf(disk)).toEqual(before);
      await rig.write(zxids(1, 11, 11));
    });
  });

  test('is abandoned when storage closes', async () => {
    const disk = await oldHistory();
    const before = filesOf(disk);
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    let asked = 0;
    const endless = {
      next: async (writer: Writer) => {
        asked++;
        writer.int32(7);
        await quiesce();
        return false;
      },
    };
    const done = rig.storage.installSnapshot(zxid, endless);
    await quiesce();
    expect(asked).toBeGreaterThan(0);
    const closed = rig.storage.close();
    for (let turn = 0; turn < 10; turn++) {
      await quiesce();
      rig.clock.advance(0);
    }
    expect(await done).toBe(false);
    await closed;
    expect(filesOf(disk)).toEqual(before);
  });
});

test('a disk that fails before the snapshot is written changes nothing; a later failure ends the server, and the folder starts', async () => {
  const history = [...zxids(1, 1, 3), ...zxids(2, 1, 2)];
  let unchanged = 0;
  let ended = 0;
  for (let call = 0; ; call++) {
    const disk = await oldHistory();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    await rig.accept(2);
    const firstCall = disk.calls;
    disk.fault = ({ index, operation }) => (index === firstCall + call && operation !== 'close' ? { code: 'ENOSPC' } : undefined);
    const error = await rig.storage.installSnapshot(history.at(-1)!, stateWith(history).source()).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const isReached = disk.calls > firstCall + call;
    disk.fault = undefined;
    if (error !== undefined) {
      expect(error instanceof DiskError || error instanceof SnapshotReadBackFailed).toBe(true);
      if (rig.failures.length === 0) {
        unchanged++;
        await rig.write(zxids(1, 11, 11));
      } else {
        ended++;
        expect(rig.failures).toEqual([error]);
      }
    }
    disk.kill();
    await withEnsembleStorage(disk, async (next) => {
      const found = next.zxids;
      const isNew = found.join() === history.join();
      if (!isNew) expect(found).toEqual(zxids(1, 1, found.length));
      await next.replace(history);
    });
    expect(namesIn(disk).some((name) => name.startsWith('new.'))).toBe(false);
    await withEnsembleStorage(disk, async (next) => expect(next.state.history).toEqual(historyOf(history)));
    if (!isReached) break;
  }
  expect(unchanged).toBeGreaterThan(3);
  expect(ended).toBeGreaterThan(10);
});
