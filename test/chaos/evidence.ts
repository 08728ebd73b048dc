/** What servers have left on their disks: the txns they agree on, and the states that their snapshots lead to. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { type CoreOptions, coreDefaults } from '@tskeeper/core';
import { formatZxid, Reader, readTxn } from '@tskeeper/protocol';
import { MemoryDisk, numberedFiles, readLog, SeededRandom } from '@tskeeper/runtime';
import { snappy } from '@tskeeper/simulator';
import { snapshotState } from '@tskeeper/simulator/internal';
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

/** Puts the logs of all servers together: a zxid names one txn, whoever has it. Returns how many each has. */
export async function readLogs(world: RealWorld): Promise<Map<string, number>> {
  const { recording } = world;
  const entries = new Map<number, Entry>();
  const counts = new Map<string, number>();
  for (const server of world.servers) {
    const disk = new MemoryDisk();
    let count = 0;
    for (const [name, content] of await filesOf(server, 'log')) {
      disk.plant(`/${name}`, content);
      const file = await disk.open(`/${name}`, 'existing');
      const end = await readLog(file, txnBytesMax, (zxid, bytes, start, stop) => {
        count++;
        const entry: Entry = { server: `${name} of ${server.name}`, bytes: Buffer.from(bytes.subarray(start, stop)) };
        const known = entries.get(zxid);
        if (known === undefined) entries.set(zxid, entry);
        else if (!known.bytes.equals(entry.bytes)) {
          recording.faults.push(`${formatZxid(zxid)} is one txn in ${known.server} and another in ${entry.server}`);
        }
      });
      if (end.reason !== 'end of file' && end.reason !== 'padding') {
        recording.faults.push(`${name} of ${server.name} ends with ${end.reason}`);
      }
    }
    counts.set(server.name, count);
  }
  recording.log = [...entries]
    .toSorted(([a], [b]) => a - b)
    .map(([, { bytes }]) => {
      const logged = readTxn(new Reader(bytes));
      return { atMs: logged.header.time, logged };
    });
  return counts;
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
