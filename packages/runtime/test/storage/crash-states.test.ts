import { loseAll, VirtualDisk, SeededRandom, type StorageOptions } from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { breadth, strided } from '../../../../test/breadth.ts';
import { checkPoints, type CrashPoint, CrashRecorder } from './crash-states.ts';
import { dataOf, quiesce, Server } from './support.ts';

const options: Partial<StorageOptions> = { preAllocSizeBytes: 9000, snapCount: 10, snapRetainCount: 3, maxBatchSize: 6 };

async function steps(count: number): Promise<void> {
  for (let step = 0; step < count; step++) await Promise.resolve();
}

/** Appends, rolls, snapshots, purges, restarts, kills: everything that a storage does. */
async function workload(seed: number, turns: number): Promise<CrashPoint[]> {
  const random = new SeededRandom(seed);
  const disk = new VirtualDisk();
  const recorder = new CrashRecorder(disk);
  let server = new Server(disk, options);
  const start = async () => {
    server = new Server(disk, options);
    const current = server;
    // While it recovers, only txns acknowledged before are guaranteed.
    await server.open();
    recorder.follow(server.acked, () => current.acked);
    await server.snapshot();
  };
  await start();
  let snapshotsAsked = 0;
  for (let turn = 0; turn < turns; turn++) {
    for (let count = 1 + random.below(4); count > 0; count--) {
      const data = dataOf(turn * 10 + count, 20 + random.below(random.below(3) === 0 ? 200 : 1800));
      recorder.expect(data);
      server.append(data);
    }
    // The mark may be written together with a batch, or alone.
    const advance = random.below(6);
    if (advance < 2) server.clock.advance(300);
    server.storage.flush();
    // Now and then the next turn, or the end, happens while the disk is still working.
    if (random.below(3) === 0) await steps(random.below(60));
    else await quiesce();
    if (advance === 2) server.clock.advance(300);
    if (server.snapshotsAsked > snapshotsAsked) {
      snapshotsAsked = server.snapshotsAsked;
      const snapshot = server.snapshot();
      if (random.below(2) === 0) await snapshot;
      await server.storage.purge();
    }
    switch (random.below(12)) {
      case 0:
        await server.storage.close();
        recorder.capture();
        await start();
        snapshotsAsked = 0;
        break;
      case 1:
        disk.kill();
        await start();
        snapshotsAsked = 0;
        break;
      default:
    }
  }
  await quiesce();
  recorder.capture();
  return recorder.points;
}

/**
 * A log is begun, and the process is killed after so many steps of that; the next one starts over
 * the content of the page cache.
 */
async function killedWhileLogBegins(stepCount: number): Promise<CrashPoint[]> {
  const disk = new VirtualDisk();
  const first = new Server(disk, options);
  await first.open();
  const recorder = new CrashRecorder(disk);
  recorder.follow(0, () => first.acked);
  const data = dataOf(1, 100);
  recorder.expect(data);
  first.append(data);
  first.storage.flush();
  await steps(stepCount);
  disk.kill();
  const second = new Server(disk, options);
  await second.open();
  recorder.follow(second.acked, () => second.acked);
  recorder.capture();
  return recorder.points;
}

test('a server starts from every state that a power loss can leave, with all acknowledged txns, and accepts new ones', async () => {
  let states = 0;
  let repaired = 0;
  const check = async (points: readonly CrashPoint[]) => {
    const result = await checkPoints(points, options);
    states += result.states;
    repaired += result.repaired;
  };
  for (const stepCount of strided(80, 13)) await check(await killedWhileLogBegins(stepCount));
  for (const seed of breadth([1], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])) await check(await workload(seed, breadth(8, 24)));
  expect(states).toBeGreaterThanOrEqual(breadth(500, 50_000));
  // Many of them are damaged; if none were, this would prove little.
  expect(repaired).toBeGreaterThan(breadth(50, 5_000));
});

test('the test detects a log that acknowledges before its sync', async () => {
  const disk = new VirtualDisk();
  const recorder = new CrashRecorder(disk);
  const server = new Server(disk, { ...options, forceSync: false });
  await server.open();
  recorder.follow(0, () => server.acked);
  await server.snapshot();
  for (let turn = 0; turn < 4; turn++) {
    const data = dataOf(turn, 100);
    recorder.expect(data);
    await server.write(data);
    recorder.capture();
  }
  expect(server.acked).toBe(4);
  await expect(checkPoints(recorder.points, options)).rejects.toThrow(/acked/);
  disk.crash(loseAll);
});
