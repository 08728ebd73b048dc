import { makeZxid } from '@tskeeper/protocol';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { CommittedLog, committedLogDefaults, isPossibleSuccessor } from '../../src/zab/committed-log.ts';

const bytesOf = (zxid: number): Buffer => Buffer.from(`txn ${zxid}`);

function logOf(zxids: readonly number[], countMax = 500, bytesMax = 1 << 20): CommittedLog {
  const log = new CommittedLog({ countMax, bytesMax });
  for (const zxid of zxids) log.append(zxid, bytesOf(zxid));
  return log;
}

function above(log: CommittedLog, zxid: number): number[] {
  const seen: number[] = [];
  log.forEachAbove(zxid, (each, bytes) => {
    expect(bytes.toString()).toBe(`txn ${each}`);
    seen.push(each);
    return true;
  });
  return seen;
}

describe('CommittedLog', () => {
  it('keeps 500 txns by default, as ZooKeeper does', () => {
    const log = new CommittedLog(committedLogDefaults);
    for (let zxid = 1; zxid <= 1234; zxid++) log.append(zxid, bytesOf(zxid));
    expect([log.length, log.oldest, log.newest]).toEqual([500, 735, 1234]);
    expect(above(log, 735)).toEqual(Array.from({ length: 499 }, (_, i) => 736 + i));
  });

  it('uses the last applied zxid as oldest and newest while it is empty', () => {
    const log = logOf([]);
    expect([log.oldest, log.newest, log.min(7), log.max(7)]).toEqual([undefined, undefined, 7, 7]);
    log.append(5, bytesOf(5));
    log.append(6, bytesOf(6));
    expect([log.oldest, log.newest, log.min(7), log.max(7)]).toEqual([5, 6, 5, 6]);
  });

  it('drops the oldest when the total size exceeds the limit, but never the newest', () => {
    const log = new CommittedLog({ countMax: 500, bytesMax: 100 });
    for (let zxid = 1; zxid <= 5; zxid++) log.append(zxid, Buffer.alloc(40));
    expect([log.oldest, log.newest, log.bytes]).toEqual([4, 5, 80]);
    log.append(6, Buffer.alloc(1000));
    expect([log.oldest, log.newest, log.bytes]).toEqual([6, 6, 1000]);
    log.append(7, Buffer.alloc(100));
    expect([log.oldest, log.newest, log.bytes]).toEqual([7, 7, 100]);
  });

  it('E17: throws at a txn after a gap or out of order (ZOOKEEPER-4925)', () => {
    const log = logOf([makeZxid(1, 1), makeZxid(1, 2)]);
    for (const zxid of [makeZxid(1, 4), makeZxid(2, 2), makeZxid(1, 1), makeZxid(0, 3)]) {
      expect(() => log.append(zxid, bytesOf(zxid))).toThrow(
        /was committed after 0x100000002: txns between are missing, or it is a duplicate/,
      );
    }
    expect(log.length).toBe(2);
    expect(log.append(makeZxid(4, 1), bytesOf(makeZxid(4, 1)))).toBe(true);
  });

  it('skips an error txn that has the zxid of the one before it', () => {
    const log = logOf([1, 2]);
    expect(log.append(2, bytesOf(2))).toBe(false);
    expect(above(log, 1)).toEqual([2]);
  });

  it('skips txns whose zxid does not increase while it is filled from the log, but accepts no gap', () => {
    const log = new CommittedLog(committedLogDefaults);
    for (const zxid of [5, 6, 6, 4, 7]) log.restore(zxid, bytesOf(zxid));
    expect([log.oldest, log.newest, log.length]).toEqual([5, 7, 3]);
    expect(() => log.restore(9, bytesOf(9))).toThrow('txn 0x9 was committed after 0x7');
  });

  it('removes txns truncated from the log, and all of them when a snapshot replaces it (ZOOKEEPER-2845)', () => {
    const log = logOf([makeZxid(1, 1), makeZxid(1, 2), makeZxid(1, 3)]);
    const { bytes } = logOf([makeZxid(1, 1), makeZxid(1, 2)]);
    log.truncate(makeZxid(1, 2));
    expect([log.newest, log.length, log.bytes]).toEqual([makeZxid(1, 2), 2, bytes]);
    log.append(makeZxid(2, 1), bytesOf(makeZxid(2, 1)));
    log.clear();
    expect([log.newest, log.length, log.bytes]).toEqual([undefined, 0, 0]);
    log.append(makeZxid(9, 77), bytesOf(makeZxid(9, 77)));
    expect(log.oldest).toBe(makeZxid(9, 77));
  });

  it('throws for a start among txns that have been dropped (ZOOKEEPER-2418)', () => {
    const log = logOf([1, 2, 3, 4], 2);
    expect([2, 3, 4, 5].map((zxid) => log.reachesBackTo(zxid))).toEqual([false, true, true, true]);
    expect(() => log.forEachAbove(1, () => true)).toThrow('the committed txns in memory start at 0x3: some above 0x1 are missing');
    expect(logOf([]).reachesBackTo(0)).toBe(true);
  });

  it('continues where a visitor stopped, though txns were added and dropped', () => {
    const log = logOf([1, 2, 3, 4, 5], 5);
    const seen: number[] = [];
    log.forEachAbove(1, (zxid) => seen.push(zxid) < 2);
    expect(seen).toEqual([2, 3]);
    log.append(6, bytesOf(6));
    log.append(7, bytesOf(7));
    log.forEachAbove(3, (zxid) => seen.push(zxid) < 99);
    expect(seen).toEqual([2, 3, 4, 5, 6, 7]);
  });

  it('finds every zxid like a plain list', () => {
    const step = fc.constantFrom('next', 'next', 'next', 'epoch', 'truncate', 'clear');
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 40 }), (steps, countMax) => {
        const log = logOf([], countMax);
        let plain: number[] = [];
        let zxid = 0;
        for (const what of steps) {
          if (what === 'clear') {
            log.clear();
            plain = [];
            continue;
          }
          if (what === 'truncate') {
            zxid = plain[plain.length >> 1] ?? zxid;
            log.truncate(zxid);
            plain = plain.filter((each) => each <= zxid);
            continue;
          }
          zxid = what === 'next' ? zxid + 1 : makeZxid(Math.floor(zxid / 2 ** 32) + 1, 1);
          log.append(zxid, bytesOf(zxid));
          plain = [...plain, zxid].slice(-countMax);
        }
        expect(log.length).toBe(plain.length);
        for (const each of plain.flatMap((value) => [value - 1, value, value + 1])) {
          expect(log.has(each)).toBe(plain.includes(each));
          expect(log.lastUpTo(each)).toBe(plain.findLast((value) => value <= each));
          expect(log.firstAbove(each)).toBe(plain.find((value) => value > each));
          if (log.reachesBackTo(each)) expect(above(log, each)).toEqual(plain.filter((value) => value > each));
        }
      }),
      { numRuns: breadth(20, 200) },
    );
  });
});

