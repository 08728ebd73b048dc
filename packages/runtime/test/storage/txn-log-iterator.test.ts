import { makeZxid, type Zxid } from '@tskeeper/protocol';
import { type TxnLogChunk, type TxnLogIterator, VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { dataOfTxn, folder, EnsembleStorageRig, namesIn, withEnsembleStorage, zxids } from './ensemble-storage-rig.ts';
import { txnBytes } from './support.ts';

/**
 * Logs 1, 5 and 9 of epoch 1 with four txns each, and then two of epoch 2; a snapshot at 0 only.
 */
async function openMember(disk: VirtualDisk): Promise<EnsembleStorageRig> {
  for (let log = 0; log < 3; log++) await withEnsembleStorage(disk, (rig) => rig.write(zxids(1, 1 + log * 4, 4 + log * 4)));
  const rig = new EnsembleStorageRig(disk);
  await rig.open();
  await rig.write(zxids(2, 1, 2));
  return rig;
}

const all = [...zxids(1, 1, 12), ...zxids(2, 1, 2)];

async function readAll(reading: TxnLogIterator, bytes?: number): Promise<{ pieces: Zxid[][]; last: TxnLogChunk }> {
  const pieces: Zxid[][] = [];
  for (;;) {
    const piece = await reading.next(bytes);
    if (piece.kind !== 'txns') return { pieces, last: piece };
    for (const { zxid, bytes: txn } of piece.txns) expect(txn).toEqual(txnBytes(zxid, dataOfTxn(zxid)));
    pieces.push(piece.txns.map(({ zxid }) => zxid));
  }
}

describe('reading the log back', () => {
  test.each([1, 2, 4, 5, 8, 11, 12])('from txn %i on returns that txn and all after it, across logs', async (counter) => {
    const rig = await openMember(new VirtualDisk());
    const reading = (await rig.storage.iterateLog(makeZxid(1, counter)))!;
    const { pieces, last } = await readAll(reading);
    expect(pieces.flat()).toEqual(all.slice(counter - 1));
    expect(last).toEqual({ kind: 'end' });
  });

  test('from a zxid that never existed begins with the txn before it', async () => {
    const rig = await openMember(new VirtualDisk());
    const reading = (await rig.storage.iterateLog(makeZxid(1, 900)))!;
    expect((await readAll(reading)).pieces.flat()).toEqual(all.slice(11));
    const beyond = (await rig.storage.iterateLog(makeZxid(7, 0)))!;
    expect((await readAll(beyond)).pieces.flat()).toEqual(all.slice(13));
  });

  test('from before the first log is not possible', async () => {
    const rig = await openMember(new VirtualDisk());
    expect(await rig.storage.iterateLog(0)).toBeUndefined();
    expect(await withEnsembleStorage(new VirtualDisk(), (empty) => empty.storage.iterateLog(5))).toBeUndefined();
  });

  test('returns pieces of the requested size', async () => {
    const rig = await openMember(new VirtualDisk());
    const reading = (await rig.storage.iterateLog(makeZxid(1, 1)))!;
    const { pieces } = await readAll(reading, 1);
    expect(pieces).toEqual(all.map((zxid) => [zxid]));
  });

  test('ends with the last txn that was durable when it began, although the log grows', async () => {
    const disk = new VirtualDisk();
    const rig = await openMember(disk);
    const reading = (await rig.storage.iterateLog(makeZxid(1, 11)))!;
    const seen: Zxid[] = [];
    for (let counter = 3; ; counter++) {
      const piece = await reading.next(1);
      if (piece.kind !== 'txns') break;
      seen.push(...piece.txns.map(({ zxid }) => zxid));
      await rig.write([makeZxid(2, counter)]);
    }
    expect(seen).toEqual(all.slice(10));
  });

  test('is not disturbed by a write in progress', async () => {
    const disk = new VirtualDisk();
    const rig = await openMember(disk);
    const bytes = txnBytes(makeZxid(2, 3), dataOfTxn(makeZxid(2, 3)));
    disk.schedule = (call, complete) => {
      if (call.operation !== 'sync') void Promise.resolve().then(complete);
    };
    rig.storage.append(makeZxid(2, 3), bytes, 0, bytes.length);
    rig.storage.flush();
    const reading = (await rig.storage.iterateLog(makeZxid(1, 12)))!;
    expect(await readAll(reading)).toEqual({ pieces: [[all[11]], all.slice(12)], last: { kind: 'end' } });
  });

  test('reports the bytes to read, without preallocated ones, and the size of the newest snapshot', async () => {
    const disk = new VirtualDisk();
    const rig = await openMember(disk);
    await rig.snapshot();
    rig.clock.advance(300);
    await rig.storage.sizes();
    const entryBytes = (zxid: Zxid) => txnBytes(zxid, dataOfTxn(zxid)).length + 13;
    const from = 6;
    const expected = all.slice(from).reduce((sum, zxid) => sum + entryBytes(zxid), 0);
    const reading = (await rig.storage.iterateLog(all[from]!))!;
    // Each later log has a header.
    expect(reading.logBytes).toBe(expected + 2 * 16);
    expect(reading.snapshotBytes).toBe(disk.contents(`${folder}/snapshot.${all.at(-1)!.toString(16)}`).length);
    await reading.close();
  });
});

describe('a hole', () => {
  test('within an epoch ends the reading after the txns before it (ZOOKEEPER-2418)', async () => {
    const disk = new VirtualDisk();
    const rig = await openMember(disk);
    disk.eraseFile(`${folder}/log.${makeZxid(1, 5).toString(16)}`);
    const reading = (await rig.storage.iterateLog(makeZxid(1, 2)))!;
    const { pieces, last } = await readAll(reading);
    expect(pieces.flat()).toEqual(zxids(1, 2, 4));
    expect(last).toEqual({ kind: 'gone', reason: expect.stringMatching(/log.100000009 continues with 0x100000009 after 0x100000004$/) });
    expect(await reading.next()).toEqual(last);
  });

  test('at the end of an epoch ends the reading when a snapshot of that epoch shows it', async () => {
    const disk = new VirtualDisk();
    const rig = await openMember(disk);
    disk.eraseFile(`${folder}/log.${makeZxid(1, 9).toString(16)}`);
    disk.putFile(`${folder}/snapshot.${makeZxid(1, 12).toString(16)}`, Buffer.alloc(20));
    const reading = (await rig.storage.iterateLog(makeZxid(1, 6)))!;
    const { pieces, last } = await readAll(reading);
    expect(pieces.flat()).toEqual(zxids(1, 6, 8));
    expect(last.kind).toBe('gone');
  });
});

test('damage in a log ends the reading after the txns before it', async () => {
  const disk = new VirtualDisk();
  const rig = await openMember(disk);
  disk.flipBit(`${folder}/log.${makeZxid(1, 5).toString(16)}`, 8 * 60);
  const reading = (await rig.storage.iterateLog(makeZxid(1, 1)))!;
  const { pieces, last } = await readAll(reading);
  expect(pieces.flat()).toEqual(zxids(1, 1, 4));
  expect(last).toEqual({ kind: 'gone', reason: expect.stringMatching(/cannot be read after offset 16 \(checksum\)$/) });
});

test('a log that another process removes ends the reading', async () => {
  const disk = new VirtualDisk();
  const rig = await openMember(disk);
  const reading = (await rig.storage.iterateLog(makeZxid(1, 1)))!;
  disk.eraseFile(`${folder}/log.${makeZxid(1, 1).toString(16)}`);
  expect(await reading.next()).toEqual({ kind: 'gone', reason: expect.stringMatching(/^open .*: ENOENT$/) });
});

test.each(['truncate', 'installSnapshot'] as const)('%s ends all readings, and no new one begins meanwhile', async (way) => {
  const disk = new VirtualDisk();
  const rig = await openMember(disk);
  const reading = (await rig.storage.iterateLog(makeZxid(1, 1)))!;
  expect(await reading.next(1)).toMatchObject({ kind: 'txns' });
  const done = way === 'truncate' ? rig.truncate(makeZxid(1, 7)) : rig.replace(zxids(1, 1, 7));
  const during = rig.storage.iterateLog(makeZxid(1, 1));
  await done;
  expect(await reading.next()).toMatchObject({ kind: 'gone' });
  const late = await during;
  // Begun after the truncation if at all.
  if (late !== undefined) expect((await readAll(late)).pieces.flat()).toEqual(zxids(1, 1, 7));
});

test('a purge keeps the logs that are still to be read, and deletes them afterwards', async () => {
  const disk = new VirtualDisk();
  const rig = await openMember(disk);
  const logs = () => namesIn(disk).filter((name) => name.startsWith('log.'));
  for (let counter = 3; counter <= 5; counter++) {
    await rig.write([makeZxid(2, counter)]);
    await rig.snapshot();
  }
  const reading = (await rig.storage.iterateLog(makeZxid(1, 6)))!;
  await reading.next(1);
  await rig.storage.purge();
  expect(logs()).toEqual(['log.100000005', 'log.100000009', 'log.200000001']);
  const { pieces, last } = await readAll(reading);
  expect(pieces.flat()).toEqual([...zxids(1, 7, 12), ...zxids(2, 1, 5)]);
  expect(last.kind).toBe('end');
  await rig.storage.purge();
  expect(logs()).toEqual(['log.200000001']);
});

test('a closed reading does not keep logs from a purge', async () => {
  const disk = new VirtualDisk();
  const rig = await openMember(disk);
  const reading = (await rig.storage.iterateLog(makeZxid(1, 1)))!;
  await reading.next(1);
  for (let counter = 3; counter <= 5; counter++) {
    await rig.write([makeZxid(2, counter)]);
    await rig.snapshot();
  }
  await reading.close();
  await rig.storage.purge();
  expect(namesIn(disk).filter((name) => name.startsWith('log.'))).toEqual(['log.200000001']);
  expect(await reading.next()).toEqual({ kind: 'end' });
});
