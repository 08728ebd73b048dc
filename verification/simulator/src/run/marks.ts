/**
 * Marks: rare things that a run must have seen to prove what it claims. Each is counted in the
 * result of a seed; a mark that many seeds never hit means that the runs no longer get there.
 */
import {
  AddWatchMode,
  type AddWatchRequest,
  type ChildrenDataPageReply,
  type ChildrenPageReply,
  type ChildrenPageRequest,
  ErrorCode,
  type FilteredListRequest,
  type GetChildren2Reply,
  ListFilter,
  type MultiReply,
  OpCode,
  type SaslReply,
  type SetDataRequest,
} from '@tskeeper/protocol';
import type { LimitName } from '@tskeeper/core';
import type { LogEvent } from '@tskeeper/runtime';
import { checkers } from '../checkers/checkers.ts';
import { sessionEndedMark, transferOutcomes, transferredMark } from '../faults/operator-faults.ts';
import { faults } from '../faults/faults.ts';
import type { Item, Recording, Request } from '../record/recording.ts';
import { isThrottled, isWrite, requestKey } from '../record/request-kinds.ts';
import type { Replay } from '../replay/replay-result.ts';
import { unknownPeerAttacks } from '../peers/unknown-peer-attacks.ts';
import { impersonatorAttacks } from '../peers/impersonator-attacks.ts';
import { ensembleMarks } from './ensemble-marks.ts';
import { isLongMulti } from './flood.ts';
import { keeperMarks } from './keeper-marks.ts';
import { reconfigMarks } from './reconfig-marks.ts';
import { sequenceMarks } from './sequence-marks.ts';
import type { Outcome } from './seed-run.ts';
import { evictionPattern } from './held-bytes-evictions.ts';

type Count = (outcome: Outcome, replay: Replay) => number;

function requests(isIt: (request: Request) => boolean): Count {
  return ({ recording }) => sum(recording.cnxns, ({ requests: each }) => each.filter(isIt).length);
}

function items(isIt: (item: Item) => boolean): Count {
  return ({ recording }) => sum(recording.cnxns, ({ items: each }) => each.filter(isIt).length);
}

function sum<T>(from: Iterable<T>, count: (each: T) => number): number {
  let total = 0;
  for (const each of from) total += count(each);
  return total;
}

function answered(err: number): Count {
  return requests(({ reply }) => reply?.err === err);
}

/** Counts the times that servers logged an event. */
function loggedEvents(event: LogEvent): Count {
  return ({ world }) => sum(world.servers, ({ logEvents }) => logEvents.filter((each) => each.event === event).length);
}

/** Counts log lines of servers, where one event stands for several limits. */
function lines(pattern: RegExp): Count {
  return ({ world }) => sum(world.servers, (server) => server.logLines.filter((line) => pattern.test(line)).length);
}

function annotated(mark: string): Count {
  return ({ marks }) => marks.get(mark) ?? 0;
}

/** 1 for a seed in which a checker had something to check. */
function exercisedIn(name: 'staleness' | 'earlyExpiry' | 'lateExpiry'): Count {
  return ({ recording }, replayed) => Number((checkers[name].casesExercised?.(recording, replayed) ?? 0) > 0);
}

/** The token of an accepted request of a SASL exchange; undefined for any other request. */
function saslReply({ name, reply }: Request): string | null | undefined {
  if (name !== 'sasl' || reply?.err !== ErrorCode.Ok) return undefined;
  return (reply.body as SaslReply).token?.toString() ?? null;
}

function partsOf({ name, reply }: Request): readonly { readonly kind: string }[] | undefined {
  return name === 'multi' && reply?.err === ErrorCode.Ok ? (reply.body as MultiReply).results : undefined;
}

/** Limits that were reached, so that something had to wait, or was refused, or closed. */
const countedLimits: readonly LimitName[] = [
  'globalOutstandingLimit',
  'inFlightBytesMax',
  'identityBytesPerAddressMax',
  'snapSyncsMax',
  'diffSyncsMax',
  'heldBytesMax',
  'halfOpenMax',
  'outputHighWaterBytes',
  'framesPerQuantum',
  'framesPerTurn',
  'sliceBytes',
  'learnerOutputHighWaterBytes',
  'packetsPerQuantum',
  'messagesPerQuantum',
];

