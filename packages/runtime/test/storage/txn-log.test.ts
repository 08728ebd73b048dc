import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { adler32, type Zxid } from '@tskeeper/protocol';
import {
  type DiskCall,
  type FlushedBatch,
  loseAll,
  ManualClock,
  VirtualDisk,
  readLog,
  TxnLog,
  type TxnLogOptions,
} from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { paddedSize } from '../../src/storage/txn-log.ts';
import { createMark, decodeMark } from '../../src/storage/synced-mark.ts';
import { dataOf, ListLogger, quiesce, txnBytes } from './support.ts';

const folder = '/d';
const defaults: TxnLogOptions = {
  folder,
  preAllocSizeBytes: 0,
  forceSync: true,
  maxBatchSize: 1000,
  flushDelayMs: 0,
  maxWriteQueuePollMs: 0,
  txnLogSizeLimitBytes: 0,
  fsyncWarningThresholdMs: 1000,
};

class Fixture {
  readonly disk = new VirtualDisk();
  readonly clock = new ManualClock();
  readonly logger = new ListLogger();
  readonly events: string[] = [];
  readonly flushed: FlushedBatch[] = [];
  readonly calls: DiskCall[] = [];
  readonly log: TxnLog;
  constructor(options: Partial<TxnLogOptions> = {}, lastZxid: Zxid = 0) {
    this.disk.putFile(`${folder}/myid`, Buffer.from('1'));
    this.log = new TxnLog(this.disk, this.clock, this.logger, { ...defaults, ...options }, lastZxid, {
      appended: (zxid) => this.events.push(`appended ${zxid}`),
      failed: (error) => this.events.push(`failed ${error instanceof Error ? error.message : String(error)}`),
      synced: (durationMs, txnCount, bytes) => this.events.push(`synced ${txnCount} in ${durationMs} ms, ${bytes} bytes`),
      flushed: (batch) => this.flushed.push(batch),
    });
  }
  append(...zxids: Zxid[]): void {
    for (const zxid of zxids) {
      const bytes = txnBytes(zxid, dataOf(zxid, 20));
      this.log.append(zxid, bytes, 0, bytes.length);
    }
  }
  get appended(): string[] {
    return this.events.filter((event) => !event.startsWith('synced'));
  }
  async zxidsIn(name: string): Promise<Zxid[]> {
    const zxids: Zxid[] = [];
    await readLog(await this.disk.open(`${folder}/${name}`, 'existing'), 1000, (zxid) => zxids.push(zxid));
    return zxids;
  }
  files(): string[] {
    return this.disk.files().map((path) => path.slice(folder.length + 1));
  }
}

describe('the bytes of a log', () => {
  test('are a header and entries, as ZooKeeper writes them', async () => {
    const { log, disk } = new Fixture();
    const bytes = txnBytes(7, Buffer.from('x'));
    const padded = Buffer.concat([Buffer.from('--'), bytes, Buffer.from('--')]);
    expect(log.append(7, padded, 2, 2 + bytes.length)).toBe(bytes.length + 13);
    log.flush();
    await log.close();
    const head = Buffer.alloc(12);
    head.writeUInt32BE(adler32(bytes), 4);
    head.writeInt32BE(bytes.length, 8);
    const header = Buffer.from('5a4b4c47000000020000000000000000', 'hex');
    expect(disk.contents('/d/log.7')).toEqual(Buffer.concat([header, head, bytes, Buffer.from('B')]));
  });

  test.each([
    // position, size, step, expected: ZooKeeper's rule in numbers.
    [16, 16, 65536, 65552],
    [61000, 65552, 65536, 65552],
    [61455, 65552, 65536, 65552],
    [61456, 65552, 65536, 131088],
    [65552, 65552, 65536, 131088],
    [200000, 65552, 65536, 262144],
    [16, 16, 0, 16],
    [16, 16, -1, 16],
  ])('at position %i of %i bytes, in steps of %i, the file becomes %i bytes', (position, size, step, expected) => {
    expect(paddedSize(position, size, step)).toBe(expected);
  });

  test('the file grows before its content, and the padding is zeros', async () => {
    const fixture = new Fixture({ preAllocSizeBytes: 65536 });
    fixture.append(1);
    fixture.log.flush();
    await fixture.log.close();
    expect(fixture.disk.contents('/d/log.1').length).toBe(65552);
    expect(await fixture.zxidsIn('log.1')).toEqual([1]);
  });

  test('a batch larger than the padding fits', async () => {
    const fixture = new Fixture({ preAllocSizeBytes: 65536 });
    const big = txnBytes(1, dataOf(1, 300_000));
    fixture.log.append(1, big, 0, big.length);
    fixture.append(2);
    fixture.log.flush();
    await fixture.log.close();
    expect(await fixture.zxidsIn('log.1')).toEqual([1, 2]);
    expect(fixture.disk.contents('/d/log.1').length).toBeGreaterThan(300_000 + 4096);
  });
});

