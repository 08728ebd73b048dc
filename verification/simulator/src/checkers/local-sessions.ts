/**
 * Sessions that only their own server knows. Uses the log, what clients sent and received, and what
 * servers report of the sessions' ends; not the model.
 */
import {
  CreateMode,
  type CreateRequest,
  type Millis,
  type MultiRequest,
  OpCode,
  type SessionId,
  sessionIdOf,
  type Txn,
} from '@tskeeper/protocol';
import { servingPeriodsOf } from '../record/committed-history.ts';
import type { CnxnRecord, Recording, Request } from '../record/recording.ts';
import type { Checker } from './checker.ts';
import { cnxnsBySession, roundingMs } from './session-silence.ts';

export const localSessions: Checker = {
  property: 'P36',
  promise:
    'A local session owns no ephemeral: one becomes global, by a createSession of its own, only because its client creates an ephemeral, and before that ephemeral. Until then only its server knows it, which resumes it until it has been silent for its timeout, and no longer.',
  check(recording) {
    const violations = ephemeralsWithoutSession(recording);
    if (recording.limits.localSessions === undefined || recording.limits.localSessions === 'disabled') return violations;
    return [...violations, ...unaskedCreations(recording), ...lives(recording).flatMap((life) => wrongLife(recording, life))];
  },
};

const nameOf = (session: SessionId): string => `session 0x${BigInt.asUintN(64, session).toString(16)}`;

/** Ephemerals in the log whose owner is not open in the log at that place. */
function ephemeralsWithoutSession({ log }: Recording): string[] {
  const violations: string[] = [];
  const open = new Set<SessionId>();
  for (const { logged } of log) {
    const { header, txn } = logged;
    const session = sessionIdOf(header.clientHigh, header.clientLow);
    if (txn.kind === 'createSession') open.add(session);
    else if (txn.kind === 'closeSession') open.delete(session);
    else if (createsEphemeral(txn) && !open.has(session))
      violations.push(`${header.zxid} creates an ephemeral of ${nameOf(session)}, which is not global then`);
  }
  return violations;
}

function createsEphemeral(txn: Txn): boolean {
  if (txn.kind === 'multi') return txn.txns.some((part) => createsEphemeral(part.txn));
  return txn.kind === 'create' && txn.ephemeral;
}

// --- how a session becomes global

function isEphemeral({ flags }: Pick<CreateRequest, 'flags'>): boolean {
  return flags === CreateMode.ephemeral || flags === CreateMode.ephemeralSequential;
}

function wantsEphemeral({ name, record }: Request): boolean {
  if (name !== undefined && upgrading.has(name)) return isEphemeral(record as CreateRequest);
  if (name !== 'multi') return false;
  return (record as MultiRequest).ops.some((op) => upgrading.has(op.kind) && isEphemeral(op as CreateRequest));
}

/** Operations that make a local session global if they create an ephemeral. */
const upgrading: ReadonlySet<string> = new Set(['create', 'create2', 'createIfNotExists']);

/** Sessions in the log whose clients had not sent an ephemeral; any, if none may become global. */
function unaskedCreations({ log, cnxns, limits, seedState }: Recording): string[] {
  const askedMs = new Map<SessionId, Millis>();
  for (const { requests } of cnxns) {
    for (const request of requests) {
      if (!wantsEphemeral(request)) continue;
      askedMs.set(request.session, Math.min(askedMs.get(request.session) ?? Infinity, request.sentMs));
    }
  }
  return log.flatMap(({ atMs, logged: { header } }) => {
    if (header.type !== OpCode.createSession || header.zxid <= seedState.zxid) return [];
    const session = sessionIdOf(header.clientHigh, header.clientLow);
    if (limits.localSessions === 'enabled') return [`${header.zxid} creates ${nameOf(session)}, but sessions stay local`];
    const sentMs = askedMs.get(session) ?? Infinity;
    return sentMs <= atMs + roundingMs
      ? []
      : [`${header.zxid} makes ${nameOf(session)} global, which had not sent an ephemeral by ${atMs}`];
  });
}

// --- how a local session lives and ends

interface LocalLife {
  readonly session: SessionId;
  /** The connection that opened it. */
  readonly opener: CnxnRecord;
  readonly cnxns: readonly CnxnRecord[];
  /** Its server opened it. */
  readonly openedMs: Millis;
  /** The end of the role in which its server opened it: no local session survives that. */
  readonly roleEndMs: Millis;
  /** Its server made it global. */
  readonly upgradedMs: Millis;
  /** Its server ended it: it had timed out, or its client had closed it. */
  readonly expiredMs: Millis;
  readonly closedMs: Millis;
}

