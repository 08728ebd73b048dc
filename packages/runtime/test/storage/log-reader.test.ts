import { logFileHeader, Writer, writeFileHeader, writeLogEntry, type Zxid } from '@tskeeper/protocol';
import { type LogEnd, VirtualDisk, readLog } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { dataOf, txnBytes } from './support.ts';

/** A log of these txns; returns where each entry ends, too. */
function logOf(lengths: readonly number[]): { bytes: Buffer; ends: number[] } {
  const writer = new Writer();
  writeFileHeader(writer, logFileHeader);
  const ends = lengths.map((length, index) => {
    writeLogEntry(writer, txnBytes(index + 1, dataOf(index, length)));
    return writer.offset;
  });
  return { bytes: Buffer.from(writer.written()), ends };
}

async function read(bytes: Uint8Array, txnBytesMax = 1_000_000): Promise<{ end: LogEnd; zxids: Zxid[]; disk: VirtualDisk }> {
  const disk = new VirtualDisk();
  disk.putFile('/d/log', bytes);
  const zxids: Zxid[] = [];
  const end = await readLog(await disk.open('/d/log', 'existing'), txnBytesMax, (zxid) => zxids.push(zxid));
  return { end, zxids, disk };
}

const { bytes, ends } = logOf([10, 30, 20]);
const [firstEnd, secondEnd, thirdEnd] = ends as [number, number, number];

function changed(change: (copy: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes);
  change(copy);
  return copy;
}

describe('the end of a log', () => {
  test.each<[string, Uint8Array, Partial<LogEnd>]>([
    ['at the end of the file', bytes, { reason: 'end of file', offset: thirdEnd, count: 3, lastZxid: 3 }],
    ['at the padding', Buffer.concat([bytes, Buffer.alloc(5000)]), { reason: 'padding', offset: thirdEnd, count: 3 }],
    ['at a little padding', Buffer.concat([bytes, Buffer.alloc(5)]), { reason: 'padding', offset: thirdEnd, count: 3 }],
    ['before an entry without its last byte', bytes.subarray(0, thirdEnd - 1), { reason: 'cut entry', offset: secondEnd, count: 2 }],
    ['before an entry cut in its checksum', bytes.subarray(0, secondEnd + 6), { reason: 'cut entry', offset: secondEnd }],
    ['before an entry with another last byte', changed((copy) => (copy[thirdEnd - 1] = 0)), { reason: 'no end mark', offset: secondEnd }],
    [
      'before a changed txn',
      changed((copy) => (copy[firstEnd + 20]! ^= 1)),
      { reason: 'checksum', offset: firstEnd, count: 1, lastZxid: 1 },
    ],
    ['before a changed checksum', changed((copy) => (copy[firstEnd + 7]! ^= 1)), { reason: 'checksum', offset: firstEnd }],
    ['before a checksum of more than 32 bits', changed((copy) => (copy[firstEnd]! ^= 1)), { reason: 'checksum', offset: firstEnd }],
    ['before a negative length', changed((copy) => copy.writeInt32BE(-1, firstEnd + 8)), { reason: 'bad length', offset: firstEnd }],
    [
      'before a monstrous length',
      changed((copy) => copy.writeInt32BE(0x7fffffff, firstEnd + 8)),
      { reason: 'bad length', offset: firstEnd },
    ],
    [
      'before a length beyond the file',
      changed((copy) => copy.writeInt32BE(5000, firstEnd + 8)),
      { reason: 'cut entry', offset: firstEnd },
    ],
    ['in an empty file', Buffer.alloc(0), { reason: 'empty', offset: 0 }],
    ['in a cut header', bytes.subarray(0, 10), { reason: 'cut header', offset: 0 }],
    ['in a header cut within its magic', bytes.subarray(0, 3), { reason: 'cut header', offset: 0 }],
    ['in zeros', Buffer.alloc(4000), { reason: 'zero header', offset: 0 }],
    ['in a file of another kind', Buffer.from('ZKSN and more than sixteen bytes'), { reason: 'bad magic', offset: 0 }],
    ['in a short file of another kind', Buffer.from('hello'), { reason: 'bad magic', offset: 0 }],
    ['after a header alone', bytes.subarray(0, 16), { reason: 'end of file', offset: 16, count: 0, lastZxid: undefined }],
  ])('is found, with its reason, %s', async (_where, file, expected) => {
    expect((await read(file)).end).toMatchObject({ ...expected, size: file.length });
  });

  test('does not depend on the version in the header', async () => {
    expect((await read(changed((copy) => copy.writeInt32BE(3, 4)))).end.count).toBe(3);
  });

  test('has the reason bad length at a txn with a right checksum that is too short for a header', async () => {
    const writer = new Writer();
    writeFileHeader(writer, logFileHeader);
    writeLogEntry(writer, Buffer.from('short'));
    expect((await read(writer.written())).end).toMatchObject({ reason: 'bad length', offset: 16 });
  });

  test('includes the checksum of the first entry even when the entry cannot be read', async () => {
    const whole = (await read(bytes)).end.firstChecksum;
    expect(whole).toBe(bytes.readUInt32BE(20));
    for (const file of [changed((copy) => (copy[40]! ^= 1)), bytes.subarray(0, 40)])
      expect((await read(file)).end.firstChecksum).toBe(whole);
  });

  test('is after the last whole entry wherever the log is cut', async () => {
    for (let length = 16; length <= bytes.length; length++) {
      const { end, zxids } = await read(bytes.subarray(0, length));
      const whole = ends.filter((entryEnd) => entryEnd <= length).length;
      expect([length, zxids.length, end.offset]).toEqual([length, whole, whole === 0 ? 16 : ends[whole - 1]]);
    }
  });
});

