import { loseAll, VirtualDisk, purge, readEpoch, SeededRandom, writeEpoch } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { SnapshotTrigger } from '../../src/storage/snapshot-trigger.ts';
import { dataOf, ListLogger, quiesce, Server } from './support.ts';

describe('purge', () => {
  const folder = '/data/version-2';
  /** Logs 1, 4, 7 ... with three txns each, and a snapshot after each. */
  const folderWith = async (rounds: number): Promise<VirtualDisk> => {
    const disk = new VirtualDisk();
    for (let round = 0; round < rounds; round++) {
      const server = new Server(disk);
      await server.open();
      await server.snapshot();
      await server.write(dataOf(round, 10), dataOf(round, 20), dataOf(round, 30));
      await server.storage.close();
    }
    return disk;
  };
  const names = (disk: VirtualDisk) => disk.files().map((path) => path.slice(folder.length + 1));
  const run = (disk: VirtualDisk, count: number) => purge(disk, { snapshots: folder, logs: folder }, count, undefined);

  test('keeps the newest snapshots, and every log they need', async () => {
    const disk = await folderWith(5);
    expect(names(disk).filter((name) => name.startsWith('snapshot'))).toEqual([
      'snapshot.0',
      'snapshot.3',
      'snapshot.6',
      'snapshot.9',
      'snapshot.c',
    ]);
    const { removed, oldestKept } = await run(disk, 3);
    expect(oldestKept).toBe(6);
    // log.4 ends with 6; by names alone it may still contain txns after snapshot.6, so it is kept.
    expect(removed.map((path) => path.slice(folder.length + 1))).toEqual(['snapshot.0', 'snapshot.3', 'log.1', 'synced.1']);
    expect(names(disk)).toEqual([
      'log.4',
      'log.7',
      'log.a',
      'log.d',
      'snapshot.6',
      'snapshot.9',
      'snapshot.c',
      'synced.4',
      'synced.7',
      'synced.a',
      'synced.d',
    ]);
  });

  test.each([3, 4, 5])('leaves a folder from which each of the %i kept snapshots can be started', async (count) => {
    const whole = await folderWith(6);
    await run(whole, count);
    const snapshots = names(whole).filter((name) => name.startsWith('snapshot'));
    expect(snapshots).toHaveLength(count);
    for (let newest = count; newest > 0; newest--) {
      const disk = new VirtualDisk(whole.capture());
      for (const name of snapshots.slice(newest)) disk.eraseFile(`${folder}/${name}`);
      const server = new Server(disk);
      expect((await server.open()).lastZxid).toBe(18);
      expect(server.state.history.size).toBe(18);
    }
  });

  test('does not count a damaged snapshot, and keeps it', async () => {
    const disk = await folderWith(5);
    disk.flipBit(`${folder}/snapshot.c`, 170);
    disk.putFile(`${folder}/snapshot.9`, Buffer.alloc(0));
    const { damaged, oldestKept } = await run(disk, 3);
    expect(damaged).toEqual([`${folder}/snapshot.c`, `${folder}/snapshot.9`]);
    expect(oldestKept).toBe(0);
    const server = new Server(disk);
    expect((await server.open()).lastZxid).toBe(15);
  });

  test('deletes nothing when there are too few good snapshots', async () => {
    const disk = await folderWith(4);
    const before = names(disk);
    disk.flipBit(`${folder}/snapshot.6`, 170);
    disk.flipBit(`${folder}/snapshot.9`, 170);
    expect(await run(disk, 3)).toMatchObject({ removed: [], oldestKept: undefined });
    expect(names(disk)).toEqual(before);
  });

  test('runs every hour, and logs what it removed', async () => {
    const disk = await folderWith(5);
    const logger = new ListLogger();
    const server = new Server(disk, { purgeIntervalMs: 3_600_000 }, logger);
    await server.open();
    server.clock.advance(59_999);
    await quiesce();
    expect(logger.lines).toEqual([]);
    server.clock.advance(1);
    await quiesce();
    expect(logger.lines).toEqual([expect.stringMatching(/^info purged 4 files: .*snapshot.0, .*snapshot.3, .*log.1, .*synced.1$/)]);
    await server.snapshot();
    server.clock.advance(3_600_000);
    await quiesce();
    expect(logger.lines.at(-1)).toMatch(/^info purged 3 files: .*snapshot.6, .*log.4, .*synced.4$/);
    await server.storage.close();
    expect(server.clock.timerCount).toBe(0);
  });

  test('logs a warning when it fails, and is tried again', async () => {
    const disk = await folderWith(5);
    const logger = new ListLogger();
    const server = new Server(disk, { purgeIntervalMs: 1000 }, logger);
    await server.open();
    disk.fault = ({ operation }) => (operation === 'remove' ? { code: 'EROFS' } : undefined);
    server.clock.advance(1000);
    await quiesce();
    expect(logger.lines).toEqual([expect.stringMatching(/^warn the purge failed \(remove .*: EROFS\); the server tries again later$/)]);
    disk.fault = undefined;
    server.clock.advance(1000);
    await quiesce();
    expect(logger.lines.at(-1)).toMatch(/^info purged 4 files/);
  });
});

