import { describe, expect, it } from 'vitest';
import { DiskState } from '../../src/zab/disk-state.ts';
import type { DurableState } from '../../src/zab/peer-storage.ts';

function opened() {
  const asked: string[] = [];
  const storage: DurableState = {
    append: (zxid, bytes, start, end) => void asked.push(`append ${zxid} ${bytes.toString('latin1', start, end)}`),
    saveConfig: ({ version }) => void asked.push(`configuration ${version}`),
    saveEpoch: (name, epoch) => void asked.push(`${name} ${epoch}`),
    truncate: (zxid) => void asked.push(`truncate ${zxid}`),
    installSnapshot: (zxid) => void asked.push(`install ${zxid}`),
  };
  return { asked, disk: new DiskState({ lastZxid: 5, acceptedEpoch: 2, currentEpoch: 1 }, storage) };
}

describe('a disk state', () => {
  it('is flushed at the start, and forwards requests', () => {
    const { asked, disk } = opened();
    expect([disk.isFlushed, disk.logged, disk.persisted]).toEqual([true, 5, { lastZxid: 5, acceptedEpoch: 2, currentEpoch: 1 }]);
    disk.append(6, Buffer.from('.txn.'), 1, 4);
    disk.saveEpoch('acceptedEpoch', 3);
    disk.truncate(4);
    disk.installSnapshot(9);
    expect(asked).toEqual(['append 6 txn', 'acceptedEpoch 3', 'truncate 4', 'install 9']);
  });

  it('is not flushed before the last txn is durable, and then has its zxid as the last one', () => {
    const { disk } = opened();
    for (const zxid of [6, 7]) disk.append(zxid, Buffer.alloc(0), 0, 0);
    expect([disk.logged, disk.isFlushed, disk.isBusy]).toEqual([7, false, false]);
    disk.appended(6);
    expect(disk.isFlushed).toBe(false);
    disk.appended(7);
    expect([disk.isFlushed, disk.persisted.lastZxid]).toEqual([true, 7]);
  });

  it('has an epoch once its file is durable, not when it is requested', () => {
    const { disk } = opened();
    disk.saveEpoch('acceptedEpoch', 3);
    expect([disk.isFlushed, disk.isBusy, disk.persisted.acceptedEpoch]).toEqual([false, true, 2]);
    disk.epochSaved('acceptedEpoch', 3);
    expect([disk.isFlushed, disk.persisted.acceptedEpoch, disk.persisted.currentEpoch]).toEqual([true, 3, 1]);
    disk.saveEpoch('currentEpoch', 3);
    disk.epochSaved('currentEpoch', 3);
    expect(disk.persisted.currentEpoch).toBe(3);
  });

  it('is busy while its log is truncated or replaced by a snapshot, and then has the resulting last zxid', () => {
    const { disk } = opened();
    disk.append(8, Buffer.alloc(0), 0, 0);
    disk.truncate(4);
    disk.appended(8);
    expect([disk.isBusy, disk.isFlushed]).toEqual([true, false]);
    disk.replaced(4);
    expect([disk.isFlushed, disk.logged]).toEqual([true, 4]);
    disk.installSnapshot(9);
    expect(disk.isFlushed).toBe(false);
    disk.replaced(9);
    expect([disk.isFlushed, disk.logged]).toEqual([true, 9]);
  });

  it('is unchanged after a truncation was refused', () => {
    const { disk } = opened();
    disk.truncate(4);
    disk.truncationRefused();
    expect([disk.isFlushed, disk.logged]).toEqual([true, 5]);
  });
});
