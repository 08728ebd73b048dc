import { makeZxid, writeLogEntry, Writer } from '@tskeeper/protocol';
import { type DiskCall, loseAll, VirtualDisk, readLog, type StorageOptions, StorageRefused, type Unsynced } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { createMark, decodeMark } from '../../src/storage/synced-mark.ts';
import { dataOf, ListLogger, quiesce, Server, txnBytes } from './support.ts';

const folder = '/data/version-2';

/** A folder with `logs` logs of `each` txns, closed in good order. */
async function folderWith(logs: number, each = 3, options: Partial<StorageOptions> = {}): Promise<VirtualDisk> {
  const disk = new VirtualDisk();
  for (let log = 0; log < logs; log++) {
    const server = new Server(disk, options);
    await server.open();
    for (let i = 0; i < each; i++) await server.write(dataOf(log * each + i, 60));
    await server.storage.close();
  }
  return disk;
}

async function start(
  disk: VirtualDisk,
  options: Partial<StorageOptions> = {},
): Promise<{ server: Server; logger: ListLogger; lastZxid: number }> {
  const logger = new ListLogger();
  const server = new Server(disk, options, logger);
  const { lastZxid } = await server.open();
  return { server, logger, lastZxid };
}

/** The sentence for the operator, after a check that nothing was changed. */
async function refusal(disk: VirtualDisk, options: Partial<StorageOptions> = {}): Promise<string> {
  const before = disk.files().map((path) => [path, disk.contents(path)]);
  const error = await start(disk, options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StorageRefused);
  expect(disk.files().map((path) => [path, disk.contents(path)])).toEqual(before);
  // And the folder is free for the next attempt.
  await (await disk.lock(folder)).release();
  return (error as Error).message;
}

const warnings = (logger: ListLogger) => logger.lines.filter((line) => line.startsWith('warn'));

describe('an empty folder', () => {
  test('is a new database, and gets its first snapshot', async () => {
    const disk = new VirtualDisk();
    expect((await start(disk)).lastZxid).toBe(0);
    expect(disk.files()).toEqual([`${folder}/snapshot.0`]);
  });

  test('is not trusted without db.autocreate', async () => {
    const disk = new VirtualDisk();
    expect((await start(disk, { dbAutocreate: false })).lastZxid).toBe(-1);
  });

  test('is trusted once by the file `initialize`, which is removed with the first snapshot', async () => {
    const disk = new VirtualDisk();
    disk.putFile('/data/initialize', Buffer.alloc(0));
    expect((await start(disk, { dbAutocreate: false })).lastZxid).toBe(0);
    disk.crash(loseAll);
    expect(disk.files()).toEqual([`${folder}/snapshot.0`]);
  });

  test('accepts no txn before its first snapshot is durable', async () => {
    const disk = new VirtualDisk();
    disk.fault = ({ operation, path }) => (operation === 'sync' && path.includes('snapshot') ? { code: 'ENOSPC' } : undefined);
    const { server, logger } = await start(disk);
    expect(() => server.append(dataOf(1, 1))).toThrow('before the first snapshot');
    expect(server.storage.snapshotErrors).toBe(1);
    expect(logger.lines).toContainEqual(expect.stringMatching(/^error cannot write a snapshot into \/data\/version-2 \(sync .*ENOSPC\)/));
    expect(disk.files()).toEqual([]);
  });

  test('is refused when it does not exist and must not be created', async () => {
    const disk = new VirtualDisk();
    const error = await start(disk, { dataDirAutocreate: false }).catch((reason: unknown) => reason);
    expect((error as Error).message).toBe(
      '/data/version-2 does not exist and datadir.autocreate is false; create it, or correct dataDir and dataLogDir in the configuration',
    );
  });
});