const limitMarks: Readonly<Record<string, Count>> = {
  ...Object.fromEntries(
    countedLimits.map((limit): [string, Count] => [
      `a limit was reached: ${limit}`,
      ({ recording }) => recording.limitsReached.get(limit) ?? 0,
    ]),
  ),
  'a limit was reached: eight times inFlightBytesMax, and a write was throttled': requests(isThrottled),
  'a limit was reached: watchesPerCnxnMax': requests((request) => request.reply?.err === ErrorCode.ThrottledOp && !isThrottled(request)),
  'a limit was reached: identitiesPerCnxnMax or identityBytesPerCnxnMax': requests(
    ({ name, reply }) => name === 'auth' && reply?.err === ErrorCode.AuthFailed,
  ),
  'memory became tight': loggedEvents('memory.tight'),
  'memory was full': loggedEvents('memory.full'),
  'a limit was reached: maxClientCnxns': loggedEvents('cnxn.address-limit'),
  'a limit was reached: maxCnxns': lines(/^warn There are \d+ connections already; one of/),
  'a limit was reached: reserved part of maxCnxns': lines(/the last places are for addresses that have fewer/),
  'a limit was reached: sessionlessTimeoutMs': loggedEvents('cnxn.half-open'),
  'a limit was reached: tokens of the connection throttle': loggedEvents('cnxn.throttled'),
  'a limit was reached: largeRequestMaxBytes': loggedEvents('cnxn.large-request'),
  'a limit was reached: queuedOutputBytesMax': loggedEvents('cnxn.slow'),
  'a limit was reached: queuedBytesMax': lines(/was cut off: \d+ bytes wait for it/),
  'a limit was reached: waitingBytesMax': lines(/was cut off: \d+ bytes wait for all learners/),
  'a limit was reached: halfOpenMax of the quorum port': lines(/too many connections to the quorum port have not introduced/),
  'a limit was reached: halfOpenMax of the election port': lines(/too many connections to the election port have not introduced/),
  'a limit was reached: unknownPeersMax': loggedEvents('peer.strangers'),
  'a limit was reached: unknownObserversMax': lines(/such observers are connected already/),
};

/**
 * Marks that fewer than ten of a thousand seeds hit. `npm run sim:ci` may miss them; a long run
 * hits each of them twenty times.
 */
export const rareMarks: ReadonlySet<string> = new Set([
  'a limit was reached: queuedBytesMax',
  'a limit was reached: diffSyncsMax',
  'a limit was reached: halfOpenMax of the quorum port',
  'a limit was reached: snapSyncsMax',
  'a limit was reached: unknownPeersMax',
  'a limit was reached: waitingBytesMax',
  'a SNAP started at a zxid before the last commit',
  'an election was repeated before a leader served',
  'hostile ACKs of another server',
  'hostile requests of every opcode',
  'hostile oversized or malformed requests',
  "hostile PINGs for others' sessions",
  "hostile REVALIDATE of others' sessions",
  'a transfer failed, and another server was elected',
  'a transfer was refused: reconfiguration pending',
  'a transfer ended with a slow target',
  'a pending configuration was completed by a later leader',
  'a pending configuration was taken back by TRUNC',
  'a reconfiguration was refused: NoAuth',
  'a reconfiguration was refused: ReconfigInProgress',
  'a crash left a dynamic file that zoo.cfg does not name',
  'a crash left a configuration that may become active',
  'two voters with an oracle became three',
  'more or fewer voters became two with an oracle',
  'one of two voters was replaced with an oracle',
  'one of two voters of a reconfiguration went on alone',
  'a leader that an oracle favours was removed, or can no longer lead',
  'an ensemble grew from one voter',
  'an ensemble shrank to one voter',
  'a server got or lost a second address',
  'a server got another client address',
  'a server without a log got a vote',
  'a server got another client port',
  'a client was served at another client port',
  'a client library was served at another client port',
]);

