import { makeZxid, type Zxid } from '@tskeeper/protocol';
import { DiskError, VirtualDisk, StorageRefused, TruncationImpossible } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { dataOfTxn, filesOf, folder, historyOf, EnsembleStorageRig, namesIn, withEnsembleStorage, zxids } from './ensemble-storage-rig.ts';
import { HistoryState, txnBytes } from './support.ts';

/** Logs 1, 4, 7 and 10 of epoch 1 with three txns each, and a snapshot after the second. */
async function fourLogs(): Promise<VirtualDisk> {
  const disk = new VirtualDisk();
  for (let log = 0; log < 4; log++) {
    await withEnsembleStorage(disk, async (rig) => {
      await rig.write(zxids(1, 1 + log * 3, 3 + log * 3));
      if (log === 1) await rig.snapshot();
    });
  }
  return disk;
}

const first = makeZxid(1, 1);
const hex = (counter: number, epoch = 1) => makeZxid(epoch, counter).toString(16);

async function expectFolder(disk: VirtualDisk, history: readonly Zxid[]): Promise<void> {
  await withEnsembleStorage(disk, async (rig, recovered) => {
    expect(recovered.lastZxid).toBe(history.at(-1) ?? 0);
    expect(rig.state.history).toEqual(historyOf(history));
    expect(rig.warnings).toEqual([]);
  });
}

describe('truncate', () => {
  test.each([1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12])('to txn %i of twelve leaves the txns up to it, and nothing else', async (counter) => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      const recovered = await rig.truncate(makeZxid(1, counter));
      expect(recovered).toMatchObject({ lastZxid: makeZxid(1, counter), snapshotZxid: counter >= 6 ? makeZxid(1, 6) : 0 });
      expect(rig.state.history).toEqual(historyOf(zxids(1, 1, counter)));
      expect(namesIn(disk)).toContain('snapshot.0');
      expect(namesIn(disk).includes(`snapshot.${hex(6)}`)).toBe(counter >= 6);
    });
    await expectFolder(disk, zxids(1, 1, counter));
  });

  test('cuts the log right after the txn, and moves its mark back', async () => {
    const disk = await fourLogs();
    const before = disk.contents(`${folder}/log.${hex(4)}`);
    await withEnsembleStorage(disk, (rig) => rig.truncate(makeZxid(1, 5)));
    const after = disk.contents(`${folder}/log.${hex(4)}`);
    // An entry ends with 0x42, and there is no padding after it, as in ZooKeeper.
    expect(after.at(-1)).toBe(0x42);
    expect(after).toEqual(before.subarray(0, after.length));
    expect(namesIn(disk)).toEqual([
      'acceptedEpoch',
      'currentEpoch',
      `log.${hex(1)}`,
      `log.${hex(4)}`,
      'snapshot.0',
      `synced.${hex(1)}`,
      `synced.${hex(4)}`,
    ]);
  });

  test('is followed by a new log, with other txns', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      await rig.truncate(makeZxid(1, 5));
      await rig.write(zxids(2, 1, 4));
      await rig.truncate(makeZxid(2, 2));
      await rig.write(zxids(3, 1, 2));
    });
    await expectFolder(disk, [...zxids(1, 1, 5), ...zxids(2, 1, 2), ...zxids(3, 1, 2)]);
  });

  test('to the last txn changes nothing', async () => {
    const disk = await fourLogs();
    const before = filesOf(disk);
    await withEnsembleStorage(disk, (rig) => rig.truncate(makeZxid(1, 12)));
    expect(filesOf(disk)).toEqual(before);
  });

  test('to 0 goes back to the empty database', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      expect(await rig.truncate(0)).toMatchObject({ lastZxid: 0, snapshotZxid: 0, txnCount: 0 });
    });
    expect(namesIn(disk)).toEqual(['acceptedEpoch', 'currentEpoch', 'snapshot.0']);
    await expectFolder(disk, []);
  });

  test('to the txn of a snapshot keeps that snapshot', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      expect(await rig.truncate(makeZxid(1, 6))).toMatchObject({ snapshotZxid: makeZxid(1, 6), txnCount: 0 });
    });
    await expectFolder(disk, zxids(1, 1, 6));
  });

  test('removes txns that were handed over and are not durable yet', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      await rig.write(zxids(1, 13, 13));
      const data = dataOfTxn(makeZxid(1, 14));
      const bytes = txnBytes(makeZxid(1, 14), data);
      rig.storage.append(makeZxid(1, 14), bytes, 0, bytes.length);
      await rig.truncate(makeZxid(1, 12));
    });
    await expectFolder(disk, zxids(1, 1, 12));
  });

  test('abandons a snapshot that was begun before', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      let slices = 0;
      const source = rig.state.source();
      const snapshot = rig.storage.takeSnapshot(makeZxid(1, 12), {
        next: (writer, bytes) => {
          slices++;
          source.next(writer, bytes);
          return slices > 100;
        },
      });
      const truncated = rig.truncate(makeZxid(1, 8));
      for (let turn = 0; turn < 300; turn++) {
        await Promise.resolve();
        rig.clock.advance(0);
      }
      expect(await snapshot).toBe(false);
      expect(slices).toBeLessThan(100);
      await truncated;
    });
    await expectFolder(disk, zxids(1, 1, 8));
  });

  test('refuses txns and snapshots while it is in progress', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      const truncated = rig.truncate(makeZxid(1, 8));
      expect(() => rig.storage.append(makeZxid(1, 13), Buffer.alloc(40), 0, 40)).toThrow(/being rewritten/);
      expect(await rig.snapshot()).toBe(false);
      await expect(rig.storage.truncate(makeZxid(1, 7), new HistoryState())).rejects.toThrow(/cannot be rewritten now/);
      await truncated;
    });
  });

  test('returns the last txns that are left, as stored in the log', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      const { recent } = await rig.truncate(makeZxid(1, 8));
      // From the log that is replayed after the snapshot.
      expect(recent.map(({ zxid }) => zxid)).toEqual(zxids(1, 7, 8));
    });
  });
});