describe('logs without snapshots', () => {
  test('are refused', async () => {
    const disk = await folderWith(1);
    disk.eraseFile(`${folder}/snapshot.0`);
    expect(await refusal(disk)).toBe(
      'no snapshot found in /data/version-2, but there are log entries in /data/version-2; bring the snapshots back, or, if there never were any, start once with snapshot.trust.empty=true',
    );
  });

  test('are replayed with snapshot.trust.empty', async () => {
    const disk = await folderWith(1);
    disk.eraseFile(`${folder}/snapshot.0`);
    expect((await start(disk, { snapshotTrustEmpty: true })).lastZxid).toBe(3);
  });
});

describe('two folders', () => {
  const options = { dataLogDir: '/logs' };

  test('keep logs and snapshots apart', async () => {
    const disk = await folderWith(1, 2, options);
    expect(disk.files()).toEqual(['/data/version-2/snapshot.0', '/logs/version-2/log.1', '/logs/version-2/synced.1']);
    const { server, lastZxid } = await start(disk, options);
    expect(lastZxid).toBe(2);
    const sizes = await server.storage.sizes();
    expect(sizes.dataDirBytes).toBe(disk.contents('/data/version-2/snapshot.0').length);
    expect(sizes.logDirBytes).toBe(disk.contents('/logs/version-2/log.1').length + 1024);
  });

  test('with a file in the wrong folder are refused', async () => {
    const disk = await folderWith(1, 2);
    const error = await start(disk, options).catch((reason: unknown) => reason);
    expect((error as Error).message).toMatch(/^\/data\/version-2 holds log.1, but logs belong in dataLogDir \(\/logs\)/);
    const other = await folderWith(1, 2, options);
    other.putFile('/logs/version-2/snapshot.5', Buffer.from('x'));
    const second = await start(other, options).catch((reason: unknown) => reason);
    expect((second as Error).message).toMatch(/^\/logs\/version-2 holds snapshot.5, but snapshots belong in dataDir \(\/data\)/);
  });
});

describe('a hole', () => {
  test('of a missing log in the middle is refused, with the zxids at its edges', async () => {
    const disk = await folderWith(3);
    disk.eraseFile(`${folder}/log.4`);
    expect(await refusal(disk)).toBe(
      'txns are missing: /data/version-2/log.7 continues with 0x7 at offset 16, but expected 0x4 after 0x3 from /data/version-2/log.1; bring the missing log back into /data/version-2, or start from a backup that has it',
    );
  });

  test('between snapshot and first log is refused', async () => {
    const disk = await folderWith(2);
    disk.eraseFile(`${folder}/log.1`);
    expect(await refusal(disk)).toMatch(
      /^txns are missing: .*log.4 continues with 0x4 at offset 16, but expected 0x1 after 0x0 from .*snapshot.0;/,
    );
  });

  test('before the end of a snapshot does not matter', async () => {
    const disk = await folderWith(2);
    const { server } = await start(disk);
    await server.snapshot();
    await server.write(dataOf(1, 1));
    await server.storage.close();
    disk.eraseFile(`${folder}/log.1`);
    disk.eraseFile(`${folder}/log.4`);
    expect((await start(disk)).lastZxid).toBe(7);
  });

  test('of an empty file in the middle is refused', async () => {
    const disk = await folderWith(2);
    disk.putFile(`${folder}/log.4`, Buffer.alloc(0));
    disk.eraseFile(`${folder}/synced.4`);
    const more = await folderWith(3);
    disk.putFile(`${folder}/log.7`, more.contents(`${folder}/log.7`));
    expect(await refusal(disk)).toMatch(/log.4 is damaged at offset 0, before its first txn \(an empty file\)/);
  });

  test('within a log is refused', async () => {
    const disk = await folderWith(1, 3);
    const log = disk.contents(`${folder}/log.1`);
    const ends: number[] = [];
    await readLog(await disk.open(`${folder}/log.1`, 'existing'), 1000, (_z, _b, _s, _e, _o, end) => ends.push(end));
    // The second entry is missing: a lost write that only its neighbours show.
    disk.putFile(`${folder}/log.1`, Buffer.concat([log.subarray(0, ends[0]), log.subarray(ends[1]), Buffer.alloc(100)]));
    disk.eraseFile(`${folder}/synced.1`);
    expect(await refusal(disk)).toMatch(/log.1 continues with 0x3 at offset \d+, but expected 0x2 after 0x1/);
  });
});