describe('group commit', () => {
  test('txns appended while a sync runs share the next sync', async () => {
    const fixture = new Fixture();
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    const syncs: (() => void)[] = [];
    fixture.disk.schedule = ({ operation }, complete) => {
      if (operation === 'sync') syncs.push(complete);
      else void Promise.resolve().then(complete);
    };
    fixture.append(2);
    fixture.log.flush();
    for (const zxid of [3, 4, 5]) {
      fixture.append(zxid);
      fixture.log.flush();
    }
    await quiesce();
    expect([syncs.length, fixture.appended]).toEqual([1, ['appended 1']]);
    syncs.shift()!();
    await quiesce();
    // The second sync is in progress before the first batch is acknowledged.
    expect([syncs.length, fixture.appended]).toEqual([1, ['appended 1', 'appended 2']]);
    syncs.shift()!();
    await quiesce();
    expect(fixture.appended).toEqual(['appended 1', 'appended 2', 'appended 5']);
    expect(fixture.events.filter((event) => event.startsWith('synced 3'))).toHaveLength(1);
  });

  test('nothing is written to the disk before flush, except a full batch', async () => {
    const fixture = new Fixture({ maxBatchSize: 3 });
    fixture.append(1, 2);
    await quiesce();
    expect(fixture.disk.calls).toBe(0);
    fixture.append(3);
    await quiesce();
    expect(fixture.appended).toEqual(['appended 3']);
  });

  test('with a flush delay a batch waits, but no longer than the delay or the pause', async () => {
    const fixture = new Fixture({ flushDelayMs: 30, maxWriteQueuePollMs: 10 });
    // The last flush was long ago: the first goes at once.
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    expect(fixture.appended).toEqual(['appended 1']);
    fixture.append(2);
    fixture.log.flush();
    fixture.clock.advance(9);
    await quiesce();
    expect(fixture.appended).toHaveLength(1);
    fixture.clock.advance(1);
    await quiesce();
    expect(fixture.appended).toEqual(['appended 1', 'appended 2']);
    // Txns that keep arriving prolong the pause, not the delay.
    for (const zxid of [3, 4, 5, 6]) {
      fixture.append(zxid);
      fixture.log.flush();
      fixture.clock.advance(8);
      await quiesce();
    }
    expect(fixture.appended.at(-1)).toBe('appended 6');
  });

  test('a slow sync is logged and counted', async () => {
    const fixture = new Fixture({ fsyncWarningThresholdMs: 50 });
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    fixture.disk.schedule = (_call, complete) => {
      fixture.clock.advance(51);
      complete();
    };
    fixture.append(2);
    fixture.log.flush();
    await quiesce();
    expect(fixture.log.slowSyncs).toBe(1);
    expect(fixture.logger.lines.join('\n')).toMatch(/^warn syncing the transaction log in \/d took 51 ms/);
    expect(fixture.events.at(-2)).toMatch(/^synced 1 in 51 ms, \d+ bytes$/);
  });
});

