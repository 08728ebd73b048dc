/**
 * Missing txns before existing ones: between two epochs the zxids do not show it, and the mark of
 * the later log does.
 */
import { makeZxid } from '@tskeeper/protocol';
import { VirtualDisk, readLog } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { filesOf, folder, EnsembleStorageRig, namesIn, withEnsembleStorage, zxids } from './ensemble-storage-rig.ts';
import { dataOf, quiesce, Server, txnBytesMax } from './support.ts';

/**
 * Logs 1, 5 and 9 of epoch 1 with four txns each, and then one of epoch 2; a snapshot at 0 only.
 */
async function fourLogs(disk = new VirtualDisk()): Promise<VirtualDisk> {
  for (const from of [1, 5, 9]) await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, from, from + 3)));
  await withEnsembleStorage(disk, (rig) => rig.write(zxids(2, 1, 2)));
  return disk;
}

const last = `${folder}/log.100000009`;

describe('a missing log', () => {
  test.each([
    ['its mark is left', [last]],
    ['its mark is missing too', [last, `${folder}/synced.100000009`]],
  ])('at the end of an epoch is detected when %s, and nothing is changed', async (_what, paths) => {
    const disk = await fourLogs();
    for (const path of paths) disk.eraseFile(path);
    const before = filesOf(disk);
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(
      `txns are missing: ${folder}/log.200000001 begins after 0x10000000c, but the txns before it end with 0x100000008; move ${folder} aside, keep /data/myid, and start this server again: it fetches everything from its leader, provided that a quorum of the other servers runs with its data intact`,
    );
    expect(filesOf(disk)).toEqual(before);
  });

  test('is detected by a truncation to a txn after it', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, async (rig) => {
      disk.eraseFile(last);
      await expect(rig.truncate(makeZxid(2, 1))).rejects.toThrow('txns are missing');
    });
  });

  test('is not needed when a snapshot has its txns', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, (rig) => rig.snapshot());
    disk.eraseFile(last);
    const { lastZxid } = await withEnsembleStorage(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(2, 2));
  });

  test('ends a reading of the log after the first start and after a later one', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, (rig) => rig.snapshot());
    disk.eraseFile(last);
    for (let start = 0; start < 2; start++) {
      await withEnsembleStorage(disk, async (rig) => {
        await rig.write(zxids(2, 3 + start, 3 + start));
        const reading = (await rig.storage.iterateLog(makeZxid(1, 6)))!;
        expect(await reading.next()).toMatchObject({ kind: 'txns' });
        expect(await reading.next()).toMatchObject({ kind: 'gone' });
      });
    }
  });

  test('is not detected when the next log was begun by another server, which keeps no marks', async () => {
    const disk = await fourLogs();
    disk.eraseFile(last);
    disk.eraseFile(`${folder}/synced.200000001`);
    const { lastZxid } = await withEnsembleStorage(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(2, 2));
    expect(namesIn(disk)).not.toContain('synced.100000009');
  });

  test('has no effect once another log of the same name has been begun', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, (rig) => rig.snapshot());
    disk.eraseFile(last);
    await withEnsembleStorage(disk, async (rig) => {
      await rig.truncate(makeZxid(1, 4));
      await rig.write(zxids(3, 1, 2));
    });
    await withEnsembleStorage(disk, (rig) => rig.write(zxids(4, 1, 2)));
    const { lastZxid } = await withEnsembleStorage(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(4, 2));
  });
});

