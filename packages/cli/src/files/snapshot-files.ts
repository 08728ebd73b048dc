/** Loads snapshots for the tools into the server's tree, with the server's loader. */
import { coreDefaults } from '@tskeeper/core';
import { type DataTree, type LoadedSnapshot, type NodeId, Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import { formatZxid, type TxnLogEntry } from '@tskeeper/protocol';
import { decodeSnapshot } from '@tskeeper/runtime';
import { compressionOfName, isUnreadable } from '@tskeeper/runtime/internal';
import { openForReading, snappy, SystemRandom } from '@tskeeper/server/internal';
import { CommandRefused } from '../exit-codes.ts';
import { type FoundFile, unknownZxid } from './find-files.ts';

/**
 * Without TTL znodes enabled, the server would take their owners for sessions; a tool shows them as
 * TTL znodes.
 */
const treeOptions = () => replicaOptions({ ...coreDefaults, extendedTypesEnabled: true, treeDigestEnabled: true }, new SystemRandom());

/** Loads a snapshot. Rejects with the reason if its bytes are not a snapshot (`isUnreadable`). */
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

/** The same for tools that cannot continue without the snapshot: rejects with CommandRefused. */
export async function requireSnapshotFile(snapshot: FoundFile): Promise<LoadedSnapshot> {
  try {
    return await loadSnapshotFile(snapshot);
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    throw new CommandRefused(`cannot read ${snapshot.path} as a snapshot: ${error.message}`);
  }
}

/**
 * The zxid from which a server would start: from the file's name, or from its content if the name
 * has none.
 */
export function zxidOf(snapshot: FoundFile, loaded: LoadedSnapshot): number {
  return snapshot.zxid === unknownZxid ? (loaded.lastZxid ?? loaded.digest?.zxid ?? unknownZxid) : snapshot.zxid;
}

export interface TreeEntry {
  readonly path: string;
  readonly node: NodeId;
}

/**
 * Every znode, parents before children and siblings by name, so that two trees are walked in the
 * same order.
 */
export function* walkTree(tree: DataTree): Generator<TreeEntry, void, undefined> {
  const open: TreeEntry[] = [{ path: '/', node: tree.find('/') }];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    yield entry;
    const children: TreeEntry[] = [];
    for (let child = tree.firstChildOf(entry.node); child !== 0; child = tree.nextSiblingOf(child)) {
      children.push({ path: tree.pathOf(child), node: child });
    }
    // The next one has to be the last element.
    children.sort((a, b) => (a.path < b.path ? 1 : -1));
    for (const child of children) open.push(child);
  }
}

/** A tree onto which logged txns are replayed, to compare it with the digests in the txns. */
export class Replay {
  readonly #replica: Replica;
  /**
   * Digests of txns up to this zxid are not compared: the snapshot may contain effects of later
   * txns.
   */
  readonly comparedAfterZxid: number;
  #mismatched = false;

  /** Starts from a snapshot, or from the empty tree of a new server. */
  constructor(base?: { readonly loaded: LoadedSnapshot; readonly zxid: number }) {
    this.#replica = new Replica(treeOptions(), base === undefined ? undefined : { snapshot: base.loaded, zxid: base.zxid });
    this.comparedAfterZxid = Math.max(base?.zxid ?? 0, base?.loaded.digest?.zxid ?? 0);
    this.#replica.onNotice = (notice) => {
      if (notice.kind === 'digestMismatch') this.#mismatched = true;
    };
  }

  /**
   * Applies a txn. Returns whether the tree then has the digest in the txn; undefined if they
   * cannot be compared.
   */
  apply({ header, txn, digest }: TxnLogEntry): boolean | undefined {
    this.#mismatched = false;
    const job = this.#replica.apply(header, txn, digest);
    if (job !== undefined) while (job.next().done !== true);
    if (digest?.version !== 2 || header.zxid <= this.comparedAfterZxid) return undefined;
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
