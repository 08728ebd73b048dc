/** Reading snapshots for the tools: into the server's own tree, by the server's own loader. */
import { coreDefaults } from '@tskeeper/core';
import { type DataTree, type LoadedSnapshot, type NodeId, Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import { formatZxid, type LoggedTxn } from '@tskeeper/protocol';
import { decodeSnapshot } from '@tskeeper/runtime';
import { compressionOfName, isUnreadable } from '@tskeeper/runtime/internal';
import { openForReading, snappy, SystemRandom } from '@tskeeper/server/internal';
import { CommandRefused } from '../exit-codes.ts';
import { type FoundFile, unknownZxid } from './find-files.ts';

/** Where TTL znodes are not enabled their owners are taken for sessions; a tool shows them for what they are. */
const treeOptions = () => replicaOptions({ ...coreDefaults, extendedTypesEnabled: true, treeDigestEnabled: true }, new SystemRandom());

/** Loads a snapshot. Rejects with the reason when its bytes are not those of a snapshot (`isUnreadable`). */
export async function loadSnapshotFile(snapshot: FoundFile): Promise<LoadedSnapshot> {
  const loader = new SnapshotLoader(treeOptions());
  const file = await openForReading(snapshot.path);
  try {
    await decodeSnapshot(file, compressionOfName(snapshot.name), snappy, (piece) => loader.feed(piece));
  } finally {
    await file.close();
  }
  return loader.finish();
}

/** The same for tools that can do nothing without it. */
export async function needSnapshotFile(snapshot: FoundFile): Promise<LoadedSnapshot> {
  try {
    return await loadSnapshotFile(snapshot);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    throw new CommandRefused(`${snapshot.path} cannot be read as a snapshot: ${error.message}`);
  }
}

/** The zxid a server would start from: that of the name, or what the file says when its name says nothing. */
export function zxidOf(snapshot: FoundFile, loaded: LoadedSnapshot): number {
  return snapshot.zxid === unknownZxid ? (loaded.lastZxid ?? loaded.digest?.zxid ?? unknownZxid) : snapshot.zxid;
}

export interface TreeEntry {
  readonly path: string;
  readonly node: NodeId;
}

/** Every znode, a parent before its children and siblings by name, so that two trees are walked in the same order. */
export function* walkTree(tree: DataTree): Generator<TreeEntry, void, undefined> {
  const open: TreeEntry[] = [{ path: '/', node: tree.find('/') }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    yield entry;
    const children: TreeEntry[] = [];
    for (let child = tree.firstChildOf(entry.node); child !== 0; child = tree.nextSiblingOf(child)) {
      children.push({ path: tree.pathOf(child), node: child });
    }
    // The one that is to come next has to be the last.
    children.sort((a, b) => (a.path < b.path ? 1 : -1));
    for (const child of children) open.push(child);
  }
}

/** A state onto which logged txns can be replayed, to see whether it comes to the digests they bear. */
export class Replay {
  readonly #replica: Replica;
  /** Digests of txns up to here say nothing: the snapshot may hold effects of later txns. */
  readonly comparesAfter: number;
  #mismatched = false;

  /** From a snapshot, or from the empty tree of a new server. */
  constructor(base?: { readonly loaded: LoadedSnapshot; readonly zxid: number }) {
    this.#replica = new Replica(treeOptions(), base === undefined ? undefined : { snapshot: base.loaded, zxid: base.zxid });
    this.comparesAfter = Math.max(base?.zxid ?? 0, base?.loaded.digest?.zxid ?? 0);
    this.#replica.notice = (notice) => {
      if (notice.kind === 'digestMismatch') this.#mismatched = true;
    };
  }

  /** Applies a txn. Tells whether the tree then has the digest that the txn bears; undefined when that cannot be compared. */
  apply({ header, txn, digest }: LoggedTxn): boolean | undefined {
    this.#mismatched = false;
    const job = this.#replica.apply(header, txn, digest);
    if (job !== undefined) while (job.next().done !== true);
    if (digest?.version !== 2 || header.zxid <= this.comparesAfter) return undefined;
    return !this.#mismatched;
  }

  get tree(): DataTree {
    return this.#replica.tree;
  }

  get lastZxid(): number {
    return this.#replica.lastZxid;
  }
}

export function lastZxidText(zxid: number): string {
  return zxid === unknownZxid ? 'unknown' : formatZxid(zxid);
}
