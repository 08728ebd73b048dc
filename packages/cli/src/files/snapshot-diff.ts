/**
 * `tskeeper snapshot diff`: the differences of two snapshots, znode by znode or by the growth of
 * subtrees.
 */
import type { DataTree, LoadedSnapshot, NodeId } from '@tskeeper/core/internal';
import { formatZxid } from '@tskeeper/protocol';
import { exitCodes } from '../exit-codes.ts';
import type { FoundFile } from './find-files.ts';
import type { Output } from './output.ts';
import { requireSnapshotFile, type TreeEntry, walkTree } from './snapshot-files.ts';
import { aclText, count, sessionText, timeText } from './views.ts';

export interface SnapshotDiffOptions {
  /** Compare only data, ACL and type. */
  readonly contentOnly: boolean;
  /** If one of these is set, print only subtrees whose bytes or znodes differ by more. */
  readonly bytes: number | undefined;
  readonly nodes: number | undefined;
}

export async function diffSnapshots(left: FoundFile, right: FoundFile, options: SnapshotDiffOptions, output: Output): Promise<number> {
  const a = await requireSnapshotFile(left);
  const b = await requireSnapshotFile(right);
  const byGrowth = options.bytes !== undefined || options.nodes !== undefined;
  const differs = byGrowth ? await printGrowth(a.tree, b.tree, options, output) : await printChanges(a, b, options, output);
  await output.flush();
  return differs ? exitCodes.failed : exitCodes.done;
}

type NodePair = { readonly path: string; readonly left: NodeId | undefined; readonly right: NodeId | undefined };

/** Walks both trees at once, in the order of `walkTree`. */
function* walkTogether(left: DataTree, right: DataTree): Generator<NodePair, void, undefined> {
  const lefts = walkTree(left);
  const rights = walkTree(right);
  let a = lefts.next();
  let b = rights.next();
  while (a.done !== true || b.done !== true) {
    const order = a.done === true ? 1 : b.done === true ? -1 : compareEntries(a.value, b.value);
    const path = order <= 0 ? (a.value as TreeEntry).path : (b.value as TreeEntry).path;
    yield { path, left: order <= 0 ? (a.value as TreeEntry).node : undefined, right: order >= 0 ? (b.value as TreeEntry).node : undefined };
    if (order <= 0) a = lefts.next();
    if (order >= 0) b = rights.next();
  }
}

/**
 * Compares by names from the root down: a znode's descendants come before its next sibling,
 * whatever characters the names contain.
 */
function compareEntries(a: TreeEntry, b: TreeEntry): number {
  if (a.path === b.path) return 0;
  return a.path.replaceAll('/', '\0') < b.path.replaceAll('/', '\0') ? -1 : 1;
}

// ---- znode by znode -----------------------------------------------------------------------------

async function printChanges(a: LoadedSnapshot, b: LoadedSnapshot, options: SnapshotDiffOptions, output: Output): Promise<boolean> {
  const json = output.format === 'json';
  const counts = { added: 0, removed: 0, changed: 0 };
  for (const { path, left, right } of walkTogether(a.tree, b.tree)) {
    if (left === undefined || right === undefined) {
      const added = left === undefined;
      counts[added ? 'added' : 'removed']++;
      const tree = added ? b.tree : a.tree;
      const facts = nodeSummary(tree, (right ?? left)!);
      if (json) output.json({ change: added ? 'added' : 'removed', path, ...facts });
      else output.line(`${added ? '+' : '-'} ${path}  ${facts.type}, ${count(facts.dataLength, 'byte')}, mZxid ${facts.mzxid}`);
    } else {
      const fields = changedFields(a.tree, left, b.tree, right, options.contentOnly);
      if (fields.length === 0) continue;
      counts.changed++;
      if (json)
        output.json({ change: 'changed', path, fields: Object.fromEntries(fields.map(([name, from, to]) => [name, { from, to }])) });
      else output.line(`~ ${path}  ${fields.map(([name, from, to]) => `${name} ${from} -> ${to}`).join(', ')}`);
    }
    if (output.isFull) await output.flush();
  }
  const sessions = printSessions(a, b, output);
  output.note(
    `${count(counts.added, 'znode')} added, ${counts.removed} removed, ${counts.changed} changed; ${count(sessions, 'session')} added or removed`,
  );
  return counts.added + counts.removed + counts.changed + sessions > 0;
}

function nodeSummary(tree: DataTree, node: NodeId): { type: string; dataLength: number; mzxid: string } {
  return { type: tree.kindOf(node), dataLength: Math.max(0, tree.dataLengthOf(node)), mzxid: formatZxid(tree.mzxidOf(node)) };
}

type Change = readonly [name: string, from: string | number | null, to: string | number | null];

