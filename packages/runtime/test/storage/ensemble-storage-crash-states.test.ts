/**
 * What a power loss can leave of a truncation, of a snapshot that replaces everything, and of the
 * epoch files: each state is started from, checked, brought to the history that the leader wanted,
 * written to, and started from once more.
 */
import { crc32 } from 'node:zlib';
import { makeZxid, type Zxid } from '@tskeeper/protocol';
import {
  crashChoices,
  type DiskImage,
  loseAll,
  VirtualDisk,
  type EnsembleRecoveryResult,
  SeededRandom,
  type StorageOptions,
} from '@tskeeper/runtime';
import { expect, test } from 'vitest';
import { breadth, strided, isFull, sample } from '../../../../test/breadth.ts';
import { historyOf, EnsembleStorageRig, stateWith, zxids } from './ensemble-storage-rig.ts';
import { testOptions } from './support.ts';

interface Found {
  readonly history: readonly Zxid[];
  readonly accepted: number;
  readonly current: number;
}

/** Returns what is wrong with a state, or nothing. */
type Judge = (found: Found) => string | undefined;

interface Point {
  readonly image: DiskImage;
  readonly judge: Judge;
}

class Recorder {
  readonly points: Point[] = [];
  readonly #disk: VirtualDisk;
  #judge: Judge;

  constructor(disk: VirtualDisk, judge: Judge) {
    this.#disk = disk;
    this.#judge = judge;
    disk.onChanged = () => this.capture();
  }

  /** From now on this check applies; earlier captures keep the earlier one. */
  expect(judge: Judge): void {
    this.#judge = judge;
    this.capture();
  }

