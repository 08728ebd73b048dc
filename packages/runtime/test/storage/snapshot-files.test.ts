import { gunzipSync } from 'node:zlib';
import { ProtocolError } from '@tskeeper/protocol';
import {
  decodeSnapshot,
  loadSnapshot,
  ManualClock,
  VirtualDisk,
  type SnapshotCompression,
  type SnapshotSource,
  verifySnapshot,
  writeSnapshot,
} from '@tskeeper/runtime';
import { compress, uncompress } from 'snappyjs';
import { describe, expect, test } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { listSnapshots, looksComplete } from '../../src/storage/snapshot-files.ts';
import { dataOf, HistoryState } from './support.ts';

const snappy = {
  compress: (bytes: Uint8Array) => compress(Buffer.from(bytes)),
  uncompress: (bytes: Uint8Array, maxBytes: number) => uncompress(Buffer.from(bytes), maxBytes),
};
const folder = '/d';
const suffixes = { none: '', gz: '.gz', snappy: '.snappy' } as const;

function stateOf(count: number): HistoryState {
  const state = new HistoryState();
  for (let zxid = 1; zxid <= count; zxid++) state.put(zxid, dataOf(zxid, 8));
  return state;
}

async function write(source: SnapshotSource, compression: SnapshotCompression, isCancelled = () => false) {
  const disk = new VirtualDisk();
  await disk.ensureFolder(folder);
  const bytes = await writeSnapshot(disk, new ManualClock(), { folder, zxid: 0x1a, source, compression, snappy, isCancelled });
  return { disk, bytes, path: `${folder}/snapshot.1a${suffixes[compression]}` };
}

describe.each(['none', 'gz', 'snappy'] as const)('compression %s', (compression) => {
  // Several chunks, so that the middle of the file is not like its ends.
  const state = stateOf(100_000);

  test('a snapshot is read as it was written', async () => {
    const { disk, bytes, path } = await write(state.source(), compression);
    expect(disk.files()).toEqual([path]);
    expect(disk.contents(path).length).toBe(bytes);
    const loaded = new HistoryState();
    await loadSnapshot(disk, path, snappy, loaded.beginSnapshot());
    expect(loaded.history.size).toBe(100_000);
    expect(loaded.history).toEqual(state.history);
    expect([await looksComplete(disk, path), await verifySnapshot(disk, path, snappy)]).toEqual([true, true]);
  });

  test('any change to a snapshot is detected by a full check', async () => {
    const { disk, bytes, path } = await write(stateOf(60).source(), compression);
    const whole = disk.contents(path);
    for (let bit = 0; bit < bytes! * 8; bit += breadth(67, 5)) {
      disk.putFile(path, whole);
      disk.flipBit(path, bit);
      if (!(await verifySnapshot(disk, path, snappy))) continue;
      // An undetected change must be harmless: gzip's header has unused fields.
      const loaded = new HistoryState();
      await loadSnapshot(disk, path, snappy, loaded.beginSnapshot());
      expect([bit, loaded.history.size]).toEqual([bit, 60]);
    }
    for (const length of [0, 5, 20, bytes! - 1]) {
      disk.putFile(path, whole.subarray(0, length));
      expect(await verifySnapshot(disk, path, snappy)).toBe(false);
    }
  });

  test('an abandoned snapshot leaves no file', async () => {
    let slices = 0;
    const { disk, bytes } = await write(state.source(), compression, () => slices++ > 5);
    expect([bytes, disk.files()]).toEqual([undefined, []]);
  });
});

test('gzip output is one member that any reader accepts', async () => {
  const { disk, path } = await write(stateOf(50_000).source(), 'gz');
  const plain = await write(stateOf(50_000).source(), 'none');
  expect(gunzipSync(disk.contents(path)).equals(plain.disk.contents(plain.path))).toBe(true);
});

test('a snapshot does not compress to more than a little above its content', async () => {
  const plain = await write(stateOf(5000).source(), 'none');
  for (const compression of ['gz', 'snappy'] as const) {
    expect((await write(stateOf(5000).source(), compression)).bytes!).toBeLessThan(plain.bytes! * 1.1);
  }
});

test('the disk holds only one chunk of a snapshot at a time, and the event loop runs between slices', async () => {
  const disk = new VirtualDisk();
  await disk.ensureFolder(folder);
  let unsynced = 0;
  disk.onChanged = () => {
    unsynced = Math.max(
      unsynced,
      disk.capture().unsynced.reduce((sum, item) => sum + (item.kind === 'bytes' ? item.length : 0), 0),
    );
  };
  const clock = new ManualClock();
  let turns = 0;
  const soon = clock.setImmediate.bind(clock);
  clock.setImmediate = (callback) => {
    turns++;
    soon(callback);
  };
  let slices = 0;
  const source: SnapshotSource = {
    next: (writer, bytesTarget) => {
      slices++;
      writer.raw(Buffer.alloc(bytesTarget, 1));
      return slices === 100;
    },
  };
  await writeSnapshot(disk, clock, { folder, zxid: 1, source, compression: 'none', snappy: undefined, isCancelled: () => false });
  expect(slices).toBe(100);
  expect(turns).toBeGreaterThan(90);
  expect(unsynced).toBeLessThan(1.1 * 1024 * 1024);
});

