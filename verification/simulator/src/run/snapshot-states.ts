/**
 * Starts from snapshots that servers wrote and the logs after them, with the production recovery,
 * and records the result. A run starts from its newest snapshot only; here others get their turn.
 */
import type { CoreOptions } from '@tskeeper/core';
import { type LoadedSnapshot, Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import {
  type Acl,
  openAcl,
  openAclKey,
  Reader,
  readFileHeader,
  readSnapshotAcls,
  readSnapshotNode,
  readSnapshotSessions,
  sessionIdOf,
  type StatPersisted,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { type Clock, VirtualDisk, numberedFiles, Recovery, SeededRandom, silentLogger, type SnappyCodec } from '@tskeeper/runtime';
import type { SnapshotState } from '../record/recording.ts';
import { aclOf } from '../model/from-wire.ts';
import { parentOf } from '../record/parent-of.ts';
import { znodeText } from '../replay/znode-text.ts';
import type { ServerHost } from '../world/server-host.ts';
import { everKeptNoLog } from '../record/servers-without-log.ts';
import type { VirtualWorld } from '../world/virtual-world.ts';

const folder = '/check/version-2';
const sliceBytes = 64 * 1024;
const recoveryMaxMs = 10_000;

/** Of up to `countMax` snapshots, the oldest and the newest among them. */
export async function snapshotStates(
  world: VirtualWorld,
  server: ServerHost,
  snappy: SnappyCodec | undefined,
  random: SeededRandom,
  countMax: number,
): Promise<SnapshotState[]> {
  // An observer without a log leaves nothing that leads to its last state.
  if (everKeptNoLog(world.recording, server.name)) return [];
  const snapshots = server.evidence('snapshot');
  const names = numberedFiles([...snapshots.keys()], 'snapshot').map(({ name }) => name);
  while (names.length > countMax) names.splice(1 + random.below(names.length - 2), 1);
  const states: SnapshotState[] = [];
  for (const name of names) states.push(await stateFrom(world, server, name, snapshots.get(name)!, snappy));
  return states;
}

function stateFrom(
  world: VirtualWorld,
  server: ServerHost,
  name: string,
  bytes: Buffer,
  snappy: SnappyCodec | undefined,
): Promise<SnapshotState> {
  const source = { server: server.name, name, bytes, logs: server.evidence('log'), core: server.core, clock: world.clock, snappy };
  return snapshotState(source, (work) => world.until(work, recoveryMaxMs));
}

/** A snapshot as a server left it, and the logs beside it. */
export interface SavedSnapshot {
  readonly server: string;
  readonly name: string;
  readonly bytes: Buffer;
  /** By name. */
  readonly logs: ReadonlyMap<string, Buffer>;
  readonly core: CoreOptions;
  readonly clock: Clock;
  readonly snappy: SnappyCodec | undefined;
}

/** The result of a start from this snapshot. `until` waits for work that takes simulated time. */
export async function snapshotState(
  { server, name, bytes, logs, core, clock, snappy }: SavedSnapshot,
  until: (work: Promise<unknown>) => Promise<unknown>,
): Promise<SnapshotState> {
  const disk = new VirtualDisk();
  for (const [log, content] of logs) disk.putFile(`${folder}/${log}`, content);
  disk.putFile(`${folder}/${name}`, bytes);
  let content: SnapshotState['content'] = { zxid: 0, digest: 0n };
  const replica = recoverReplica(disk, { snapshotFolder: folder, logFolder: folder, core, clock, snappy }, (loaded, zxid) => {
    const { digestHigh, digestLow } = loaded.tree;
    content = { zxid, digest: sessionIdOf(digestHigh, digestLow) };
  });
  await until(replica);
  const { lastZxid, znodes, sessions, digest } = stateOf(await replica);
  return { file: `${name} of ${server}`, lastZxid, znodes, sessions, digest, content };
}

/** The folders and options of a start. */
export interface RecoveryInputs {
  readonly snapshotFolder: string;
  readonly logFolder: string;
  readonly core: CoreOptions;
  readonly clock: Clock;
  readonly snappy: SnappyCodec | undefined;
}

/** The result of a start on this disk, with the production recovery. */
export async function recoverReplica(
  disk: VirtualDisk,
  { snapshotFolder, logFolder, core, clock, snappy }: RecoveryInputs,
  onSnapshot: (snapshot: LoadedSnapshot, zxid: Zxid) => void = () => undefined,
): Promise<Replica> {
  const options = replicaOptions(core, new SeededRandom(1));
  let replica = new Replica(options);
  const recovery = new Recovery(disk, clock, silentLogger, {
    canRefetch: false,
    snapshotFolder,
    logFolder,
    snapshotTrustEmpty: false,
    dbAutocreate: true,
    initializeMarked: false,
    snappy,
    txnBytesMax: core.juteMaxBuffer + core.juteMaxBufferExtra,
  });
  await recovery.run({
    beginSnapshot: (zxid) => {
      const loader = new SnapshotLoader(options);
      return {
        feed: (piece) => loader.feed(piece),
        finish: () => {
          const snapshot = loader.finish();
          onSnapshot(snapshot, zxid);
          replica = new Replica(options, { snapshot, zxid });
        },
      };
    },
    apply: (header, txn, digest) => {
      const job = replica.apply(header, txn, digest);
      if (job !== undefined) while (job.next().done !== true);
    },
  });
  return replica;
}

function stateOf(replica: Replica): Omit<SnapshotState, 'file' | 'content'> {
  const writer = new Writer();
  const source = replica.snapshot();
  while (!source.next(writer, sliceBytes));
  const reader = new Reader(Buffer.from(writer.written()));
  readFileHeader(reader);
  const sessions = new Map(readSnapshotSessions(reader).map(({ high, low, timeOut }) => [sessionIdOf(high, low), timeOut]));
  const acls = new Map<number, readonly Acl[]>(readSnapshotAcls(reader).map(({ key, acl }) => [key, acl]));
  acls.set(openAclKey, openAcl);
  const found = new Map<string, { readonly data: Uint8Array | null; readonly aclKey: number; readonly stat: StatPersisted }>();
  const children = new Map<string, number>();
  for (let node = readSnapshotNode(reader); node !== undefined; node = readSnapshotNode(reader)) {
    const path = node.path === '' ? '/' : node.path;
    found.set(path, { ...node, data: node.data === null ? null : Buffer.from(node.data) });
    if (path !== '/') children.set(parentOf(path), (children.get(parentOf(path)) ?? 0) + 1);
  }
  const znodes = new Map<string, string>();
  for (const [path, { data, aclKey, stat }] of found) {
    const numChildren = children.get(path) ?? 0;
    const { cversion, ephemeralOwnerHigh, ephemeralOwnerLow, ...rest } = stat;
    const owner = sessionIdOf(ephemeralOwnerHigh, ephemeralOwnerLow);
    const text = znodeText({
      stat: {
        ...rest,
        cversion: (cversion * 2 - numChildren) | 0,
        ephemeralOwner: isSession(owner) ? owner : 0n,
        dataLength: data?.length ?? 0,
        numChildren,
      },
      data: data === null ? null : Buffer.from(data).toString('latin1'),
      acl: aclOf(acls.get(aclKey)!)!,
    });
    znodes.set(path, text);
  }
  const { digestHigh, digestLow } = replica.tree;
  return { lastZxid: replica.lastZxid, znodes, sessions, digest: sessionIdOf(digestHigh, digestLow) };
}

/** Containers and TTL znodes have a marker in the field for the owning session. */
function isSession(owner: bigint): boolean {
  const top = BigInt.asUintN(64, owner) >> 56n;
  return top !== 0xffn && BigInt.asUintN(64, owner) !== 1n << 63n;
}