describe('the order of zxids', () => {
  const write = async (zxids: readonly number[]): Promise<VirtualDisk> => {
    const disk = await folderWith(1, 1);
    const { server } = await start(disk);
    for (const zxid of zxids) {
      const bytes = txnBytes(zxid, dataOf(zxid % 1000, 10));
      server.storage.append(zxid, bytes, 0, bytes.length);
    }
    server.storage.flush();
    await quiesce();
    await server.storage.close();
    return disk;
  };

  test('allows an epoch that begins at 1 after another', async () => {
    const { lastZxid, logger } = await start(await write([2, makeZxid(1, 1), makeZxid(1, 2), makeZxid(5, 1)]));
    expect([lastZxid, warnings(logger)]).toEqual([makeZxid(5, 1), []]);
  });

  test('has a hole when an epoch does not begin at 1', async () => {
    expect(await refusal(await write([2, makeZxid(1, 2)]))).toMatch(/continues with 0x100000002 at offset \d+, but expected 0x3/);
  });

  test('allows a repeated zxid, which is applied with a warning', async () => {
    const disk = await write([2, 3]);
    const log = disk.contents(`${folder}/log.2`);
    const bytes = txnBytes(2, dataOf(2, 10));
    const second = log.subarray(16, 16 + bytes.length + 13);
    disk.putFile(`${folder}/log.2`, Buffer.concat([log.subarray(0, 16), second, second, log.subarray(16 + second.length)]));
    disk.eraseFile(`${folder}/synced.2`);
    const { lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(3);
    expect(warnings(logger)).toEqual([expect.stringMatching(/^warn .*log.2 has 0x2 at offset \d+ after 0x2; applied as it is/)]);
  });
});

describe('the tail of a log', () => {
  const torn = async (): Promise<{ disk: VirtualDisk; goodEnd: number }> => {
    const disk = new VirtualDisk();
    const { server } = await start(disk);
    await server.write(dataOf(1, 100));
    const goodEnd = decodeMark(disk.contents(`${folder}/synced.1`))!.offset;
    server.append(dataOf(2, 3000));
    server.storage.flush();
    // Of a batch over several sectors the first half of its first sector was lost, and the end
    // reached the disk.
    disk.crash((item: Unsynced) => (item.kind === 'bytes' && item.position > goodEnd ? item.length : item.kind === 'bytes' ? 40 : 1));
    return { disk, goodEnd };
  };

  test('is cut off after the last whole entry when it is torn, and the server starts', async () => {
    const { disk, goodEnd } = await torn();
    const { lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(1);
    expect(warnings(logger)).toEqual([
      `warn /data/version-2/log.1 has a torn tail at offset ${goodEnd}, after 0x1 (a checksum that does not match its txn); nothing there was acknowledged, and it is cut off`,
    ]);
    disk.crash(loseAll);
    expect(disk.contents(`${folder}/log.1`).length).toBe(goodEnd);
  });

  test("is refused by ZooKeeper's rules when it is torn and the log has no mark", async () => {
    const { disk, goodEnd } = await torn();
    disk.eraseFile(`${folder}/synced.1`);
    expect(await refusal(disk)).toBe(
      `/data/version-2/log.1 is damaged at offset ${goodEnd}, after 0x1 (a checksum that does not match its txn); restore the file from a backup, or, if nothing from there on was acknowledged or it may be lost, delete all later logs with their synced files, and cut it with: truncate -s ${goodEnd} /data/version-2/log.1`,
    );
  });

  test('is refused when it is rotten, with the txns that were durable', async () => {
    const disk = await folderWith(1, 3);
    const { offset } = decodeMark(disk.contents(`${folder}/synced.1`))!;
    const bit = (offset - 30) * 8;
    disk.flipBit(`${folder}/log.1`, bit);
    expect(await refusal(disk)).toMatch(
      new RegExp(
        `^/data/version-2/log.1 is damaged at offset \\d+, after 0x2 \\(a checksum that does not match its txn\\), though its txns up to 0x3 at offset ${offset} were durable and may have been acknowledged; restore the file from a backup, or, if those txns may be lost, delete synced.1 and all later logs with their synced files, and cut the file with: truncate -s \\d+ /data/version-2/log.1$`,
      ),
    );
  });

  test.each([
    ['its first entry', 16],
    ['its second sector', 512],
  ])('is refused when it is zeroed from %s on, which only the mark makes possible', async (_what, from) => {
    const disk = await folderWith(1, 12);
    disk.zero(`${folder}/log.1`, from, disk.contents(`${folder}/log.1`).length);
    expect(await refusal(disk)).toMatch(/log.1 is damaged at offset \d+/);
    disk.eraseFile(`${folder}/synced.1`);
    expect((await start(disk)).lastZxid).toBeLessThan(12);
  });

  test('counts as not written and is not changed when it ends within an entry and the log has no mark', async () => {
    const disk = await folderWith(1, 3);
    const { offset } = decodeMark(disk.contents(`${folder}/synced.1`))!;
    disk.eraseFile(`${folder}/synced.1`);
    const cut = disk.contents(`${folder}/log.1`).subarray(0, offset - 5);
    disk.putFile(`${folder}/log.1`, cut);
    const { server, lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(2);
    expect(warnings(logger)).toEqual([expect.stringMatching(/log.1 ends within an entry at offset \d+, after 0x2; as in ZooKeeper/)]);
    await server.write(dataOf(9, 9));
    await server.storage.close();
    expect(disk.contents(`${folder}/log.1`)).toEqual(cut);
    expect((await start(disk)).lastZxid).toBe(3);
  });

  test.each([
    ['is empty', Buffer.alloc(0)],
    ['has half a header', Buffer.from('5a4b4c4700000002', 'hex')],
    ['is nothing but padding', Buffer.alloc(70_000)],
  ])('E18: is removed when it is a file that %s, and the server starts where ZooKeeper would not', async (_what, bytes) => {
    const disk = await folderWith(1, 3);
    disk.putFile(`${folder}/log.4`, bytes);
    const { server, lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(3);
    expect(warnings(logger)).toEqual([expect.stringMatching(/log.4 holds no txn/)]);
    await server.write(dataOf(1, 1));
    disk.crash(loseAll);
    expect((await start(disk)).lastZxid).toBe(4);
  });

  test.each([
    ['checksum', 20],
    ['length', 24],
    ['txn', 60],
  ])('is refused when the first entry of its file has a bad bit in its %s, and does not count as another log', async (_what, at) => {
    const disk = await folderWith(1, 3);
    disk.flipBit(`${folder}/log.1`, at * 8 + 1);
    expect(await refusal(disk)).toMatch(/log\.1 is damaged at offset 16, before its first txn .* were durable/);
  });

  test('is refused when it is a file with zeros for a header and txns after them', async () => {
    const disk = await folderWith(1, 3);
    disk.zero(`${folder}/log.1`, 0, 16);
    disk.eraseFile(`${folder}/synced.1`);
    expect(await refusal(disk)).toMatch(
      /log.1 is damaged at offset 0, before its first txn \(zeros where the header should be\).*delete all later logs with their synced files, and the file itself$/,
    );
  });
});

describe('a mark that does not match its log', () => {
  const half = async (): Promise<{ disk: VirtualDisk; ends: number[] }> => {
    const disk = await folderWith(1, 4);
    const ends: number[] = [];
    await readLog(await disk.open(`${folder}/log.1`, 'existing'), 1000, (_z, _b, _s, _e, _o, end) => ends.push(end));
    return { disk, ends };
  };

  test('is ignored and removed when another server truncated the log', async () => {
    const { disk, ends } = await half();
    disk.putFile(`${folder}/log.1`, disk.contents(`${folder}/log.1`).subarray(0, ends[1]));
    const { lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(2);
    expect(warnings(logger)).toEqual([
      expect.stringMatching(/log.1 ends after 0x2, though it once reached 0x4: it has been truncated by another server/),
    ]);
    expect(disk.files()).not.toContain(`${folder}/synced.1`);
  });

  test('is ignored when the log is another one with the same name', async () => {
    const { disk } = await half();
    const other = new VirtualDisk();
    const { server } = await start(other);
    await server.write(dataOf(77, 5));
    await server.storage.close();
    disk.putFile(`${folder}/log.1`, other.contents(`${folder}/log.1`));
    const { lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(1);
    expect(warnings(logger)).toEqual([expect.stringMatching(/log.1 is not the log that its mark was written for/)]);
  });

  test('is ignored when the log has another entry at its place', async () => {
    const { disk, ends } = await half();
    const mark = disk.contents(`${folder}/synced.1`);
    // The same first entry, then entries of other lengths.
    const log = disk.contents(`${folder}/log.1`);
    const writer = Buffer.concat([log.subarray(0, ends[0]), ...[2, 3, 4, 5].map((zxid) => entry(zxid, 300))]);
    disk.putFile(`${folder}/log.1`, writer);
    disk.putFile(`${folder}/synced.1`, mark);
    const { lastZxid, logger } = await start(disk);
    expect(lastZxid).toBe(5);
    expect(warnings(logger)).toEqual([expect.stringMatching(/log.1 does not match its mark/)]);
  });

  test.each([
    ['unreadable', (disk: VirtualDisk) => disk.putFile(`${folder}/synced.1`, Buffer.alloc(1024, 1))],
    ['cut short', (disk: VirtualDisk) => disk.putFile(`${folder}/synced.1`, Buffer.from('TK'))],
    ['missing', (disk: VirtualDisk) => disk.eraseFile(`${folder}/synced.1`)],
  ])('changes nothing for a complete log when it is %s', async (_what, damage) => {
    const { disk } = await half();
    damage(disk);
    const { lastZxid, logger } = await start(disk);
    expect([lastZxid, warnings(logger)]).toEqual([4, []]);
  });

  test('is removed when a crash left it without its log', async () => {
    const disk = await folderWith(2, 3);
    const never = decodeMark(disk.contents(`${folder}/synced.4`))!;
    await createMark(disk, `${folder}/synced.7`, { ...never, sequence: 1, logZxid: 7, precedingZxid: 6, lastZxid: 8 });
    const { lastZxid, logger } = await start(disk);
    expect([lastZxid, warnings(logger)]).toEqual([6, []]);
    expect(disk.files()).not.toContain(`${folder}/synced.7`);
  });

  test('is moved to the end of the log when it lags, once that end is durable', async () => {
    const disk = new VirtualDisk();
    const { server } = await start(disk);
    await server.write(dataOf(1, 10));
    await server.write(dataOf(2, 10));
    disk.kill();
    expect(decodeMark(disk.contents(`${folder}/synced.1`))!.lastZxid).toBe(1);
    await start(disk);
    expect(decodeMark(disk.contents(`${folder}/synced.1`))).toMatchObject({ lastZxid: 2, sequence: 2 });
  });
});

describe('data that a failed sync has left only in the page cache', () => {
  /**
   * The first process gets an error, and ends; the next one finds what was written, builds on it,
   * and then the power fails.
   */
  test.each<[string, boolean, (call: DiskCall) => boolean]>([
    ['is written anew before anything is built on it', true, ({ operation, path }) => operation === 'sync' && path === `${folder}/log.1`],
    ['gets its name anew when the sync of its name failed', false, ({ operation }) => operation === 'syncFolder'],
  ])('%s', async (_what, isMarked, failing) => {
    const disk = new VirtualDisk();
    const { server } = await start(disk);
    if (isMarked) {
      await server.write(dataOf(1, 10));
      server.clock.advance(200);
      await quiesce();
    }
    disk.fault = (call) => (failing(call) ? { code: 'EIO' } : undefined);
    await server.write(dataOf(2, 700));
    expect(server.failure).toMatchObject({ code: 'EIO' });
    disk.fault = undefined;
    disk.kill();
    const next = (await start(disk)).server;
    const found = next.acked;
    expect(found).toBe(isMarked ? 2 : 1);
    await next.write(dataOf(3, 10));
    expect(next.acked).toBe(found + 1);
    disk.crash(loseAll);
    const last = (await start(disk)).server;
    expect(last.acked).toBe(found + 1);
    expect(last.state.history).toEqual(next.state.history);
  });
});

function entry(zxid: number, length: number): Buffer {
  const writer = new Writer();
  writeLogEntry(writer, txnBytes(zxid, dataOf(zxid, length)));
  return Buffer.from(writer.written());
}

describe('snapshots', () => {
  const twoSnapshots = async (): Promise<VirtualDisk> => {
    const disk = await folderWith(1, 3);
    const { server } = await start(disk);
    await server.snapshot();
    await server.write(dataOf(9, 9));
    await server.storage.close();
    return disk;
  };

  test.each([
    [
      'cut short',
      (disk: VirtualDisk) => disk.putFile(`${folder}/snapshot.3`, disk.contents(`${folder}/snapshot.3`).subarray(0, 30)),
      /not a complete snapshot/,
    ],
    ['empty', (disk: VirtualDisk) => disk.putFile(`${folder}/snapshot.3`, Buffer.alloc(0)), /not a complete snapshot/],
    ['rotten', (disk: VirtualDisk) => disk.flipBit(`${folder}/snapshot.3`, 200), /cannot be loaded \(expected/],
  ])('when the newest one is %s, the previous one and the logs give the same state', async (_what, damage, warning) => {
    const disk = await twoSnapshots();
    damage(disk);
    const { lastZxid, logger, server } = await start(disk);
    expect([lastZxid, server.state.history.size]).toEqual([4, 4]);
    expect(warnings(logger)).toEqual([expect.stringMatching(warning)]);
  });

  test('when the disk cannot read the newest one, the previous one is loaded', async () => {
    const disk = await twoSnapshots();
    disk.fault = ({ operation, path }) => (operation === 'read' && path.endsWith('snapshot.3') ? { code: 'EIO' } : undefined);
    expect((await start(disk)).lastZxid).toBe(4);
  });

  test('a folder without a readable one is refused, although there are logs', async () => {
    const disk = await twoSnapshots();
    for (const name of ['snapshot.0', 'snapshot.3']) disk.flipBit(`${folder}/${name}`, 140);
    expect(await refusal(disk)).toMatch(/^none of the 2 snapshots in \/data\/version-2 can be loaded/);
  });

  test('a bug in loading is not reported as a damaged file', async () => {
    const disk = await twoSnapshots();
    const server = new Server(disk);
    server.state.beginSnapshot = () => {
      throw new TypeError('our mistake');
    };
    await expect(server.open()).rejects.toThrow('our mistake');
  });
});

test('unfinished files that a crash left are removed at the start', async () => {
  const disk = await folderWith(1);
  for (const name of ['new.log.4', 'new.snapshot.3']) disk.putFile(`${folder}/${name}`, Buffer.from('x'));
  await start(disk);
  expect(disk.files().filter((path) => path.includes('/new.'))).toEqual([]);
});

test('a second server is refused because the folder is locked', async () => {
  const disk = new VirtualDisk();
  await start(disk);
  await expect(start(disk)).rejects.toThrow('/data/version-2 is in use by another process');
});

test('a txn of an unknown type is refused, with its offset', async () => {
  const disk = await folderWith(1, 1);
  const { server } = await start(disk);
  const bytes = txnBytes(2, dataOf(1, 1));
  bytes.writeInt32BE(99, 28);
  server.storage.append(2, bytes, 0, bytes.length);
  await server.storage.close();
  expect(await refusal(disk)).toMatch(/log.2 has a txn at offset 16 that this server cannot read \(.*not 99/);
});
