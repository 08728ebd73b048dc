/**
 * The four letter words whose answers grow with connections, sessions and watches: cons, dump,
 * wchs, wchc, wchp.
 *
 * Such an answer can be many megabytes, and asking for it was a way to stop a ZooKeeper server
 * (CVE-2017-5637). So it is made in pieces, each of a limited number of items; the port asks for
 * the next one when the turn and the reader have room.
 */
import type { CnxnContext, CnxnInfo, Inspector, Now } from '@tskeeper/core';
import { formatSessionId, formatZxid, type Millis, OpCode } from '@tskeeper/protocol';
import type { CnxnList, CnxnView } from '../cnxn-list.ts';
import { javaDate } from '../java-text.ts';

/** Items visited for one piece: well below a millisecond. */
const itemsPerChunk = 500;

/** Joins lines to pieces. A line may be empty: an item that counts and prints nothing. */
export function* inChunks(lines: Iterable<string>): Generator<string, void, undefined> {
  let piece = '';
  let items = 0;
  for (const line of lines) {
    piece += line;
    if (++items < itemsPerChunk) continue;
    yield piece;
    piece = '';
    items = 0;
  }
  if (piece.length > 0) yield piece;
}

export function* consLines(cnxns: CnxnList): Generator<string, void, undefined> {
  for (const cnxn of cnxns.cnxns()) yield `${cnxnLine(cnxn, false)}\n`;
  yield '\n';
}

/** ` /127.0.0.1:42460[1](queued=0,recved=13,sent=13,...)` */
export function cnxnLine({ context, interest, packetsReceived, info }: CnxnView, brief: boolean): string {
  const start = ` ${remoteOf(context)}[${interest.toString(16)}]`;
  if (info === undefined) return `${start}(queued=0,recved=${packetsReceived},sent=0)`;
  const counts = `queued=${info.outstandingRequests},recved=${info.packetsReceived},sent=${info.packetsSent}`;
  return brief || info.session === 0n ? `${start}(${counts})` : `${start}(${counts},${sessionPart(info)})`;
}

function sessionPart(info: CnxnInfo): string {
  const cxid = info.lastCxid >= 0 ? `,lcxid=0x${info.lastCxid.toString(16)}` : '';
  return (
    `sid=${formatSessionId(info.session)},lop=${lastOperation(info.lastOpCode)},est=${info.establishedWallMs},to=${info.sessionTimeoutMs}` +
    `${cxid},lzxid=${formatZxid(info.lastZxid)},lresp=${Math.floor(info.lastResponseMs)},llat=${info.lastLatencyMs}` +
    `,minlat=${info.minLatencyMs},avglat=${info.averageLatencyMs},maxlat=${info.maxLatencyMs}`
  );
}

const operationCodes: ReadonlyMap<number, string> = new Map([
  [OpCode.ping, 'PING'],
  [OpCode.createSession, 'SESS'],
  [OpCode.multi, 'MULT'],
  [OpCode.multiRead, 'MLTR'],
  [OpCode.create, 'CREA'],
  [OpCode.create2, 'CREA'],
  [OpCode.createTTL, 'CREA'],
  [OpCode.createContainer, 'CREA'],
  [OpCode.delete, 'DELE'],
  [OpCode.deleteContainer, 'DELE'],
  [OpCode.setData, 'SETD'],
  [OpCode.reconfig, 'RECO'],
  [OpCode.setACL, 'SETA'],
  [OpCode.closeSession, 'CLOS'],
  [OpCode.sync, 'SYNC'],
  [OpCode.check, 'CHEC'],
  [OpCode.exists, 'EXIS'],
  [OpCode.getData, 'GETD'],
  [OpCode.setWatches, 'SETW'],
  [OpCode.setWatches2, 'STW2'],
  [OpCode.addWatch, 'ADDW'],
  [OpCode.getACL, 'GETA'],
  [OpCode.getChildren, 'GETC'],
  [OpCode.getChildren2, 'GETC'],
  [OpCode.filteredList, 'GETC'],
  [OpCode.filteredListWithStatsAndData, 'GETC'],
  [OpCode.listRecursive, 'GETC'],
  [OpCode.checkNotExists, 'CHEC'],
  [OpCode.checkStat, 'CHEC'],
  [OpCode.createIfNotExists, 'CREA'],
  [OpCode.removeRecursive, 'DELE'],
  [OpCode.tryRemove, 'DELE'],
  [OpCode.getChildrenPage, 'GETC'],
  [OpCode.getChildrenDataPage, 'GETC'],
  [OpCode.getAllChildrenNumber, 'GETACN'],
  [OpCode.checkWatches, 'CHKW'],
  [OpCode.removeWatches, 'REMW'],
  [OpCode.whoAmI, 'HOMI'],
  [OpCode.getEphemerals, 'GETE'],
]);

