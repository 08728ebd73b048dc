/** Marks: rare things that happen only between servers. */
import type { RoleEndReason } from '@tskeeper/core';
import { epochOf, ErrorCode, sessionIdOf, type Zxid } from '@tskeeper/protocol';
import { isQuorum } from '../record/quorum-rule.ts';
import type { PeerEvent } from '../record/peer-event.ts';
import { leaderEpochsOf, type ServingPeriod, servingPeriodsOf } from '../record/committed-history.ts';
import type { CnxnRecord, Recording, Request } from '../record/recording.ts';
import { ServersWithoutLog } from '../record/servers-without-log.ts';
import { isWrite } from '../record/request-kinds.ts';
import { readOnlyStreams, shownZxidOf } from '../replay/read-only-streams.ts';
import type { Replay } from '../replay/replay-result.ts';
import type { Outcome } from './seed-run.ts';

type Count = (outcome: Outcome, replay: Replay) => number;

/** How learners were synchronised, under the names that the summary prints. */
export const syncMarks = ['DIFF from memory', 'DIFF from disk', 'TRUNC', 'SNAP'] as const;
export const electionMark = 'an election finished';

function events(predicate: (event: PeerEvent) => boolean): Count {
  return ({ recording }) => recording.peerEvents.filter(predicate).length;
}

function ended(reason: RoleEndReason): Count {
  return events((event) => event.kind === 'roleEnded' && event.reason === reason);
}

