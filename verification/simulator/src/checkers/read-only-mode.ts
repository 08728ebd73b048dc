/**
 * What a server in read-only mode may say, and to whom. Which state it shows is compared by `reads`
 * (replay/read-only-streams.ts).
 */
import { ErrorCode, type Millis, OpCode, type SessionId, systemPath, type Zxid } from '@tskeeper/protocol';
import { sessionPassword as modelPassword } from '../model/session-password.ts';
import type { CnxnRecord, Recording } from '../record/recording.ts';
import { isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { SessionLife } from '../replay/replay-result.ts';
import { keptZxids } from '../replay/read-only-streams.ts';
import type { Checker } from './checker.ts';

/** A server waits so long for a leader, or for a tick if that is longer. */
const delayMsMin = 2000;
const refusedNames: ReadonlySet<string> = new Set([
  'create',
  'create2',
  'createContainer',
  'createTTL',
  'delete',
  'deleteContainer',
  'setData',
  'setACL',
  'multi',
  'reconfig',
  'sync',
  'createIfNotExists',
  'removeRecursive',
  'tryRemove',
]);

export const readOnlyMode: Checker = {
  property: 'P36',
  promise:
    'A server in read-only mode acknowledges no write and no sync, serves only clients that asked for such a server and have not seen a later zxid, shows one state as long as it lasts and a configuration that a server has had, and neither resumes nor declares expired a session that it has not opened. It is in this mode only after two seconds without a leader and until it has found one, and it opens no session twice.',
  check(recording, { sessions }) {
    const violations: string[] = [];
    const granted = new Map<SessionId, string>();
    const configs = knownConfigs(recording);
    const isKept = keptZxids(recording);
    for (const cnxn of recording.readOnlyCnxns.toSorted((a, b) => a.handshakeMs - b.handshakeMs)) {
      for (const text of [
        ...requestFaults(cnxn),
        ...configFaults(cnxn, configs),
        ...sessionFaults(recording, cnxn, granted, sessions, isKept),
      ]) {
        violations.push(`${cnxn.server}, in read-only mode, ${text} over ${cnxn.key}`);
      }
    }
    return [...violations, ...periods(recording)];
  },
};

function* requestFaults({ requests, items, handshake }: CnxnRecord): Iterable<string> {
  if (handshake?.readOnly !== true) yield 'served a client that did not ask for it';
  let shown: Zxid | undefined;
  for (const request of requests) {
    const { reply, name = '' } = request;
    if (reply === undefined || !refusedNames.has(name)) continue;
    if (reply.err !== ErrorCode.NotReadOnly || reply.body !== undefined) yield `replied ${reply.err} to ${requestText(request)}`;
  }
  for (const item of items) {
    if (item.zxid === -1 || (item.kind === 'reply' && isAnsweredOutOfOrder(item.request))) continue;
    if (item.zxid < (handshake?.lastZxidSeen ?? 0)) yield `showed ${item.zxid} to a client that had seen ${handshake!.lastZxidSeen}`;
    if (shown !== undefined && item.zxid !== shown) yield `showed ${item.zxid} after ${shown}`;
    shown = item.zxid;
  }
}

/** The server may know a later configuration than that of its log, but none that no server has had. */
function* configFaults({ requests }: CnxnRecord, known: ReadonlySet<string>): Iterable<string> {
  for (const { name, record, reply } of requests) {
    if (name !== 'getData' || (record as { readonly path?: string } | undefined)?.path !== systemPath.config) continue;
    const { data } = (reply?.body ?? {}) as { readonly data?: string | Uint8Array | null };
    if (data === undefined || data === null) continue;
    const text = Buffer.from(data).toString('utf8');
    if (!known.has(text)) yield `showed a configuration that no server has had: ${text}`;
  }
}

/** Also those that were proposed and never committed: the server shows the end of its log. */
function knownConfigs({ configText = '', log, peerEvents, abandonedReconfigs }: Recording): ReadonlySet<string> {
  const texts = new Set([configText, ...abandonedReconfigs.map(({ text }) => text)]);
  for (const event of peerEvents) if (event.kind === 'config') texts.add(event.text);
  for (const { logged } of log) {
    const { header, txn } = logged;
    if (header.type === OpCode.reconfig && txn.kind === 'setData') texts.add(Buffer.from(txn.data ?? []).toString('utf8'));
  }
  return texts;
}

function* sessionFaults(
  { limits }: Recording,
  { handshake, session = 0n, key, timeoutMs, passwd, server, items }: CnxnRecord,
  granted: Map<SessionId, string>,
  sessions: ReadonlyMap<SessionId, SessionLife>,
  isKept: (zxid: Zxid) => boolean,
): Iterable<string> {
  if (handshake === undefined) return;
  const asked = handshake.sessionId;
  const name = `session 0x${BigInt.asUintN(64, session === 0n ? asked : session).toString(16)}`;
  const hasPassword = Buffer.from(handshake.passwd ?? []).toString('latin1') === modelPassword(asked);
  if (session === 0n) {
    const life = sessions.get(asked);
    if (asked !== 0n && hasPassword && life !== undefined) yield `declared ${name} of the ensemble expired`;
    return;
  }
  const { minSessionTimeoutMs: min, maxSessionTimeoutMs: max } = limits;
  const wanted = Math.min(max, Math.max(min, handshake.timeOut));
  if (timeoutMs !== wanted) yield `granted ${timeoutMs} ms instead of ${wanted} ms`;
  if (passwd?.toString('latin1') !== modelPassword(session)) yield `gave a wrong password for ${name}`;
  if (asked === 0n) {
    const before = granted.get(session);
    if (before !== undefined || sessions.has(session)) yield `opened ${name}, which ${before ?? 'the ensemble'} has`;
    granted.set(session, `${key} at ${server}`);
    return;
  }
  if (asked !== session) yield `gave ${name} to a client that asked for 0x${asked.toString(16)}`;
  if (!hasPassword) yield `resumed ${name} with a wrong password`;
  const life = sessions.get(session);
  const shown = items.find(({ zxid }) => zxid > 0)?.zxid;
  // A log with txns that were not kept may have the end of the session.
  if (life !== undefined && shown !== undefined && isKept(shown) && life.openedZxid <= shown && shown < life.closedZxid) {
    yield `resumed ${name}, which the ensemble has`;
  }
}

/** Each time the mode begins, how long the server had looked for a leader; and that it ends. */
function periods({ peerEvents, limits }: Recording): string[] {
  const violations: string[] = [];
  const lookingSinceMs = new Map<string, Millis>();
  const readOnly = new Set<string>();
  for (const { kind, server, atMs } of peerEvents) {
    // A server that does not reach the leader that it has found looks anew.
    if (kind === 'looking' || kind === 'elected') lookingSinceMs.set(server, atMs);
    if ((kind === 'elected' || kind === 'serves') && readOnly.has(server)) {
      violations.push(`${server} found a leader at ${atMs}, and was still in read-only mode`);
    }
    if (kind === 'readOnlyEnded' || kind === 'processGone') readOnly.delete(server);
    if (kind !== 'readOnly') continue;
    readOnly.add(server);
    const sinceMs = lookingSinceMs.get(server) ?? Infinity;
    const delayMs = Math.max(delayMsMin, limits.tickMs);
    if (!(atMs - sinceMs >= delayMs))
      violations.push(`${server} began read-only mode at ${atMs}, and looked for a leader since ${sinceMs}`);
  }
  return violations;
}
