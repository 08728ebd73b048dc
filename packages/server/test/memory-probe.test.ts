import { totalmem } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { LiveMemory, memoryProbe } from '../src/memory-probe.ts';

const mebibyte = 1024 ** 2;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/**
 * Collects garbage that other tests have left in this worker, until V8 has released all it can:
 * otherwise it would do so between two readings.
 */
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
  it('is reported for the heap and for the whole process, both below their limits', () => {
    const [heap, whole] = memoryProbe({ processBytes: undefined })(0);
    for (const { usedBytes, limitBytes } of [heap!, whole!]) {
      expect(usedBytes).toBeGreaterThan(mebibyte);
      expect(usedBytes).toBeLessThan(limitBytes);
    }
    expect(whole!.limitBytes).toBeLessThanOrEqual(totalmem());
    expect([heap!.holdsTree, whole!.holdsTree]).toEqual([false, true]);
  });

  it('has the limit of the configuration', () => {
    expect(memoryProbe({ processBytes: 123 * mebibyte })(0)[1]!.limitBytes).toBe(123 * mebibyte);
  });
});

describe('F34: the memory of a process without a free file descriptor, which cannot ask the system', () => {
  const outOfFiles = (): never => {
    throw Object.assign(new Error('EMFILE, too many open files'), { code: 'EMFILE', syscall: 'uv_resident_set_memory' });
  };

  it('is the last answer of the system plus the growth of heap and buffers since', async () => {
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

  it('has a probe from the start, which does not throw', () => {
    expect(memoryProbe({ processBytes: undefined }, outOfFiles)(0)[1]!.usedBytes).toBeGreaterThan(mebibyte);
  });
});

/**
 * A heap of 100 units, of which some live and some are garbage. A collection takes ten
 * milliseconds.
 */
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

describe('F34: the live part of a heap', () => {
  it('is not measured while the whole heap is small', () => {
    const test = new TestHeap();
    expect([test.look(10, 0), test.look(10, 69), test.collections]).toEqual([10, 79, 0]);
  });

  it('is measured by a collection when garbage alone may exceed the limit', () => {
    const test = new TestHeap();
    expect([test.look(10, 80), test.collections]).toEqual([10, 1]);
    expect([test.look(95, 0), test.collections]).toEqual([95, 1]);
  });

  it('includes all growth since the last collection, until the next one is due', () => {
    const test = new TestHeap();
    test.look(70, 15);
    expect([test.look(70, 21), test.collections]).toEqual([91, 1]);
    test.now += 40;
    expect([test.look(70, 25), test.collections]).toEqual([70, 2]);
  });

  it('is measured now and then without growth, because it may have become garbage', () => {
    const test = new TestHeap();
    test.look(90, 0);
    test.now += 4999;
    expect([test.look(20, 70), test.collections]).toEqual([90, 1]);
    test.now += 1;
    expect([test.look(20, 70), test.collections]).toEqual([20, 2]);
  });

  it('is measured soon after the tree has released much memory', () => {
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