function lives(recording: Recording): LocalLife[] {
  const { cnxns, peerEvents, endedMs } = recording;
  const cnxnsOf = cnxnsBySession(recording);
  const reports = new Map<SessionId, { opened: Millis; upgraded: Millis; expired: Millis; closed: Millis }>();
  for (const event of peerEvents) {
    if (event.kind !== 'localSession' || event.what === 'refused') continue;
    let report = reports.get(event.session);
    if (report === undefined)
      reports.set(event.session, (report = { opened: Infinity, upgraded: Infinity, expired: Infinity, closed: Infinity }));
    report[event.what] = Math.min(report[event.what], event.atMs);
  }
  const servingPeriods = servingPeriodsOf(recording);
  return cnxns.flatMap((opener) => {
    const { handshake, session, server, openedMs } = opener;
    const report = reports.get(session ?? 0n);
    // In a run without reports of servers there is nothing to compare with.
    if (handshake?.sessionId !== 0n || session === undefined || report === undefined) return [];
    const role = servingPeriods.find((each) => each.server === server && each.fromMs <= report.opened && each.toMs >= report.opened);
    return [
      {
        session,
        opener,
        cnxns: cnxnsOf.get(session) ?? [],
        openedMs: report.opened === Infinity ? openedMs : report.opened,
        roleEndMs: Math.min(role?.toMs ?? endedMs, endedMs),
        upgradedMs: report.upgraded,
        expiredMs: report.expired,
        closedMs: report.closed,
      },
    ];
  });
}

function wrongLife(recording: Recording, life: LocalLife): string[] {
  const { session, opener, cnxns, roleEndMs, upgradedMs, expiredMs, closedMs } = life;
  const violations: string[] = [];
  const endMs = Math.min(expiredMs, closedMs);
  for (const cnxn of cnxns) {
    if (cnxn === opener || cnxn.session !== session || cnxn.handshakeMs >= upgradedMs) continue;
    if (cnxn.server !== opener.server)
      violations.push(`${cnxn.server} resumed ${nameOf(session)}, a local session of ${opener.server}, for ${cnxn.key}`);
    else if (cnxn.openedMs > roleEndMs || cnxn.openedMs > endMs)
      violations.push(`${cnxn.key} resumed ${nameOf(session)}, which had ended at ${Math.min(roleEndMs, endMs)}`);
  }
  const contacts = contactsOf(recording, life);
  const lastMs = (untilMs: Millis) => contacts.reduce((last, atMs) => (atMs <= untilMs ? Math.max(last, atMs) : last), life.openedMs);
  const timeoutMs = timeoutAt(life, Math.min(endMs, roleEndMs, upgradedMs));
  if (expiredMs + roundingMs < lastMs(expiredMs) + timeoutMs && !recording.endedByOperator.has(session)) {
    violations.push(
      `${nameOf(session)} expired at ${expiredMs}, though its server had received something from it at ${lastMs(expiredMs)} and its timeout was ${timeoutMs} ms`,
    );
  }
  const overMs = Math.min(roleEndMs, upgradedMs, endMs);
  const silentMs = lastSign(life, recording, overMs);
  if (overMs > silentMs + timeoutMs + 2 * recording.limits.tickMs + delayMs(recording, opener.server, silentMs, overMs) + roundingMs)
    violations.push(`${nameOf(session)} sent nothing since ${silentMs} and had a timeout of ${timeoutMs} ms, but lived until ${overMs}`);
  return violations;
}

/** When its server surely had received something from it. */
function contactsOf({ frameArrivals }: Recording, { session, opener, cnxns }: LocalLife): Millis[] {
  const firstArrivals = cnxns.flatMap(({ key, server }) => (server === opener.server ? (frameArrivals.get(key)?.slice(0, 1) ?? []) : []));
  return cnxns.flatMap((cnxn) => {
    if (cnxn.session !== session || cnxn.server !== opener.server) return [];
    const times = frameArrivals.get(cnxn.key) ?? [];
    // A request for the session closes the connection that has it.
    const takenOverMs = Math.min(...firstArrivals.filter((atMs) => atMs > (times[0] ?? 0)), Infinity);
    return times.filter((atMs) => atMs < Math.min(takenOverMs, cnxn.malformedMs ?? Infinity));
  });
}

/** When it can have received something from it for the last time. */
function lastSign({ opener, cnxns, openedMs }: LocalLife, { frameArrivals, partialArrivals }: Recording, untilMs: Millis): Millis {
  let last = openedMs;
  for (const { key, server, handshakeMs } of cnxns) {
    if (server !== opener.server) continue;
    for (const atMs of [...(frameArrivals.get(key) ?? []), ...(partialArrivals.get(key) ?? []), handshakeMs]) {
      if (atMs <= untilMs) last = Math.max(last, atMs);
    }
  }
  return last;
}

function timeoutAt({ opener, cnxns, session }: LocalLife, untilMs: Millis): Millis {
  let latest = opener;
  for (const cnxn of cnxns) {
    if (cnxn.session === session && cnxn.handshakeMs <= untilMs && cnxn.handshakeMs >= latest.handshakeMs) latest = cnxn;
  }
  return latest.timeoutMs;
}

/** How long its server did something else: it was paused, or worked on one long request. */
function delayMs({ pauses, jobs }: Recording, server: string, fromMs: Millis, toMs: Millis): Millis {
  const overlapMs = (each: { readonly fromMs: Millis; readonly toMs: Millis }) =>
    Math.max(0, Math.min(each.toMs, toMs) - Math.max(each.fromMs, fromMs));
  const pausedMs = pauses.reduce((sum, each) => sum + (each.server === server ? overlapMs(each) : 0), 0);
  return pausedMs + jobs.reduce((longest, each) => (each.server === server ? Math.max(longest, overlapMs(each)) : longest), 0);
}
