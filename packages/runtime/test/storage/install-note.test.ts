import { type DiskImage, MemoryDisk, StorageRefused } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { filesOf, folder, Member, namesIn, withMember, zxids, recentLimits } from './member.ts';

const loseAll = () => 0;
const note = `${folder}/installing`;
const old = zxids(1, 1, 10);
const target = [...zxids(1, 1, 3), ...zxids(2, 1, 5)];
const newest = `${folder}/snapshot.${target.at(-1)!.toString(16)}`;

async function oldHistory(): Promise<MemoryDisk> {
  const disk = new MemoryDisk();
  await withMember(disk, async (member) => {
    await member.write(old.slice(0, 4));
    await member.snapshot();
  });
  await withMember(disk, (member) => member.write(old.slice(4)));
  return disk;
}

/** The disk at each moment of `work` at which a process could end. */
async function moments(disk: MemoryDisk, work: () => Promise<unknown>): Promise<DiskImage[]> {
  const images: DiskImage[] = [];
  disk.changed = () => images.push(disk.capture());
  await work();
  disk.changed = undefined;
  return images;
}

async function momentsOfInstall(): Promise<DiskImage[]> {
  const disk = await oldHistory();
  return await withMember(disk, async (member) => {
    await member.accept(2);
    return await moments(disk, () => member.replace(target));
  });
}

const rot = (disk: MemoryDisk) => disk.flipBit(newest, 8 * 40);

/** The process has been killed when the snapshot had its name and everything older was still there. */
async function halfWay(): Promise<MemoryDisk> {
  for (const image of await momentsOfInstall()) {
    const disk = new MemoryDisk(image);
    if (disk.files().includes(newest)) return disk;
  }
  throw new Error('the snapshot never got its name');
}

describe('a process that is killed while a snapshot of the leader takes the place of all else', () => {
  test('leaves the old history, or the snapshot and after the next start nothing older', async () => {
    const seen = { old: 0, target: 0 };
    for (const image of await momentsOfInstall()) {
      const disk = new MemoryDisk(image);
      await withMember(disk, async (member) => {
        const isTarget = member.zxids.at(-1) === target.at(-1);
        seen[isTarget ? 'target' : 'old']++;
        expect(member.zxids).toEqual(isTarget ? target : old);
        if (isTarget) expect(disk.files().filter((path) => /log\.|snapshot\./.test(path))).toEqual([newest]);
        expect(disk.files()).not.toContain(note);
      });
    }
    expect(seen.old).toBeGreaterThan(3);
    expect(seen.target).toBeGreaterThan(10);
  });

  test('and the snapshot goes bad: the old history does not come back', async () => {
    let refused = 0;
    for (const image of await momentsOfInstall()) {
      const disk = new MemoryDisk(image);
      if (!disk.files().includes(newest)) continue;
      rot(disk);
      const before = filesOf(disk);
      await expect(new Member(disk).open()).rejects.toThrow(/snapshot.* (damaged or gone|can be loaded)/);
      expect(filesOf(disk)).toEqual(before);
      refused++;
    }
    expect(refused).toBeGreaterThan(10);
  });

  test('and the snapshot is gone: the old history does not come back', async () => {
    const disk = await halfWay();
    disk.lose(newest);
    await expect(new Member(disk).open()).rejects.toThrow(`${newest}, a snapshot of the leader`);
  });

  test('and so are the next process and the one after it', async () => {
    const disk = await halfWay();
    const during = await moments(disk, () => withMember(disk, async () => undefined));
    expect(during.length).toBeGreaterThan(10);
    for (const image of during) {
      for (const choice of [loseAll, undefined]) {
        const next = new MemoryDisk(image, choice);
        await withMember(next, async (member) => expect(member.zxids).toEqual(target));
        rot(next);
        await expect(new Member(next).open()).rejects.toBeInstanceOf(StorageRefused);
      }
    }
  });

  test('because the name of the snapshot could not be synced: the next start keeps it, and the power may go', async () => {
    const disk = await oldHistory();
    const member = new Member(disk);
    await member.open();
    await member.accept(2);
    disk.fault = ({ operation }) => (operation === 'syncFolder' && disk.files().includes(newest) ? { code: 'EIO' } : undefined);
    await expect(member.replace(target)).rejects.toThrow(/EIO/);
    disk.fault = undefined;
    disk.kill();
    await withMember(disk, async (next) => expect(next.zxids).toEqual(target));
    disk.crash(loseAll);
    await withMember(disk, async (next) => expect(next.zxids).toEqual(target));
  });
});

describe('what another server has done in the folder since stays', () => {
  test.each<[string, string, Buffer]>([
    ['a snapshot', `${folder}/snapshot.1`, Buffer.from('x')],
    ['a later epoch', `${folder}/currentEpoch`, Buffer.from('2')],
  ])('%s', async (_title, path, bytes) => {
    const disk = await halfWay();
    disk.plant(path, bytes);
    const others = namesIn(disk).filter((name) => /^(log|snapshot)\./.test(name));
    await withMember(disk, async (member) => {
      expect(member.warnings.join('\n')).toContain('another server has worked in this folder since; everything stays as it is');
      expect(namesIn(disk)).toEqual(expect.arrayContaining(others));
      expect(namesIn(disk)).not.toContain('installing');
    });
  });
});

test('without currentEpoch nothing older comes back either', async () => {
  const disk = await halfWay();
  disk.lose(`${folder}/currentEpoch`);
  await withMember(disk, async (member) => expect(member.zxids).toEqual(target));
  rot(disk);
  await expect(new Member(disk).open()).rejects.toBeInstanceOf(StorageRefused);
});

test('a note that has gone bad is refused, whichever bit turned round', async () => {
  const disk = await halfWay();
  const bits = disk.contents(note).length * 8;
  for (let bit = 0; bit < bits; bit += 5) {
    const spoilt = new MemoryDisk(disk.capture());
    spoilt.flipBit(note, bit);
    await expect(new Member(spoilt).open()).rejects.toThrow(
      `${note} is damaged: a snapshot of the leader was replacing all other data here, and the note names no snapshot that can be identified; `,
    );
  }
});

test('a damaged note, or a snapshot that it names, is refused to the only voter with the advice to restore the folders from a backup', async () => {
  for (const damage of [(disk: MemoryDisk) => disk.flipBit(note, 8), rot]) {
    const disk = await halfWay();
    damage(disk);
    await expect(new Member(disk).open(recentLimits, false)).rejects.toThrow(/; restore \/data\/version-2 from a backup$/);
  }
});
