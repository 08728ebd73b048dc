/**
 * Whether a recording contains what a checker judges. A checker that finds nothing wrong in a
 * recording without events proves nothing about events, so the summary counts the seeds in which
 * each checker had something to judge.
 */
import { CreateMode, ErrorCode } from '@tskeeper/protocol';
import type { PeerEvent } from '../record/peer-event.ts';
import type { Recording, Request } from '../record/recording.ts';
import { isTurnedAway, isWrite, type Replay } from '../replay/replay.ts';
import type { CheckerName } from './checkers.ts';

type Judged = (recording: Recording, replay: Replay) => boolean;

function anyRequest(isIt: (request: Request) => boolean): Judged {
  return ({ cnxns }) => cnxns.some(({ requests }) => requests.some(isIt));
}

function answered(...names: readonly string[]): Judged {
  return anyRequest(({ name, reply }) => reply !== undefined && names.includes(name ?? ''));
}

function peer(kind: PeerEvent['kind']): Judged {
  return ({ peers }) => peers.some((event) => event.kind === kind);
}

const anEvent: Judged = ({ cnxns }) => cnxns.some(({ items }) => items.some(({ kind }) => kind === 'event'));
const anAnswer = anyRequest(({ reply }) => reply !== undefined);
const aWrite = anyRequest((request) => request.reply !== undefined && isWrite(request));
/** The library has reported something to its callers. */
const told: Judged = (recording) => recording.told.length > 0;
const aReturn: Judged = ({ cnxns }) => cnxns.some(({ handshake, session = 0n }) => session !== 0n && handshake?.sessionId === session);
const libraryReturns: Judged = ({ cnxns, libraryClients }) =>
  cnxns.some(({ client, handshake, session = 0n }) => libraryClients.has(client) && session !== 0n && handshake?.sessionId === session);
const anEnd: Judged = (_recording, { sessions }) => [...sessions.values()].some(({ closedBy }) => closedBy === 'server');

export const judged: Readonly<Record<CheckerName, Judged>> = {
  oneOrder: (_recording, { txns }) => txns.length > 1,
  linearizableWrites: aWrite,
  writeReplies: aWrite,
  turnedAway: anyRequest(isTurnedAway),
  registerHistory: aWrite,
  fifoOrder: ({ cnxns }) => cnxns.some(({ requests }) => requests.filter(({ reply }) => reply !== undefined).length > 1),
  reads: answered('getData', 'exists', 'getChildren', 'getChildren2'),
  singleImage: anAnswer,
  nothingRolledBack: aReturn,
  syncThenRead: answered('sync'),
  multiAtomic: answered('multi'),
  compareAndSet: anyRequest(
    ({ name, record, reply }) =>
      (name === 'setData' || name === 'delete') && reply !== undefined && (record as { readonly version: number }).version >= 0,
  ),
  unknownOutcomes: anyRequest((request) => request.reply === undefined && isWrite(request)),
  watchBeforeData: anEvent,
  watchOnce: anEvent,
  watchOrder: anEvent,
  persistentWatches: answered('addWatch'),
  watchesOverReconnect: answered('setWatches', 'setWatches2'),
  watchesRestored: libraryReturns,
  watchAcl: anEvent,
  ephemerals: (_recording, { sessions }) => [...sessions.values()].some(({ ephemerals }) => ephemerals.length > 0),
  earlyExpiry: anEnd,
  lateExpiry: anEnd,
  sessionIdentity: aReturn,
  negotiation: ({ cnxns }) => cnxns.some(({ session = 0n }) => session !== 0n),
  sequences: anyRequest(
    ({ record, reply }) =>
      reply?.err === ErrorCode.Ok &&
      [CreateMode.persistentSequential as number, CreateMode.ephemeralSequential as number].includes(
        (record as { readonly flags?: number } | undefined)?.flags ?? -1,
      ),
  ),
  statLaws: anyRequest(
    ({ name, reply }) => reply?.err === ErrorCode.Ok && ['exists', 'getData', 'setData', 'create2'].includes(name ?? ''),
  ),
  durability: (recording, replay) => aWrite(recording, replay) && recording.processes.some(({ endedMs }) => endedMs !== undefined),
  snapshots: (recording) => recording.snapshots.length > 0,
  rereadable: ({ log }) => log.length > 0,
  digests: (_recording, replay) => replay.digests.length > 0,
  access: anyRequest(({ reply }) => reply?.err === ErrorCode.NoAuth),
  quotas: (_recording, { quotaJudgements }) => quotaJudgements.length > 0,
  sweeps: (_recording, replay) => replay.sweeps.length > 0,
  noLeak: ({ resting }) => resting.length > 0,
  clientTold: told,
  clientOutcomes: told,
  clientReturns: libraryReturns,
  clientPings: ({ libraryClients }) => libraryClients.size > 0,
  afterFailure: ({ processes }) => processes.some(({ failedMs }) => failedMs !== undefined),
  zab: peer('applied'),
  legality: peer('ended'),
  quorumCommits: peer('applied'),
  acknowledgedWhere: peer('applied'),
  epochFiles: peer('epochFiles'),
  peerWords: peer('says'),
  timeliness: peer('applied'),
  convergence: ({ quietStates }) => quietStates.some((states) => states.length > 1),
};