function changedFields(a: DataTree, left: NodeId, b: DataTree, right: NodeId, contentOnly: boolean): Change[] {
  const changes: Change[] = [];
  const compare = (name: string, from: string | number | null, to: string | number | null) => {
    if (from !== to) changes.push([name, from, to]);
  };
  compare('type', a.kindOf(left), b.kindOf(right));
  const [dataA, dataB] = [a.dataOf(left), b.dataOf(right)];
  const sameData = dataA === null || dataB === null ? dataA === dataB : dataA.equals(dataB);
  if (!sameData) changes.push(['data', dataSummary(dataA), dataSummary(dataB)]);
  compare('acl', aclSummary(a, left), aclSummary(b, right));
  if (contentOnly) return changes;
  compare('version', a.versionOf(left), b.versionOf(right));
  compare('cversion', a.cversionOf(left), b.cversionOf(right));
  compare('aversion', a.aversionOf(left), b.aversionOf(right));
  compare('czxid', formatZxid(a.czxidOf(left)), formatZxid(b.czxidOf(right)));
  compare('mzxid', formatZxid(a.mzxidOf(left)), formatZxid(b.mzxidOf(right)));
  compare('pzxid', formatZxid(a.pzxidOf(left)), formatZxid(b.pzxidOf(right)));
  compare('ctime', timeText(a.ctimeOf(left)), timeText(b.ctimeOf(right)));
  compare('mtime', timeText(a.mtimeOf(left)), timeText(b.mtimeOf(right)));
  compare('ephemeralOwner', sessionText(a.ownerHighOf(left), a.ownerLowOf(left)), sessionText(b.ownerHighOf(right), b.ownerLowOf(right)));
  return changes;
}

function dataSummary(data: Buffer | null): string {
  return data === null ? 'null' : count(data.length, 'byte');
}

function aclSummary(tree: DataTree, node: NodeId): string | null {
  const acl = tree.aclOf(node);
  return tree.acls.isMissing(acl) ? null : aclText(tree.acls.get(acl));
}

/** Prints the sessions that only one side has; returns their number. */
function printSessions(a: LoadedSnapshot, b: LoadedSnapshot, output: Output): number {
  const names = ({ sessions }: LoadedSnapshot) => new Set(sessions.map(({ high, low }) => sessionText(high, low)));
  const [lefts, rights] = [names(a), names(b)];
  let found = 0;
  const print = (change: 'added' | 'removed', session: string) => {
    found++;
    if (output.format === 'json') output.json({ change, session });
    else output.line(`${change === 'added' ? '+' : '-'} session ${session}`);
  };
  for (const session of lefts) if (!rights.has(session)) print('removed', session);
  for (const session of rights) if (!lefts.has(session)) print('added', session);
  return found;
}

// ---- by growth ----------------------------------------------------------------------------------

interface Growth {
  readonly path: string;
  bytes: number;
  nodes: number;
}

/** Sums up for each znode of either tree how the size of its subtree differs. */
async function printGrowth(a: DataTree, b: DataTree, options: SnapshotDiffOptions, output: Output): Promise<boolean> {
  const found: Growth[] = [];
  const open: Growth[] = [];
  const bytesMax = options.bytes ?? Infinity;
  const nodesMax = options.nodes ?? Infinity;
  const close = () => {
    const done = open.pop()!;
    const parent = open.at(-1);
    if (parent !== undefined) {
      parent.bytes += done.bytes;
      parent.nodes += done.nodes;
    }
    if (Math.abs(done.bytes) > bytesMax || Math.abs(done.nodes) > nodesMax) found.push(done);
  };
  for (const { path, left, right } of walkTogether(a, b)) {
    while (open.length > 0 && !isDescendant(path, open.at(-1)!.path)) close();
    const bytes = (tree: DataTree, node: NodeId | undefined) => (node === undefined ? 0 : Math.max(0, tree.dataLengthOf(node)));
    open.push({ path, bytes: bytes(b, right) - bytes(a, left), nodes: (right === undefined ? 0 : 1) - (left === undefined ? 0 : 1) });
  }
  while (open.length > 0) close();
  // Found from the leaves up; print from the root down.
  for (const { path, bytes, nodes } of found.toSorted((x, y) => compareEntries({ path: x.path, node: 0 }, { path: y.path, node: 0 }))) {
    if (output.format === 'json') output.json({ path, bytes, nodes });
    else output.line(`${path}  ${signed(bytes)} bytes, ${signed(nodes)} znodes`);
    if (output.isFull) await output.flush();
  }
  return found.length > 0;
}

function isDescendant(path: string, top: string): boolean {
  return top === '/' || path.startsWith(`${top}/`);
}

function signed(number: number): string {
  return number > 0 ? `+${number}` : `${number}`;
}