describe('the report of a flushed batch', () => {
  /** An open log, whose syncs the test completes. */
  async function begun(options: Partial<TxnLogOptions> = {}): Promise<{ readonly fixture: Fixture; readonly syncs: (() => void)[] }> {
    const fixture = new Fixture(options);
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    fixture.flushed.length = 0;
    const syncs: (() => void)[] = [];
    fixture.disk.schedule = (call, complete) => {
      if (call.operation === 'sync') syncs.push(complete);
      else complete();
    };
    return { fixture, syncs };
  }

  test('has the number of waiting txns, and for each turn how long they waited', async () => {
    const { fixture, syncs } = await begun();
    fixture.append(2, 3);
    fixture.log.flush();
    fixture.clock.advance(5);
    fixture.append(4);
    fixture.log.flush();
    // A turn without txns.
    fixture.log.flush();
    fixture.clock.advance(7);
    fixture.append(5, 6);
    fixture.log.flush();
    fixture.clock.advance(8);
    await quiesce();
    syncs.shift()!();
    await quiesce();
    expect(fixture.flushed).toEqual([{ txns: 2, queued: 2, flushMs: 20, arrivals: [{ txns: 2, waitedMs: 0 }] }]);
    fixture.clock.advance(3);
    syncs.shift()!();
    await quiesce();
    const arrivals = [
      { txns: 1, waitedMs: 15 },
      { txns: 2, waitedMs: 8 },
    ];
    expect(fixture.flushed[1]).toEqual({ txns: 3, queued: 3, flushMs: 3, arrivals });
  });

  test('counts txns that wait after a roll among those that waited', async () => {
    const { fixture, syncs } = await begun();
    fixture.append(2);
    fixture.log.flush();
    fixture.append(3, 4);
    fixture.log.roll();
    fixture.append(5);
    fixture.log.flush();
    fixture.clock.advance(2);
    while (fixture.flushed.length < 3) {
      await quiesce();
      syncs.shift()?.();
    }
    expect(fixture.flushed.map(({ txns, queued }) => [txns, queued])).toEqual([
      [1, 1],
      [2, 3],
      [1, 1],
    ]);
    expect(fixture.flushed.slice(1).map(({ arrivals }) => arrivals)).toEqual([[{ txns: 2, waitedMs: 2 }], [{ txns: 1, waitedMs: 2 }]]);
  });

  test('is made with forceSync=no too, where there is no sync', async () => {
    const { fixture } = await begun({ forceSync: false });
    fixture.events.length = 0;
    fixture.append(2);
    fixture.log.flush();
    await quiesce();
    fixture.clock.advance(0);
    await quiesce();
    expect(fixture.events).toEqual(['appended 2']);
    expect(fixture.flushed).toEqual([{ txns: 1, queued: 1, flushMs: 0, arrivals: [{ txns: 1, waitedMs: 0 }] }]);
  });
});

describe('rolling', () => {
  test('the next txn opens a new log; txns handed over before stay in the old one', async () => {
    const fixture = new Fixture();
    fixture.append(1);
    fixture.log.flush();
    fixture.append(2);
    fixture.log.roll();
    fixture.append(3);
    fixture.log.flush();
    fixture.append(4);
    await fixture.log.close();
    expect(fixture.files().filter((name) => name.startsWith('log'))).toEqual(['log.1', 'log.3']);
    expect([await fixture.zxidsIn('log.1'), await fixture.zxidsIn('log.3')]).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(fixture.appended.at(-1)).toBe('appended 4');
  });

  test('a log larger than the limit is followed by a new one', async () => {
    const fixture = new Fixture({ txnLogSizeLimitBytes: 150 });
    for (const zxid of [1, 2, 3, 4]) {
      fixture.append(zxid);
      fixture.log.flush();
      await quiesce();
    }
    await fixture.log.close();
    expect(fixture.files().filter((name) => name.startsWith('log'))).toEqual(['log.1', 'log.3']);
  });

  test('nothing in a new log is acknowledged before its name is durable', async () => {
    const fixture = new Fixture();
    let acknowledgedAt = '';
    fixture.disk.onChanged = () => {
      if (fixture.appended.length > 0) return;
      const survivor = new VirtualDisk(fixture.disk.capture(), loseAll);
      acknowledgedAt = survivor.files().join(' ');
    };
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    expect(fixture.appended).toEqual(['appended 1']);
    expect(acknowledgedAt).toBe('/d/log.1 /d/myid /d/synced.1');
  });
});