function lastOperation(opCode: number | undefined): string {
  return (opCode === undefined ? undefined : operationCodes.get(opCode)) ?? 'NA';
}

export function* dumpLines(inspect: Inspector, cnxns: CnxnList, now: Now): Generator<string, void, undefined> {
  const dateOf = (dueMs: Millis) => javaDate(now.wallMs + dueMs - now.elapsedMs);

  yield 'SessionTracker dump:\n';
  const role = inspect.role();
  const local = inspect.localSessionExpiry();
  if (local !== undefined) {
    yield 'Local ';
    yield* sessionLines(() => inspect.localSessionExpiry() ?? [], dateOf);
    if (role === 'leader') yield 'Global ';
  }
  if (role === 'follower' || role === 'observer') yield* learnerSessionLines(inspect);
  else yield* sessionLines(() => inspect.sessionExpiry(), dateOf);

  yield 'ephemeral nodes dump:\n';
  let owners = 0;
  for (const _owner of inspect.ephemerals()) {
    owners++;
    yield '';
  }
  yield `Sessions with Ephemerals (${owners}):\n`;
  for (const { session, paths } of inspect.ephemerals()) {
    yield `${formatSessionId(session)}:\n`;
    for (const path of paths) yield `\t${path}\n`;
  }

  yield 'Connections dump:\n';
  const expiry = cnxns.expiry();
  yield `Connections Sets (${expiry.length})/(${expiry.reduce((count, bucket) => count + bucket.cnxns.length, 0)}):\n`;
  for (const bucket of expiry) {
    yield `${bucket.cnxns.length} expire at ${dateOf(bucket.dueMs)}:\n`;
    for (const { context, session } of bucket.cnxns) {
      yield `\tip: ${remoteOf(context)} sessionId: ${formatSessionId(session)}\n`;
    }
  }
}

function* sessionLines(
  dueTimes: () => ReturnType<Inspector['sessionExpiry']>,
  dateOf: (dueMs: Millis) => string,
): Generator<string, void, undefined> {
  let buckets = 0;
  let sessions = 0;
  for (const bucket of dueTimes()) {
    buckets++;
    sessions += bucket.sessions.length;
    yield '';
  }
  yield `Session Sets (${buckets})/(${sessions}):\n`;
  for (const bucket of dueTimes()) {
    yield `${bucket.sessions.length} expire at ${dateOf(bucket.dueMs)}:\n`;
    for (const session of bucket.sessions) yield `\t${formatSessionId(session)}\n`;
  }
}

/**
 * The leader knows when they expire. In ZooKeeper they are sorted, which takes a copy of them all.
 */
function* learnerSessionLines(inspect: Inspector): Generator<string, void, undefined> {
  yield `Global Sessions(${inspect.sessionCount()}):\n`;
  for (const { session, timeoutMs } of inspect.sessions()) yield `${formatSessionId(session)}\t${timeoutMs}ms\n`;
}

export function* wchsLines(inspect: Inspector): Generator<string, void, undefined> {
  const { cnxns, paths, watches } = inspect.watchSummary();
  yield `${cnxns} connections watching ${paths} paths\nTotal watches:${watches}\n`;
}

export function* wchcLines(inspect: Inspector): Generator<string, void, undefined> {
  for (const { session, paths } of inspect.watchesByCnxn()) {
    yield `${formatSessionId(session)}\n`;
    for (const path of paths) yield `\t${path}\n`;
  }
  yield '\n';
}

export function* wchpLines(inspect: Inspector): Generator<string, void, undefined> {
  for (const { path, sessions } of inspect.watchesByPath()) {
    yield `${path}\n`;
    for (const session of sessions) yield `\t${formatSessionId(session)}\n`;
  }
  yield '\n';
}

/** As Java writes a socket address that was never resolved. */
function remoteOf({ remoteAddress, remotePort }: CnxnContext): string {
  return remoteAddress.includes(':') ? `/[${remoteAddress}]:${remotePort}` : `/${remoteAddress}:${remotePort}`;
}
