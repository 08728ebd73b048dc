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
    ['an empty folder: none', {}, 0, [0, 0]],
    ['a folder that is not trusted to be new: none', {}, -1, [0, 0]],
    ['the folder of a standalone server: that of its last txn', {}, at5, [5, 5]],
    ['those of the files', { accepted: 7, current: 5 }, at5, [7, 5]],
    ['those of the files, when the epoch has no txn yet', { accepted: 7, current: 7 }, at5, [7, 7]],
    ['a crash in the first write of all', { accepted: 5 }, at5, [5, 5]],
    ['a crash while joining: the epoch of the last txn', { accepted: 5, current: 4 }, at5, [5, 5]],
    ['a crash while joining, and another epoch promised since', { accepted: 6, current: 4 }, at5, [6, 5]],
    ['currentEpoch lost its renaming', { accepted: 7, current: 4, currentTemporary: 7 }, at5, [7, 7]],
    ['a currentEpoch that is cut short is not believed', { accepted: 51, current: 4, currentTemporary: 5 }, at5, [51, 5]],
    ['nor is one that the history does not ask for', { accepted: 7, current: 5, currentTemporary: 7 }, at5, [7, 5]],
    ['ZOOKEEPER-4269: acceptedEpoch lost its renaming', { accepted: 4, current: 5, acceptedTemporary: 5 }, at5, [5, 5]],
    ['a promise that was being written counts as made', { accepted: 5, current: 5, acceptedTemporary: 8 }, at5, [8, 5]],
    ['a promise that was being written, and is cut short, does not', { accepted: 12, current: 5, acceptedTemporary: 1 }, at5, [12, 5]],
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
  test('is durable when it resolves, and read by the next start', async () => {
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

  test('writes one after the other, in the order of the calls', async () => {
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

describe('an epoch that a start has read stays, although the sync that should have kept it had failed', () => {
  const failNext = (disk: VirtualDisk) => {
    disk.fault = ({ operation }) => (operation === 'syncFolder' ? { code: 'EIO' } : undefined);
  };

  test.each(['acceptedEpoch', 'currentEpoch'] as const)('%s', async (name) => {
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

  test('whatever call of the first start fails', async () => {
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

test('a refusal because of an epoch file leaves the folder as it was, and free', async () => {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, (rig) => rig.write(zxids(2, 1, 3)));
  disk.putFile(`${folder}/acceptedEpoch`, Buffer.from('1'));
  const before = filesOf(disk);
  const rig = new EnsembleStorageRig(disk);
  await expect(rig.open()).rejects.toThrow(/acceptedEpoch holds 1/);
  expect(filesOf(disk)).toEqual(before);
  await (await disk.lock(folder)).release();
});

test('what a crash left of writing an epoch is removed', async () => {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, (rig) => rig.write(zxids(2, 1, 3)));
  disk.putFile(`${folder}/acceptedEpoch.tmp`, Buffer.from('3'));
  disk.putFile(`${folder}/currentEpoch.tmp`, Buffer.alloc(0));
  await withEnsembleStorage(disk, async (_member, recovered) => expect(recovered).toMatchObject({ acceptedEpoch: 3, currentEpoch: 2 }));
  expect(namesIn(disk).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
