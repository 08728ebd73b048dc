import { makeZxid, type Zxid } from '@tskeeper/protocol';
import { DiskError, VirtualDisk, StorageRefused } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { type StoredEpochs, resolveEpochs } from '../../src/storage/epoch-files.ts';
import { filesOf, folder, EnsembleStorageRig, namesIn, withEnsembleStorage, zxids } from './ensemble-storage-rig.ts';

const none: StoredEpochs = { accepted: undefined, current: undefined, acceptedTemporary: undefined, currentTemporary: undefined };
const settle = (found: Partial<StoredEpochs>, lastZxid: Zxid, hasData = true, canRefetch = true) =>
  resolveEpochs({ ...none, ...found }, { lastZxid, hasData, canRefetch }, '/data/version-2');

describe('the epochs with which a server of an ensemble starts', () => {
  const at5 = makeZxid(5, 17);
  test.each<[string, Partial<StoredEpochs>, Zxid, [number, number]]>([
    ['are 0 for an empty folder', {}, 0, [0, 0]],
    ['are 0 for a folder that is not trusted to be new', {}, -1, [0, 0]],
    ['are that of the last txn for the folder of a standalone server', {}, at5, [5, 5]],
    ['are those of the files', { accepted: 7, current: 5 }, at5, [7, 5]],
    ['are those of the files when the epoch has no txn yet', { accepted: 7, current: 7 }, at5, [7, 7]],
    ['are both the accepted one after a crash in the very first write', { accepted: 5 }, at5, [5, 5]],
    ['are that of the last txn after a crash while joining', { accepted: 5, current: 4 }, at5, [5, 5]],
    ['are those of the promise and the last txn after a crash while joining and a later promise', { accepted: 6, current: 4 }, at5, [6, 5]],
    ['include a currentEpoch whose renaming was lost', { accepted: 7, current: 4, currentTemporary: 7 }, at5, [7, 7]],
    ['do not include a new currentEpoch that is cut short', { accepted: 51, current: 4, currentTemporary: 5 }, at5, [51, 5]],
    ['do not include a new currentEpoch that the history does not need', { accepted: 7, current: 5, currentTemporary: 7 }, at5, [7, 5]],
    ['ZOOKEEPER-4269: include an acceptedEpoch whose renaming was lost', { accepted: 4, current: 5, acceptedTemporary: 5 }, at5, [5, 5]],
    ['include a promise that was being written', { accepted: 5, current: 5, acceptedTemporary: 8 }, at5, [8, 5]],
    ['do not include a promise that was being written and is cut short', { accepted: 12, current: 5, acceptedTemporary: 1 }, at5, [12, 5]],
  ])('%s', (_title, found, lastZxid, [accepted, current]) => {
    expect(settle(found, lastZxid)).toEqual({ accepted, current });
  });

  test.each<[string, Partial<StoredEpochs>, Zxid, RegExp]>([
    ['currentEpoch is missing', { accepted: 7 }, at5, /currentEpoch is missing, and does not follow from acceptedEpoch, which holds 7/],
    [
      'acceptedEpoch is missing',
      { current: 6 },
      at5,
      /acceptedEpoch is missing, but currentEpoch holds 6: the epoch that this server has promised/,
    ],
    ['acceptedEpoch is missing, and currentEpoch is that of the last txn', { current: 5 }, at5, /acceptedEpoch is missing/],
    ['acceptedEpoch is missing, and the history goes further', { current: 4 }, at5, /acceptedEpoch is missing/],
    [
      'ZOOKEEPER-2307: acceptedEpoch is smaller than currentEpoch',
      { accepted: 4, current: 6 },
      at5,
      /acceptedEpoch holds 4, less than the 6 in currentEpoch/,
    ],
    ['the history is of an epoch that was never accepted', { accepted: 4, current: 4 }, at5, /of epoch 5, but acceptedEpoch holds 4/],
  ])('are refused when %s', (_title, found, lastZxid, message) => {
    expect(() => settle(found, lastZxid)).toThrow(StorageRefused);
    expect(() => settle(found, lastZxid)).toThrow(message);
  });

  test('are refused when all data is missing and the epochs are not: such a server would win elections without data', () => {
    const found = { accepted: 5, current: 5 };
    expect(() => settle(found, 0, false)).toThrow(
      /currentEpoch holds 5, but there is neither a snapshot nor a log; bring them back, or move /,
    );
    expect(() => settle(found, 0, false, false)).toThrow(
      /; bring them back, or restore them from a backup, or, if all data may be lost, delete .*\/acceptedEpoch and .*\/currentEpoch$/,
    );
    expect(settle({ accepted: 5, current: 0 }, 0, false)).toEqual({ accepted: 5, current: 0 });
  });
});

