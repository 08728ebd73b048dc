import { type DiskImage, VirtualDisk, StorageRefused } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { filesOf, folder, EnsembleStorageRig, namesIn, withEnsembleStorage, zxids, recentLimits } from './ensemble-storage-rig.ts';

const loseAll = () => 0;
const note = `${folder}/installing`;
const old = zxids(1, 1, 10);
const target = [...zxids(1, 1, 3), ...zxids(2, 1, 5)];
const newest = `${folder}/snapshot.${target.at(-1)!.toString(16)}`;

async function oldHistory(): Promise<VirtualDisk> {
  const disk = new VirtualDisk();
  await withEnsembleStorage(disk, async (rig) => {
    await rig.write(old.slice(0, 4));
    await rig.snapshot();
  });
  await withEnsembleStorage(disk, (rig) => rig.write(old.slice(4)));
  return disk;
}

/** The disk at each moment of `work` at which a process could end. */
async function moments(disk: VirtualDisk, work: () => Promise<unknown>): Promise<DiskImage[]> {
  const images: DiskImage[] = [];
  disk.onChanged = () => images.push(disk.capture());
  await work();
  disk.onChanged = undefined;
  return images;
}

async function momentsOfInstall(): Promise<DiskImage[]> {
  const disk = await oldHistory();
  return await withEnsembleStorage(disk, async (rig) => {
    await rig.accept(2);
    return await moments(disk, () => rig.replace(target));
  });
}

const rot = (disk: VirtualDisk) => disk.flipBit(newest, 8 * 40);

/** The process was killed when the snapshot had its name and everything older was still there. */
async function halfWay(): Promise<VirtualDisk> {
  for (const image of await momentsOfInstall()) {
    const disk = new VirtualDisk(image);
    if (disk.files().includes(newest)) return disk;
  }
  throw new Error('the snapshot never got its name');
}

describe('a process that is killed while a snapshot of the leader replaces all other data', () => {
  test('leaves the old history, or the snapshot and, after the next start, nothing older', async () => {
    const seen = { old: 0, target: 0 };
    for (const image of await momentsOfInstall()) {
      const disk = new VirtualDisk(image);
      await withEnsembleStorage(disk, async (rig) => {
        const isTarget = rig.zxids.at(-1) === target.at(-1);
        seen[isTarget ? 'target' : 'old']++;
        expect(rig.zxids).toEqual(isTarget ? target : old);
        if (isTarget) expect(disk.files().filter((path) => /log\.|snapshot\./.test(path))).toEqual([newest]);
        expect(disk.files()).not.toContain(note);
      });
    }
    expect(seen.old).toBeGreaterThan(3);
    expect(seen.target).toBeGreaterThan(10);
  });

  test('does not bring the old history back when the snapshot becomes damaged', async () => {
    let refused = 0;
    for (const image of await momentsOfInstall()) {
      const disk = new VirtualDisk(image);
      if (!disk.files().includes(newest)) continue;
      rot(disk);
      const before = filesOf(disk);
      await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(/snapshot.* (damaged or missing|can be loaded)/);
      expect(filesOf(disk)).toEqual(before);
      refused++;
    }
    expect(refused).toBeGreaterThan(10);
  });

  test('does not bring the old history back when the snapshot is missing', async () => {
    const disk = await halfWay();
    disk.eraseFile(newest);
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(`${newest}, a snapshot of the leader`);
  });

  test('loses nothing when the next two processes are killed as well', async () => {
    const disk = await halfWay();
    const during = await moments(disk, () => withEnsembleStorage(disk, async () => undefined));
    expect(during.length).toBeGreaterThan(10);
    for (const image of during) {
      for (const choice of [loseAll, undefined]) {
        const next = new VirtualDisk(image, choice);
        await withEnsembleStorage(next, async (rig) => expect(rig.zxids).toEqual(target));
        rot(next);
        await expect(new EnsembleStorageRig(next).open()).rejects.toBeInstanceOf(StorageRefused);
      }
    }
  });

  test('keeps the snapshot through the next start and a loss of power, although its name could not be synced', async () => {
    const disk = await oldHistory();
    const rig = new EnsembleStorageRig(disk);
    await rig.open();
    await rig.accept(2);
    disk.fault = ({ operation }) => (operation === 'syncFolder' && disk.files().includes(newest) ? { code: 'EIO' } : undefined);
    await expect(rig.replace(target)).rejects.toThrow(/EIO/);
    disk.fault = undefined;
    disk.kill();
    await withEnsembleStorage(disk, async (next) => expect(next.zxids).toEqual(target));
    disk.crash(loseAll);
    await withEnsembleStorage(disk, async (next) => expect(next.zxids).toEqual(target));
  });
});

describe('a change of another server in the folder', () => {
  test.each<[string, string, Buffer]>([
    ['a snapshot', `${folder}/snapshot.1`, Buffer.from('x')],
    ['a later epoch', `${folder}/currentEpoch`, Buffer.from('2')],
  ])('is kept when it is %s', async (_title, path, bytes) => {
    const disk = await halfWay();
    disk.putFile(path, bytes);
    const others = namesIn(disk).filter((name) => /^(log|snapshot)\./.test(name));
    await withEnsembleStorage(disk, async (rig) => {
      expect(rig.warnings.join('\n')).toContain('another server has worked in this folder since; nothing is changed');
      expect(namesIn(disk)).toEqual(expect.arrayContaining(others));
      expect(namesIn(disk)).not.toContain('installing');
    });
  });
});

test('no older history returns after an install when currentEpoch is missing', async () => {
  const disk = await halfWay();
  disk.eraseFile(`${folder}/currentEpoch`);
  await withEnsembleStorage(disk, async (rig) => expect(rig.zxids).toEqual(target));
  rot(disk);
  await expect(new EnsembleStorageRig(disk).open()).rejects.toBeInstanceOf(StorageRefused);
});

test('an install note with any flipped bit is refused', async () => {
  const disk = await halfWay();
  const bits = disk.contents(note).length * 8;
  for (let bit = 0; bit < bits; bit += 5) {
    const spoilt = new VirtualDisk(disk.capture());
    spoilt.flipBit(note, bit);
    await expect(new EnsembleStorageRig(spoilt).open()).rejects.toThrow(
      `${note} is damaged: a snapshot of the leader was replacing all other data here, and the note does not identify that snapshot; `,
    );
  }
});

test('a damaged install note, or snapshot that it names, makes the only voter refuse to start, with the advice to restore a backup', async () => {
  for (const damage of [(disk: VirtualDisk) => disk.flipBit(note, 8), rot]) {
    const disk = await halfWay();
    damage(disk);
    await expect(new EnsembleStorageRig(disk).open(recentLimits, false)).rejects.toThrow(/; restore \/data\/version-2 from a backup$/);
  }
});