test('a snapshot gets its name last: no crash leaves a part of it under that name', async () => {
  const disk = new VirtualDisk();
  await disk.ensureFolder(folder);
  const states = new Set<string>();
  disk.onChanged = () => {
    for (const choice of [() => 0, () => 1e9, (_item: unknown, index: number) => (index % 2) * 1e9]) {
      const survivor = new VirtualDisk(disk.capture(), choice);
      for (const path of survivor.files()) if (!path.includes('/new.')) states.add(`${path} ${survivor.contents(path).length}`);
    }
  };
  const bytes = await writeSnapshot(disk, new ManualClock(), {
    folder,
    zxid: 1,
    source: stateOf(100).source(),
    compression: 'none',
    snappy: undefined,
    isCancelled: () => false,
  });
  expect(Array.from(states)).toEqual([`/d/snapshot.1 ${bytes}`]);
});

test('a failing disk leaves no part of a snapshot, and the error is reported', async () => {
  const disk = new VirtualDisk();
  await disk.ensureFolder(folder);
  disk.fault = ({ operation }) => (operation === 'write' ? { code: 'ENOSPC', written: 10 } : undefined);
  const job = { folder, zxid: 1, source: stateOf(5).source(), compression: 'none', snappy: undefined, isCancelled: () => false } as const;
  await expect(writeSnapshot(disk, new ManualClock(), job)).rejects.toThrow('write /d/new.snapshot.1: ENOSPC');
  expect(disk.files()).toEqual([]);
});

test('candidates are listed newest first, and names of other kinds are skipped', async () => {
  const disk = new VirtualDisk();
  for (const name of [
    'snapshot.9',
    'snapshot.1a.gz',
    'snapshot.a',
    'snapshot.',
    'snapshot.xyz',
    'snapshot',
    'log.1',
    'snapshot.ffffffffffffffff',
  ]) {
    disk.putFile(`/d/${name}`, Buffer.from('x'));
  }
  expect(await listSnapshots(disk, '/d')).toEqual([
    { name: 'snapshot.1a.gz', zxid: 0x1a },
    { name: 'snapshot.a', zxid: 10 },
    { name: 'snapshot.9', zxid: 9 },
  ]);
});

describe('reading a compressed snapshot', () => {
  const decode = async (name: string, bytes: Uint8Array, codec: typeof snappy | undefined = snappy) => {
    const disk = new VirtualDisk();
    disk.putFile(`/d/${name}`, bytes);
    const compression = name.endsWith('.gz') ? 'gz' : 'snappy';
    await decodeSnapshot(await disk.open(`/d/${name}`, 'existing'), compression, codec, () => undefined);
  };
  const header = Buffer.from('82534e4150505900 0000000100000001'.replace(' ', ''), 'hex');

  test.each([
    ['garbage in place of gzip', 's.gz', Buffer.from('garbage'), /incorrect header check/],
    ['its gzip data cut short', 's.gz', Buffer.from('1f8b0800000000000000', 'hex'), /unexpected end of file/],
    ['no snappy magic', 's.snappy', Buffer.alloc(40), /magic of a snappy stream/],
    ['a negative snappy block', 's.snappy', Buffer.concat([header, Buffer.from('ffffffff', 'hex')]), /not one of -1 bytes/],
    ['a snappy block that is cut', 's.snappy', Buffer.concat([header, Buffer.from('00000100', 'hex')]), /bytes of a snappy stream/],
    ['a false snappy length', 's.snappy', Buffer.concat([header, Buffer.from('00000005ffffffff7f', 'hex')]), /a snappy block \(/],
  ])('is refused when the stream has %s', async (_what, name, bytes, message) => {
    await expect(decode(name, bytes)).rejects.toThrow(message);
  });

  test('is refused for snappy without a codec', async () => {
    const disk = new VirtualDisk();
    disk.putFile('/d/s.snappy', header);
    const file = await disk.open('/d/s.snappy', 'existing');
    await expect(decodeSnapshot(file, 'snappy', undefined, () => undefined)).rejects.toThrow(ProtocolError);
  });

  test('throws an error of the receiver', async () => {
    const { disk, path } = await write(stateOf(100_000).source(), 'gz');
    const file = await disk.open(path, 'existing');
    await expect(
      decodeSnapshot(file, 'gz', undefined, () => {
        throw new ProtocolError('something else', 7);
      }),
    ).rejects.toThrow('something else');
  });

  test('throws an error of the disk through gzip', async () => {
    const { disk, path } = await write(stateOf(100_000).source(), 'gz');
    let reads = 0;
    disk.fault = ({ operation }) => (operation === 'read' && reads++ === 2 ? { code: 'EIO' } : undefined);
    const file = await disk.open(path, 'existing');
    await expect(decodeSnapshot(file, 'gz', undefined, () => undefined)).rejects.toThrow('read /d/snapshot.1a.gz: EIO');
  });
});
