/**
 * Enumerates what a power loss can leave.
 *
 * A workload runs once on the disk in memory. Whenever the possible results of a crash have
 * changed, the disk is captured together with what had been acknowledged by then. Each capture
 * represents many states: the unsynced writes and names may have reached the disk or not, in any
 * combination, and one of them in part. Each state is then started from, checked, written to, and
 * started from once more.
 */
import { crc32 } from 'node:zlib';
import type { Zxid } from '@tskeeper/protocol';
import { crashChoices, type DiskImage, loseAll, VirtualDisk, SeededRandom, type StorageOptions } from '@tskeeper/runtime';
import { dataOf, Server } from './support.ts';

/** What had been acknowledged when the disk was captured. */
export interface CrashPoint {
  readonly image: DiskImage;
  readonly acked: Zxid;
  readonly handedOver: Zxid;
  /** Checksum of the data of each txn; index is the zxid. */
  readonly expected: readonly number[];
}

export interface EnumerationResult {
  readonly points: number;
  readonly states: number;
  /** States in which recovery found and removed something unfinished or torn. */
  readonly repaired: number;
}

const hash = (bytes: Uint8Array) => crc32(bytes);

export async function checkPoints(points: readonly CrashPoint[], options: Partial<StorageOptions>): Promise<EnumerationResult> {
  const random = new SeededRandom(11);
  const seen = new Set<string>();
  let repaired = 0;
  for (const point of points) {
    for (const choice of crashChoices(point.image, random)) {
      const disk = new VirtualDisk(point.image, (_item, index) => choice[index]!);
      // States with the same content and the same acknowledged txns are checked once.
      const key = `${point.acked} ${point.handedOver} ${crc32(disk.fingerprint(hash))}`;
      if (seen.has(key)) continue;
      seen.add(key);
      try {
        if (await startsFrom(disk, point, options)) repaired++;
      } catch (error) {
        const kept = choice.map((bytes, index) => `${bytes} of ${JSON.stringify(point.image.unsynced[index])}`).join('\n  ');
        throw new Error(`acked ${point.acked}, handed over ${point.handedOver}, files ${disk.files().join(' ')}, kept\n  ${kept}`, {
          cause: error,
        });
      }
    }
  }
  return { points: points.length, states: seen.size, repaired };
}

const extra = [dataOf(901, 40), dataOf(902, 700)];

/**
 * Starts, checks, writes, loses power at once, starts and checks again. Returns whether anything
 * was removed.
 */
async function startsFrom(disk: VirtualDisk, point: CrashPoint, options: Partial<StorageOptions>): Promise<boolean> {
  const server = new Server(disk, options);
  const recovered = await server.open();
  checkHistory(server, point);
  await server.write(...extra);
  if (server.failure !== undefined) throw new Error('cannot write after recovery', { cause: server.failure });
  disk.crash(loseAll);
  const again = new Server(disk, options);
  const last = (await again.open()).lastZxid;
  if (last !== recovered.lastZxid + extra.length) throw new Error(`restarted at ${last} instead of ${recovered.lastZxid + extra.length}`);
  checkHistory(
    again,
    { ...point, expected: [...point.expected.slice(0, recovered.lastZxid + 1), ...extra.map((data) => crc32(data))] },
    last,
  );
  return recovered.warnings.length > 0;
}

function checkHistory(server: Server, point: CrashPoint, handedOver = point.handedOver): void {
  const { history, lastZxid } = server.state;
  if (lastZxid < point.acked) throw new Error(`acknowledged ${point.acked}, recovered ${lastZxid}`);
  if (lastZxid > handedOver) throw new Error(`handed over ${handedOver}, recovered ${lastZxid}`);
  if (history.size !== lastZxid) throw new Error(`${history.size} txns up to ${lastZxid}`);
  for (let zxid = 1; zxid <= lastZxid; zxid++) {
    if (history.get(zxid) !== point.expected[zxid]) throw new Error(`txn ${zxid} is not what was written`);
  }
}

/** Captures a disk while servers work on it. */
export class CrashRecorder {
  readonly points: CrashPoint[] = [];
  readonly #disk: VirtualDisk;
  #expected: number[] = [0];
  #acked: () => Zxid = () => 0;

  constructor(disk: VirtualDisk) {
    this.#disk = disk;
    disk.onChanged = () => this.capture();
  }

  capture(): void {
    this.points.push({
      image: this.#disk.capture(),
      acked: this.#acked(),
      handedOver: this.#expected.length - 1,
      expected: this.#expected,
    });
  }

  /** From now on `acked` counts; txns handed over beyond `lastZxid` are forgotten. */
  follow(lastZxid: Zxid, acked: () => Zxid): void {
    this.#expected = this.#expected.slice(0, lastZxid + 1);
    this.#acked = acked;
  }

  expect(data: Buffer): void {
    // Earlier points keep the list they were captured with.
    this.#expected = [...this.#expected, crc32(data)];
  }
}