describe('the trigger of snapshots', () => {
  const gaps = (trigger: SnapshotTrigger, bytes: number, txns: number): number[] => {
    const found: number[] = [];
    let last = 0;
    for (let i = 1; i <= txns; i++) {
      if (!trigger.txnAppended(bytes)) continue;
      found.push(i - last);
      last = i;
    }
    return found;
  };

  test('fires after more than half of snapCount, and at the latest at snapCount', () => {
    const found = gaps(new SnapshotTrigger(100, 0, new SeededRandom(1)), 10, 10_000);
    expect(found.length).toBeGreaterThan(100);
    expect(Math.min(...found)).toBeGreaterThanOrEqual(51);
    expect(Math.max(...found)).toBeLessThanOrEqual(100);
    expect(new Set(found).size).toBeGreaterThan(20);
  });

  test('fires by size as well', () => {
    const found = gaps(new SnapshotTrigger(1_000_000, 10_000, new SeededRandom(1)), 100, 10_000);
    expect(Math.min(...found)).toBeGreaterThanOrEqual(51);
    expect(Math.max(...found)).toBeLessThanOrEqual(100);
  });

  test('treats a snapCount below 2 as 2', () => {
    expect(gaps(new SnapshotTrigger(0, 0, new SeededRandom(1)), 1, 10)).toEqual([2, 2, 2, 2, 2]);
  });

  test('rolls the log and requests a snapshot, unless one is being written', async () => {
    const disk = new VirtualDisk();
    const server = new Server(disk, { snapCount: 4 });
    await server.open();
    const logs = () => disk.files().filter((path) => path.includes('/log.')).length;
    while (server.snapshotsAsked === 0) await server.write(dataOf(1, 1));
    await server.write(dataOf(1, 1));
    expect(logs()).toBe(2);
    const snapshot = server.snapshot();
    expect(server.storage.isTakingSnapshot).toBe(true);
    expect(await server.snapshot()).toBe(false);
    for (let i = 0; i < 5; i++) server.append(dataOf(i, 1));
    server.storage.flush();
    expect(server.snapshotsAsked).toBe(1);
    expect(await snapshot).toBe(true);
    while (server.snapshotsAsked === 1) await server.write(dataOf(1, 1));
    expect(server.snapshotsAsked).toBe(2);
  });
});

describe('a snapshot of txns that were applied before they were durable here, as at a learner', () => {
  const begun = async () => {
    const disk = new VirtualDisk();
    const server = new Server(disk);
    await server.open();
    await server.write(dataOf(1, 10));
    const held: (() => void)[] = [];
    disk.schedule = ({ operation, path }, complete) => {
      if (operation === 'sync' && path.includes('/log.')) held.push(complete);
      else void Promise.resolve().then(complete);
    };
    server.append(dataOf(2, 10));
    server.storage.flush();
    const snapshot = server.snapshot();
    for (let turn = 0; turn < 20; turn++) await quiesce();
    return { snapshot, held, count: () => disk.files().filter((path) => path.includes('/snapshot.')).length };
  };

  test('gets its name when the log has caught up', async () => {
    const { snapshot, held, count } = await begun();
    expect(count()).toBe(1);
    for (const complete of held) complete();
    expect([await snapshot, count()]).toEqual([true, 2]);
  });
});

describe('epochs', () => {
  const disk = () => {
    const made = new VirtualDisk();
    made.putFile('/d/myid', Buffer.from('1'));
    return made;
  };

  test('are written completely or not at all', async () => {
    const target = disk();
    expect(await readEpoch(target, '/d', 'currentEpoch', true)).toBeUndefined();
    await writeEpoch(target, '/d', 'currentEpoch', 7);
    expect(target.contents('/d/currentEpoch').toString()).toBe('7');
    const found = new Set<number | undefined>();
    const checks: Promise<unknown>[] = [];
    target.onChanged = () => {
      for (const choice of [loseAll, () => 1e9, (_item: unknown, index: number) => (index % 2 === 0 ? 0 : 1e9), () => 1]) {
        const survivor = new VirtualDisk(target.capture(), choice);
        checks.push(readEpoch(survivor, '/d', 'currentEpoch', true).then((epoch) => found.add(epoch)));
      }
    };
    await writeEpoch(target, '/d', 'currentEpoch', 123456);
    target.onChanged = undefined;
    await Promise.all(checks);
    expect(found).toEqual(new Set([7, 123456]));
    target.crash(loseAll);
    expect(await readEpoch(target, '/d', 'currentEpoch', true)).toBe(123456);
  });

  test.each(['7', '7\n', ' 7 ', '7\nsecond line'])('are read from %j', async (text) => {
    const target = disk();
    target.putFile('/d/acceptedEpoch', Buffer.from(text));
    expect(await readEpoch(target, '/d', 'acceptedEpoch', true)).toBe(7);
  });

  test.each([
    ['', /\/d\/acceptedEpoch must hold one decimal number, but holds nothing;/],
    ['\0\0', /holds "\\u0000\\u0000";/],
    ['-1', /holds "-1";/],
    ['0x7', /holds "0x7";/],
    ['7 8', /holds "7 8";/],
    ['9007199254740993', /holds epoch 9007199254740993; the highest epoch this server supports is 2097151/],
  ])('are refused, not guessed, from %j', async (text, message) => {
    const target = disk();
    target.putFile('/d/acceptedEpoch', Buffer.from(text));
    await expect(readEpoch(target, '/d', 'acceptedEpoch', true)).rejects.toThrow(message);
  });
});

test('F34: purge and measurement of sizes share one call to the disk at a time, so that a hanging disk blocks only one thread', async () => {
  const disk = new VirtualDisk();
  const server = new Server(disk);
  await server.open();
  await server.snapshot();
  const held: (() => void)[] = [];
  let most = 0;
  disk.schedule = (_call, complete) => {
    most = Math.max(most, held.push(complete));
  };
  const done = Promise.all([server.storage.purge(), server.storage.sizes(), server.storage.purge(), server.storage.sizes()]);
  const whenDone = done.then(() => true);
  do {
    await quiesce();
    held.shift()?.();
  } while ((await Promise.race([whenDone, quiesce()])) !== true);
  expect(most).toBe(1);
});
