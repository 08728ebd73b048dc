/**
 * The names of files in a data folder. A zxid in a name orders the files: a log has the zxid of its
 * first txn, a snapshot that of the last txn applied before it was begun.
 *
 * Files of our own have names that ZooKeeper's scan for `log.` and `snapshot.` ignores.
 */
import type { Zxid } from '@tskeeper/protocol';

export const logPrefix = 'log';
export const snapshotPrefix = 'snapshot';
/** The mark of a log; see synced-mark.ts. */
export const markPrefix = 'synced';
/**
 * Prefix of an unfinished file, which is renamed when it is finished. A file with this prefix at a
 * start is left from a crash.
 */
export const unfinishedPrefix = 'new.';

export function logName(zxid: Zxid): string {
  return `${logPrefix}.${zxid.toString(16)}`;
}

export function markName(logZxid: Zxid): string {
  return `${markPrefix}.${logZxid.toString(16)}`;
}

export function snapshotName(zxid: Zxid, suffix: string): string {
  return `${snapshotPrefix}.${zxid.toString(16)}${suffix}`;
}

/**
 * The zxid in `prefix.hex`; a further dot and what follows it are ignored, as in ZooKeeper.
 * undefined for other names.
 */
export function zxidOfName(name: string, prefix: string): Zxid | undefined {
  if (!name.startsWith(`${prefix}.`)) return undefined;
  const from = prefix.length + 1;
  const dot = name.indexOf('.', from);
  const digits = name.slice(from, dot === -1 ? undefined : dot);
  if (!/^[0-9a-fA-F]{1,16}$/.test(digits)) return undefined;
  const zxid = Number.parseInt(digits, 16);
  return Number.isSafeInteger(zxid) ? zxid : undefined;
}

export interface NumberedFile {
  readonly name: string;
  readonly zxid: Zxid;
}

/** The files of one kind, oldest first. */
export function numberedFiles(names: readonly string[], prefix: string): NumberedFile[] {
  const files: NumberedFile[] = [];
  for (const name of names) {
    const zxid = zxidOfName(name, prefix);
    if (zxid !== undefined) files.push({ name, zxid });
  }
  // Two names with one zxid (plain and compressed) keep an order that does not depend on the
  // disk's.
  return files.sort((a, b) => a.zxid - b.zxid || (a.name < b.name ? -1 : 1));
}
