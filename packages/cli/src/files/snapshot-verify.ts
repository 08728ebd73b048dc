/**
 * `tskeeper snapshot verify`: checks that a snapshot is what was written, and that its tree has the
 * recorded digest.
 *
 * The seals (checksums) verify the first. The recorded digest may be of a later txn than the name
 * of the file, since ZooKeeper applies txns while it writes a snapshot: then the logs are replayed
 * up to that txn, if they are available.
 */
import { formatZxid } from '@tskeeper/protocol';
import { isUnreadable } from '@tskeeper/runtime/internal';
import type { LoadedSnapshot } from '@tskeeper/core/internal';
import { exitCodes } from '../exit-codes.ts';
import { type FoundFile, unknownZxid } from './find-files.ts';
import { readLogFile, txnBytesMaxDefault } from './log-files.ts';
import type { Output } from './output.ts';
import { lastZxidText, loadSnapshotFile, Replay, zxidOf } from './snapshot-files.ts';
import { count, digestText } from './views.ts';

type DigestVerdict =
  /** The tree has the digest. */
  | 'agrees'
  /** The tree has the digest after the logs are replayed up to its zxid. */
  | 'agrees after replay'
  | 'differs'
  /** The digest is of a later txn, and the logs up to it are not available. */
  | 'not comparable'
  /** The snapshot has no digest. */
  | 'none';

interface SnapshotReport {
  readonly file: string;
  readonly zxid: string;
  readonly verdict: 'sound' | 'damaged';
  /** Why the file cannot be read; null if it can. */
  readonly damage: string | null;
  readonly znodes?: number;
  readonly sessions?: number;
  readonly digest?: { readonly verdict: DigestVerdict; readonly zxid: string | null; readonly value: string | null };
  readonly lastZxid?: string | null;
  /** Number of znodes whose ACL is missing in the file. */
  readonly missingAcls?: number;
}

/** `logs` returns the logs beside a snapshot, if any. */
export async function verifySnapshots(
  snapshots: readonly FoundFile[],
  logs: (snapshot: FoundFile) => Promise<readonly FoundFile[]>,
  output: Output,
): Promise<number> {
  let sound = true;
  for (const snapshot of snapshots) {
    const report = await verifySnapshot(snapshot, logs);
    if (report.verdict === 'damaged') sound = false;
    if (output.format === 'json') output.json(report);
    else output.line(reportText(report));
    await output.flush();
  }
  return sound ? exitCodes.done : exitCodes.failed;
}

async function verifySnapshot(snapshot: FoundFile, logs: (snapshot: FoundFile) => Promise<readonly FoundFile[]>): Promise<SnapshotReport> {
  const { name } = snapshot;
  try {
    const loaded = await loadSnapshotFile(snapshot);
    const zxid = zxidOf(snapshot, loaded);
    const digest = await compareDigest(loaded, zxid, () => logs(snapshot));
    return {
      file: name,
      zxid: lastZxidText(zxid),
      verdict: digest === 'differs' ? 'damaged' : 'sound',
      damage: null,
      znodes: loaded.tree.size,
      sessions: loaded.sessions.length,
      digest: {
        verdict: digest,
        zxid: loaded.digest === undefined ? null : formatZxid(loaded.digest.zxid),
        value: loaded.digest === undefined ? null : digestText(loaded.digest.high, loaded.digest.low),
      },
      lastZxid: loaded.lastZxid === undefined ? null : formatZxid(loaded.lastZxid),
      missingAcls: loaded.missingAcls?.count ?? 0,
    };
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    return { file: name, zxid: lastZxidText(snapshot.zxid), verdict: 'damaged', damage: error.message };
  }
}

async function compareDigest(loaded: LoadedSnapshot, zxid: number, logs: () => Promise<readonly FoundFile[]>): Promise<DigestVerdict> {
  const { digest, tree } = loaded;
  if (digest === undefined || digest.version !== 2) return 'none';
  const agrees = () => tree.digestHigh === digest.high && tree.digestLow === digest.low;
  if (agrees()) return 'agrees';
  if (zxid === unknownZxid) return 'not comparable';
  if (digest.zxid <= zxid) return 'differs';
  const replay = new Replay({ loaded, zxid });
  const stop = new Error('far enough');
  for (const log of await logs()) {
    try {
      await readLogFile(log, txnBytesMaxDefault, {
        txn: (txn) => {
          if (txn.header.zxid <= replay.lastZxid) return;
          if (txn.header.zxid !== replay.lastZxid + 1 || replay.lastZxid >= digest.zxid) throw stop;
          replay.apply(txn);
        },
        unreadable: () => {
          throw stop;
        },
      });
    } catch (error) {
      if (error !== stop) throw error;
      break;
    }
  }
  if (replay.lastZxid < digest.zxid) return 'not comparable';
  return agrees() ? 'agrees after replay' : 'differs';
}

function reportText(report: SnapshotReport): string {
  if (report.damage !== null) return `${report.file}: DAMAGE: ${report.damage}`;
  const digest = {
    agrees: `the tree has the digest of ${report.digest?.zxid}`,
    'agrees after replay': `replayed up to ${report.digest?.zxid}, the tree has its digest`,
    differs: `DAMAGE: the tree does not have the digest of ${report.digest?.zxid}`,
    'not comparable': `the digest is of ${report.digest?.zxid}, and the logs up to it are missing`,
    none: 'no digest',
  }[report.digest?.verdict ?? 'none'];
  const missing = (report.missingAcls ?? 0) > 0 ? `; the ACLs of ${count(report.missingAcls ?? 0, 'znode')} are missing` : '';
  return `${report.file}: zxid ${report.zxid}, ${count(report.znodes ?? 0, 'znode')}, ${count(report.sessions ?? 0, 'session')}; checksums right; ${digest}${missing}; ${report.verdict}`;
}