export const ensembleMarks: Readonly<Record<string, Count>> = {
  [electionMark]: ({ recording }) => leaderEpochsOf(recording).length,
  'DIFF from memory': events((event) => event.kind === 'syncsLearner' && event.by === 'diff' && event.from === 'memory'),
  'DIFF from disk': events((event) => event.kind === 'syncsLearner' && event.by === 'diff' && event.from === 'log'),
  TRUNC: events((event) => event.kind === 'syncsLearner' && event.by === 'trunc'),
  SNAP: events((event) => event.kind === 'syncsLearner' && event.by === 'snap'),
  'several learners were sent a snapshot at once': events((event) => event.kind === 'syncsLearner' && event.snapshots > 1),
  'a SNAP started at a zxid before the last commit': events((event) => event.kind === 'syncsLearner' && event.isBehind),
  'a log was truncated': events((event) => event.kind === 'replaced' && event.by === 'trunc'),
  'a leader lost its quorum': ended('quorum lost'),
  'the zxid counter of an epoch was exhausted': ended('counter exhausted'),
  'an election was repeated before a leader served': ended('no quorum in time'),
  'a learner lost a silent leader': ended('leader silent'),
  'a session moved between servers': ({ recording }) => sessionMoves(recording),
  'a session moved there and back': ({ marks }) => marks.get('client moved there and back') ?? 0,
  'a session had two revalidations in flight': ({ recording }) => concurrentRevalidations(recording),
  'a request of a stale connection was fenced off': (_outcome, { txns }) =>
    txns.filter(({ loggedErr }) => loggedErr === ErrorCode.SessionMoved).length,
  'a write was forwarded': ({ recording }) => writesAnsweredBy(recording, 'follower'),
  'a write came through an observer': ({ recording }) => writesAnsweredBy(recording, 'observer'),
  'a write came through an observer of a follower': ({ recording }) =>
    writesAnsweredBy(recording, 'observer', (server) => recording.ensemble.get(server)?.observesFollowers === true),
  'a follower synchronised an observer': ({ recording }) => syncsByFollowers(recording),
  'an observer knew more than the follower it came to': ({ recording }) => observersAhead(recording),
  'a sync at an observer of a lagging follower': ({ marks }) => marks.get('a sync at an observer of a lagging follower') ?? 0,
  'an observer without a log served': ({ recording }) => servedWithoutLog(recording),
  'a learner revalidated a session': ({ recording }) => revalidated(recording),
  'a local session was opened': localSessionEvents('opened'),
  'a local session became global': localSessionEvents('upgraded'),
  'a local session was refused an ephemeral': localSessionEvents('refused'),
  'a local session expired': localSessionEvents('expired'),
  'a local session was closed by its client': localSessionEvents('closed'),
  'a local session was resumed': ({ recording }) => localSessionsResumed(recording, (cnxn) => cnxn.session !== 0n),
  'a local session was asked for at another server, or after its end': ({ recording }) =>
    localSessionsResumed(recording, (cnxn) => cnxn.session === 0n),
  'a session became global at a leader': ({ recording }) => upgradesAt(recording, 'leader'),
  'a session became global at a follower': ({ recording }) => upgradesAt(recording, 'follower'),
  'a session became global at an observer': ({ recording }) => upgradesAt(recording, 'observer'),
  'a session that became global was lost with its leader': ({ recording }) => lostUpgrades(recording),
  'the lead was given to a server of a higher priority': ({ world }) =>
    world.servers.reduce(
      (sum, { logEvents }) => sum + logEvents.filter((each) => each.event === 'leader.transfer-began' && each.reason === 'priority').length,
      0,
    ),
  'a transfer ended with a lost target': ({ world }) =>
    world.servers.reduce(
      (sum, { logEvents }) =>
        sum + logEvents.filter((each) => each.event === 'leader.transfer-failed' && each.reason === 'target lost').length,
      0,
    ),
  'a transfer ended with a slow target': ({ world }) =>
    world.servers.reduce(
      (sum, { logEvents }) =>
        sum + logEvents.filter((each) => each.event === 'leader.transfer-failed' && each.reason === 'target too slow').length,
      0,
    ),
  'a disk was lost': events((event) => event.kind === 'wiped'),
  'groups and weights': ({ recording }) => Number([...recording.ensemble.values()].some(({ group }) => group !== undefined)),
  'a server without weight served': ({ recording }) => servedWithoutWeight(recording),
  'a txn was committed by less than a majority': ({ recording }) => committedByMinority(recording),
  'a majority was not a quorum': ({ recording }) => majorityWithoutQuorum(recording),
  'an oracle let one server serve alone': ({ world }) =>
    world.servers.reduce(
      (sum, { logEvents }) => sum + logEvents.filter((each) => each.event === 'oracle.answered' && each.allowed === true).length,
      0,
    ),
  'the core was healthy alone': ({ marks }) => marks.get('core alone') ?? 0,
  'a fail-over was in time': ({ marks }) => marks.get('fail-over') ?? 0,
  'a dial was accepted early and closed': ({ marks }) => marks.get('early accept closed') ?? 0,
  'a dial was accepted early and silent': ({ marks }) => marks.get('early accept silent') ?? 0,
  'a connection between servers was half closed': ({ marks }) => marks.get('half closed between servers') ?? 0,
  'a leader was elected over links that accept early': ({ recording, world }) =>
    [...world.links].some(({ earlyAccept }) => earlyAccept !== undefined) ? leaderEpochsOf(recording).length : 0,
  'a server began read-only mode': events(({ kind }) => kind === 'readOnly'),
  'a server in read-only mode found a leader': events(({ kind }) => kind === 'readOnlyEnded'),
  'a read was served in read-only mode': inReadOnlyMode(({ name, reply }) => name === 'getData' && reply?.err === ErrorCode.Ok),
  'a write was refused in read-only mode': inReadOnlyMode(({ name, reply }) => name !== 'sync' && reply?.err === ErrorCode.NotReadOnly),
  'a sync was refused in read-only mode': inReadOnlyMode(({ name, reply }) => name === 'sync' && reply?.err === ErrorCode.NotReadOnly),
  'watches were restored in read-only mode': inReadOnlyMode(({ name, reply }) => name === 'setWatches2' && reply !== undefined),
  'a local session was closed in read-only mode': inReadOnlyMode(
    ({ name, reply }) => name === 'closeSession' && reply?.err === ErrorCode.Ok,
  ),
  'a local session was resumed in read-only mode': ({ recording }) =>
    recording.readOnlyCnxns.filter(({ handshake, session = 0n }) => session !== 0n && handshake?.sessionId === session).length,
  'a read-only server refused to open a session': ({ recording }) =>
    recording.readOnlyCnxns.filter(({ handshake, session }) => session === 0n && handshake?.sessionId === 0n).length,
  'a client library was served in read-only mode': ({ recording: { readOnlyCnxns, libraryClients } }) =>
    readOnlyCnxns.filter(({ client, session = 0n }) => libraryClients.has(client) && session !== 0n).length,
  'a client left a read-only server for another': ({ recording }) => movesFromReadOnly(recording).length,
  'a session went on after a read-only server was met': ({ recording }) => keptSessions(recording),
  'a local session was unknown to the ensemble': ({ recording }) => unknownLocalSessions(recording),
  'a read-only server showed what was not kept': ({ recording }) =>
    recording.readOnlyCnxns.filter((cnxn) => shownZxidOf(cnxn) !== undefined).length - readOnlyStreams(recording).length,
  'a new leader was failed': ({ marks }) => marks.get('a new leader was failed') ?? 0,
  'a server restarted under load': ({ marks }) => marks.get('restart under load') ?? 0,
};

