/** What servers have left on their disks: the txns they agree on, and the states that their snapshots lead to. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { type CoreOptions, coreDefaults } from '@tskeeper/core';
import { counterOf, epochOf, formatZxid, Reader, readTxn, type Zxid } from '@tskeeper/protocol';
import { MemoryDisk, numberedFiles, readLog, SeededRandom } from '@tskeeper/runtime';
import { snappy } from '@tskeeper/simulator';
import { snapshotState } from '@tskeeper/simulator/internal';
import type { KeptLog } from './log-keeper.ts';
import type { Member } from './member.ts';
import type { RealWorld } from './real-world.ts';

const txnBytesMax = 4_000_000;

async function filesOf(server: Member, prefix: 'log' | 'snapshot'): Promise<Map<string, Buffer>> {
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

/** The end of an epoch, as far as somebody's log shows what came behind it. */
interface EpochEnd {
  readonly counter: number;
  readonly server: string;
}

/**
 * Puts the logs of all servers together, those included that have been removed since: a zxid names one txn, whoever has it. What an
 * epoch had proposed and not committed when it ended is left out: it stands behind the last txn that any later history goes on from.
 */
export async function readLogs(world: RealWorld, logs: readonly KeptLog[]): Promise<void> {
  const { recording } = world;
  const entries = new Map<Zxid, Entry>();
  const ends = new Map<number, EpochEnd>();
  /** By server, the txn it logged last. */
  const last = new Map<Member, Zxid>();
  for (const { server, name, path: file, continues } of logs) {
    if (!continues) last.delete(server);
    const disk = new MemoryDisk();
    disk.plant(`/${name}`, await readFile(file));
    await readLog(await disk.open(`/${name}`, 'existing'), txnBytesMax, (zxid, bytes, start, stop) => {
      const entry: Entry = { server: `${name} of ${server.name}`, bytes: Buffer.from(bytes.subarray(start, stop)) };
      const known = entries.get(zxid);
      if (known === undefined) entries.set(zxid, entry);
      else if (!known.bytes.equals(entry.bytes)) {
        recording.faults.push(`${formatZxid(zxid)} is one txn in ${known.server} and another in ${entry.server}`);
      }
      const before = last.get(server);
      last.set(server, zxid);
      if (before === undefined || zxid < before) return;
      // An epoch that is passed over has left nothing.
      for (let epoch = epochOf(before); epoch < epochOf(zxid); epoch++) {
        const counter = epoch === epochOf(before) ? counterOf(before) : 0;
        const end = ends.get(epoch);
        if (end === undefined) ends.set(epoch, { counter, server: entry.server });
        else if (end.counter !== counter) {
          recording.faults.push(
            `epoch ${epoch} ends with its txn ${end.counter} in ${end.server}, and with its txn ${counter} in ${entry.server}`,
          );
        }
      }
    });
  }
  recording.log = [...entries]
    .filter(([zxid]) => counterOf(zxid) <= (ends.get(epochOf(zxid))?.counter ?? Infinity))
    .toSorted(([a], [b]) => a - b)
    .map(([, { bytes }]) => {
      const logged = readTxn(new Reader(bytes));
      return { atMs: logged.header.time, logged };
    });
}

/** Of each server's snapshots the oldest, the newest and some between. */
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
