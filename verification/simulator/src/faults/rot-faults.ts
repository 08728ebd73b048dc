/**
 * Damage to files at rest. A server must notice it when it starts and refuse with a sentence that
 * names the remedy, or reach the same state as without the damage. Only what is known to have been
 * durable is damaged: after the mark of a log (docs/internals/storage.md) damage cannot be
 * distinguished from a torn tail.
 */
import { adler32, type Zxid } from '@tskeeper/protocol';
import { decodeMark } from '@tskeeper/runtime/internal';
import { markName, numberedFiles, sectorBytes, type SeededRandom } from '@tskeeper/runtime';
import type { Run } from '../run/run.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { Fault } from './fault.ts';

/** Kills one or two servers and damages the disk of each. */
function corruptServers(run: Run, random: SeededRandom, corruptFile: (server: ServerHost) => boolean): void {
  const count = random.below(3) === 0 ? 2 : 1;
  for (let turn = 0; turn < count; turn++) {
    const server = run.anyServer();
    server.kill();
    if (corruptFile(server)) run.hitMark('bit rot in a file');
    run.restartAfter(server, random.below(200));
  }
}

/**
 * Flips bits, zeroes a sector that was never written, or fills one with another part of the file.
 * It excludes damage that Adler-32 cannot detect: the files are ZooKeeper's and have no other
 * checksum. Of flipped bits it takes three, such as +16, -32, +16 in three neighbouring bytes, or one
 * in an entry and two in its checksum; so there are at most two.
 */
export function corrupt(random: SeededRandom, whole: Buffer, from: number, to: number): Buffer {
  const bytes = corruptOnce(random, whole, from, to);
  return bytes.equals(whole) || adler32(bytes) !== adler32(whole) ? bytes : corrupt(random, whole, from, to);
}

function corruptOnce(random: SeededRandom, whole: Buffer, from: number, to: number): Buffer {
  const bytes = Buffer.from(whole);
  const at = from + random.below(to - from);
  switch (random.below(3)) {
    case 0:
      for (let flips = 1 + random.below(2); flips > 0; flips--) bytes[Math.min(to - 1, at + random.below(20))]! ^= 1 << random.below(8);
      break;
    case 1:
      bytes.fill(0, at - (at % sectorBytes), Math.min(bytes.length, at - (at % sectorBytes) + sectorBytes));
      break;
    default: {
      const source = random.below(bytes.length);
      whole.copy(bytes, at - (at % sectorBytes), source - (source % sectorBytes), source - (source % sectorBytes) + sectorBytes);
    }
  }
  return bytes;
}

interface MarkedLog {
  readonly path: string;
  /** The last txn that it is known to hold. */
  readonly lastZxid: Zxid;
  /** The length up to which it is known to have been durable. */
  readonly durableBytes: number;
  /**
   * Its mark has moved since the log was begun, and nothing follows the mark: so the whole content
   * is known to have been durable.
   */
  readonly isProvablyThere: boolean;
  /**
   * The next log has no mark, possibly because of a disk error. Between two epochs nothing else
   * shows what is missing.
   */
  readonly isNextUnmarked: boolean;
}

/**
 * Oldest first. Only the durable part of a mark counts: a power loss may undo what was merely
 * written.
 */
function markedLogs(server: ServerHost): MarkedLog[] {
  const { disk, logFolder } = server;
  const durable = server.durableDisk();
  const durableFiles = new Set(durable.files());
  const inFolder = new Set(disk.files().flatMap((path) => (path.startsWith(`${logFolder}/`) ? [path.slice(logFolder.length + 1)] : [])));
  const logs = numberedFiles([...inFolder], 'log');
  return logs.flatMap(({ name, zxid }, at) => {
    const markPath = `${logFolder}/${markName(zxid)}`;
    const mark = inFolder.has(markName(zxid)) && durableFiles.has(markPath) ? decodeMark(durable.contents(markPath)) : undefined;
    if (mark === undefined) return [];
    const path = `${logFolder}/${name}`;
    const hasMore = disk
      .contents(path)
      .subarray(mark.offset)
      .some((byte) => byte !== 0);
    const next = logs[at + 1];
    const isNextUnmarked = next !== undefined && !inFolder.has(markName(next.zxid));
    return [{ path, lastZxid: mark.lastZxid, durableBytes: mark.offset, isProvablyThere: mark.sequence > 1 && !hasMore, isNextUnmarked }];
  });
}

