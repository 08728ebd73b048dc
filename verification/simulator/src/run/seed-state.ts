/**
 * Writes a state to a disk before the first start, with the production writers: for runs that begin
 * near the end of a counter.
 */
import { Replica, replicaOptions } from '@tskeeper/core/internal';
import { OpCode, openAcl, readOnlyAcl, systemPath, type Txn, type Zxid } from '@tskeeper/protocol';
import { SeededRandom, writeSnapshot } from '@tskeeper/runtime';
import type { SeedState } from '../record/recording.ts';
import { parentOf } from '../record/parent-of.ts';
import type { ServerHost } from '../world/server-host.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

const int32Max = 2 ** 31 - 1;
/** Ample for a write to a disk that does not fail. */
const writeMaxMs = 1000;

/**
 * Writes one snapshot, the result of these txns; the last of them gets the zxid in the snapshot's
 * name.
 */
export async function writeSeedTxns(
  world: VirtualWorld,
  server: ServerHost,
  zxid: Zxid,
  wallMs: number,
  txns: readonly { readonly type: number; readonly txn: Txn }[],
): Promise<void> {
  const replica = new Replica(replicaOptions(server.core, new SeededRandom(1)));
  for (const [index, { type, txn }] of txns.entries()) {
    replica.apply({ clientHigh: 0, clientLow: 0, cxid: 0, zxid: zxid - txns.length + 1 + index, time: wallMs, type }, txn, undefined);
  }
  await world.until(server.disk.ensureFolder(server.snapshotFolder), writeMaxMs);
  const job = { folder: server.snapshotFolder, zxid: replica.lastZxid, source: replica.snapshot() } as const;
  await world.until(
    writeSnapshot(server.disk, world.clock, { ...job, compression: 'none', snappy: undefined, isCancelled: () => false }),
    writeMaxMs,
  );
}

export async function writeSeedState(world: VirtualWorld, server: ServerHost, seedState: SeedState): Promise<void> {
  const { zxid, wallMs, znodes } = seedState;
  await writeSeedTxns(
    world,
    server,
    zxid,
    wallMs,
    znodes.map(({ path, data }) => {
      const isSystem = path.startsWith(systemPath.sequences);
      const txn: Txn = {
        kind: 'create',
        path,
        data: data === undefined && isSystem ? null : Buffer.from(data ?? ''),
        acl: isSystem ? readOnlyAcl : openAcl,
        ephemeral: false,
        parentCVersion: parentCVersionAfter(path, znodes),
      };
      return { type: OpCode.create, txn };
    }),
  );
  world.recording.seedState = seedState;
}

/** A parent's counter is set by its last child. It never moves by half a circle at once. */
function parentCVersionAfter(path: string, znodes: SeedState['znodes']): number {
  const parent = znodes.find((other) => other.path === parentOf(path));
  if (parent === undefined) return -1;
  const last = znodes.findLast((other) => parentOf(other.path) === parent.path)!;
  return path === last.path ? parent.creates | 0 : int32Max;
}