export const marks: Readonly<Record<string, Count>> = {
  ...Object.fromEntries(Object.keys(faults).map((name) => [`fault ${name}`, annotated(`fault ${name}`)])),
  'a sync failed': (outcome) => annotated('EIO of sync')(outcome, noReplay) + annotated('ENOSPC of sync')(outcome, noReplay),
  'a write to the disk failed': (outcome) => annotated('EIO of write')(outcome, noReplay) + annotated('ENOSPC of write')(outcome, noReplay),
  'a server failed while running': annotated('failed while running'),
  'a server failed at its start': annotated('failed at start'),
  'bit rot was detected': annotated('bit rot detected'),
  'bit rot was harmless': annotated('bit rot harmless'),
  'a damaged folder was emptied': annotated('a damaged folder was emptied'),
  'a damaged folder was restored': annotated('a damaged folder was restored'),
  'a long pause': annotated('long pause'),
  'a pause beyond syncLimit': annotated('pause beyond syncLimit'),
  'a server was read from as it resumed after a pause beyond syncLimit': annotated('read at the end of a pause'),
  'P10 exercised in a seed': exercisedIn('staleness'),
  'P21 exercised in a seed': exercisedIn('earlyExpiry'),
  'P22 exercised in a seed': exercisedIn('lateExpiry'),
  'the connection that held most was closed': lines(evictionPattern),
  'a session was resumed': ({ recording }) =>
    recording.cnxns.filter(({ handshake, session }) => (session ?? 0n) !== 0n && handshake?.sessionId === session).length,
  'a session was resumed after a restart': ({ recording }) => sessionsResumedAfterRestart(recording),
  'a wrong password was refused': ({ recording }) =>
    recording.cnxns.filter(({ client, session }) => client.startsWith('impostor') && session === 0n).length,
  'a client with a later zxid was rejected': ({ recording }) =>
    recording.cnxns.filter(({ handshake, session }) => (handshake?.lastZxidSeen ?? 0) > 2 ** 39 && session === undefined).length,
  'a session expired': (_outcome, { sessions }) => sum(sessions.values(), ({ closedBy }) => Number(closedBy === 'server')),
  'a session was ended by its client': (_outcome, { sessions }) => sum(sessions.values(), ({ closedBy }) => Number(closedBy === 'client')),
  'a session expired right after a pause': ({ recording }, { sessions }) =>
    sum(sessions.values(), ({ closedBy, closedMs }) =>
      Number(
        closedBy === 'server' && recording.pauses.some(({ toMs }) => closedMs >= toMs && closedMs < toMs + 2 * recording.limits.tickMs),
      ),
    ),
  'ephemerals were deleted with their session': (_outcome, { sessions }) => sum(sessions.values(), ({ ephemerals }) => ephemerals.length),
  'an unanswered write was carried out': (_outcome, { txns }) =>
    txns.filter(({ request }) => request !== undefined && request.reply === undefined).length,
  'an unanswered write was not carried out': ({ recording }, { txns }) => {
    const happened = new Set(txns.map(({ request }) => request));
    return sum(
      recording.cnxns,
      (cnxn) => cnxn.requests.filter((each) => isWrite(each) && each.reply === undefined && !happened.has(each)).length,
    );
  },
  'a second process resumed a session': annotated('a second process resumed a session'),
  'a sync after a write at a lagging server': annotated('a sync after a write at a lagging server'),
  'a sync at a server with a long apply queue': annotated('a sync at a server with a long apply queue'),
  'one xid for different requests of one session': ({ recording }) => sharedXids(recording).length,
  'both requests with one xid were carried out': ({ recording }, { txns }) => {
    const happened = new Set(txns.map(({ request }) => request));
    return sharedXids(recording).filter((writes) => writes.filter((each) => happened.has(each)).length > 1).length;
  },
  'a write was answered while one of the same xid was carried out unanswered': ({ recording }, { txns }) => {
    const happened = new Set(txns.map(({ request }) => request));
    return sharedXids(recording).filter(
      (writes) => writes.some(({ reply }) => reply !== undefined) && writes.some((each) => each.reply === undefined && happened.has(each)),
    ).length;
  },
  'a page of children that continues another': requests(
    ({ name, record, reply }) =>
      isPage(name) &&
      reply?.err === ErrorCode.Ok &&
      (record as ChildrenPageRequest).afterZxid >= 0 &&
      pageOf(reply.body).children.length > 0,
  ),
  'a page of children with data that may not be read': requests(
    ({ name, reply }) =>
      isPage(name) &&
      reply?.err === ErrorCode.Ok &&
      pageOf(reply.body).children.some((child) => typeof child === 'object' && child.err === ErrorCode.NoAuth),
  ),
  'a page continued after a child that was deleted': continuedAfterDeleted,
  'children of one txn in one page': requests(
    ({ name, reply }) => isPage(name) && reply?.err === ErrorCode.Ok && hasSiblings(pageOf(reply.body)),
  ),
  'a list of ephemerals alone': requests(
    ({ name, record, reply }) =>
      name === 'filteredList' &&
      reply?.err === ErrorCode.Ok &&
      (record as FilteredListRequest).filter === ListFilter.ephemeral &&
      (reply.body as GetChildren2Reply).children.length > 0,
  ),
  ...keeperMarks,
  ...sequenceMarks,
  'a listing in several pages': ({ recording }) => recording.listings.filter(({ names }) => names.length > 3).length,
  'a multi succeeded': requests((request) => partsOf(request)?.every(({ kind }) => kind !== 'error') === true),
  'a multi failed': requests((request) => partsOf(request)?.some(({ kind }) => kind === 'error') === true),
  NoAuth: answered(ErrorCode.NoAuth),
  'a client authenticated by SASL': requests((request) => saslReply(request)?.startsWith('rspauth=') === true),
  'a SASL exchange failed, and the client was served': requests((request) => saslReply(request) === null),
  'a SASL exchange was not answered': requests(({ name, reply }) => name === 'sasl' && reply === undefined),
  InvalidACL: answered(ErrorCode.InvalidACL),
  BadVersion: answered(ErrorCode.BadVersion),
  NotEmpty: answered(ErrorCode.NotEmpty),
  NodeExists: answered(ErrorCode.NodeExists),
  NoChildrenForEphemerals: answered(ErrorCode.NoChildrenForEphemerals),
  'an event was delivered': items(({ kind, zxid }) => kind === 'event' && zxid > 0),
  'a missed event was delivered on reconnect': items(({ kind, zxid }) => kind === 'event' && zxid === -1),
  'a recursive watch was set': requests(
    ({ name, record, reply }) =>
      name === 'addWatch' && reply !== undefined && (record as AddWatchRequest).mode === AddWatchMode.persistentRecursive,
  ),
  'a watch was removed': requests(({ name, reply }) => name === 'removeWatches' && reply?.err === ErrorCode.Ok),
  'a container was swept': swept(OpCode.createContainer),
  'a TTL znode was swept': swept(OpCode.createTTL),
  'a quota was counted': requests(({ name, record, reply }) => {
    const { path } = (record ?? {}) as { readonly path?: string };
    return name === 'getData' && path?.startsWith('/zookeeper/quota/') === true && reply?.err === ErrorCode.Ok;
  }),
  'a request was refused for a quota': (_outcome, { quotaDecisions }) => quotaDecisions.filter(({ isRefused }) => isRefused).length,
  'zxids continued in the next epoch': (_outcome, { txns }) =>
    Number((txns[0]?.zxid ?? 0) < 2 ** 32 && (txns.at(-1)?.zxid ?? 0) >= 2 ** 32),
  'a sequence counter overflowed': ({ recording }) =>
    recording.log.filter(({ logged }) => logged.txn.kind === 'create' && /--\d{9,10}$/.test(logged.txn.path)).length,
  'a torn tail was truncated at start': lines(/torn|was cut|cut off/),
  'a start read several logs': ({ world }) => sum(world.servers, (server) => Number(server.evidence('log').size > 2)),
  'old files were purged': loggedEvents('purge.done'),
  'a snapshot was written during requests': loggedEvents('snapshot.written'),
  'a snapshot could not be written': loggedEvents('snapshot.failed'),
  'snapshots and logs were in two folders': ({ world }) =>
    sum(world.servers, (server) => Number(server.snapshotFolder !== server.logFolder)),
  'the clock was set back while a server was down': ({ recording }) => clockSetBackOverRestart(recording),
  ...Object.fromEntries(
    (['request', 'commit', 'sync', 'snapshot'] as const).map((kind): [string, Count] => [
      `a step budget ran out: ${kind}`,
      ({ recording }) => recording.stepsYielded.get(kind) ?? 0,
    ]),
  ),
  'a long write was queued': ({ recording }) => recording.longWritesQueued.own,
  'a forwarded long write was queued': ({ recording }) => recording.longWritesQueued.passedOn,
  ...limitMarks,
  'a flood': annotated('flood'),
  'a flood of a hundred sessions': annotated('flood: a hundred sessions'),
  'a flood with a thousand requests in flight': annotated('flood: a thousand requests in flight'),
  'a server was restarted in a flood': annotated('flood: a server was restarted'),
  'a server lost its disk in a flood': annotated('flood: a server lost its disk'),
  'a multi of a hundred parts succeeded': requests(isLongMulti),
  'a value of the maximum length was written': requests(
    ({ name, record, reply }) =>
      (name === 'setData' || name === 'create') && reply?.err === ErrorCode.Ok && ((record as SetDataRequest).data?.length ?? 0) > 29_000,
  ),
  ...Object.fromEntries(
    Object.keys({ ...unknownPeerAttacks, ...impersonatorAttacks }).map((name) => [`hostile ${name}`, annotated(`hostile ${name}`)]),
  ),
  ...Object.fromEntries(
    [
      transferredMark,
      ...Object.keys(transferOutcomes),
      'a server that was to lead was killed',
      'connections were shed',
      sessionEndedMark,
    ].map((name) => [name, annotated(name)]),
  ),
  ...ensembleMarks,
  ...reconfigMarks,
};