describe('isPossibleSuccessor', () => {
  it.each([
    [makeZxid(1, 1), makeZxid(1, 2), true],
    [makeZxid(1, 1), makeZxid(1, 1), false],
    [makeZxid(1, 1), makeZxid(1, 3), false],
    [makeZxid(1, 9), makeZxid(2, 1), true],
    [makeZxid(1, 9), makeZxid(7, 0), true],
    [makeZxid(1, 9), makeZxid(2, 2), false],
    [makeZxid(2, 0), makeZxid(2, 1), true],
    [makeZxid(2, 1), makeZxid(1, 2), false],
    [0, 1, true],
  ])('for %d followed by %d is %s', (previous, zxid, expected) => {
    expect(isPossibleSuccessor(previous, zxid)).toBe(expected);
  });
});

it('a committed log drops no txn after the last settled one, and drops those before it with the next append', () => {
  const log = new CommittedLog({ countMax: 3, bytesMax: 1000 });
  for (let zxid = 1; zxid <= 10; zxid++) log.append(zxid, bytesOf(zxid), 4);
  expect([log.oldest, log.newest]).toEqual([4, 10]);
  log.append(11, bytesOf(11), 11);
  expect([log.oldest, log.newest]).toEqual([9, 11]);
});

it('a committed log visits txns after one that was never in it, if none can be between', () => {
  const log = new CommittedLog({ countMax: 3, bytesMax: 1000 });
  log.append(5, bytesOf(5));
  const seen: number[] = [];
  log.forEachAbove(4, (zxid) => seen.push(zxid) > 0);
  expect(seen).toEqual([5]);
  expect(() => log.forEachAbove(3, () => true)).toThrow('the committed txns in memory start at');
});