test('a log of many pieces, with entries across their edges and one larger than a piece, is read whole', async () => {
  const lengths = Array.from({ length: 400 }, (_, index) => (index === 200 ? 700_000 : 900 + index));
  const log = logOf(lengths);
  const { end, zxids, disk } = await read(Buffer.concat([log.bytes, Buffer.alloc(100_000)]));
  expect(end).toMatchObject({ reason: 'padding', offset: log.bytes.length, count: 400, lastZxid: 400 });
  expect(zxids).toEqual(lengths.map((_, index) => index + 1));
  // Open, size, and a read per piece: not one for each entry.
  expect(disk.calls).toBeLessThan(12);
});

test('the offsets passed with each txn are those of its entry', async () => {
  const disk = new VirtualDisk();
  disk.putFile('/d/log', bytes);
  const seen: number[][] = [];
  await readLog(await disk.open('/d/log', 'existing'), 1000, (zxid, _bytes, start, stop, offset, entryEnd) => {
    seen.push([zxid, stop - start, offset, entryEnd]);
  });
  expect(seen.map(([, , offset, entryEnd]) => [offset, entryEnd])).toEqual([
    [16, firstEnd],
    [firstEnd, secondEnd],
    [secondEnd, thirdEnd],
  ]);
  for (const [, length, offset, entryEnd] of seen) expect(length! + 13).toBe(entryEnd! - offset!);
});

test('damaged entries are passed to visitDamaged and skipped', async () => {
  const disk = new VirtualDisk();
  disk.putFile(
    '/d/log',
    changed((copy) => (copy[firstEnd + 20]! ^= 1)),
  );
  const seen: string[] = [];
  const end = await readLog(
    await disk.open('/d/log', 'existing'),
    1_000_000,
    (zxid) => seen.push(`${zxid}`),
    (_bytes, start, stop, offset) => seen.push(`damage at ${offset}, ${stop - start} bytes`),
  );
  expect(seen).toEqual(['1', `damage at ${firstEnd}, ${secondEnd - firstEnd - 13} bytes`, '3']);
  expect(end).toMatchObject({ reason: 'end of file', offset: thirdEnd, count: 2, lastZxid: 3 });
});
