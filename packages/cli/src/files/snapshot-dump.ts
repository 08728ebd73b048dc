/** `tskeeper snapshot dump`: prints the sessions and znodes of a snapshot. */
import type { DataTree } from '@tskeeper/core/internal';
import { formatZxid } from '@tskeeper/protocol';
import { exitCodes } from '../exit-codes.ts';
import type { FoundFile } from './find-files.ts';
import type { Output } from './output.ts';
import { lastZxidText, requireSnapshotFile, type TreeEntry, walkTree, zxidOf } from './snapshot-files.ts';
import { aclText, aclView, count, dataText, dataView, digestText, sessionText, timeText } from './views.ts';

export interface SnapshotDumpOptions {
  /** Only this znode and its descendants. */
  readonly path: string | undefined;
  readonly data: boolean;
}

export async function dumpSnapshot(snapshot: FoundFile, options: SnapshotDumpOptions, output: Output): Promise<number> {
  const loaded = await requireSnapshotFile(snapshot);
  const { tree, sessions, digest } = loaded;
  const zxid = lastZxidText(zxidOf(snapshot, loaded));
  const json = output.format === 'json';
  const digestView =
    digest === undefined ? null : { zxid: formatZxid(digest.zxid), version: digest.version, value: digestText(digest.high, digest.low) };
  if (json) {
    const lastZxid = loaded.lastZxid === undefined ? null : formatZxid(loaded.lastZxid);
    output.json({
      kind: 'snapshot',
      file: snapshot.name,
      zxid,
      znodes: tree.size,
      sessions: sessions.length,
      digest: digestView,
      lastZxid,
    });
  } else {
    output.line(`${snapshot.name}: zxid ${zxid}, ${count(tree.size, 'znode')}, ${count(sessions.length, 'session')}`);
    if (digestView !== null) output.line(`digest ${digestView.value} at ${digestView.zxid}`);
  }
  for (const { high, low, timeoutMs } of sessions) {
    const session = sessionText(high, low);
    const ephemerals = tree.ephemeralCountOf(high, low);
    if (json) output.json({ kind: 'session', session, timeout: timeoutMs, ephemerals });
    else output.line(`session ${session} timeout ${timeoutMs} ms, ${count(ephemerals, 'ephemeral')}`);
    if (output.isFull) await output.flush();
  }
  for (const entry of walkTree(tree)) {
    if (!isAtOrBelow(entry.path, options.path)) continue;
    if (json) output.json(znodeView(tree, entry, options.data));
    else for (const line of znodeLines(tree, entry, options.data)) output.line(line);
    if (output.isFull) await output.flush();
  }
  await output.flush();
  return exitCodes.done;
}

function isAtOrBelow(path: string, top: string | undefined): boolean {
  return top === undefined || top === '/' || path === top || path.startsWith(`${top}/`);
}

function dataLengthOf(tree: DataTree, { node }: TreeEntry): number {
  return Math.max(0, tree.dataLengthOf(node));
}

function znodeView(tree: DataTree, entry: TreeEntry, withData: boolean): Record<string, unknown> {
  const { path, node } = entry;
  const kind = tree.kindOf(node);
  const acl = tree.aclOf(node);
  return {
    kind: 'znode',
    path,
    type: kind,
    czxid: formatZxid(tree.czxidOf(node)),
    ctime: timeText(tree.ctimeOf(node)),
    mzxid: formatZxid(tree.mzxidOf(node)),
    mtime: timeText(tree.mtimeOf(node)),
    pzxid: formatZxid(tree.pzxidOf(node)),
    cversion: tree.cversionOf(node),
    version: tree.versionOf(node),
    aversion: tree.aversionOf(node),
    ephemeralOwner: sessionText(tree.ownerHighOf(node), tree.ownerLowOf(node)),
    ...(kind === 'ttl' && { ttl: tree.ttlOf(node) }),
    acl: tree.acls.isMissing(acl) ? null : aclView(tree.acls.get(acl)),
    dataLength: dataLengthOf(tree, entry),
    numChildren: tree.childCountOf(node),
    ...(withData && dataView(tree.dataOf(node))),
  };
}

/** The words of zkCli's stat, with cversion and ephemeralOwner as the file has them. */
function znodeLines(tree: DataTree, entry: TreeEntry, withData: boolean): string[] {
  const { path, node } = entry;
  const kind = tree.kindOf(node);
  const acl = tree.aclOf(node);
  return [
    '',
    path,
    `  type = ${kind}${kind === 'ttl' ? ` ${tree.ttlOf(node)} ms` : ''}`,
    `  cZxid = ${formatZxid(tree.czxidOf(node))}`,
    `  ctime = ${timeText(tree.ctimeOf(node))}`,
    `  mZxid = ${formatZxid(tree.mzxidOf(node))}`,
    `  mtime = ${timeText(tree.mtimeOf(node))}`,
    `  pZxid = ${formatZxid(tree.pzxidOf(node))}`,
    `  cversion = ${tree.cversionOf(node)}`,
    `  dataVersion = ${tree.versionOf(node)}`,
    `  aclVersion = ${tree.aversionOf(node)}`,
    `  ephemeralOwner = ${sessionText(tree.ownerHighOf(node), tree.ownerLowOf(node))}`,
    `  acl = ${tree.acls.isMissing(acl) ? 'missing from the snapshot' : aclText(tree.acls.get(acl))}`,
    `  dataLength = ${dataLengthOf(tree, entry)}`,
    `  numChildren = ${tree.childCountOf(node)}`,
    ...(withData ? [`  data = ${dataText(tree.dataOf(node))}`] : []),
  ];
}