/** Damage near the end of the durable part matters most. */
const tailBytes = 60;

export const logRot: Fault = {
  id: 'F5, F8',
  description:
    'a log file is damaged at rest, at its end or in the middle: flipped bits, a sector that was never written, or a misplaced one',
  inject(run, random) {
    corruptServers(run, random, (server) => {
      const logs = markedLogs(server).filter(
        ({ path, durableBytes }) => !server.isDamagedAt(path) && durableBytes <= server.disk.contents(path).length,
      );
      const log = logs[random.below(2) === 0 ? logs.length - 1 : random.below(Math.max(1, logs.length))];
      if (log === undefined) return false;
      const from = random.below(2) === 0 ? Math.max(0, log.durableBytes - tailBytes) : 0;
      server.damage(log.path, corrupt(random, server.disk.contents(log.path), from, log.durableBytes));
      return true;
    });
  },
};

export const snapshotRot: Fault = {
  id: 'F6',
  description: 'snapshots are damaged at rest: the newest, another one, or all',
  inject(run, random) {
    corruptServers(run, random, (server) => {
      const { disk, snapshotFolder } = server;
      const names = disk.files().flatMap((path) => (path.startsWith(`${snapshotFolder}/`) ? [path.slice(snapshotFolder.length + 1)] : []));
      const snapshots = numberedFiles(names, 'snapshot');
      const paths = snapshots.map(({ name }) => `${snapshotFolder}/${name}`);
      const all = random.below(6) === 0;
      const one = random.below(2) === 0 ? paths.length - 1 : random.below(Math.max(1, paths.length));
      const bad = paths.filter((path, index) => (all || index === one) && !server.isDamagedAt(path) && disk.contents(path).length > 0);
      for (const path of bad) {
        const whole = disk.contents(path);
        server.damage(
          path,
          random.below(8) === 0 ? whole.subarray(0, random.below(whole.length)) : corrupt(random, whole, 0, whole.length),
        );
      }
      return bad.length > 0;
    });
  },
};

const garbage = ['', '\0', 'x', '-1', '1 2', '99999999999999999999'];

export const epochRot: Fault = {
  id: 'F7',
  description: 'an epoch file is empty, is not a number, or is missing; or a temporary file from an interrupted write lies beside it',
  ensembleOnly: true,
  inject(run, random) {
    corruptServers(run, random, (server) => {
      const { disk, snapshotFolder } = server;
      const name = random.below(2) === 0 ? 'acceptedEpoch' : 'currentEpoch';
      const path = `${snapshotFolder}/${name}`;
      // A folder with neither file counts as that of a standalone server, as in ZooKeeper.
      const isOneDamaged = ['acceptedEpoch', 'currentEpoch'].some((each) => server.isDamagedAt(`${snapshotFolder}/${each}`));
      if (!disk.files().includes(path) || isOneDamaged) return false;
      switch (random.below(3)) {
        case 0:
          server.damage(path, Buffer.from(garbage[random.below(garbage.length)]!, 'latin1'));
          return true;
        case 1:
          server.damage(path, undefined);
          return true;
        default: {
          // A new acceptedEpoch may have been in progress; currentEpoch is rewritten unchanged.
          const epoch = Number(disk.contents(path).toString('latin1')) + (name === 'acceptedEpoch' ? random.below(2) : 0);
          disk.putFile(
            `${path}.tmp`,
            Buffer.from(random.below(2) === 0 ? String(epoch) : garbage[random.below(garbage.length - 1)]!, 'latin1'),
          );
          return true;
        }
      }
    });
  },
};

export const lostLog: Fault = {
  id: 'F8',
  description: 'a log file is missing, the newest or another',
  inject(run, random) {
    corruptServers(run, random, (server) => {
      const logs = markedLogs(server);
      const log = logs[random.below(2) === 0 ? logs.length - 1 : random.below(Math.max(1, logs.length))];
      if (log?.isProvablyThere !== true || log.isNextUnmarked || server.isDamagedAt(log.path)) return false;
      server.damage(log.path, undefined);
      return true;
    });
  },
};
