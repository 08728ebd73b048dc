/**
 * Damage at rest. Each case is detected, or the state is unchanged: no acknowledged txn is lost
 * silently.
 */
import { type DiskImage, keepAll, VirtualDisk, type StorageOptions, StorageRefused } from '@tskeeper/runtime';
import { beforeAll, describe, expect, test } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { fileHeaderBytes } from '@tskeeper/protocol';
import { decodeMark } from '@tskeeper/runtime/internal';
import { dataOf, ListLogger, Server } from './support.ts';

const options: Partial<StorageOptions> = { preAllocSizeBytes: 64 };
const folder = '/data/version-2';
const last = 9;
let image: DiskImage;

beforeAll(async () => {
  const disk = new VirtualDisk();
  for (let life = 0; life < 3; life++) {
    const server = new Server(disk, options);
    await server.open();
    if (life === 1) await server.snapshot();
    for (let i = 0; i < 3; i++) await server.write(dataOf(life * 3 + i, 20 + 10 * i));
    await server.storage.close();
  }
  image = disk.capture();
});

/** The result of a start with a damaged folder. */
async function outcome(disk: VirtualDisk): Promise<'refused' | 'warned' | 'silent'> {
  const logger = new ListLogger();
  const server = new Server(disk, options, logger);
  try {
    await server.open();
  } catch (error) {
    if (error instanceof StorageRefused) return 'refused';
    throw error;
  }
  const { state } = server;
  const whole = state.lastZxid === last && state.history.size === last;
  const warned = logger.lines.some((line) => line.startsWith('warn'));
  if (!whole) throw new Error(`txns are gone: ${state.history.size} up to ${state.lastZxid}, ${logger.lines.join('; ')}`);
  return warned ? 'warned' : 'silent';
}

test('the folder of these tests is undamaged at first', async () => {
  const disk = new VirtualDisk(image, keepAll);
  expect(disk.files().map((path) => path.slice(folder.length + 1))).toEqual([
    'log.1',
    'log.4',
    'log.7',
    'snapshot.0',
    'snapshot.3',
    'synced.1',
    'synced.4',
    'synced.7',
  ]);
  expect(await outcome(disk)).toBe('silent');
});

// Every bit of the newest log and snapshot; of the others enough to hit each field many times.
describe.each([
  ['log.4', 5],
  ['log.7', 1],
  ['snapshot.3', 1],
  ['synced.7', 3],
] as const)('%s', (name, fullStep) => {
  // A prime, so that all bits of a byte are hit.
  const step = fullStep * breadth(13, 1);

  test('with any one bit flipped is refused, or gives the same state', async () => {
    const path = `${folder}/${name}`;
    const bits = new VirtualDisk(image).contents(path).length * 8;
    const counts = { refused: 0, warned: 0, silent: 0 };
    for (let bit = 0; bit < bits; bit += step) {
      const disk = new VirtualDisk(image);
      disk.flipBit(path, bit);
      counts[await outcome(disk).catch((error: unknown) => Promise.reject(new Error(`bit ${bit} of ${name}`, { cause: error })))]++;
    }
    expect(counts.refused + counts.warned + counts.silent).toBe(Math.ceil(bits / step));
    // Most bits of a log matter, and so do those of a snapshot; a mark does not matter while its
    // log is complete.
    expect(counts.refused + counts.warned > 500 / step).toBe(name !== 'synced.7');
  });

  test('with zeros in it anywhere is refused, or gives the same state', async () => {
    const path = `${folder}/${name}`;
    const { length } = new VirtualDisk(image).contents(path);
    const found = new Set<string>();
    for (let start = 0; start < length; start += breadth(61, 7)) {
      for (const count of [1, 12, 64, 512, length]) {
        const disk = new VirtualDisk(image);
        disk.zero(path, start, Math.min(length, start + count));
        found.add(await outcome(disk).catch((error: unknown) => `${String(error)}, zeros at ${start}, ${count}`));
      }
    }
    expect(Array.from(found).filter((what) => what !== 'refused' && what !== 'warned' && what !== 'silent')).toEqual([]);
    expect(found.size).toBeGreaterThan(name === 'synced.7' ? 0 : breadth(0, 1));
  });
});

test('a flipped bit in the newest snapshot is detected, and the previous one is used', async () => {
  const disk = new VirtualDisk(image);
  disk.flipBit(`${folder}/snapshot.3`, 8 * 25);
  expect(await outcome(disk)).toBe('warned');
});

test('a log without its mark can lose its end silently, which the mark prevents', async () => {
  const disk = new VirtualDisk(image);
  disk.eraseFile(`${folder}/synced.7`);
  disk.zero(`${folder}/log.7`, 16, disk.contents(`${folder}/log.7`).length);
  await expect(outcome(disk)).rejects.toThrow('txns are gone: 6 up to 6');
});

describe('a log in which the disk has written entries in the place of later ones', () => {
  const path = `${folder}/log.1`;
  const count = 6;
  let whole: Buffer;
  let equalEntries: DiskImage;
  let entryBytes = 0;

  beforeAll(async () => {
    const disk = new VirtualDisk();
    const server = new Server(disk, options);
    await server.open();
    for (let i = 0; i < count; i++) await server.write(dataOf(i, 40));
    await server.storage.close();
    equalEntries = disk.capture();
    whole = disk.contents(path);
    const mark = decodeMark(disk.contents(`${folder}/synced.1`))!;
    expect(mark.lastZxid).toBe(count);
    entryBytes = (mark.offset - fileHeaderBytes) / count;
    expect(Number.isInteger(entryBytes)).toBe(true);
  });

  function withCopied(from: number, to: number, entries: number): VirtualDisk {
    const disk = new VirtualDisk(equalEntries);
    const at = (entry: number) => fileHeaderBytes + entry * entryBytes;
    const bytes = Buffer.from(whole);
    whole.copy(bytes, at(to), at(from), at(from + entries));
    disk.putFile(path, bytes);
    return disk;
  }

  const cases: { from: number; to: number }[] = [];
  for (let to = 1; to < count; to++) for (let from = 0; from < to; from++) cases.push({ from, to });
  test.each(cases)('is refused with entry $from in the place of entry $to, alone and with those that follow', async ({ from, to }) => {
    for (let entries = 1; entries <= count - to; entries++) {
      const disk = withCopied(from, to, entries);
      const start = new Server(disk, options).open();
      await expect(start, `${entries} entries`).rejects.toThrow(/log\.1 is damaged at offset|txns are missing/);
    }
  });

  test('is refused with the offset and the zxid of the first of them', async () => {
    const at = fileHeaderBytes + 4 * entryBytes;
    await expect(new Server(withCopied(1, 4, 2), options).open()).rejects.toThrow(
      `${path} is damaged at offset ${at}, after 0x4 (txn 0x2 is in the place of a later one), though its txns up to 0x6`,
    );
  });
});