describe('the mark', () => {
  test('follows the log with a delay, and is exact when the log is closed', async () => {
    const fixture = new Fixture();
    const mark = () => decodeMark(fixture.disk.contents('/d/synced.1'))!;
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    expect(mark()).toMatchObject({ sequence: 1, logZxid: 1, lastZxid: 1 });
    fixture.append(2);
    fixture.log.flush();
    await quiesce();
    expect(mark().lastZxid).toBe(1);
    fixture.clock.advance(200);
    await quiesce();
    expect(mark()).toMatchObject({ sequence: 2, lastZxid: 2, offset: fixture.disk.contents('/d/log.1').length });
    fixture.append(3);
    await fixture.log.close();
    expect(mark()).toMatchObject({ sequence: 3, lastZxid: 3, offset: fixture.disk.contents('/d/log.1').length });
    expect(fixture.clock.timerCount).toBe(0);
  });

  test('also covers txns that became durable while a slot was being written for longer than it may lag', async () => {
    const fixture = new Fixture();
    const mark = () => decodeMark(fixture.disk.contents('/d/synced.1'))!;
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    const slow: (() => void)[] = [];
    fixture.disk.schedule = ({ path, operation }, complete) => {
      if (operation === 'sync' && path.includes('synced')) slow.push(complete);
      else void Promise.resolve().then(complete);
    };
    fixture.append(2);
    fixture.log.flush();
    await quiesce();
    fixture.clock.advance(200);
    await quiesce();
    fixture.append(3);
    fixture.log.flush();
    await quiesce();
    fixture.clock.advance(500);
    await quiesce();
    expect(mark().lastZxid).toBe(2);
    // From here on no txn is appended.
    for (let round = 0; round < 2; round++) {
      slow.shift()?.();
      await quiesce();
      fixture.clock.advance(200);
      await quiesce();
    }
    expect(mark()).toMatchObject({ sequence: 3, lastZxid: 3, offset: fixture.disk.contents('/d/log.1').length });
    slow.shift()?.();
    await quiesce();
    fixture.clock.advance(1000);
    expect([slow.length, fixture.clock.timerCount]).toEqual([0, 0]);
  });

  test('is not written while the log is idle', async () => {
    const fixture = new Fixture();
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    fixture.clock.advance(1000);
    await quiesce();
    const { calls } = fixture.disk;
    fixture.clock.advance(10_000);
    await quiesce();
    expect(fixture.disk.calls).toBe(calls);
  });

  test('causes only a warning when it cannot be written', async () => {
    const fixture = new Fixture();
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    fixture.disk.fault = ({ path }) => (path.includes('synced') ? { code: 'EIO' } : undefined);
    for (const zxid of [2, 3]) {
      fixture.append(zxid);
      fixture.log.flush();
      fixture.clock.advance(500);
      await quiesce();
    }
    await fixture.log.close();
    expect(fixture.appended).toEqual(['appended 1', 'appended 2', 'appended 3']);
    expect(fixture.logger.lines).toEqual([expect.stringMatching(/^warn cannot write \/d\/synced.1 \(write \/d\/synced.1: EIO\)/)]);
  });
});

describe('a failing disk', () => {
  test.each(['write', 'sync'] as const)('a failed %s is reported once, acknowledges nothing, and is not retried', async (operation) => {
    const fixture = new Fixture();
    fixture.append(1);
    fixture.log.flush();
    await quiesce();
    let failures = 0;
    fixture.disk.fault = (call) => (call.operation === operation && failures++ === 0 ? { code: 'EIO' } : undefined);
    fixture.append(2);
    fixture.log.flush();
    fixture.append(3);
    fixture.log.flush();
    await quiesce();
    const { calls } = fixture.disk;
    fixture.append(4);
    fixture.log.flush();
    fixture.log.roll();
    fixture.clock.advance(1000);
    await quiesce();
    await fixture.log.close();
    expect(fixture.appended).toEqual(['appended 1', `failed ${operation} /d/log.1: EIO`]);
    // The mark may still move; the log is not touched.
    expect(fixture.disk.calls - calls).toBeLessThanOrEqual(2);
  });

  test('a close that cannot make the rest durable reports the failure', async () => {
    const fixture = new Fixture();
    fixture.append(1);
    fixture.disk.fault = ({ operation }) => (operation === 'sync' ? { code: 'EIO' } : undefined);
    await fixture.log.close();
    expect(fixture.appended).toEqual(['failed sync /d/new.log.1: EIO']);
  });
});