type LocalSessionEvent = Extract<PeerEvent, { kind: 'localSession' }>;

function localEvents({ peerEvents }: Recording, what: LocalSessionEvent['what']): LocalSessionEvent[] {
  return peerEvents.filter((event): event is LocalSessionEvent & PeerEvent => event.kind === 'localSession' && event.what === what);
}

function localSessionEvents(what: LocalSessionEvent['what']): Count {
  return ({ recording }) => localEvents(recording, what).length;
}

/** How often a session was asked for before it became global, if ever, with one outcome. */
function localSessionsResumed(recording: Recording, hasOutcome: (cnxn: CnxnRecord) => boolean): number {
  const opened = new Set(localEvents(recording, 'opened').map(({ session }) => session));
  for (const { session } of localEvents(recording, 'upgraded')) opened.delete(session);
  const isAsked = ({ handshake, session }: CnxnRecord) => session !== undefined && opened.has(handshake?.sessionId ?? 0n);
  return recording.cnxns.filter((cnxn) => isAsked(cnxn) && hasOutcome(cnxn)).length;
}

function upgradesAt(recording: Recording, role: ServingPeriod['role']): number {
  const periods = servingPeriodsOf(recording).filter((each) => each.role === role);
  const isThen = ({ server, atMs }: PeerEvent) =>
    periods.some((each) => each.server === server && each.fromMs <= atMs && each.toMs >= atMs);
  return localEvents(recording, 'upgraded').filter((event) => isThen(event)).length;
}

/** The createSession was requested, and is not in the log. */
function lostUpgrades(recording: Recording): number {
  const created = new Set(
    recording.log.flatMap(({ logged: { header, txn } }) =>
      txn.kind === 'createSession' ? [sessionIdOf(header.clientHigh, header.clientLow)] : [],
    ),
  );
  return localEvents(recording, 'upgraded').filter(({ session }) => !created.has(session)).length;
}

function inReadOnlyMode(isIt: (request: Request) => boolean): Count {
  return ({ recording }) => recording.readOnlyCnxns.reduce((count, { requests }) => count + requests.filter(isIt).length, 0);
}

/** Connections of clients that a read-only server had served before. */
function movesFromReadOnly({ cnxns, readOnlyCnxns }: Recording): CnxnRecord[] {
  const servedMs = new Map<string, number>();
  for (const { client, session = 0n, handshakeMs } of readOnlyCnxns) if (session !== 0n) servedMs.set(client, handshakeMs);
  return cnxns.filter(({ client, session = 0n, handshakeMs }) => session !== 0n && handshakeMs > (servedMs.get(client) ?? Infinity));
}

