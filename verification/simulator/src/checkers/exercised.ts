/**
 * Whether a recording contains what a checker checks. A checker that finds nothing wrong in a
 * recording without events proves nothing about events, so the summary counts the seeds in which
 * each checker had something to check.
 */
import { CreateMode, ErrorCode } from '@tskeeper/protocol';
import type { PeerEvent } from '../record/peer-event.ts';
import type { Recording, Request } from '../record/recording.ts';
import { isThrottled, isWrite } from '../record/request-kinds.ts';
import type { Replay } from '../replay/replay-result.ts';
import type { CheckerName } from './checkers.ts';

type IsExercised = (recording: Recording, replay: Replay) => boolean;

function anyRequest(predicate: (request: Request) => boolean): IsExercised {
  return ({ cnxns }) => cnxns.some(({ requests }) => requests.some(predicate));
}

function hasReplyTo(...names: readonly string[]): IsExercised {
  return anyRequest(({ name, reply }) => reply !== undefined && names.includes(name ?? ''));
}

function hasPeerEvent(kind: PeerEvent['kind']): IsExercised {
  return ({ peerEvents }) => peerEvents.some((event) => event.kind === kind);
}

const hasEvent: IsExercised = ({ cnxns }) => cnxns.some(({ items }) => items.some(({ kind }) => kind === 'event'));
const hasReply = anyRequest(({ reply }) => reply !== undefined);
const hasWrite = anyRequest((request) => request.reply !== undefined && isWrite(request));
/** The library has reported something to its callers. */
const hasDelivery: IsExercised = (recording) => recording.clientDeliveries.length > 0;
const hasReconnect: IsExercised = ({ cnxns }) =>
  cnxns.some(({ handshake, session = 0n }) => session !== 0n && handshake?.sessionId === session);
const hasLibraryReconnect: IsExercised = ({ cnxns, libraryClients }) =>
  cnxns.some(({ client, handshake, session = 0n }) => libraryClients.has(client) && session !== 0n && handshake?.sessionId === session);
const hasExpiry: IsExercised = (_recording, { sessions }) => [...sessions.values()].some(({ closedBy }) => closedBy === 'server');

export const exercised: Readonly<Record<CheckerName, IsExercised>> = {
  totalOrder: (_recording, { txns }) => txns.length > 1,
  linearizableWrites: hasWrite,
  writeReplies: hasWrite,
  throttledOps: anyRequest(isThrottled),
  registerLinearizability: hasWrite,
  fifoOrder: ({ cnxns }) => cnxns.some(({ requests }) => requests.filter(({ reply }) => reply !== undefined).length > 1),
  reads: hasReplyTo('getData', 'exists', 'getChildren', 'getChildren2'),
  childListings: ({ listings }) => listings.some(({ names }) => names.length > 1),
  singleSystemImage: hasReply,
  nothingRolledBack: hasReconnect,
  syncThenRead: hasReplyTo('sync'),
  multiAtomic: hasReplyTo('multi'),
  compareAndSet: anyRequest(
    ({ name, record, reply }) =>
      (name === 'setData' || name === 'delete') && reply !== undefined && (record as { readonly version: number }).version >= 0,
  ),
  unknownOutcomes: anyRequest((request) => request.reply === undefined && isWrite(request)),
  watchBeforeData: hasEvent,
  oneShotWatches: hasEvent,
  watchEventOrder: hasEvent,
  persistentWatches: hasReplyTo('addWatch'),
  watchesOverReconnect: hasReplyTo('setWatches', 'setWatches2'),
  watchesRestored: hasLibraryReconnect,
  watchAcl: hasEvent,
  ephemerals: (_recording, { sessions }) => [...sessions.values()].some(({ ephemerals }) => ephemerals.length > 0),
  earlyExpiry: hasExpiry,
  lateExpiry: hasExpiry,
  sessionIdentity: hasReconnect,
  localSessions: hasPeerEvent('localSession'),
  negotiation: ({ cnxns }) => cnxns.some(({ session = 0n }) => session !== 0n),
  sequentialNames: anyRequest(
    ({ record, reply }) =>
      reply?.err === ErrorCode.Ok &&
      [CreateMode.persistentSequential as number, CreateMode.ephemeralSequential as number].includes(
        (record as { readonly flags?: number } | undefined)?.flags ?? -1,
      ),
  ),
  statConsistency: anyRequest(
    ({ name, reply }) => reply?.err === ErrorCode.Ok && ['exists', 'getData', 'setData', 'create2'].includes(name ?? ''),
  ),
  durability: (recording, replay) => hasWrite(recording, replay) && recording.processes.some(({ endedMs }) => endedMs !== undefined),
  snapshots: (recording) => recording.snapshots.length > 0,
  logRecordSize: ({ log }) => log.length > 0,
  digests: (_recording, replay) => replay.digests.length > 0,
  access: anyRequest(({ reply }) => reply?.err === ErrorCode.NoAuth),
  quotas: (_recording, { quotaDecisions }) => quotaDecisions.length > 0,
  sweeps: (_recording, replay) => replay.sweeps.length > 0,
  noLeaks: ({ leftovers }) => leftovers.length > 0,
  clientDeliveries: hasDelivery,
  clientOutcomes: hasDelivery,
  clientReconnects: hasLibraryReconnect,
  clientPings: ({ libraryClients }) => libraryClients.size > 0,
  silentAfterFailure: ({ processes }) => processes.some(({ failedMs }) => failedMs !== undefined),
  zab: hasPeerEvent('applied'),
  protocolErrors: hasPeerEvent('roleEnded'),
  quorumCommits: hasPeerEvent('applied'),
  epochQuorums: hasPeerEvent('serves'),
  configurations: hasPeerEvent('config'),
  acknowledgedAfterApply: hasPeerEvent('applied'),
  readOnlyMode: ({ readOnlyCnxns }) => readOnlyCnxns.length > 0,
  epochFiles: hasPeerEvent('epochFiles'),
  peerClaims: hasPeerEvent('claims'),
  staleness: hasPeerEvent('applied'),
  convergence: ({ quiescentStates }) => quiescentStates.some((states) => states.length > 1),
};