function isPage(name: string | undefined): boolean {
  return name === 'getChildrenPage' || name === 'getChildrenDataPage';
}

function pageOf(body: unknown): ChildrenPageReply | ChildrenDataPageReply {
  return body as ChildrenPageReply | ChildrenDataPageReply;
}

function hasSiblings({ children }: ChildrenPageReply | ChildrenDataPageReply): boolean {
  const czxids = children.flatMap((child) => (typeof child === 'object' && 'stat' in child ? [child.stat.czxid] : []));
  return new Set(czxids).size < czxids.length;
}

/** Pages after a child that a delete removed before they were read. */
function continuedAfterDeleted({ recording }: Outcome): number {
  const deleted = new Map<string, number>();
  for (const { logged } of recording.log) if (logged.txn.kind === 'delete') deleted.set(logged.txn.path, logged.header.zxid);
  return sum(
    recording.cnxns,
    ({ requests: each }) =>
      each.filter(({ name, record, reply }) => {
        if (!isPage(name) || reply?.err !== ErrorCode.Ok || pageOf(reply.body).children.length === 0) return false;
        const { path, afterZxid, afterName } = record as ChildrenPageRequest;
        const at = deleted.get(`${path === '/' ? '' : path}/${afterName}`);
        return at !== undefined && at > afterZxid && at <= reply.zxid;
      }).length,
  );
}