/** How often a session of the ensemble was turned away by a read-only server, and resumed later. */
function keptSessions({ cnxns, peerEvents }: Recording): number {
  const periods = peerEvents.flatMap(({ kind, server, atMs }, at) => {
    if (kind !== 'readOnly') return [];
    const end = peerEvents.slice(at + 1).find((event) => event.server === server && /readOnlyEnded|processGone/.test(event.kind));
    return [{ server, fromMs: atMs, toMs: end?.atMs ?? Infinity }];
  });
  const turnedAway = cnxns.filter(
    ({ server, session, handshake, openedMs }) =>
      session === undefined &&
      handshake?.readOnly === true &&
      handshake.sessionId !== 0n &&
      periods.some((period) => period.server === server && period.fromMs <= openedMs && openedMs <= period.toMs),
  );
  return turnedAway.filter(({ handshake, openedMs }) =>
    cnxns.some(({ session, openedMs: at }) => session === handshake!.sessionId && at > openedMs),
  ).length;
}

/** How often a client presented a session that a read-only server had opened, and was refused. */
function unknownLocalSessions({ cnxns, readOnlyCnxns }: Recording): number {
  const local = new Set(readOnlyCnxns.filter(({ handshake }) => handshake?.sessionId === 0n).map(({ session = 0n }) => session));
  return cnxns.filter(({ session, handshake }) => session === 0n && local.has(handshake?.sessionId ?? 0n)).length;
}

function servedWithoutLog({ peerEvents }: Recording): number {
  const withoutLog = new ServersWithoutLog();
  let count = 0;
  for (const event of peerEvents) {
    withoutLog.onEvent(event);
    if (event.kind === 'serves' && withoutLog.has(event.server)) count++;
  }
  return count;
}

function servedWithoutWeight({ peerEvents, ensemble }: Recording): number {
  return peerEvents.filter(({ kind, server }) => kind === 'serves' && ensemble.get(server)?.weight === 0).length;
}

/**
 * For each txn, the share of voters that have it on disk when its leader applies it; and how often
 * a majority had a txn while it was not a quorum.
 */
function durableVoterShares({ peerEvents, ensemble }: Recording): { readonly atCommit: number[]; readonly waited: number } {
  const voters = [...ensemble].filter(([, { isVoter }]) => isVoter).map(([name]) => name);
  const logged = new Map<string, Zxid>();
  const leading = new Map<string, number>();
  const atCommit: number[] = [];
  let waited = 0;
  for (const event of peerEvents) {
    const { server } = event;
    if (event.kind === 'serves' && event.role === 'leader') leading.set(server, event.epoch);
    else if (event.kind === 'roleEnded' || event.kind === 'processGone') leading.delete(server);
    else if (event.kind === 'logged') {
      logged.set(server, event.zxid);
      const names = voters.filter((name) => (logged.get(name) ?? 0) >= event.zxid);
      if (names.length * 2 > voters.length && !isQuorum(ensemble, names)) waited++;
    } else if (event.kind === 'applied' && leading.get(server) === epochOf(event.zxid)) {
      atCommit.push(voters.filter((name) => (logged.get(name) ?? 0) >= event.zxid).length / voters.length);
    }
  }
  return { atCommit, waited };
}

function committedByMinority(recording: Recording): number {
  return durableVoterShares(recording).atCommit.filter((share) => share <= 0.5).length;
}

function majorityWithoutQuorum(recording: Recording): number {
  return durableVoterShares(recording).waited;
}

/** A connection attempt and a question about its session take this long. */
const revalidationMs = 12;

/**
 * How often a session came to a learner that had not yet answered it over an earlier connection.
 */
function concurrentRevalidations(recording: Recording): number {
  const servingPeriods = servingPeriodsOf(recording).filter(({ role }) => role !== 'leader');
  const last = new Map<string, CnxnRecord>();
  let count = 0;
  for (const cnxn of recording.cnxns.toSorted((a, b) => a.openedMs - b.openedMs)) {
    const { handshake, server, openedMs } = cnxn;
    if (handshake === undefined || handshake.sessionId === 0n) continue;
    const key = `${server} ${handshake.sessionId}`;
    const before = last.get(key);
    last.set(key, cnxn);
    if (before === undefined || before.session !== undefined || openedMs - before.openedMs > revalidationMs) continue;
    if (roleAt(servingPeriods, cnxn, openedMs) !== undefined) count++;
  }
  return count;
}