describe('a missing newest log whose mark is left', () => {
  const newest = `${folder}/log.200000001`;

  test('keeps a server of an ensemble from starting with less than it has acknowledged, and nothing is changed', async () => {
    const disk = await fourLogs();
    disk.eraseFile(newest);
    const before = filesOf(disk);
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(
      `log.200000001 in ${folder} is gone: synced.200000001 says that txns up to 0x200000002 were durable and may have been acknowledged, but the remaining data ends with 0x10000000c; move ${folder} aside, keep /data/myid, and start this server again: it fetches everything from its leader, provided that a quorum of the other servers runs with its data intact`,
    );
    expect(filesOf(disk)).toEqual(before);
  });

  test.each([
    ['once its mark has moved', 3],
    ['with a single batch in it, some time after it was written', 1],
  ])('keeps a standalone server from starting %s, with a remedy', async (_when, count) => {
    const disk = new VirtualDisk();
    const first = new Server(disk);
    await first.open();
    await first.write(dataOf(1, 40), dataOf(2, 40));
    await first.storage.close();
    const second = new Server(disk);
    await second.open();
    for (let n = 0; n < count; n++) await second.write(dataOf(n, 40));
    second.clock.advance(200);
    await quiesce();
    disk.kill();
    disk.eraseFile(`${folder}/log.3`);
    const before = filesOf(disk);
    await expect(new Server(disk).open()).rejects.toThrow(
      `but the remaining data ends with 0x2; bring log.3 back, or start from a backup that has it, or, if those txns may be lost, delete synced.3 and start this server again`,
    );
    expect(filesOf(disk)).toEqual(before);

    disk.eraseFile(`${folder}/synced.3`);
    expect(await new Server(disk).open()).toMatchObject({ lastZxid: 2 });
  });

  test('is named with the other missing logs', async () => {
    const disk = await fourLogs();
    for (const path of [last, newest]) disk.eraseFile(path);
    await expect(new EnsembleStorageRig(disk).open(undefined, false)).rejects.toThrow(
      'bring log.100000009 and log.200000001 back, or start from a backup that has them, or, if those txns may be lost, delete synced.100000009 and synced.200000001',
    );
  });

  test('keeps a server from starting without data', async () => {
    const disk = new VirtualDisk();
    const server = new Server(disk);
    await server.open();
    for (let n = 0; n < 3; n++) await server.write(dataOf(n, 40));
    await server.storage.close();
    for (const path of [`${folder}/log.1`, `${folder}/snapshot.0`]) disk.eraseFile(path);
    await expect(new Server(disk).open()).rejects.toThrow('log.1 in /data/version-2 is gone');
  });

  test('is not needed when a snapshot has its txns; the mark is removed', async () => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, (rig) => rig.snapshot());
    disk.eraseFile(newest);
    const { lastZxid } = await withEnsembleStorage(disk, (_member, recovered) => Promise.resolve(recovered));
    expect(lastZxid).toBe(makeZxid(2, 2));
    expect(namesIn(disk)).not.toContain('synced.200000001');
  });

  test('has no effect when another server has cut the log before it, as TRUNC does, and removed it without its mark', async () => {
    const disk = await fourLogs();
    disk.eraseFile(newest);
    const whole = disk.contents(last);
    const { offset } = await readLog(await disk.open(last, 'existing'), txnBytesMax, () => undefined, undefined, {
      zxidMax: makeZxid(1, 10),
    });
    disk.putFile(last, whole.subarray(0, offset));
    const rig = new EnsembleStorageRig(disk);
    const { lastZxid } = await rig.open();
    expect(lastZxid).toBe(makeZxid(1, 10));
    expect(rig.warnings).toEqual([
      expect.stringContaining('it has been truncated by another server'),
      'warn log.200000001 in /data/version-2 is gone, with txns up to 0x200000002: the server that truncated the logs has removed it, and this server starts at 0x10000000a',
    ]);
    await rig.storage.close();
    expect(namesIn(disk).filter((name) => name.startsWith('synced.'))).not.toContain('synced.200000001');
  });
});

describe('a damaged newest snapshot whose log is missing', () => {
  test.each([
    ['cannot be loaded', (disk: VirtualDisk, path: string) => disk.flipBit(path, 8 * 40)],
    ['is not complete', (disk: VirtualDisk, path: string) => disk.putFile(path, disk.contents(path).subarray(0, 60))],
  ])('keeps a server from starting with an older one when it %s, and nothing is changed', async (_how, spoil) => {
    const disk = await fourLogs();
    await withEnsembleStorage(disk, (rig) => rig.snapshot());
    disk.eraseFile(`${folder}/log.200000001`);
    // The snapshot has its txns, so this start is right, and the mark is removed.
    await withEnsembleStorage(disk, () => Promise.resolve());
    const path = `${folder}/snapshot.200000002`;
    const whole = disk.contents(path);
    spoil(disk, path);
    const before = filesOf(disk);
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(
      `txns are missing: ${path} covers those up to 0x200000002 and is damaged, and the remaining data ends with 0x10000000c; move ${folder} aside`,
    );
    await expect(new EnsembleStorageRig(disk).open(undefined, false)).rejects.toThrow(
      `; restore ${path}, or the logs that lead there, from a backup, or, if those txns may be lost, delete ${path}`,
    );
    expect(filesOf(disk)).toEqual(before);
    disk.putFile(path, whole);
    expect((await new EnsembleStorageRig(disk).open()).lastZxid).toBe(makeZxid(2, 2));
  });
});

describe("a leader's snapshot that is the only source of its history", () => {
  test('is detected as missing, although the old history was not removed when it was installed', async () => {
    const disk = await fourLogs();
    const old = filesOf(disk).map(([path, bytes]) => [path, Buffer.from(bytes)] as const);
    await withEnsembleStorage(disk, async (rig) => {
      await rig.replace(zxids(5, 1, 4));
      await rig.write(zxids(6, 1, 2));
    });
    for (const name of namesIn(disk)) if (name.startsWith('snapshot.')) disk.eraseFile(`${folder}/${name}`);
    for (const [path, bytes] of old) if (/(?:snapshot|log|synced)[.]/.test(path)) disk.putFile(path, bytes);
    await expect(new EnsembleStorageRig(disk).open()).rejects.toThrow(
      'log.600000001 begins after 0x500000004, but the txns before it end with 0x200000002',
    );
  });
});