describe('saveEpoch', () => {
  test('makes the epoch durable before it resolves, and the next start reads it', async () => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    await rig.storage.saveEpoch('acceptedEpoch', 3);
    await rig.storage.saveEpoch('currentEpoch', 3);
    await rig.storage.saveEpoch('acceptedEpoch', 4);
    disk.crash(() => 0);
    await withEnsembleStorage(disk, async (_next, recovered) => expect(recovered).toMatchObject({ acceptedEpoch: 4, currentEpoch: 3 }));
    expect(disk.contents(`${folder}/acceptedEpoch`).toString()).toBe('4');
  });

  test('writes epochs one after the other, in the order of the calls', async () => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    const seen: string[] = [];
    disk.onChanged = ({ operation, path }) => {
      if (operation === 'rename') seen.push(`${path.slice(folder.length + 1)} ${disk.contents(path.replace('.tmp', '')).toString()}`);
    };
    await Promise.all([
      rig.storage.saveEpoch('acceptedEpoch', 2),
      rig.storage.saveEpoch('currentEpoch', 2),
      rig.storage.saveEpoch('acceptedEpoch', 5),
      rig.storage.saveEpoch('acceptedEpoch', 6),
    ]);
    expect(seen).toEqual(['acceptedEpoch.tmp 2', 'currentEpoch.tmp 2', 'acceptedEpoch.tmp 5', 'acceptedEpoch.tmp 6']);
  });

  test('does not write an epoch that is already saved', async () => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    await rig.storage.saveEpoch('acceptedEpoch', 2);
    const { calls } = disk;
    await rig.storage.saveEpoch('acceptedEpoch', 2);
    expect(disk.calls).toBe(calls);
  });

  test('rejects smaller epochs, and a currentEpoch above acceptedEpoch', async () => {
    const rig = new EnsembleStorageRig(new VirtualDisk());
    await rig.open();
    await rig.storage.saveEpoch('acceptedEpoch', 5);
    await expect(rig.storage.saveEpoch('acceptedEpoch', 4)).rejects.toThrow('acceptedEpoch is 5 and cannot go back to 4');
    await expect(rig.storage.saveEpoch('currentEpoch', 6)).rejects.toThrow('currentEpoch cannot be 6 while acceptedEpoch is 5');
  });

  test('rejects all later calls after a failed write', async () => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    disk.fault = ({ operation }) => (operation === 'syncFolder' ? { code: 'EIO' } : undefined);
    const failed = rig.storage.saveEpoch('acceptedEpoch', 5);
    const behind = rig.storage.saveEpoch('currentEpoch', 5);
    await expect(failed).rejects.toBeInstanceOf(DiskError);
    disk.fault = undefined;
    await expect(behind).rejects.toThrow(/EIO/);
    await expect(rig.storage.saveEpoch('acceptedEpoch', 6)).rejects.toThrow(/EIO/);
    await rig.storage.close();
    await withEnsembleStorage(disk, async (_next, { currentEpoch }) => expect(currentEpoch).toBe(0));
  });

  test('rejects for a standalone server, and for currentEpoch in a folder without a snapshot', async () => {
    const standalone = new EnsembleStorageRig(new VirtualDisk());
    await standalone.storage.open(standalone.state);
    await expect(standalone.storage.saveEpoch('acceptedEpoch', 1)).rejects.toThrow('a standalone server has no epochs');
    const fresh = new EnsembleStorageRig(new VirtualDisk());
    await fresh.storage.openForEnsemble(fresh.state, { recent: { count: 0, bytes: 0 }, canRefetch: true });
    await fresh.storage.saveEpoch('acceptedEpoch', 1);
    await expect(fresh.storage.saveEpoch('currentEpoch', 1)).rejects.toThrow(/before the first snapshot is durable/);
  });
});

describe('an epoch that a start has read', () => {
  const failNext = (disk: VirtualDisk) => {
    disk.fault = ({ operation }) => (operation === 'syncFolder' ? { code: 'EIO' } : undefined);
  };

  test.each(['acceptedEpoch', 'currentEpoch'] as const)('stays in %s after a crash, although its sync had failed', async (name) => {
    const disk = new VirtualDisk();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    if (name === 'currentEpoch') await rig.storage.saveEpoch('acceptedEpoch', 5);
    failNext(disk);
    await expect(rig.storage.saveEpoch(name, 5)).rejects.toThrow(/EIO/);
    disk.fault = undefined;
    await rig.storage.close();
    await withEnsembleStorage(disk, async (_member, recovered) => {
      expect(recovered).toMatchObject({ [name]: 5 });
      // Everything built on it now would be lost with it.
      disk.crash(() => 0);
    });
    await withEnsembleStorage(disk, async (_member, recovered) => expect(recovered).toMatchObject({ [name]: 5 }));
  });

  test('stays after a crash, whichever sync of the folder in the first start had failed', async () => {
    let failed = 0;
    for (let nth = 0; failed === nth; nth++) {
      const disk = new VirtualDisk();
      const first = new EnsembleStorageRig(disk);
      let [syncs, hit] = [0, false];
      disk.fault = ({ operation }) => {
        if (operation !== 'syncFolder' || syncs++ !== nth) return undefined;
        hit = true;
        return { code: 'EIO' };
      };
      await first.open().catch(() => undefined);
      await first.storage.close();
      disk.fault = undefined;
      if (hit) failed++;
      await withEnsembleStorage(disk, async () => disk.crash(() => 0));
      await withEnsembleStorage(disk, async (_member, recovered) => expect(recovered).toMatchObject({ acceptedEpoch: 0, currentEpoch: 0 }));
    }
    expect(failed).toBeGreaterThan(3);
  });
});

test('a start that is refused because of an epoch file leaves the folder unchanged and unlocked', async () => {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, (rig) => rig.write(zxids(2, 1, 3)));
  disk.putFile(`${folder}/acceptedEpoch`, Buffer.from('1'));
  const before = filesOf(disk);
  const rig = new EnsembleStorageRig(disk);
  await expect(rig.open()).rejects.toThrow(/acceptedEpoch holds 1/);
  expect(filesOf(disk)).toEqual(before);
  await (await disk.lock(folder)).release();
});

test('temporary files that a crash left of writing an epoch are removed at the start', async () => {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, (rig) => rig.write(zxids(2, 1, 3)));
  disk.putFile(`${folder}/acceptedEpoch.tmp`, Buffer.from('3'));
  disk.putFile(`${folder}/currentEpoch.tmp`, Buffer.alloc(0));
  await withEnsembleStorage(disk, async (_member, recovered) => expect(recovered).toMatchObject({ acceptedEpoch: 3, currentEpoch: 2 }));
  expect(namesIn(disk).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