/** How often a session was resumed at another server than before. */
function sessionMoves({ cnxns }: Recording): number {
  const last = new Map<bigint, string>();
  let count = 0;
  for (const { session = 0n, server } of cnxns.toSorted((a, b) => a.handshakeMs - b.handshakeMs)) {
    if (session === 0n) continue;
    const before = last.get(session);
    if (before !== undefined && before !== server) count++;
    last.set(session, server);
  }
  return count;
}

function roleAt(servingPeriods: readonly ServingPeriod[], { server }: CnxnRecord, atMs: number): string | undefined {
  return servingPeriods.find(
    (servingPeriod) => servingPeriod.server === server && servingPeriod.fromMs <= atMs && servingPeriod.toMs >= atMs,
  )?.role;
}

/** How often a follower has synchronised a learner. */
function syncsByFollowers({ peerEvents }: Recording): number {
  const roles = new Map<string, string>();
  let count = 0;
  for (const event of peerEvents) {
    if (event.kind === 'serves') roles.set(event.server, event.role);
    else if (event.kind === 'roleEnded' || event.kind === 'processGone') roles.delete(event.server);
    else if (event.kind === 'syncsLearner' && roles.get(event.server) === 'follower') count++;
  }
  return count;
}

/**
 * How often a follower synchronised a learner that had stated a zxid which the follower had not applied
 * then, and has now.
 */
function observersAhead({ peerEvents, ensemble }: Recording): number {
  const roles = new Map<string, string>();
  const applied = new Map<string, Zxid>();
  let claims: { readonly zxid: Zxid; readonly appliedThen: ReadonlyMap<string, Zxid> }[] = [];
  let count = 0;
  for (const event of peerEvents) {
    const { server } = event;
    if (event.kind === 'serves') {
      roles.set(server, event.role);
      applied.set(server, event.historyEnd);
    } else if (event.kind === 'roleEnded' || event.kind === 'processGone') roles.delete(server);
    else if (event.kind === 'applied') applied.set(server, event.zxid);
    else if (event.kind === 'claims' && event.packet === 'ackEpoch' && ensemble.get(server)?.observesFollowers === true) {
      claims.push({ zxid: event.zxid, appliedThen: new Map(applied) });
    } else if (event.kind === 'syncsLearner' && roles.get(server) === 'follower') {
      const isIt = ({ zxid, appliedThen }: (typeof claims)[number]) =>
        zxid > (appliedThen.get(server) ?? Infinity) && zxid <= (applied.get(server) ?? 0);
      if (claims.some(isIt)) count++;
      claims = claims.filter((claim) => !isIt(claim));
    }
  }
  return count;
}

function writesAnsweredBy(recording: Recording, role: 'follower' | 'observer', concerns: (server: string) => boolean = () => true): number {
  const servingPeriods = servingPeriodsOf(recording).filter((period) => period.role === role && concerns(period.server));
  let count = 0;
  for (const cnxn of recording.cnxns) {
    for (const request of cnxn.requests) {
      if (isWrite(request) && request.reply !== undefined && roleAt(servingPeriods, cnxn, request.reply.atMs) !== undefined) count++;
    }
  }
  return count;
}

function revalidated(recording: Recording): number {
  const servingPeriods = servingPeriodsOf(recording).filter(({ role }) => role !== 'leader');
  return recording.cnxns.filter((cnxn) => {
    const { handshake, session, handshakeMs } = cnxn;
    return (session ?? 0n) !== 0n && handshake?.sessionId === session && roleAt(servingPeriods, cnxn, handshakeMs) !== undefined;
  }).length;
}