test('with forceSync=no a txn counts as appended when it is written, and logs still begin and end with a sync', async () => {
  const fixture = new Fixture({ forceSync: false });
  fixture.append(1);
  fixture.log.flush();
  await quiesce();
  let syncs = 0;
  fixture.disk.fault = ({ operation, path }) => {
    if (operation === 'sync' && path.includes('log.1')) syncs++;
    return undefined;
  };
  fixture.append(2);
  fixture.log.flush();
  await quiesce();
  expect([fixture.appended, syncs]).toEqual([['appended 1', 'appended 2'], 0]);
  await fixture.log.close();
  expect(syncs).toBe(1);
  expect(decodeMark(fixture.disk.contents('/d/synced.1'))!.lastZxid).toBe(2);
});

test('appending a zxid that does not grow throws', () => {
  const fixture = new Fixture({}, 5);
  expect(() => fixture.append(5)).toThrow('cannot append 0x5 after 0x5');
});

test('append copies the bytes of a txn', async () => {
  const fixture = new Fixture();
  const bytes = txnBytes(1, Buffer.from('before'));
  const before = crc32(bytes);
  fixture.log.append(1, bytes, 0, bytes.length);
  bytes.fill(0);
  await fixture.log.close();
  let after = 0;
  await readLog(await fixture.disk.open('/d/log.1', 'existing'), 1000, (_zxid, read, start, end) => {
    after = crc32(read.subarray(start, end));
  });
  expect(after).toBe(before);
});

/** Compares docs/internals/storage.md with a mark. */
test('the layout of a mark matches its documentation', async () => {
  const page = readFileSync(new URL('../../../../docs/internals/storage.md', import.meta.url), 'utf8');
  const table = /\| at \| bytes \| \|\n[^\n]*\n((?:\|.*\n)+)/.exec(page)![1]!;
  const rows = table
    .trim()
    .split('\n')
    .map((line) => line.split('|').slice(1, -1))
    .map(([at, bytes, text]) => ({ at: Number(at), bytes: Number(bytes), text: text!.trim() }));
  const disk = new VirtualDisk();
  await disk.ensureFolder(folder);
  const mark = {
    sequence: 5,
    logZxid: 0x1_0000_0007,
    firstChecksum: 0x89abcdef,
    offset: 4711,
    lastZxid: 0x1_0000_0009,
    precedingZxid: 0x1_0000_0006,
  };
  await createMark(disk, `${folder}/synced.1`, mark);
  const slot = disk.contents(`${folder}/synced.1`).subarray((mark.sequence % 2) * 512);
  const summed = rows.at(-1)!.at;
  const values: [RegExp, bigint][] = [
    [/^`TKSM`$/, BigInt(Buffer.from('TKSM').readUInt32BE(0))],
    [/^version, 2$/, 2n],
    [/^sequence:/, 5n],
    [/^the zxid in the log's name$/, 0x1_0000_0007n],
    [/^checksum of the log's first entry$/, 0x89abcdefn],
    [/^offset:/, 4711n],
    [/^the zxid of that entry$/, 0x1_0000_0009n],
    [/^the zxid after which the log was begun$/, 0x1_0000_0006n],
    [new RegExp(`^CRC-32 of the ${summed} bytes before$`), BigInt(crc32(slot.subarray(0, summed)))],
  ];
  expect(rows.map(({ text }) => values.findIndex(([pattern]) => pattern.test(text)))).toEqual(values.map((_, index) => index));
  let end = 0;
  for (const [index, { at, bytes }] of rows.entries()) {
    expect(at).toBe(end);
    end += bytes;
    expect(bytes === 4 ? BigInt(slot.readUInt32BE(at)) : slot.readBigInt64BE(at)).toBe(values[index]![1]);
  }
  expect(slot.subarray(end, 512).every((byte) => byte === 0)).toBe(true);
});