describe('an impossible truncation', () => {
  const attempt = async (disk: VirtualDisk, zxid: Zxid) => {
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    const before = filesOf(disk);
    const error = await rig.truncate(zxid).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(filesOf(disk)).toEqual(before);
    return { rig, error };
  };

  test('rejects with its reason, and changes nothing, when all snapshots are newer', async () => {
    const disk = await fourLogs();
    disk.eraseFile(`${folder}/snapshot.0`);
    const { rig, error } = await attempt(disk, makeZxid(1, 5));
    expect(error).toBeInstanceOf(TruncationImpossible);
    expect(error).toMatchObject({ zxid: makeZxid(1, 5), nearestZxid: undefined });
    expect((error as Error).message).toMatch(
      /^the history in .* cannot be cut after 0x100000005: no snapshot that can be loaded is that old$/,
    );
    // And the server continues.
    await rig.write(zxids(1, 13, 14));
    await rig.storage.close();
    await expectFolder(disk, zxids(1, 1, 14));
  });

  test('rejects when the only snapshot that is old enough is damaged', async () => {
    const disk = await fourLogs();
    disk.flipBit(`${folder}/snapshot.0`, 140);
    const { error } = await attempt(disk, makeZxid(1, 5));
    expect(error).toMatchObject({ name: 'TruncationImpossible', nearestZxid: undefined });
  });

  test('names the last txn before it, at which a cut is possible, when the log never had the txn', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, (rig) => rig.write(zxids(3, 1, 2)));
    const { rig, error } = await attempt(disk, makeZxid(2, 7));
    expect(error).toMatchObject({ name: 'TruncationImpossible', nearestZxid: makeZxid(1, 12) });
    await rig.truncate(makeZxid(1, 12));
    await rig.storage.close();
    await expectFolder(disk, zxids(1, 1, 12));
  });

  test('names the last txn of the log when it is beyond the end of the log', async () => {
    const { error } = await attempt(await fourLogs(), makeZxid(1, 13));
    expect(error).toMatchObject({ name: 'TruncationImpossible', nearestZxid: makeZxid(1, 12) });
  });

  test('rejects with StorageRefused when the log is damaged before the txn', async () => {
    const disk = await fourLogs();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    disk.flipBit(`${folder}/log.${hex(7)}`, 8 * 60);
    await expect(rig.truncate(makeZxid(1, 8))).rejects.toBeInstanceOf(StorageRefused);
    expect(namesIn(disk)).toContain(`log.${hex(10)}`);
  });

  test('becomes possible when logs alone are trusted and reach back to the first txn', async () => {
    const disk = new VirtualDisk();
    const options = { snapshotTrustEmpty: true };
    const history = zxids(0, 1, 6);
    await withEnsembleStorage(disk, (rig) => rig.write(history), options);
    await withEnsembleStorage(disk, (rig) => rig.snapshot(), options);
    disk.eraseFile(`${folder}/snapshot.0`);
    await withEnsembleStorage(disk, (rig) => rig.truncate(4), options);
    expect(namesIn(disk)).not.toContain('snapshot.6');
    await withEnsembleStorage(disk, async (rig) => expect(rig.zxids).toEqual([1, 2, 3, 4]), options);
  });
});

test('a snapshot that contains changes beyond the txn is not used, whatever its name says', async () => {
  const disk = await fourLogs();
  const rig = new EnsembleStorageRig(disk);
  await rig.open();
  class Fuzzy extends HistoryState {
    override beginSnapshot(zxid?: Zxid) {
      return { ...super.beginSnapshot(), contentZxid: () => (zxid === makeZxid(1, 6) ? makeZxid(1, 8) : zxid) };
    }
  }
  const state = new Fuzzy();
  expect(await rig.storage.truncate(makeZxid(1, 7), state)).toMatchObject({ snapshotZxid: 0, lastZxid: first + 6 });
  await rig.storage.close();
  expect(namesIn(disk)).not.toContain(`snapshot.${hex(6)}`);
  await expectFolder(disk, zxids(1, 1, 7));
});

test('E18: ZOOKEEPER-3701: a truncation whose disk fails ends the server, and the folder starts', async () => {
  let failed = 0;
  for (let call = 0; ; call++) {
    const disk = await fourLogs();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    const firstCall = disk.calls;
    disk.fault = ({ index, operation }) => (index === firstCall + call && operation !== 'close' ? { code: 'ENOSPC' } : undefined);
    const error = await rig.truncate(makeZxid(1, 5)).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const isReached = disk.calls > firstCall + call;
    disk.fault = undefined;
    if (error instanceof TruncationImpossible) {
      // The snapshot could not be read: as if it were damaged.
      expect(rig.failures).toEqual([]);
      expect(namesIn(disk)).toContain(`log.${hex(10)}`);
    } else if (error !== undefined) {
      failed++;
      expect(error).toBeInstanceOf(DiskError);
      expect(rig.failures).toEqual([error]);
    }
    disk.kill();
    await withEnsembleStorage(disk, async (next) => {
      expect(next.state.lastZxid).toBeGreaterThanOrEqual(makeZxid(1, 5));
      expect(next.state.history).toEqual(historyOf(zxids(1, 1, next.state.history.size)));
      await next.truncate(makeZxid(1, 5));
    });
    await expectFolder(disk, zxids(1, 1, 5));
    if (!isReached) break;
  }
  expect(failed).toBeGreaterThan(20);
});
