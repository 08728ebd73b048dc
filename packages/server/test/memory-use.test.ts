import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { LiveMemory, memoryProbe } from '../src/memory-use.ts';

const mebibyte = 1024 ** 2;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Collects what other tests have left in this worker, until V8 has given back all it will: else it would do so between two readings. */
async function settle(): Promise<void> {
  for (let before = Infinity, rests = 0; rests < 3;) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
    const { total_heap_size: heapBytes, external_memory: bufferBytes } = getHeapStatistics();
    rests = heapBytes + bufferBytes < before ? 0 : rests + 1;
    before = Math.min(before, heapBytes + bufferBytes);
  }
}

describe('F34: the memory of this process', () => {
  it('is told as a heap and as a whole, both below their limits', () => {
    const [heap, whole] = memoryProbe({ processBytes: undefined })(0);
    for (const { usedBytes, limitBytes } of [heap!, whole!]) {
      expect(usedBytes).toBeGreaterThan(mebibyte);
      expect(usedBytes).toBeLessThan(limitBytes);
    }
    expect(whole!.limitBytes).toBeLessThanOrEqual(totalmem());
    expect([heap!.holdsTree, whole!.holdsTree]).toEqual([false, true]);
  });

  it('is limited as the operator says', () => {
    expect(memoryProbe({ processBytes: 123 * mebibyte })(0)[1]!.limitBytes).toBe(123 * mebibyte);
  });
});

describe('F34: a process that has no file descriptor left, so that the system does not say what it holds', () => {
  const outOfFiles = (): never => {
    throw Object.assign(new Error('EMFILE, too many open files'), { code: 'EMFILE', syscall: 'uv_resident_set_memory' });
  };

  it('is judged by what it held before and what it has taken since', async () => {
    let isOut = false;
    const resident = (): number => (isOut ? outOfFiles() : process.memoryUsage.rss());
    const probe = memoryProbe({ processBytes: undefined }, resident);
    await settle();
    const before = probe(0)[1]!.usedBytes;
    isOut = true;
    const kept = Buffer.alloc(64 * mebibyte, 1);
    const after = probe(0)[1]!.usedBytes;
    expect(after - before).toBeGreaterThan(32 * mebibyte);
    expect(after - before).toBeLessThan(128 * mebibyte);
    expect(kept.length).toBe(64 * mebibyte);
  });

  it('has a probe from the start', () => {
    expect(memoryProbe({ processBytes: undefined }, outOfFiles)(0)[1]!.usedBytes).toBeGreaterThan(mebibyte);
  });
});

/** A heap of 100 units, of which some live and some are garbage. A collection takes ten milliseconds. */
class TestHeap {
  readonly limitBytes = 100;
  live = 0;
  garbage = 0;
  now = 0;
  collections = 0;
  readonly heap = new LiveMemory({
    limitBytes: 100,
    usedBytes: () => this.live + this.garbage,
    collect: () => {
      this.collections++;
      this.garbage = 0;
      this.now += 10;
    },
    nowMs: () => this.now,
  });

  look(live: number, garbage: number, returned = 0): number {
    this.live = live;
    this.garbage = garbage;
    return this.heap.usedBytes(returned);
  }
}

describe('F34: what lives of a heap', () => {
  it('is not asked for while all of it is little', () => {
    const test = new TestHeap();
    expect([test.look(10, 0), test.look(10, 69), test.collections]).toEqual([10, 79, 0]);
  });

  it('is found out by a collection when garbage alone may be too much', () => {
    const test = new TestHeap();
    expect([test.look(10, 80), test.collections]).toEqual([10, 1]);
    expect([test.look(95, 0), test.collections]).toEqual([95, 1]);
  });

  it('counts whatever has come since as living, until it may be looked at again', () => {
    const test = new TestHeap();
    test.look(70, 15);
    expect([test.look(70, 21), test.collections]).toEqual([91, 1]);
    test.now += 40;
    expect([test.look(70, 25), test.collections]).toEqual([70, 2]);
  });

  it('is looked at now and then although it does not grow, since it may have become garbage', () => {
    const test = new TestHeap();
    test.look(90, 0);
    test.now += 4999;
    expect([test.look(20, 70), test.collections]).toEqual([90, 1]);
    test.now += 1;
    expect([test.look(20, 70), test.collections]).toEqual([20, 2]);
  });

  it('is looked at soon after much has been given back, which is garbage whatever the figure says', () => {
    const test = new TestHeap();
    test.look(90, 0, 5);
    test.now += 39;
    expect([test.look(90, 0, 75), test.collections]).toEqual([90, 1]);
    test.now += 1;
    expect([test.look(90, 0, 75), test.collections]).toEqual([90, 2]);
    test.now += 40;
    expect([test.look(90, 0, 77), test.collections]).toEqual([90, 2]);
    expect([test.look(90, 0, 10), test.collections]).toEqual([90, 2]);
    expect([test.look(90, 0, 13), test.collections]).toEqual([90, 3]);
  });
});
