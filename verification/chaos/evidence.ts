/**
 * What servers have on their disks: the txns that they agree on, and the states of their snapshots.
 */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { type CoreOptions, coreDefaults } from '@tskeeper/core';
import { counterOf, epochOf, formatZxid, Reader, readTxn, type Zxid } from '@tskeeper/protocol';
import { VirtualDisk, numberedFiles, readLog, SeededRandom } from '@tskeeper/runtime';
import { snappy } from '@tskeeper/simulator';
import { snapshotState } from '@tskeeper/simulator/internal';
import type { ArchivedLog, LogArchive, LogSet } from './log-archive.ts';
import type { RealServer } from './real-server.ts';
import type { RealWorld } from './real-world.ts';

const txnBytesMax = 4_000_000;

async function filesOf(server: RealServer, prefix: 'log' | 'snapshot'): Promise<Map<string, Buffer>> {
  const folder = path.join(server.dataDir, 'version-2');
  const names = numberedFiles(await readdir(folder), prefix).map(({ name }) => name);
  const files = new Map<string, Buffer>();
  for (const name of names) files.set(name, await readFile(path.join(folder, name)));
  return files;
}

interface Entry {
  readonly server: string;
  readonly bytes: Buffer;
}

/** The content of a log file, in order. */
type LogZxids = readonly Zxid[];

/**
 * Merges the logs of all servers, including removed ones: a zxid names one txn in all of them. Txns
 * that an epoch proposed without committing them are omitted: they come after the last txn from
 * which a later history continues.
 */
export async function readLogs(world: RealWorld, states: LogArchive['logSets']): Promise<void> {
  const { recording } = world;
  const entries = new Map<Zxid, Entry>();
  const contents = new Map<ArchivedLog, LogZxids>();
  for (const [server, all] of states) {
    for (const log of new Set(all.flat())) contents.set(log, await readLogFile(log, server, entries, recording.violations));
  }
  const ends = epochEnds(states, contents, recording.violations);
  recording.log = [...entries]
    .filter(([zxid]) => counterOf(zxid) <= (ends.get(epochOf(zxid)) ?? Infinity))
    .toSorted(([a], [b]) => a - b)
    .map(([, { bytes }]) => {
      const logged = readTxn(new Reader(bytes));
      return { atMs: logged.header.time, bytes: bytes.length, logged };
    });
}

async function readLogFile(
  { name, path: file }: ArchivedLog,
  server: RealServer,
  entries: Map<Zxid, Entry>,
  violations: string[],
): Promise<LogZxids> {
  const disk = new VirtualDisk();
  disk.putFile(`/${name}`, await readFile(file));
  const zxids: Zxid[] = [];
  await readLog(await disk.open(`/${name}`, 'existing'), txnBytesMax, (zxid, bytes, start, stop) => {
    zxids.push(zxid);
    const entry: Entry = { server: `${name} of ${server.name}`, bytes: Buffer.from(bytes.subarray(start, stop)) };
    const known = entries.get(zxid);
    if (known === undefined) entries.set(zxid, entry);
    else if (!known.bytes.equals(entry.bytes)) {
      violations.push(`${formatZxid(zxid)} is one txn in ${known.server} and another in ${entry.server}`);
    }
  });
  return zxids;
}

/**
 * By epoch, the counter of its last committed txn, as far as a history continues after it. In the
 * end all histories must agree; an abandoned one counts only for epochs that no other history has.
 */
function epochEnds(states: LogArchive['logSets'], contents: ReadonlyMap<ArchivedLog, LogZxids>, violations: string[]): Map<number, number> {
  const ends = new Map<number, number>();
  for (const [server, all] of states) {
    for (const [epoch, counter] of endsIn(all.at(-1) ?? [], contents)) {
      const known = ends.get(epoch);
      if (known !== undefined && known !== counter) {
        violations.push(`epoch ${epoch} ends with its txn ${counter} in the log of ${server.name}, and with its txn ${known} in another`);
      }
      ends.set(epoch, counter);
    }
  }
  for (const all of states.values()) {
    for (const logs of all.toReversed()) {
      for (const [epoch, counter] of endsIn(logs, contents)) if (!ends.has(epoch)) ends.set(epoch, counter);
    }
  }
  return ends;
}

function endsIn(logs: LogSet, contents: ReadonlyMap<ArchivedLog, LogZxids>): Map<number, number> {
  const ends = new Map<number, number>();
  let before: Zxid | undefined;
  for (const log of logs) {
    for (const zxid of contents.get(log) ?? []) {
      // A skipped epoch has left no txn.
      for (let epoch = epochOf(before ?? zxid); epoch < epochOf(zxid); epoch++) {
        ends.set(epoch, epoch === epochOf(before!) ? counterOf(before!) : 0);
      }
      before = zxid;
    }
  }
  return ends;
}

/** Of each server's snapshots the oldest, the newest and some in between. */
export async function readSnapshots(world: RealWorld, core: Partial<CoreOptions>, random: SeededRandom, countMax: number): Promise<void> {
  const options: CoreOptions = { ...coreDefaults, ...core };
  for (const server of world.servers) {
    const [logs, snapshots] = [await filesOf(server, 'log'), await filesOf(server, 'snapshot')];
    const names = [...snapshots.keys()];
    while (names.length > countMax) names.splice(1 + random.below(names.length - 2), 1);
    for (const name of names) {
      const source = { server: server.name, name, bytes: snapshots.get(name)!, logs, core: options, clock: world.clock, snappy };
      world.recording.snapshots.push(await snapshotState(source, (work) => work));
    }
  }
}