  capture(): void {
    this.points.push({ image: this.#disk.capture(), judge: this.#judge });
  }

  stop(): void {
    this.#disk.onChanged = undefined;
  }
}

const isPrefix = (list: readonly Zxid[], of: readonly Zxid[]) => list.every((zxid, index) => of[index] === zxid);
const isSame = (list: readonly Zxid[], other: readonly Zxid[]) => list.length === other.length && isPrefix(list, other);
const exactly =
  (history: readonly Zxid[]): Judge =>
  (found) =>
    isSame(found.history, history) ? undefined : 'the history is not what had been promised';

interface Result {
  states: number;
  /** How often the history was each of these. */
  readonly old: number;
  readonly between: number;
  readonly target: number;
}

async function openOn(
  disk: VirtualDisk,
  options: Partial<StorageOptions>,
): Promise<{ rig: EnsembleStorageRig; recovered: EnsembleRecoveryResult }> {
  const rig = new EnsembleStorageRig(disk, options);
  const recovered = await rig.open();
  expect(rig.state.history).toEqual(historyOf(rig.zxids));
  expect(recovered.recent.at(-1)?.zxid ?? recovered.lastZxid).toBe(recovered.lastZxid);
  expect(recovered.recent.map(({ zxid }) => zxid)).toEqual(rig.zxids.slice(rig.zxids.length - recovered.recent.length));
  return { rig, recovered };
}

interface Goal {
  readonly old: readonly Zxid[];
  readonly target: readonly Zxid[];
  /** Repeats what the leader wanted. */
  readonly finish: (rig: EnsembleStorageRig) => Promise<unknown>;
}

async function check(points: readonly Point[], goal: Goal, options: Partial<StorageOptions>): Promise<Result> {
  const random = new SeededRandom(23);
  const seen = new Set<string>();
  const judges = [...new Set(points.map(({ judge }) => judge))];
  const result = { states: 0, old: 0, between: 0, target: 0 };
  for (const point of points) {
    for (const choice of crashChoices(point.image, random)) {
      const disk = new VirtualDisk(point.image, (_item, index) => choice[index]!);
      const key = `${judges.indexOf(point.judge)} ${crc32(disk.fingerprint((bytes) => crc32(bytes)))}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const files = disk.files();
      try {
        const { rig, recovered } = await openOn(disk, options);
        const history = rig.zxids;
        const complaint = point.judge({ history, accepted: recovered.acceptedEpoch, current: recovered.currentEpoch });
        if (complaint !== undefined) throw new Error(complaint);
        if (isSame(history, goal.target)) result.target++;
        else if (isSame(history, goal.old)) result.old++;
        else result.between++;
        await goal.finish(rig);
        expect(rig.zxids).toEqual(goal.target);
        const more = zxids(9, 1, 3);
        await rig.write(more);
        expect(rig.failures).toEqual([]);
        disk.crash(loseAll);
        const again = await openOn(disk, options);
        expect(again.rig.zxids).toEqual([...goal.target, ...more]);
        expect(again.recovered.currentEpoch).toBe(9);
      } catch (error) {
        const kept = choice.map((bytes, index) => `${bytes} of ${JSON.stringify(point.image.unsynced[index])}`).join('\n  ');
        throw new Error(`files ${files.join(' ')}, kept\n  ${kept}`, { cause: error });
      }
    }
  }
  result.states = seen.size;
  return result;
}

const small: Partial<StorageOptions> = { preAllocSizeBytes: 2048 };
const twoFolders: Partial<StorageOptions> = { ...small, dataLogDir: '/logs' };

interface Shape {
  readonly logs: readonly (readonly Zxid[])[];
  /** The logs that are followed by a snapshot. */
  readonly snapshots: readonly number[];
  /** A log that is missing, because a snapshot of a leader replaced it. */
  readonly lost?: number;
}

const shapes: readonly Shape[] = [
  { logs: [zxids(1, 1, 6)], snapshots: [] },
  { logs: [zxids(1, 1, 3), zxids(1, 4, 5), zxids(1, 6, 8)], snapshots: [0, 1] },
  { logs: [zxids(1, 1, 2), zxids(2, 1, 2), zxids(3, 1, 2)], snapshots: [1, 2] },
  { logs: [zxids(1, 1, 3), zxids(1, 4, 5), zxids(1, 6, 8)], snapshots: [0, 1], lost: 1 },
  { logs: [zxids(1, 1, 2), zxids(2, 1, 2)], snapshots: [] },
];

async function build(disk: VirtualDisk, { logs, snapshots, lost }: Shape, options: Partial<StorageOptions>): Promise<Zxid[]> {
  for (const [index, log] of logs.entries()) {
    const rig = new EnsembleStorageRig(disk, options);
    await rig.open();
    await rig.write(log);
    if (snapshots.includes(index)) await rig.snapshot();
    await rig.storage.close();
  }
  if (lost !== undefined) {
    const { dataLogDir } = { ...testOptions, ...options };
    const name = logs[lost]![0]!.toString(16);
    disk.eraseFile(`${dataLogDir}/version-2/log.${name}`);
    disk.eraseFile(`${dataLogDir}/version-2/synced.${name}`);
  }
  return logs.flat();
}

function add(total: Result, result: Result): Result {
  return {
    states: total.states + result.states,
    old: total.old + result.old,
    between: total.between + result.between,
    target: total.target + result.target,
  };
}

const none: Result = { states: 0, old: 0, between: 0, target: 0 };

test('a power loss during a truncation leaves the old history, its beginning, or the history that was to stay', async () => {
  let total = none;
  for (const options of breadth([twoFolders], [small, twoFolders])) {
    for (const shape of sample(shapes, 2)) {
      for (const length of strided(shape.logs.flat().length, 3, breadth(1, 0))) {
        const disk = new VirtualDisk();
        const old = await build(disk, shape, options);
        const target = old.slice(0, length);
        if (shape.lost !== undefined && shape.logs[shape.lost]!.slice(0, -1).includes(target.at(-1)!)) continue;
        const { rig } = await openOn(disk, options);
        // Something that is not in any file yet when it begins.
        await rig.write([makeZxid(4, 1)]);
        const longest = [...old, makeZxid(4, 1)];
        const recorder = new Recorder(disk, ({ history }) =>
          history.length >= target.length && isPrefix(history, longest) ? undefined : 'it is not a prefix of the old history',
        );
        recorder.capture();
        const finish = (other: EnsembleStorageRig) => other.truncate(target.at(-1) ?? 0);
        await finish(rig);
        recorder.expect(exactly(target));
        recorder.stop();
        total = add(total, await check(recorder.points, { old: longest, target, finish }, options));
      }
    }
  }
  expect(total.states).toBeGreaterThan(breadth(20, 400));
  if (isFull) for (const count of [total.old, total.between, total.target]) expect(count).toBeGreaterThan(20);
});

test('a power loss while a snapshot replaces everything leaves the old history, its beginning, or the snapshot', async () => {
  let total = none;
  const leaders = [
    [...zxids(1, 1, 2), ...zxids(2, 1, 1)],
    zxids(1, 1, 4),
    [...zxids(1, 1, 8), ...zxids(3, 1, 40)],
    zxids(1, 1, 1),
    zxids(1, 1, 5),
  ];
  for (const options of breadth([twoFolders], [small, twoFolders])) {
    for (const shape of sample(shapes, 2)) {
      for (const target of sample(leaders, 2)) {
        const disk = new VirtualDisk();
        const old = await build(disk, shape, options);
        const zxid = target.at(-1)!;
        const { rig } = await openOn(disk, options);
        await rig.accept(5);
        const kept = old.filter((other) => other <= zxid).length;
        const recorder = new Recorder(disk, ({ history, accepted }) => {
          if (accepted !== 5) return `acceptedEpoch is ${accepted}`;
          if (isSame(history, target)) return undefined;
          return history.length >= kept && isPrefix(history, old)
            ? undefined
            : 'it is neither the snapshot nor a beginning of the old history';
        });
        recorder.capture();
        const finish = (other: EnsembleStorageRig) => other.replace(target);
        await finish(rig);
        recorder.expect(exactly(target));
        recorder.stop();
        total = add(total, await check(recorder.points, { old, target, finish }, options));
      }
    }
  }
  expect(total.states).toBeGreaterThan(breadth(20, 400));
  if (isFull) for (const count of [total.old, total.between, total.target]) expect(count).toBeGreaterThan(20);
});

test('the test detects a truncation that does not wait for the disk', async () => {
  const disk = new VirtualDisk();
  const old = await build(disk, shapes[1]!, small);
  const target = old.slice(0, 2);
  const { rig } = await openOn(disk, small);
  const recorder = new Recorder(disk, exactly(target));
  // As in ZooKeeper: no folder is synced.
  const isUnsynced = (path: string) => path === '/data/version-2';
  const original = disk.syncFolder.bind(disk);
  disk.syncFolder = (path) => (isUnsynced(path) ? Promise.resolve() : original(path));
  recorder.stop();
  const finish = (other: EnsembleStorageRig) => other.truncate(target.at(-1)!);
  await finish(rig);
  recorder.capture();
  await expect(check(recorder.points, { old, target, finish }, small)).rejects.toThrow(/kept/);
});

test('a crash at any moment of joining an epoch leaves epochs that are not larger than that of the history (ZOOKEEPER-4643, ZOOKEEPER-2307)', async () => {
  let total = none;
  for (const sync of sample(['snap', 'trunc', 'diff'] as const, 1)) {
    const disk = new VirtualDisk();
    const old = await build(disk, shapes[1]!, small);
    const { rig } = await openOn(disk, small);
    const basis = sync === 'trunc' ? old.slice(0, 5) : sync === 'snap' ? [...zxids(1, 1, 9), ...zxids(2, 1, 4)] : old;
    // The history with which epoch 6 begins, and what its leader has written since.
    const initial = [...basis, ...zxids(3, 1, 3)];
    const target = [...initial, ...zxids(6, 1, 2)];
    let accepted = 1;
    let current = 1;
    let longest: readonly Zxid[] = old;
    let shortest: readonly Zxid[] = [];
    const promised = (): Judge => {
      const [acceptedNow, currentNow, longestNow, shortestNow] = [accepted, current, longest, shortest];
      return (found) => {
        if (found.accepted < acceptedNow) return `acceptedEpoch went back to ${found.accepted} from ${acceptedNow}`;
        if (found.current < currentNow) return `currentEpoch went back to ${found.current} from ${currentNow}`;
        if (found.current > found.accepted) return `currentEpoch ${found.current} is ahead of acceptedEpoch ${found.accepted}`;
        if (found.current === 6 && !isPrefix(initial, found.history)) return 'currentEpoch is ahead of the history';
        if (!isPrefix(found.history, longestNow) && !isPrefix(found.history, old)) return 'the history is another';
        return isPrefix(shortestNow, found.history) ? undefined : 'txns are missing';
      };
    };
    const recorder = new Recorder(disk, promised());
    await rig.storage.saveEpoch('acceptedEpoch', 6);
    accepted = rig.acceptedEpoch = 6;
    longest = target;
    recorder.expect(promised());
    if (sync === 'trunc') await rig.truncate(basis.at(-1)!);
    if (sync === 'snap') await rig.storage.installSnapshot(basis.at(-1)!, stateWith(basis).source());
    shortest = basis;
    recorder.expect(promised());
    // Not yet: the epoch becomes current only when all of it is durable.
    rig.currentEpoch = 6;
    await rig.write(target.slice(basis.length));
    shortest = target;
    recorder.expect(promised());
    await rig.storage.saveEpoch('currentEpoch', 6);
    current = 6;
    recorder.expect(promised());
    recorder.stop();
    const finish = (other: EnsembleStorageRig) => other.replace(target);
    total = add(total, await check(recorder.points, { old, target, finish }, small));
  }
  expect(total.states).toBeGreaterThan(breadth(20, 150));
});