/** Argument for counts that use noted marks only. */
const noReplay = undefined as never;

function swept(type: number): Count {
  return ({ recording }, { sweeps }) => {
    const made = new Set(recording.log.flatMap(({ logged: { header, txn } }) => (header.type === type && 'path' in txn ? [txn.path] : [])));
    return sweeps.filter(({ path }) => made.has(path)).length;
  };
}

/** Writes with equal session and xid, where there are several. */
function sharedXids({ cnxns }: Recording): Request[][] {
  const byKey = new Map<string, Request[]>();
  for (const cnxn of cnxns) {
    for (const request of cnxn.requests) {
      if (!isWrite(request)) continue;
      const key = requestKey(request.session, request.xid);
      const known = byKey.get(key);
      if (known === undefined) byKey.set(key, [request]);
      else known.push(request);
    }
  }
  return [...byKey.values()].filter(({ length }) => length > 1);
}

function sessionsResumedAfterRestart({ cnxns, processes }: Recording): number {
  return cnxns.filter(({ handshake, session, handshakeMs }) => {
    if ((session ?? 0n) === 0n || handshake?.sessionId !== session) return false;
    const before = cnxns.find((other) => other.session === session && other.handshake?.sessionId === 0n);
    return before !== undefined && processes.some(({ startedMs }) => startedMs > before.handshakeMs && startedMs < handshakeMs);
  }).length;
}

function clockSetBackOverRestart({ wallClocks, processes }: Recording): number {
  return processes.filter(({ server, startedMs }) => {
    const clocks = wallClocks.filter((clock) => clock.server === server && clock.fromMs <= startedMs);
    const now = clocks.at(-1);
    return now !== undefined && clocks.some(({ offsetMs }) => offsetMs > now.offsetMs);
  }).length;
}

/** How often each mark was hit. */
export function marksOf(outcome: Outcome, replay: Replay): Map<string, number> {
  return new Map(Object.entries(marks).map(([name, count]) => [name, count(outcome, replay)]));
}
